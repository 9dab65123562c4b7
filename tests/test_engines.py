"""The code of docs/scale.md for other engines, exactly as it is on the page: `make test-engines`.

Spark, Ray, LightGBM and XGBoost are no dependencies of any extra, so each test needs what it names.
"""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels import DecoupledClassifier, infer
from looselabels.blocks import Blocks
from looselabels.inference import add_passes, class_proba_from, climb, one_pass
from tests.learning.test_row_sample import gaussians
from tests.pages import DOCS, blocks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of engines, which do not care for ours
]
TRANSITION = np.array([[0.8, 0.2], [0.1, 0.9]])
N_ROWS = 6000


def code_with(words) -> str:
    """Return the one block of the page that has these words and is not run with the page."""
    page = blocks(DOCS / "scale.md")
    (code,) = [code for _, language, code in page if language == "text" and words in code]
    return code


def run(words, **names) -> dict:
    """Run the block with these words, and return all names."""
    exec(compile(code_with(words), f"docs/scale.md, {words}", "exec"), names)
    return names


def label_proba():
    """Yield blocks, as the function of the same name on the page does."""
    for seed in range(3):
        positive = np.random.default_rng(seed).uniform(0.1, 0.8, size=1000)
        yield np.column_stack([positive, 1 - positive])


@pytest.fixture
def page_names():
    """What the blocks of the page use from the blocks before them."""
    of_the_page = (add_passes, class_proba_from, climb, one_pass, label_proba)
    return {"transition": TRANSITION, "np": np} | {name.__name__: name for name in of_the_page}


@pytest.fixture(scope="module")
def expected():
    found = infer(Blocks(label_proba), TRANSITION, pseudocounts=100 * TRANSITION)
    return found._replace(class_proba=found.class_proba.to_array())


def test_ray_gives_the_answer_of_rows_in_memory(page_names, expected):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        found = run("ray.put", **page_names)
        class_proba = np.concatenate(ray.get(found["class_proba"]))
    finally:
        ray.shutdown()
    assert_allclose(found["fitted"], expected.transition, atol=1e-6)
    assert_allclose(class_proba, expected.class_proba, atol=1e-4)


def test_spark_gives_the_answer_of_rows_in_memory(page_names, expected, tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # of the workers
    rows = pd.DataFrame(np.concatenate(list(label_proba())), columns=["yes", "no"])
    rows.to_parquet("label_proba.parquet")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "700").getOrCreate()
    try:
        found = run("SparkSession", **page_names)
        # files are not in the order of the rows, so rows are compared by their values
        written = spark.read.parquet("class_proba.parquet").toPandas()
    finally:
        spark.stop()
    assert_allclose(found["fitted"], expected.transition, atol=1e-6)
    assert written.columns.tolist() == ["positive", "negative"]
    assert_allclose(np.sort(written["positive"]), np.sort(expected.class_proba[:, 0]), atol=1e-4)


# ----------------------------------------------------------------------------- features in Dask


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A Parquet file with features and labels of three classes, and these classes."""
    pytest.importorskip("dask.dataframe", reason="the extra `dask` is not installed")
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    X, y, class_proba = gaussians(N_ROWS, [0.5, 0.3, 0.2])
    rng = np.random.default_rng(1)
    label = np.where(rng.random(N_ROWS) < 0.1, rng.integers(3, size=N_ROWS), y)
    frame = pd.DataFrame({"length": X[:, 0], "width": X[:, 1], "label": label})
    frame.to_parquet("table.parquet", row_group_size=N_ROWS // 8)
    return frame, class_proba


@pytest.fixture
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_the_page_fits_to_a_table_of_dask(table):
    pytest.importorskip("distributed")
    _, class_proba = table
    found = run("dd.read_parquet")
    try:
        predicted = found["class_proba"].compute()
    finally:
        cluster = found["client"].cluster
        found["client"].close()
        cluster.close()
    assert found["clf"].n_features_in_ == 2
    assert np.abs(predicted - class_proba).mean() < 0.06


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("is_table", [True, False])
def test_estimators_of_lightgbm_and_xgboost_learn_on_the_cluster(table, client, kind, is_table):
    pytest.importorskip(kind)
    import dask.dataframe as dd

    frame, class_proba = table
    parts = dd.from_pandas(frame, npartitions=8)
    X, labels = parts[["length", "width"]], parts["label"]
    if not is_table:
        X = X.to_dask_array(lengths=True)
    if kind == "lightgbm":
        found = run("DaskLGBMClassifier()", X=X, labels=labels)
        clf, predicted = found["clf"], found["class_proba"].compute()
    else:
        from xgboost.dask import DaskXGBClassifier

        clf = DecoupledClassifier(DaskXGBClassifier(max_depth=3), noise=0.1).fit(X, labels)
        predicted = clf.predict_proba(X).compute()
    assert clf.n_fit_rows_ == N_ROWS
    assert np.abs(clf.class_proba_ - class_proba).mean() < 0.1
    assert (clf.class_proba_.argmax(axis=1) == class_proba.argmax(axis=1)).mean() > 0.85
    in_memory = X.compute()
    assert_allclose(clf.predict_proba(in_memory), predicted, atol=1e-6)
    # rows that a model has learned from would be predicted better than it can be
    index, rows = clf.label_scores_.label_index, np.arange(N_ROWS)
    seen = -np.log(clf.estimator_.predict_proba(in_memory)[rows, index]).mean()
    unseen = -np.log(clf.label_scores_.label_proba[rows, index]).mean()
    assert unseen > seen


def test_training_that_fails_on_the_workers_is_one_clear_error(table, client):
    pytest.importorskip("xgboost")
    import dask.array as da
    from xgboost.dask import DaskXGBClassifier

    X = da.from_array(table[0][["length", "width"]].to_numpy(), chunks=(750, 2))
    broken = DaskXGBClassifier(tree_method="no such method")
    with pytest.raises(RuntimeError, match="DaskXGBClassifier could not be trained on the Dask"):
        DecoupledClassifier(broken).fit(X, table[0]["label"])
