"""Models on disk, and predictions for a table."""

import numpy as np
import pytest

from looselabels import DecoupledClassifier
from looselabels._files import unexpected_files
from looselabels.command.fitting import fit
from looselabels.command.labels import Labels
from looselabels.command.models import MODEL_FILES, read_model, with_classes, write_model


def test_a_model_is_read_as_it_was_written(fitted, tmp_path):
    write_model(tmp_path / "model", fitted.clf, fitted.features)
    again = read_model(tmp_path / "model")
    before = with_classes(fitted.frame, fitted.clf, fitted.features)
    assert with_classes(fitted.frame, *again).equals(before)
    assert unexpected_files(tmp_path / "model", MODEL_FILES) == []


def test_what_cannot_predict_from_a_table_is_refused(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        read_model(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"is not a model.*audit or fit\.$"):
        read_model(tmp_path)
    write_model(tmp_path / "model", fitted.clf, fitted.features)  # as in the results of an audit
    with pytest.raises(ValueError, match=r"is not a model: .* Its model is .*model\.$"):
        read_model(tmp_path)
    write_model(tmp_path / "alone", fitted.clf, None)
    with pytest.raises(ValueError, match="fitted to the probabilities of another model"):
        read_model(tmp_path / "alone")


def test_classes_are_the_most_probable_ones(fitted):
    after = with_classes(fitted.frame, fitted.clf, fitted.features, all_classes=True)
    proba = fitted.clf.predict_proba(fitted.X)
    assert list(after.columns[3:]) == ["class", "class_proba", "p(cat)", "p(dog)"]
    np.testing.assert_array_equal(after[["p(cat)", "p(dog)"]].to_numpy(), proba)
    np.testing.assert_array_equal(after["class"], fitted.clf.classes_[proba.argmax(axis=1)])
    np.testing.assert_array_equal(after["class_proba"], proba.max(axis=1))


def test_labels_are_taken_into_account(fitted):
    after = with_classes(
        fitted.frame, fitted.clf, fitted.features, label="species", all_classes=True
    )
    expected = fitted.clf.predict_proba_given_label(fitted.X, fitted.y)
    np.testing.assert_allclose(after[["p(cat)", "p(dog)"]].to_numpy(), expected, atol=1e-12)
    assert after["doubt"].between(0, 1).all()
    assert after["doubt"].max() > 0.5


def test_rows_with_labels_are_predicted_once(fitted, monkeypatch):
    predict, calls = DecoupledClassifier.predict_proba, []
    monkeypatch.setattr(
        DecoupledClassifier, "predict_proba", lambda *args: calls.append(1) or predict(*args)
    )
    with_classes(fitted.frame, fitted.clf, fitted.features, label="species")
    assert len(calls) == 1


def test_two_classes_that_are_displayed_equally_have_a_column_each(fitted):
    names = ["x" * 99 + end for end in "ab"]
    y = [names[i % 2] for i in range(60)]
    other = fit(fitted.X, y, Labels("y", noise=0.1), model="kernel")
    after = with_classes(fitted.frame, other, fitted.features, all_classes=True)
    proba = after[after.columns[-2:]].to_numpy()
    np.testing.assert_array_equal(proba, other.predict_proba(fitted.X))
