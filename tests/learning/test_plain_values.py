"""All but the estimators comes back from plain values; numbers that do not fit are refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

from looselabels import DecoupledClassifier, Transition, load, save
from looselabels.learning.persistence import ARRAYS, DECOUPLING
from tests.learning.saved_models import (
    FOREST,
    OLD,
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


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved model, which no test changes."""
    folder = tmp_path_factory.mktemp("models") / "pets"
    save(decoupled(GaussianNB()).fit(X, Y), folder)
    return folder


@pytest.fixture
def model(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "pets"))


# ---------------------------------------------------------------------------------- the same values


def test_parameters_come_back_and_the_estimator_unfitted(tmp_path):
    clf = decoupled(
        FOREST,
        Transition.partial(["cat", "dog"], labeled=0.6),
        strength=5,
        class_prior={"dog": 0.5, "cat": 0.5},
        label_weights={None: 1, "cat": 2, "dog": 3},
        cv=3,
        calibrate="temperature",
        n_jobs=1,
        random_state=np.int64(7),
    ).fit(X, Y)
    save(clf, tmp_path / "model")
    again = load(tmp_path / "model")
    for name, value in clf.get_params(deep=False).items():
        if name != "estimator":
            assert getattr(again, name) == value, name
    assert again.estimator.get_params() == FOREST.get_params()
    assert not hasattr(again.estimator, "estimators_")
    assert again.fit(X, Y).transition_ == clf.transition_


def test_infinite_strength_and_the_default_estimator_survive(tmp_path):
    save(decoupled().fit(X, Y), tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.strength == np.inf
    assert again.estimator is None
    assert "Infinity" not in (tmp_path / "model" / DECOUPLING).read_text()


def test_parameters_that_json_cannot_hold_are_the_default(tmp_path):
    clf = decoupled(GaussianNB(), cv=KFold(3), random_state=np.random.RandomState(0))
    save(clf.fit(X, Y), tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.cv is None
    assert again.random_state is None


def test_feature_names_survive(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["length", "weight"])
    clf = decoupled(FOREST).fit(frame, Y)
    save(clf, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == ["length", "weight"]
    assert again.n_features_in_ == 2
    assert_same_model(clf, again, frame, Y)


def test_a_class_prior_without_the_negative_class_survives(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 2)) + np.repeat([[0, 0], [4, 4]], 30, axis=0)
    labels = np.where(np.arange(60) % 3 == 0, None, np.repeat(["cat", "dog"], 30))
    clf = DecoupledClassifier(GaussianNB(), negative="other", class_prior=[0.4, 0.4], cv=2)
    clf.set_params(random_state=0)
    save(clf.fit(X, labels), tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.class_prior == pytest.approx({"cat": 0.4, "dog": 0.4, "other": 0.2})
    assert (again.fit(X, labels).class_proba_ == clf.class_proba_).all()


def test_all_that_affects_predictions_is_in_the_file(tmp_path):
    clf = decoupled(GaussianNB()).fit(X, Y)
    clf.class_calibration_ = clf.class_calibration_._replace(floor=0.2)
    save(clf, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.class_calibration_.floor == 0.2
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.label_model_.sources == clf.label_model_.sources
    assert again.label_model_.assumed == clf.label_model_.assumed


def test_an_old_model_says_where_its_numbers_come_from():
    sources = load(OLD / "proba").label_model_.sources
    assert sources == ("implied", "specified", "implied", "implied")


# ------------------------------------------------------------------------------------ forged values


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c.update(schema=8),
            "schema 8; looselabels .* reads schemas 3 and 7. A newer looselabels",
        ),
        (lambda c: c.update(schema=6), "schema 6; .* Fit and save the model again"),
        (lambda c: c.update(schema=1), "schema 1; .* Fit and save the model again"),
        (lambda c: c.update(schema=None), "it has schema None"),
        (lambda c: c.update(extra=1), r"it names \['extra'\]"),
        (lambda c: c.pop("sources"), r"it lacks \['sources'\]"),
        (lambda c: c["sources"].pop("noise"), r"sources lacks \['noise'\]"),
        (lambda c: c["sources"].update(noise="guessed"), "source .* 'guessed'"),
        (lambda c: c["calibration"].update(power=0), "power must be positive and finite.* 0.0"),
        (lambda c: c["calibration"].update(floor=2), r"floor from 0 to 1, .*; they are .*2\.0"),
        (
            lambda c: c["class_calibration"].update(floor=[0.1] * 9),
            r"floor from 0 to 1, one number or one for each of \('cat', 'dog'\); they are",
        ),
        (lambda c: c["calibration"].update(power="\x1b[31m"), r"could not convert .* '\\x1b"),
        (lambda c: c["calibration"].update(power=float("nan")), "NaN is not allowed"),
        (lambda c: c.update(strength="-1"), "strength must be 0 or more"),
        (lambda c: c.update(estimator="pickle"), "estimator must be one of .*; it is 'pickle'"),
        (lambda c: c["parameters"].update(strength="-1"), "strength must be 0 or more; it is -1.0"),
        (lambda c: c["parameters"].update(calibrate="much"), "calibrate must be 'classes', "),
        (lambda c: c["parameters"].update(colour="red"), "unexpected keyword argument 'colour'"),
        (lambda c: c["parameters"].update(class_prior=[1]), r"class_prior has shape \(1,\)"),
        (lambda c: c["transition"].update(schema=9), "has schema 9"),
        (lambda c: c.update(n_iter=-1), "n_iter must be a whole number from 0; it is -1"),
        (lambda c: c.update(n_rounds="one"), "n_rounds must be a whole number from 0; it is 'one'"),
        (lambda c: c.update(n_features_in=2.5), "n_features_in must be a whole number from 0"),
        (lambda c: c.update(feature_names_in=["a"]), "does not name each of the features"),
        (lambda c: c.update(feature_names_in=[1, 2]), "does not name each of the features"),
        (
            lambda c: c.update({"scikit-learn": "1.0\x1b]0;owned\x07"}),
            r"'1.0\\x1b\]0;owned\\x07' is no version of scikit-learn",
        ),
        (lambda c: c.update(looselabels="9" * 10**6), "9… is no version of looselabels"),
        (lambda c: c.update(class_share_room=[[0.1]]), "not enough values to unpack"),
        (lambda c: c.update(class_share_room=[[0.1, 2], [0, 0]]), "class_share_room of 'dog' is 2"),
        (lambda c: c["transition"]["proba"].pop(), r"transition has shape \(1, 3\)"),
    ],
)
def test_json_that_does_not_fit_is_refused(change, message, model):
    rewrite(model, change)
    refused(model, DECOUPLING, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_prior": np.ones(3) / 3}, r"class_prior has shape \(3,\)"),
        ({"class_prior": np.array([1.5, -0.5])}, "class_prior of 'dog' is -0.5"),
        ({"class_prior": np.array(["a", None], dtype=object)}, "Object arrays cannot be loaded"),
        ({"label_weights": np.ones((3, 3))}, r"label_weights has shape \(3, 3\)"),
        ({"factor": np.array([1, np.nan, 1])}, "factor of 'dog' is nan"),
        ({"class_prior": np.array([0.5, 0.6])}, "class_prior must sum to 1; it sums to 1.1"),
        ({"class_prior_interval": np.array([[0.6, 0.1], [0.5, 0.2]])}, "low ends below high ends"),
        ({"class_prior_interval": np.array([[0.6, 0.1], [0.5, 2]])}, "class_prior_interval of "),
        ({"objective": np.array([1.0, np.nan])}, "objective must be a list of finite numbers"),
        ({"objective": np.array("high")}, "objective must be a"),
        ({"extra": np.ones(1)}, r"it names \['extra'\]"),
        ({"../../x": np.ones(1)}, r"it holds the path '../../x.npy'"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message, model):
    with np.load(model / ARRAYS) as arrays:
        content = dict(arrays)
    with open(model / ARRAYS, "wb") as handle:
        np.savez(handle, **{**content, **change})
    refused(model, ARRAYS, message)
