"""A saved model loads as the same model; a damaged or hostile one is one clear line."""

import errno
import io
import os
import pickle
import shutil
import subprocess
import sys
import time
import warnings
import zipfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from shutil import copy

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from looselabels import (
    BalancedForestClassifier,
    DecoupledClassifier,
    Transition,
    load,
    save,
)
from looselabels.learning import persistence
from looselabels.learning.density import KernelDensityClassifier
from looselabels.learning.persistence import ARRAYS, CLASS_ESTIMATOR, DECOUPLING, ESTIMATOR
from looselabels.learning.plain_values import ARRAY_NAMES
from tests.learning.saved_models import (
    FOREST,
    OLD,
    TRUTH,
    X,
    Y,
    assert_same_model,
    decoupled,
    refused,
    rewrite,
)

pytest.importorskip("skops")
# A forest of five trees is surer than it should be; what it says is not the subject here.
pytestmark = pytest.mark.filterwarnings(
    "ignore::looselabels.exceptions.IdentifiabilityWarning",
    "ignore::looselabels.exceptions.InconsistentLabelWarning",
)

TEXTS = np.array([("small cat", "big dog")[k] + " pet" * (i % 3) for i, k in enumerate(TRUTH)])
PROBA = np.random.default_rng(0).dirichlet([1, 1, 1], size=60)
MERGED = Transition.combine(
    {"pets": Transition.identity(["cat", "dog"]), "web": Transition.partial(["cat", "dog"])},
    sizes={"pets": 1, "web": 1},
)
MERGED_Y = [("pets", y) if y else ("web", ("cat", "dog", None)[i % 3]) for i, y in enumerate(Y)]
FROZEN = FrozenEstimator(GaussianNB().fit(X[::2], np.array(["dog", "cat"])[1 - TRUTH[::2]]))


class Majority(ClassifierMixin, BaseEstimator):
    """An estimator that no one but these tests knows."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved model, which no test changes."""
    folder = tmp_path_factory.mktemp("models") / "pets"
    save(decoupled(FOREST).fit(X, Y), folder)
    return folder


@pytest.fixture
def model(saved, tmp_path):
    """A saved model, in a folder that holds nothing else."""
    return Path(shutil.copytree(saved, tmp_path / "models" / "pets"))


# ----------------------------------------------------------------------------------- the same model


@pytest.mark.parametrize(
    ("clf", "X", "y"),
    [
        pytest.param(decoupled(), X, Y, id="the default"),
        pytest.param(decoupled(FOREST, strength=10), X, Y, id="learned transition"),
        pytest.param(decoupled(FOREST, label_weights="costs"), X, Y, id="costs"),
        pytest.param(decoupled(FOREST, label_weights=[3, 2, 1]), X, Y, id="weights"),
        pytest.param(decoupled(FOREST, calibrate="temperature"), X, Y, id="temperature"),
        pytest.param(decoupled(FOREST, calibrate="marginals"), X, Y, id="marginals"),
        pytest.param(decoupled(FOREST, calibrate=None), X, Y, id="as it is"),
        pytest.param(decoupled(noise="estimate"), X, Y, id="balanced forest"),
        pytest.param(
            decoupled(negative="wolf", class_prior="best-bin", refit=False),
            *(X, Y),
            id="estimated class prior",
        ),
        pytest.param(decoupled(KernelDensityClassifier()), X, Y, id="kernel densities"),
        pytest.param(decoupled(FOREST, MERGED), X, MERGED_Y, id="tuples as names"),
        pytest.param(decoupled(FOREST), X, TRUTH, id="numbers as names"),
        pytest.param(
            decoupled(FROZEN, Transition.identity(["cat", "dog"])),
            X[1::2],
            np.array(["cat", "dog"])[TRUTH[1::2]],
            id="frozen",
        ),
        pytest.param(decoupled(LogisticRegression()), X, Y, id="logistic"),
        pytest.param(decoupled(SGDClassifier(loss="log_loss", random_state=0)), X, Y, id="sgd"),
        pytest.param(decoupled(KNeighborsClassifier()), X, Y, id="neighbors"),
        pytest.param(decoupled(HistGradientBoostingClassifier(max_iter=3)), X, Y, id="boosting"),
        pytest.param(decoupled(make_pipeline(StandardScaler(), FOREST)), X, Y, id="pipeline"),
        pytest.param(decoupled(make_pipeline(CountVectorizer(), FOREST)), TEXTS, Y, id="counts"),
        pytest.param(decoupled(make_pipeline(TfidfVectorizer(), FOREST)), TEXTS, Y, id="tf-idf"),
    ],
)
def test_a_loaded_model_predicts_as_the_saved_one(clf, X, y, tmp_path):
    save(clf.fit(X, y), tmp_path / "model")
    assert_same_model(clf, load(tmp_path / "model"), X, y)


def test_a_model_loads_where_nothing_has_been_imported(tmp_path):
    clf = decoupled(HistGradientBoostingClassifier(max_iter=3)).fit(X, Y)
    save(clf, tmp_path / "model")
    code = f"import looselabels; print(looselabels.load({str(tmp_path / 'model')!r}).classes_)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "['cat' 'dog']\n"


def test_a_model_whose_estimator_lives_elsewhere_needs_no_skops(tmp_path, monkeypatch):
    clf = decoupled(calibrate="marginals").fit_from_proba(PROBA, Y)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    save(clf, tmp_path / "model")
    assert_same_model(clf, load(tmp_path / "model"), PROBA, Y)
    assert sorted(os.listdir(tmp_path / "model")) == [ARRAYS, DECOUPLING]


def test_a_model_does_not_carry_its_training_rows(model):
    again = load(model)
    rows = ("label_scores_", "label_proba_", "class_proba_", "class_proba_given_label_", "gap_")
    for name in rows:
        assert not hasattr(again, name)
    with zipfile.ZipFile(model / ARRAYS) as archive:
        assert all(member.file_size < 60 * 8 for member in archive.infolist())


def test_a_loaded_model_can_be_saved_again(model, tmp_path):
    save(load(model), tmp_path / "again")
    assert (tmp_path / "again" / ARRAYS).read_bytes() == (model / ARRAYS).read_bytes()
    for folder in (tmp_path / "again", model):  # skops writes the time into its files
        rewrite(folder, lambda content: content.pop("hashes"))
    assert (tmp_path / "again" / DECOUPLING).read_bytes() == (model / DECOUPLING).read_bytes()


# ------------------------------------------------------------------------------------------ writing


def test_a_model_is_replaced_only_when_asked(model):
    clf = decoupled(GaussianNB()).fit(X, Y)
    with pytest.raises(FileExistsError, match=r"pets exists; save\(…, overwrite=True\) replaces"):
        save(clf, model)
    save(clf, model, overwrite=True)
    assert isinstance(load(model).estimator_.estimator, GaussianNB)
    assert os.listdir(model.parent) == ["pets"]


def test_nothing_but_a_model_is_ever_replaced(model):
    clf = load(model)
    (model / "thesis.txt").write_text("ten years of work")
    with pytest.raises(FileExistsError, match=r"it holds \['thesis.txt'\]: it is not overwritten"):
        save(clf, model, overwrite=True)
    (model.parent / "empty").mkdir()
    with pytest.raises(FileExistsError, match=r"it has no decoupling.json: it is not overwritten"):
        save(clf, model.parent / "empty", overwrite=True)
    with pytest.raises(FileExistsError, match="it is not overwritten"):
        save(clf, model / "thesis.txt", overwrite=True)
    assert (model / "thesis.txt").read_text() == "ten years of work"


def test_a_link_to_a_model_stays_a_link(model, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(model)
    save(decoupled(GaussianNB()).fit(X, Y), link, overwrite=True)
    assert link.is_symlink()
    assert isinstance(load(model).estimator_.estimator, GaussianNB)


def test_files_have_exactly_the_names_that_are_documented(saved, tmp_path):
    assert {file.name for file in saved.iterdir()} <= set(persistence.FILES)
    save(load(saved), tmp_path / "model.v2")  # no .npz is appended to a name with a dot
    assert [file.name for file in tmp_path.iterdir()] == ["model.v2"]


def test_the_folder_must_exist(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder; create it first"):
        save(load(model), tmp_path / "nowhere" / "model")


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("place", ["json.dumps", "np.savez", "os.fsync", "skops.io.dump", "load"])
def test_a_full_disk_leaves_the_old_model_and_nothing_else(place, model, monkeypatch):
    before = load(model).predict_proba(X)
    clf = decoupled(GaussianNB()).fit(X, Y)
    with monkeypatch.context() as patch:
        patch.setattr(
            place
            if place.startswith(("skops", "os"))
            else f"looselabels.learning.persistence.{place}",
            full_disk,
        )
        with pytest.raises(OSError, match="No space left on device"):
            save(clf, model, overwrite=True)
    assert os.listdir(model.parent) == ["pets"]
    assert_array_equal(load(model).predict_proba(X), before)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.filterwarnings("ignore:.*ZipFile.__del__")  # NumPy 1.26 leaves its archive open
def test_a_write_to_a_device_that_is_full_is_noticed(model, monkeypatch):
    clf = load(model)
    really_open = open
    monkeypatch.setattr(
        persistence,
        "open",
        lambda file, mode: really_open(
            "/dev/full" if mode == "xb" else file, mode.replace("x", "w")
        ),
        raising=False,
    )
    with pytest.raises(OSError, match="No space left on device"):
        save(clf, model.parent / "new")
    assert os.listdir(model.parent) == ["pets"]


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "broken"), KeyboardInterrupt("stopped")])
def test_a_replacement_that_fails_half_way_is_undone(failure, model, monkeypatch):
    clf, before = load(model), load(model).predict_proba(X)
    rename = Path.rename

    def rename_but_new(self, target):
        if target == model and not self.name.endswith(".old"):
            assert not model.exists()  # the old one has been moved away
            raise failure
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_but_new)
    with pytest.raises(type(failure), match=str(failure.args[-1])):
        save(clf, model, overwrite=True)
    assert os.listdir(model.parent) == ["pets"]
    assert_array_equal(load(model).predict_proba(X), before)


def test_load_says_where_a_killed_save_left_the_old_model(model):
    old = model.rename(model.with_name(f".{model.name}.writing-1.old"))
    with pytest.raises(FileNotFoundError, match=rf"killed left the old model in .*{old.name}"):
        load(model)


def test_load_waits_for_a_save_that_is_between_its_two_renames(model, monkeypatch):
    before = load(model).predict_proba(X)
    moved = model.rename(model.with_name(f".{model.name}.writing-1.old"))
    monkeypatch.setattr(time, "sleep", lambda _: moved.rename(model))
    assert_array_equal(load(model).predict_proba(X), before)


def test_a_current_folder_that_is_gone_is_named(model, monkeypatch):
    clf, gone = load(model), model.with_name("gone")
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for use in (load, partial(save, clf)):
        with pytest.raises(FileNotFoundError, match="new cannot be found: the current folder was"):
            use("new")
    save(clf, model, overwrite=True)


def test_what_killed_saves_left_is_removed_a_day_later(model):
    young, stray = model.parent / ".pets.writing-1", model.parent / ".pets.writing-2"
    for folder in (young, stray):
        (folder / "new").mkdir(parents=True)
    os.utime(stray, (0, 0))
    save(load(model), model, overwrite=True)
    assert sorted(os.listdir(model.parent)) == [young.name, "pets"]


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            make_pipeline(FunctionTransformer(lambda X: X), GaussianNB()),
            r"Not saved, .*no attribute '<lambda>'",
        ),
        (GaussianNB(), "generator"),
    ],
    ids=["a lambda", "a generator"],
)
def test_an_estimator_that_could_not_be_read_back_is_not_saved(estimator, message, model):
    clf = decoupled(estimator).fit(X, Y)
    if isinstance(estimator, GaussianNB):
        clf.estimator_.rows_ = (row for row in X)
    with pytest.raises((TypeError, ValueError), match=message):
        save(clf, model, overwrite=True)
    assert os.listdir(model.parent) == ["pets"]
    assert isinstance(load(model).estimator_.estimator, RandomForestClassifier)


def test_what_cannot_be_saved_is_said(tmp_path):
    with pytest.raises(TypeError, match="save takes a DecoupledClassifier; it is Pipeline"):
        save(make_pipeline(decoupled()), tmp_path / "model")
    with pytest.raises(NotFittedError, match="DecoupledClassifier instance is not fitted yet"):
        save(decoupled(), tmp_path / "model")


def test_without_skops_one_line_says_what_to_install(model, monkeypatch):
    clf = load(model)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    line = r'This needs skops: pip install "looselabels\[save\]"'
    with pytest.raises(ImportError, match=line):
        load(model)
    with pytest.raises(ImportError, match=line):
        save(clf, model.parent / "new")
    assert os.listdir(model.parent) == ["pets"]


# ----------------------------------------------------------------------------- damaged and hostile


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": 1, "schema": 1}', "[" * 10**5, "\0"])
def test_text_that_is_no_model_is_refused(text, model):
    (model / DECOUPLING).write_text(text)
    refused(model, DECOUPLING, "decoupling.json cannot be loaded: ")


@pytest.mark.parametrize("file", [DECOUPLING, ARRAYS, ESTIMATOR])
def test_a_missing_file_is_named(file, model):
    (model / file).unlink()
    refused(model, file, f"{file} is missing: the model is not complete")


@pytest.mark.parametrize("file", [DECOUPLING, ARRAYS, ESTIMATOR])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(file, share, model):
    content = (model / file).read_bytes()
    (model / file).write_bytes(content[: int(share * len(content))])
    refused(model, file, f"{file} cannot be loaded: ")


@pytest.mark.parametrize("file", [ARRAYS, ESTIMATOR])
def test_flipped_bytes_never_pass_unnoticed(file, model):
    content = (model / file).read_bytes()
    expected = load(model).predict_proba(X)
    for position in np.random.default_rng(0).integers(len(content), size=20):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        (model / file).write_bytes(damaged)
        with suppress(ValueError):  # unless the byte says nothing, as that of a date
            assert_array_equal(load(model).predict_proba(X), expected)


def test_compressed_arrays_are_refused_as_bombs_are_compressed(model):
    with open(model / ARRAYS, "wb") as handle:
        np.savez_compressed(handle, class_prior=np.zeros(10**6))
    refused(model, ARRAYS, "it holds 'class_prior.npy', compressed")


def test_an_array_that_claims_to_be_huge_is_refused(model):
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(model / ARRAYS, "w") as archive:
        for name in ARRAY_NAMES:
            archive.writestr(f"{name}.npy", header.getvalue())
    refused(model, ARRAYS, "cannot be loaded: ")


def test_an_estimator_file_with_paths_is_refused(model):
    with zipfile.ZipFile(model / ESTIMATOR, "a") as archive:
        archive.writestr("../../.bashrc", "rm -rf /")
    refused(model, ESTIMATOR, r"it holds the path '../../.bashrc'")


class Bomb:
    def __reduce__(self):
        return os.abort, ()


@pytest.mark.parametrize("file", [DECOUPLING, ARRAYS, ESTIMATOR])
def test_pickles_are_never_run(file, model):
    (model / file).write_bytes(pickle.dumps(Bomb()))
    refused(model, file, f"{file} cannot be loaded: ")


def test_a_pickle_instead_of_a_folder_is_refused(tmp_path):
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match=r"model.pkl is a file; load .* not a pickle"):
        load(tmp_path / "model.pkl")
    with pytest.raises(FileNotFoundError, match="nowhere does not exist; load reads the folder"):
        load(tmp_path / "nowhere")


def test_unknown_types_are_listed_and_loaded_only_when_trusted(tmp_path):
    clf = decoupled(Majority(), cv=2).fit(X, Y)
    save(clf, tmp_path / "model")
    name = f"{Majority.__module__}.Majority"
    refused(
        tmp_path / "model", ESTIMATOR, rf"data, {name}\. If .*: load\(path, trusted=\['{name}'\]\)"
    )
    assert_same_model(clf, load(tmp_path / "model", trusted=[name]), X, Y)


def test_the_estimator_of_another_model_is_refused(model, tmp_path):
    save(decoupled(FOREST).fit(X, np.arange(60) % 5), tmp_path / "other")
    (tmp_path / "other" / ESTIMATOR).replace(model / ESTIMATOR)
    refused(model, ESTIMATOR, "its labels are not those of decoupling.json")


@pytest.mark.parametrize("file", [ARRAYS, ESTIMATOR])
def test_files_of_two_models_are_never_mixed(file, model, tmp_path):
    save(decoupled(FOREST, noise=0.2).fit(X, Y), tmp_path / "other")
    copy(tmp_path / "other" / file, model / file)  # as if `save` replaced the model meanwhile
    with pytest.raises(ValueError, match=rf"{file} cannot be loaded: it does not belong to deco"):
        load(model)


def test_what_skops_holds_must_be_a_classifier(model):
    pytest.importorskip("skops.io").dump({"no": "classifier"}, model / ESTIMATOR)
    refused(model, ESTIMATOR, "'dict' object has no attribute 'classes_'")


def test_another_version_of_scikit_learn_is_warned_of_once(model):
    rewrite(model, lambda content: content.update({"scikit-learn": "1.0"}))
    with pytest.warns(InconsistentVersionWarning) as caught:
        load(model)
    assert len(caught) == 1
    assert caught[0].message.original_sklearn_version == "1.0"
    assert caught[0].message.current_sklearn_version == sklearn.__version__
    assert caught[0].filename == __file__


def test_the_forest_of_classes_is_saved_beside_that_of_labels(tmp_path):
    clf = DecoupledClassifier(BalancedForestClassifier(5, random_state=0), refit=1, random_state=0)
    save(clf.fit(X, Y), tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert (tmp_path / "model" / CLASS_ESTIMATOR).exists()
    (tmp_path / "model" / CLASS_ESTIMATOR).unlink()
    refused(tmp_path / "model", CLASS_ESTIMATOR, "is missing: the model is not complete")


def test_a_forest_of_other_classes_is_refused(tmp_path):
    forest = BalancedForestClassifier(5, random_state=0)
    three = np.where(np.arange(60) % 3 == 0, "fish", Y)
    for name, labels in (("two", Y), ("three", three)):
        clf = DecoupledClassifier(forest, refit=1, random_state=0)
        save(clf.fit(X, labels), tmp_path / name)
    copy(tmp_path / "three" / CLASS_ESTIMATOR, tmp_path / "two" / CLASS_ESTIMATOR)
    refused(tmp_path / "two", CLASS_ESTIMATOR, "not a forest of the classes")


def test_any_model_of_the_classes_is_saved(tmp_path):
    clf = DecoupledClassifier(GaussianNB(), refit=2).fit(X, Y)
    save(clf, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.n_rounds_ == 2
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    other = DecoupledClassifier(GaussianNB()).fit(X, np.where(np.arange(60) % 3 == 0, "fish", Y))
    save(other, tmp_path / "three")  # its estimator has three classes
    copy(tmp_path / "three" / ESTIMATOR, tmp_path / "model" / CLASS_ESTIMATOR)
    refused(tmp_path / "model", CLASS_ESTIMATOR, "its classes are not those of")


# ------------------------------------------------------------------------------- files of 0.1


def rows_of_old_models(name):
    """Return the rows that make.py, next to the files, had the models of 0.1 predict."""
    X, y = load_iris(return_X_y=True)
    label_proba = np.eye(3)[y] + 0.2
    label_proba /= label_proba.sum(axis=1, keepdims=True)
    return label_proba[::7] if name == "proba" else X[::7] + 0.05


@pytest.mark.parametrize("name", ["forest", "kernel", "proba"])
def test_models_of_looselabels_0_1_load_and_predict_the_same(name):
    if name == "forest" and sklearn.__version__.split(".")[:2] != ["1", "9"]:
        pytest.skip("trees of scikit-learn 1.9")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        clf = load(OLD / name)
    with np.load(OLD / "expected.npz") as expected:
        assert_allclose(clf.predict_proba(rows_of_old_models(name)), expected[name], atol=1e-12)


def test_an_old_model_can_be_saved_again(tmp_path):
    rows = rows_of_old_models("kernel")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        old = load(OLD / "kernel")
    save(old, tmp_path / "new")
    assert_array_equal(load(tmp_path / "new").predict_proba(rows), old.predict_proba(rows))
