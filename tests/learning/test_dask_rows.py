"""Features in Dask: the answers of rows in memory, whatever the blocks, also if workers die."""

import os
import signal
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from looselabels import DecoupledClassifier, audit
from looselabels.learning import dask_rows
from tests.learning.test_row_sample import gaussians

pytestmark = [
    pytest.mark.slow,  # because the extra `bench` has Dask
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # a killed worker closes no socket
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
dask = pytest.importorskip("dask", reason="the extra `dask` is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
import pandas as pd  # noqa: E402 - after the checks

N_ROWS, BLOCK_ROWS = 1800, 300
ROWWISE = ("class_proba_", "class_proba_given_label_", "label_proba_", "gap_")


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture
def cluster():
    quiet = {"silence_logs": "CRITICAL", "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, **quiet) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


@pytest.fixture(scope="module")
def sample():
    X, y, _ = gaussians(N_ROWS, [0.6, 0.3, 0.1])
    rng = np.random.default_rng(1)
    return X, np.where(rng.random(N_ROWS) < 0.1, rng.integers(3, size=N_ROWS), y)


def classifier(**parameters):
    options = {"noise": 0.1, "max_fit_rows": 500, "refit": False, "random_state": 0} | parameters
    return DecoupledClassifier(options.pop("estimator", LogisticRegression()), **options)


def assert_same(found, expected):
    assert found.n_fit_rows_ == expected.n_fit_rows_
    for name in ROWWISE:
        assert isinstance(getattr(found, name), np.ndarray)
        assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-6, err_msg=name)
    assert_allclose(found.transition_.proba, expected.transition_.proba, atol=1e-8)
    assert_allclose(found.class_prior_, expected.class_prior_, atol=1e-6)
    assert found.objective_[-1] == pytest.approx(expected.objective_[-1], rel=1e-6)


# -------------------------------------------------------------------------------- without a cluster


@pytest.mark.parametrize("chunks", [(7 * 60, 1), (N_ROWS, 2), (101, 2)])
@pytest.mark.parametrize(
    "options",
    [{}, {"strength": 50.0}, {"noise": "estimate"}, {"calibrate": "temperature"}],
    ids=["known transition", "inferred transition", "estimated noise", "calibrated labels"],
)
def test_a_fit_gives_the_answer_of_rows_in_memory_for_any_blocks(threads, sample, options, chunks):
    X, labels = sample
    expected = classifier(**options).fit(X, labels)
    assert expected.n_fit_rows_ == 500
    found = classifier(**options).fit(da.from_array(X, chunks=chunks), labels)
    assert_same(found, expected)


def test_columns_with_one_value_per_row_may_be_in_dask_or_in_memory(threads, sample):
    X, labels = sample
    columns = {
        "sample_weight": np.random.default_rng(0).random(N_ROWS),
        "groups": np.arange(N_ROWS) // 3,
        "known_classes": np.where(np.arange(N_ROWS) % 50 == 0, 1.0, np.nan),
    }
    expected = classifier(strength=50.0).fit(X, labels, **columns)
    rows = da.from_array(X, chunks=(BLOCK_ROWS, 2))
    for size in (BLOCK_ROWS, 450):  # of the blocks of the other columns
        given = {name: da.from_array(column, chunks=size) for name, column in columns.items()}
        found = classifier(strength=50.0).fit(rows, da.from_array(labels, chunks=size), **given)
        assert_same(found, expected)
    assert_same(classifier(strength=50.0).fit(rows, labels, **columns), expected)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier().fit(rows, labels[1:])


def test_a_table_that_is_not_too_large_is_fitted_in_memory(threads, sample):
    X, labels = sample
    X, labels = np.repeat(X[:200], 2, axis=0), np.repeat(labels[:200], 2)  # copies are found
    halves = list(np.arange(400).reshape(2, 200))
    folds = [tuple(halves), tuple(halves[::-1])]
    for options in ({"max_fit_rows": 400, "refit": 1}, {"max_fit_rows": None}, {"cv": folds}):
        expected = classifier(**options).fit(X, labels)
        found = classifier(**options).fit(da.from_array(X, chunks=(90, 2)), labels)
        assert_same(found, expected)
        assert found.label_scores_.groups.are_copies
        assert found.n_rounds_ == expected.n_rounds_


def table_of(X):
    """Return a table with a column of numbers and one of text."""
    return pd.DataFrame({"number": X[:, 0], "word": np.where(X[:, 1] > 0.5, "high", "low")})


def test_a_table_keeps_the_names_and_types_of_its_columns(threads, sample):
    X, labels = sample
    one_hot = ColumnTransformer([("word", OneHotEncoder(), ["word"])], remainder="passthrough")
    estimator = make_pipeline(one_hot, LogisticRegression())
    frame = table_of(X)
    expected = classifier(estimator=estimator).fit(frame, labels)
    table = dd.from_pandas(frame, npartitions=5)
    found = classifier(estimator=estimator).fit(table, dd.from_pandas(pd.Series(labels), 5))
    assert_same(found, expected)
    assert found.feature_names_in_.tolist() == ["number", "word"]
    assert_allclose(found.predict_proba(table).compute(), expected.predict_proba(frame), atol=1e-6)
    swapped = dd.from_pandas(frame[["word", "number"]], npartitions=2)
    assert_allclose(
        found.predict_proba(swapped).compute(), expected.predict_proba(frame), atol=1e-6
    )


def test_blocks_may_be_empty_and_of_unknown_size(threads, sample):
    X, labels = sample
    kept = (np.arange(N_ROWS) // BLOCK_ROWS) % 3 != 1  # some blocks are empty
    expected = classifier().fit(X[kept], labels[kept])
    is_kept = da.from_array(kept, chunks=BLOCK_ROWS)
    rows = da.from_array(X, chunks=(BLOCK_ROWS, 2))[is_kept]
    assert np.isnan(rows.chunks[0]).all()
    found = classifier().fit(rows, da.from_array(labels, chunks=BLOCK_ROWS)[is_kept])
    assert_same(found, expected)
    assert_array_equal(found.predict(rows).compute(), expected.predict(X[kept]))
    frame = dd.from_pandas(pd.DataFrame(X, columns=["u", "v"]), npartitions=6, sort=False)
    table = frame.map_partitions(lambda part: part[kept[part.index]])
    assert 0 in table.map_partitions(len).compute().tolist()
    assert_same(classifier().fit(table, labels[kept]), expected)
    with pytest.raises(ValueError, match="X has no rows: all of its blocks are empty"):
        classifier().fit(rows[rows[:, 0] > 99], labels)


def test_predictions_of_dask_are_lazy_and_equal_those_in_memory(threads, sample):
    X, labels = sample
    fitted = classifier(decide="balanced").fit(X, np.array(["a", "b", "c"])[labels])
    read = []
    rows = da.map_blocks(remember, da.from_array(X, chunks=(400, 2)), read, dtype=float, meta=X[:0])
    given = np.array(["a", "b", "c"])[labels]
    pairs = [
        (fitted.predict_proba(rows), fitted.predict_proba(X)),
        (fitted.predict_log_proba(rows), fitted.predict_log_proba(X)),
        (fitted.predict_label_proba(rows), fitted.predict_label_proba(X)),
        (fitted.predict_proba_given_label(rows, given), fitted.predict_proba_given_label(X, given)),
        (
            fitted.predict_proba_given_label(rows, da.from_array(given, chunks=400)),
            fitted.predict_proba_given_label(X, given),
        ),
    ]
    classes = fitted.predict(rows)
    assert read == []
    assert classes.dtype == "<U1"
    assert_array_equal(classes.compute(), fitted.predict(X))
    for lazy, expected in pairs:
        assert isinstance(lazy, da.Array)
        assert lazy.shape == expected.shape
        assert_allclose(lazy.compute(), expected, atol=1e-6)
    assert fitted.score(rows, da.from_array(given, chunks=100)) == fitted.score(X, given)
    plain = classifier(calibrate=None, refit=False).fit(X, labels)
    assert_allclose(
        plain.predict_label_proba(rows).compute(), plain.predict_label_proba(X), atol=1e-6
    )


def remember(block, read):
    read.append(len(block))
    return block


def test_single_precision_features_give_predictions_of_the_type_that_is_promised(threads, sample):
    X, labels = sample
    rows = da.from_array(X.astype("f4"), chunks=(400, 2))
    lazy = classifier().fit(X, labels).predict_proba(rows)
    assert lazy.dtype == lazy.compute().dtype


def test_several_labels_per_row_are_fitted_in_memory(threads, sample):
    X, labels = sample
    answers = np.column_stack([labels, labels, np.roll(labels, 1)])[:400]
    expected = classifier(noise=None).fit(X[:400], answers)
    rows = da.from_array(X[:400], chunks=(150, 2))
    found = classifier(noise=None, max_fit_rows=100).fit(rows, da.from_array(answers, chunks=150))
    assert_allclose(found.class_proba_, expected.class_proba_, atol=1e-6)
    assert_allclose(
        found.predict_proba_given_label(rows, da.from_array(answers, chunks=100)),
        expected.predict_proba_given_label(X[:400], answers),
        atol=1e-6,
    )


def test_an_audit_takes_a_classifier_that_was_fitted_to_dask(threads, sample):
    X, labels = sample
    rows = da.from_array(X, chunks=(BLOCK_ROWS, 2))
    found, expected = (audit(classifier().fit(each, labels), labels) for each in (rows, X))
    assert found.summary() == expected.summary()


def test_sparse_blocks_and_unknown_categories_are_one_clear_error(threads, sample):
    X, labels = sample
    rows = da.from_array(X, chunks=(BLOCK_ROWS, 2))
    with pytest.raises(TypeError, match=r"blocks of type csr_matrix; they must be NumPy.*toarray"):
        classifier().fit(rows.map_blocks(csr_matrix), labels)
    undeclared = rows.map_blocks(csr_matrix, dtype=float, meta=X[:0])
    with pytest.raises(TypeError, match=r"Block \d is a sparse csr_matrix"):
        classifier().fit(undeclared, labels)
    table = dd.from_pandas(table_of(X), npartitions=3).astype({"word": "category"})
    with pytest.raises(ValueError, match=r"not known yet, in \['word'\].*X.categorize\(\)"):
        classifier().fit(table, labels)
    with pytest.raises(TypeError, match="table of Dask; got Delayed"):
        classifier().fit(dask.delayed(X), labels)


def test_an_invalid_block_is_named(threads, sample):
    fitted, X = classifier().fit(*sample), sample[0].copy()
    X[700, 0] = np.nan
    rows = da.from_array(X, chunks=(BLOCK_ROWS, 2))
    with pytest.raises(ValueError, match=r"NaN(.|\n)*This is in block 2"):
        fitted.predict_proba(rows).compute()


# ------------------------------------------------------------------------------------- on a cluster


def block_of_features(block, before=lambda number: None, block_info=None):
    """Return a block of features after `before` was called with its number."""
    before(block_info[0]["chunk-location"][0])
    return block


def lazy_features(X, **options):
    rows = da.from_array(X, chunks=(BLOCK_ROWS, 2))
    return rows.map_blocks(block_of_features, dtype=float, meta=X[:0], **options)


def test_a_cluster_gives_the_answer_of_rows_in_memory(cluster, sample):
    X, labels = sample
    expected, rows = classifier(strength=50.0).fit(X, labels), lazy_features(X)
    found = classifier(strength=50.0).fit(rows, labels)
    assert_same(found, expected)
    assert_allclose(found.predict_proba(rows).compute(), expected.predict_proba(X), atol=1e-6)
    assert_array_equal(found.predict(rows).compute(), expected.predict(X))
    table = dd.from_pandas(pd.DataFrame(X, columns=["u", "v"]), npartitions=4)
    assert_same(classifier(strength=50.0).fit(table, labels), expected)


def kill_the_second_time(folder, number):
    """Kill this worker when block 4 is read for the second time, which is to predict it."""
    if number == 4:
        earlier = len(list(Path(folder).iterdir()))
        Path(folder, str(earlier)).touch()
        if earlier == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def test_the_answer_is_the_same_if_a_worker_is_killed_while_it_predicts(cluster, sample, tmp_path):
    X, labels = sample
    rows = lazy_features(X, before=partial(kill_the_second_time, str(tmp_path)))
    found = classifier(strength=50.0).fit(rows, labels)
    assert len(list(tmp_path.iterdir())) == 3
    assert_same(found, classifier(strength=50.0).fit(X, labels))


def test_the_answer_is_the_same_if_a_worker_is_killed_during_inference(
    cluster, sample, monkeypatch
):
    X, labels = sample
    expected, infer, killed = classifier(strength=50.0).fit(X, labels), dask_rows.infer, []

    def kill_first(rows, *arguments, **options):
        if isinstance(rows, da.Array):
            killed.append(next(iter(cluster.workers.values())).process.pid)
            os.kill(killed[0], signal.SIGKILL)
        return infer(rows, *arguments, **options)

    monkeypatch.setattr(dask_rows, "infer", kill_first)
    assert_same(classifier(strength=50.0).fit(lazy_features(X), labels), expected)
    assert len(killed) == 1


def kill_always(number):
    if number == 3:
        os._exit(1)


def test_a_block_that_always_kills_its_worker_is_named(cluster, sample):
    X, labels = sample
    clf = classifier().fit(X, labels)
    with pytest.raises(RuntimeError, match=r"computed block 3 of the rows died.*smaller blocks"):
        clf.fit(lazy_features(X, before=kill_always), labels)
    assert clf.n_fit_rows_ == 500  # what was fitted before is unchanged


def test_workers_keep_nothing_after_a_fit(cluster, sample):
    X, labels = sample
    fitted = classifier().fit(lazy_features(X), labels)
    client = distributed.get_client()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(50):
            if not any(client.has_what().values()):
                break
            client.run(lambda: None)
    assert not any(client.has_what().values())
    assert fitted.label_scores_.remote is None
