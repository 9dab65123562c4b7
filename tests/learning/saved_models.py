"""A small data set to save models of, and what the tests of saved models do to their files."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier

from looselabels import DecoupledClassifier, load
from looselabels.learning.persistence import DECOUPLING

RNG = np.random.default_rng(0)
decoupled = partial(DecoupledClassifier, random_state=0)
TRUTH = np.repeat([0, 1], 30)
X = RNG.normal(size=(60, 2)) + 2 * TRUTH[:, None]
Y = np.where(RNG.random(60) < 0.6, np.array(["cat", "dog"], dtype=object)[TRUTH], None)
FOREST = RandomForestClassifier(5, random_state=0)
OLD = Path(__file__).parents[1] / "data" / "models-0.1"


def assert_same_model(clf, again, X, y):
    assert type(again) is DecoupledClassifier
    for method in ("predict", "predict_proba", "predict_label_proba"):
        assert_array_equal(getattr(again, method)(X), getattr(clf, method)(X))
    given = clf.predict_proba_given_label(X, y)
    assert_array_equal(again.predict_proba_given_label(X, y), given)
    assert again.transition_ == clf.transition_
    assert again.classes_.dtype == clf.classes_.dtype
    for name in (
        "classes_", "labels_", "class_prior_", "class_prior_interval_", "objective_", "n_iter_",
        "converged_",
    ):  # fmt: skip
        assert_array_equal(getattr(again, name), getattr(clf, name))
    for name in ("wrong_share_interval", "class_share_room"):
        assert_array_equal(getattr(again.label_model_, name), getattr(clf.label_model_, name))


def rewrite(model, change):
    """Change the JSON of a model by a function."""
    content = json.loads((model / DECOUPLING).read_text())
    change(content)
    (model / DECOUPLING).write_text(json.dumps(content))


def refused(model, file, message):
    """Assert that loading says what is wrong, in one line that names the file."""
    if file != DECOUPLING:  # who forges a file can forge its hash too
        rewrite(model, lambda content: content.update(hashes=None))
    with pytest.raises(ValueError, match=message) as caught:
        load(model)
    assert str(caught.value).startswith(str(model / file))
    assert "\n" not in str(caught.value)
