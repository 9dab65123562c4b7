"""Save a fitted classifier to a folder and load it again, without pickle."""

import json
import warnings
from contextlib import contextmanager
from functools import partial
from hashlib import file_digest
from pathlib import Path

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from looselabels._files import (
    check_archive,
    check_parent,
    left_behind,
    new_folder,
    reading,
    resolved,
    unexpected_files,
)
from looselabels._names import listed
from looselabels._validation import import_extra
from looselabels.learning.classifier import DecoupledClassifier
from looselabels.learning.out_of_sample import PrecomputedProba, label_columns
from looselabels.learning.plain_values import (
    add_arrays,
    arrays_of,
    describe,
    read_description,
    rebuild,
)
from looselabels.learning.soft_labels import ClassForest
from looselabels.transition import Transition

INSTALL = '"looselabels[save]"'
DECOUPLING, ARRAYS = "decoupling.json", "arrays.npz"
ESTIMATOR, CLASS_ESTIMATOR = "estimator.skops", "class_estimator.skops"
FILES = (DECOUPLING, ARRAYS, ESTIMATOR, CLASS_ESTIMATOR)

# Types of common classifiers that skops asks about, in its oldest and newest versions. None of them
# runs code from the file; functions, partials and user-defined metrics could, and are left out.
# skops asks about trees and neighbors because they follow indices without checking bounds: a forged
# file can crash the process. No forest could be loaded without them; `load` documents the risk.
TRUSTED = (
    "_loss.CyHalfBinomialLoss",  # its name in scikit-learn 1.6
    "_loss.CyHalfMultinomialLoss",
    "looselabels.learning.density.KernelDensityClassifier",
    "looselabels.learning.draws.BalancedDraws",
    "looselabels.learning.draws.ClassDraws",
    "looselabels.learning.forest.BalancedForestClassifier",
    "looselabels.learning.out_of_sample.WithoutGaps",
    "looselabels.learning.soft_labels.ClassForest",
    "numpy.dtype",
    "sklearn._loss._loss.CyHalfBinomialLoss",
    "sklearn._loss._loss.CyHalfMultinomialLoss",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.metrics._dist_metrics.MinkowskiDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)

# The names of our own types in files of looselabels 0.1.
TRUSTED_OLD = (
    "looselabels.density.KernelDensityClassifier",
    "looselabels.forest.BalancedForestClassifier",
    "looselabels.forest.ClassForest",
)


def save(clf, path, *, overwrite=False) -> None:
    """Save a fitted `DecoupledClassifier` to the folder `path`.

    The folder holds ``decoupling.json``, ``arrays.npz`` and, unless the classifier was fitted by
    `fit_from_proba`, ``estimator.skops`` (needs skops); with a `refit` ``class_estimator.skops``
    as well. The folder is written completely or not at all: a model that cannot be loaded again is
    not saved. If the process is killed at the moment of replacing an old model, the next `save`
    puts the old one back, and `load` says where it is.

    Everything that affects predictions is saved, and so is what was found about annotators. What
    belongs to the training rows is not: ``label_design_``, ``label_scores_``, ``label_proba_``,
    ``class_proba_``, ``class_proba_given_label_``, ``gap_``, ``sample_weight_``, ``n_fit_rows_``,
    ``rival_wrong_shares_``, ``annotation_design_`` and ``annotator_inference_``; an estimator may
    contain rows of its own. Parameters that JSON cannot represent (a splitter as `cv`, a
    RandomState as `random_state`, a mapping as `transition`) have their defaults after loading.

    Parameters
    ----------
    clf : DecoupledClassifier
        Fitted.
    path : str or path
        The folder to write; its parent folder must exist.
    overwrite : bool, default=False
        Whether to replace an existing model. Nothing but a model is ever replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DecoupledClassifier(GaussianNB()).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     save(clf, f"{folder}/iris")
    ...     again = load(f"{folder}/iris")
    >>> bool((again.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    if type(clf) is not DecoupledClassifier:
        raise TypeError(
            f"save takes a DecoupledClassifier; it is {type(clf).__name__}. The steps of a "
            "pipeline go into its estimator: DecoupledClassifier(make_pipeline(…))."
        )
    check_is_fitted(clf, "converged_")  # the attribute that fit sets last
    with new_folder(path, partial(_check_place, overwrite=overwrite)) as folder:
        _write(clf, folder)


def load(path, *, trusted=()) -> DecoupledClassifier:
    """Load the classifier that `save` wrote to the folder `path`; it predicts as before.

    Nothing is unpickled, and types that are not known to be data are refused, so a file cannot run
    code. A forged tree or neighbor index can still read outside of its memory and crash the
    process: load models only from people you trust. Files of looselabels 0.1 load as well.

    Parameters
    ----------
    path : str or path
        The folder.
    trusted : sequence of str, default=()
        Further types that the estimator may contain, such as "mypackage.models.MyClassifier". They
        are imported: name only types that you know.
    """
    path = Path(path)
    _check_is_folder(path)
    with reading(path / DECOUPLING) as handle:
        content = read_description(handle.read())
        clf = rebuild(content)
    with _reading(path / ARRAYS, content["hashes"]) as handle:
        check_archive(handle)
        with np.load(handle, allow_pickle=False) as arrays:
            add_arrays(clf, arrays, content["annotators"])
    clf.estimator_ = clf.class_estimator_ = None
    if content["estimator"] == "elsewhere":
        clf.estimator_ = PrecomputedProba(clf.transition_.labels)
    elif content["estimator"] != "none":
        _warn_of_other_version(content["scikit-learn"], stacklevel=3)
        _add_estimators(clf, path, content, trusted)
    return clf


# -------------------------------------------------------------------------------------------- save


def _check_place(path, overwrite):
    """Raise if a model cannot be written at `path`; only a model is ever replaced."""
    check_parent(path)
    if not path.exists():
        return
    if not overwrite:
        raise FileExistsError(f"{path} exists; save(…, overwrite=True) replaces a model.")
    others = unexpected_files(path, dict.fromkeys(FILES)) if path.is_dir() else []
    if others or not (path / DECOUPLING).is_file():
        reason = f"it holds {listed(others)}" if others else f"it has no {DECOUPLING}"
        raise FileExistsError(f"{path} is not a model, {reason}: it is not overwritten.")


def _write(clf, folder):
    """Write the files, and check that they can be loaded."""
    content = describe(clf)
    with open(folder / ARRAYS, "xb") as handle:  # np.savez may append .npz to a name
        np.savez(handle, **arrays_of(clf))
    types = _write_estimators(clf, folder)
    content["hashes"] = {file.name: _sha256_of(file) for file in sorted(folder.iterdir())}
    with open(folder / DECOUPLING, "xb") as handle:
        handle.write(json.dumps(content, allow_nan=False).encode())
    try:
        load(folder, trusted=types)
    except ValueError as error:
        raise ValueError(f"Not saved, because it could not be loaded: {error}") from error


def _write_estimators(clf, folder) -> list[str]:
    """Write the estimators that are not elsewhere; return the types that skops asks about."""
    types: list[str] = []
    for name, model in ((ESTIMATOR, clf.estimator_), (CLASS_ESTIMATOR, clf.class_estimator_)):
        if model is not None and not isinstance(model, PrecomputedProba):
            skops = import_extra("skops.io", INSTALL)
            with open(folder / name, "xb") as handle:
                skops.dump(model, handle)
            types += skops.get_untrusted_types(file=folder / name)
    return types


def _sha256_of(file) -> str:
    """Return the hash of a file, which ties it to the others of its model."""
    with open(file, "rb") as handle:
        return _sha256(handle)


def _sha256(handle) -> str:
    return file_digest(handle, "sha256").hexdigest()


# -------------------------------------------------------------------------------------------- load


def _check_is_folder(path):
    """Raise if `path` is no folder; say where a killed `save` left the old one."""
    if path.is_file():
        raise ValueError(f"{path} is a file; load reads the folder that save wrote, not a pickle.")
    left = left_behind(resolved(path))  # waits for a save that is replacing the folder
    if not path.exists():
        hint = "" if left is None else f" A save that was killed left the old model in {left}."
        raise FileNotFoundError(
            f"{path} does not exist; load reads the folder that save wrote.{hint}"
        )


@contextmanager
def _reading(file, hashes):
    """Open a file that belongs to a model whose other file has these hashes, if it has any."""
    with reading(file) as handle:
        if hashes is not None and hashes.get(file.name) != _sha256(handle):
            raise ValueError(
                f"it does not belong to {DECOUPLING}. If the model was saved again in the "
                "meantime, load it once more; otherwise a file was changed."
            )
        handle.seek(0)
        yield handle


def _warn_of_other_version(version, stacklevel):
    """Warn if the model was saved with another version of scikit-learn."""
    if version != sklearn.__version__:
        warning = InconsistentVersionWarning(
            estimator_name=DecoupledClassifier.__name__,
            current_sklearn_version=sklearn.__version__,
            original_sklearn_version=version,
        )
        warnings.warn(warning, stacklevel=stacklevel)


def _add_estimators(clf, path, content, trusted):
    """Add the estimators to a classifier; they must predict its labels and its classes."""
    skops = import_extra("skops.io", INSTALL)
    with _reading(path / ESTIMATOR, content["hashes"]) as handle:
        clf.estimator_ = _read_estimator(skops, handle, trusted)
        _check_labels(clf)
        clf.estimator = clone(clf.estimator_) if content["estimator"] == "given" else None
    if content["has_class_estimator"]:
        with _reading(path / CLASS_ESTIMATOR, content["hashes"]) as handle:
            clf.class_estimator_ = _read_estimator(skops, handle, trusted)
            _check_classes(clf)


def _read_estimator(skops, handle, trusted):
    """Return the estimator, if it contains only trusted types."""
    check_archive(handle)
    trusted = [*TRUSTED, *TRUSTED_OLD, *trusted]
    try:
        with warnings.catch_warnings():  # once is enough, not again for each tree
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            warnings.simplefilter("ignore", FutureWarning)  # old module names of 0.1
            return skops.load(handle, trusted=trusted)
    except skops.exceptions.UntrustedTypesFoundException:
        unknown = sorted(set(skops.get_untrusted_types(file=handle)) - set(trusted))
        raise ValueError(
            f"it contains types that are not known to be data, {', '.join(unknown)}. If you know "
            f"them and trust the author of the file: load(path, trusted={unknown})."
        ) from None


def _check_labels(clf):
    columns = label_columns(clf.estimator_, clf.transition_)
    if not np.isin(columns, np.arange(len(clf.labels_))).all():
        raise ValueError(f"its labels are not those of {DECOUPLING}.")


def _check_classes(clf):
    model, n_classes = clf.class_estimator_, len(clf.classes_)
    if isinstance(model, ClassForest):
        if model.estimators_[0].n_outputs_ != n_classes:
            raise ValueError(f"it is not a forest of the classes of {DECOUPLING}.")
        model.classes_ = np.arange(n_classes)  # models of 0.1 have none
    elif not np.isin(_class_columns(clf), np.arange(n_classes)).all():
        raise ValueError(f"its classes are not those of {DECOUPLING}.")


def _class_columns(clf):
    """Return the positions of the classes of the class estimator; a frozen one has names."""
    return label_columns(clf.class_estimator_, Transition.identity(clf.transition_.classes))
