"""Save a fitted classifier to a folder and load it again, without pickle."""

import json
import os
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from looselabels import __version__
from looselabels._names import listed, match_names, numbers_by_name
from looselabels._validation import import_extra, short_repr
from looselabels.estimation.calibration import SURE, Calibration
from looselabels.learning.classifier import DecoupledClassifier, GivenProba, _as_array
from looselabels.learning.forest import ClassForest
from looselabels.transition import Transition, _once, _refuse

SCHEMA = 3
DAY = 24 * 60 * 60  # seconds
INSTALL = '"looselabels[save]"'
DECOUPLING, ARRAYS = "decoupling.json", "arrays.npz"
ESTIMATOR, CLASS_ESTIMATOR = "estimator.skops", "class_estimator.skops"
KEYS = (
    *("schema", "looselabels", "scikit-learn", "parameters", "transition"),
    *("estimator", "has_class_estimator", "power", "class_power", "n_iter", "converged"),
    *("n_features_in", "feature_names_in"),
)
ARRAY_NAMES = (
    "class_prior", "class_prior_interval", "label_weights", "factor", "class_factor", "objective",
)  # fmt: skip
ESTIMATORS = ("default", "given", "elsewhere")  # by the user, or its p(label | x) alone
PLAIN_PARAMETERS = (
    *("negative", "noise", "cv", "calibrate", "refit", "decide"),
    *("n_jobs", "random_state", "verbose"),
)

# What skops asks about (its oldest and newest versions) and common classifiers are made of. None of
# it runs code of the file; functions, partials and user-defined metrics could, and are left out.
# skops also asks because trees and neighbors follow their indices without a look at the bounds: a
# forged one can crash the process. Without them no forest would load, so that `load` says it.
TRUSTED = (
    "_loss.CyHalfBinomialLoss",  # so called by scikit-learn 1.6
    "_loss.CyHalfMultinomialLoss",
    "looselabels.learning.density.KernelDensityClassifier",
    "looselabels.learning.forest.BalancedForestClassifier",
    "looselabels.learning.forest.ClassForest",
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


def save(clf, path, *, overwrite=False) -> None:
    """Save a fitted `DecoupledClassifier` to the folder `path`.

    The folder holds ``decoupling.json``, ``arrays.npz`` and, unless the classifier was fitted by
    `fit_from_proba`, ``estimator.skops`` (needs skops); with a `refit` ``class_estimator.skops``
    as well. It appears whole or not at all, and is
    loaded once before it does: what could not be read back is not saved. A save that is killed in
    the instant of replacing leaves both models beside `path`, in folders ``.<name>.saving-…``.

    A model does not carry its training rows: ``label_proba_``, ``class_proba_``,
    ``class_proba_given_label_`` and ``gap_`` are left out; the estimator keeps what it keeps. So
    are parameters that JSON cannot hold (a splitter as `cv`, a RandomState as `random_state`),
    which are the default after loading.

    Parameters
    ----------
    clf : DecoupledClassifier
        Fitted.
    path : str or path
        The folder to write; the one that it is in exists.
    overwrite : bool, default=False
        Whether to replace a model that is there. Nothing but a model is ever replaced.

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
    check_is_fitted(clf, "converged_")  # the last that fit sets
    path = Path(path).resolve()  # a link to a model stays a link
    _check_place(path, overwrite)
    prefix = f".{path.name}.saving-"
    with TemporaryDirectory(
        dir=path.parent, prefix=prefix, ignore_cleanup_errors=True
    ) as temporary:
        new, old = Path(temporary, "new"), Path(f"{temporary}.old")
        new.mkdir()
        _write(clf, new)
        try:
            if path.exists():
                path.rename(old)
            new.rename(path)
        except BaseException:  # Ctrl-C too
            if old.exists() and not path.exists():
                old.rename(path)
            raise
        rmtree(old, ignore_errors=True)
    _remove_strays(path.parent, prefix)


def load(path, *, trusted=()) -> DecoupledClassifier:
    """Load the classifier that `save` wrote to the folder `path`; it predicts as it did.

    Nothing is unpickled, and types that are not known to be data are refused. That keeps a file
    from running code; it does not make trees and neighbors safe that were forged to point outside
    their memory: take models from people whose data you would take.

    Parameters
    ----------
    path : str or path
        The folder.
    trusted : sequence of str, default=()
        Further types that the estimator may hold, such as "mypackage.models.MyClassifier". They
        are imported: name what you know.
    """
    path = Path(path)
    if path.is_file():
        raise ValueError(f"{path} is a file; load reads the folder that save wrote, no pickle.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; load reads the folder that save wrote.")
    with _reading(path / DECOUPLING) as handle:
        content = _read_json(handle)
        clf = _read_decoupling(content)
    with _reading(path / ARRAYS) as handle:
        _read_arrays(handle, clf)
    clf.class_estimator_ = None
    if content["estimator"] == "elsewhere":
        clf.estimator_ = GivenProba(len(clf.labels_))
        return clf
    if content["scikit-learn"] != sklearn.__version__:
        versions = {
            "current_sklearn_version": sklearn.__version__,
            "original_sklearn_version": content["scikit-learn"],
        }
        name = type(clf).__name__
        warnings.warn(InconsistentVersionWarning(estimator_name=name, **versions), stacklevel=2)
    skops = import_extra("skops.io", INSTALL)
    with _reading(path / ESTIMATOR) as handle:
        clf.estimator_ = _read_estimator(skops, handle, [*TRUSTED, *trusted])
        _check_labels(clf)
        clf.estimator = clone(clf.estimator_) if content["estimator"] == "given" else None
    if content["has_class_estimator"]:
        with _reading(path / CLASS_ESTIMATOR) as handle:
            clf.class_estimator_ = _read_estimator(skops, handle, TRUSTED)
            _check_classes(clf)
    return clf


# -------------------------------------------------------------------------------------------- save


def _check_place(path, overwrite):
    """Say, before anything is written, why a model cannot be at `path`."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is no folder; create it first.")
    if not path.exists():
        return
    if not overwrite:
        raise FileExistsError(f"{path} exists; save(…, overwrite=True) replaces a model.")
    names = {file.name for file in path.iterdir()} if path.is_dir() else set()
    others = sorted(names - {DECOUPLING, ARRAYS, ESTIMATOR, CLASS_ESTIMATOR})
    if others or DECOUPLING not in names:
        reason = f"it holds {listed(others)}" if others else f"it has no {DECOUPLING}"
        raise FileExistsError(f"{path} is not a model alone, {reason}: it is not overwritten.")


def _write(clf, folder):
    """Write the files, and see that they can be read."""
    content, types = _describe(clf), []
    with _writing(folder / DECOUPLING) as handle:
        handle.write(json.dumps(content, allow_nan=False).encode())
    factors = (clf.calibration_.factor, clf.class_calibration_.factor)
    priors = (clf.class_prior_, clf.class_prior_interval_)
    found = (*priors, clf.label_weights_, *factors, clf.objective_)
    arrays: dict = {
        name: np.array([] if array is None else array)
        for name, array in zip(ARRAY_NAMES, found, strict=True)
    }
    with _writing(folder / ARRAYS) as handle:  # to a name, np.savez may add .npz
        np.savez(handle, **arrays)
    if content["estimator"] != "elsewhere":
        skops = import_extra("skops.io", INSTALL)
        with _writing(folder / ESTIMATOR) as handle:
            skops.dump(clf.estimator_, handle)
        if clf.class_estimator_ is not None:
            with _writing(folder / CLASS_ESTIMATOR) as handle:
                skops.dump(clf.class_estimator_, handle)
        types = skops.get_untrusted_types(file=folder / ESTIMATOR)
    try:
        load(folder, trusted=types)
    except ValueError as error:
        raise ValueError(f"Not saved, as it could not be loaded again: {error}") from error


@contextmanager
def _writing(file):
    with open(file, "xb") as handle:
        yield handle
        handle.flush()
        os.fsync(handle.fileno())  # a rename may reach the disk before what it names


def _remove_strays(folder, prefix):
    """Remove what saves left that were killed; a younger one may be at work."""
    for stray in folder.iterdir():
        with suppress(OSError):  # the model is saved, this is tidiness
            if stray.name.startswith(prefix) and time.time() - stray.stat().st_mtime > DAY:
                rmtree(stray)


def _describe(clf):
    """Return what JSON holds."""
    names = getattr(clf, "feature_names_in_", None)
    kind = "default" if clf.estimator is None else "given"
    return {
        "schema": SCHEMA,
        "looselabels": __version__,
        "scikit-learn": sklearn.__version__,
        "parameters": _parameters(clf),
        "estimator": "elsewhere" if isinstance(clf.estimator_, GivenProba) else kind,
        "has_class_estimator": clf.class_estimator_ is not None,
        "transition": json.loads(clf.transition_.to_json()),
        "power": clf.calibration_.power,
        "class_power": clf.class_calibration_.power,
        "n_iter": clf.n_iter_,
        "converged": bool(clf.converged_),
        "n_features_in": getattr(clf, "n_features_in_", None),
        "feature_names_in": None if names is None else names.tolist(),
    }


def _parameters(clf):
    """Return the parameters that JSON can hold; numbers by name in the order of the names."""
    parameters = {}
    for name in PLAIN_PARAMETERS:
        value = getattr(clf, name)
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, str | int | float | None):
            parameters[name] = value
    parameters["strength"] = str(float(clf.strength))  # JSON has no infinity
    if clf.transition is not None:
        parameters["transition"] = json.loads(clf.transition.to_json())
    for name, names in _names_of(clf.transition_):
        value = getattr(clf, name)
        if name == "class_prior" and not isinstance(value, str | None):
            value = clf._given_prior(clf.transition_)  # with the class that may be left out
        if value is not None and not isinstance(value, str):
            value = numbers_by_name(name, value, names).tolist()
        parameters[name] = value
    return parameters


def _names_of(transition):
    return (("class_prior", transition.classes), ("label_weights", transition.labels))


# -------------------------------------------------------------------------------------------- load


@contextmanager
def _reading(file):
    """Open a file; whatever is wrong with it becomes one line that names it."""
    if not file.is_file():
        raise ValueError(f"{file} is missing: the model is not complete.")
    with open(file, "rb") as handle:
        try:
            yield handle
        except Exception as error:  # damage may show anywhere, as anything
            reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            reason = " ".join(reason.split())
            reason = reason if reason.isprintable() else ascii(reason)
            raise ValueError(f"{file} cannot be loaded: {reason}") from error


def _read_json(handle):
    content = json.loads(handle.read(), parse_constant=_refuse, object_pairs_hook=_once)
    found = content.get("schema") if isinstance(content, dict) else content
    if found != SCHEMA:
        older = isinstance(found, int) and found < SCHEMA
        raise ValueError(
            f"it has schema {short_repr(found)}; looselabels {__version__} reads schema {SCHEMA}. "
            + ("Fit and save the model again." if older else "A newer looselabels may read it.")
        )
    match_names("it", content, KEYS)
    if content["estimator"] not in ESTIMATORS:
        found = short_repr(content["estimator"])
        raise ValueError(f"estimator must be one of {ESTIMATORS}; it is {found}.")
    return content


def _read_decoupling(content):
    """Return the classifier without its arrays and its estimator."""
    transition = _transition(content["transition"])
    parameters = content["parameters"]
    parameters["strength"] = float(parameters["strength"])
    if "transition" in parameters:
        parameters["transition"] = _transition(parameters["transition"])
    for name, names in _names_of(transition):
        if isinstance(parameters[name], list):
            numbers = numbers_by_name(name, parameters[name], names)
            parameters[name] = dict(zip(names, numbers.tolist(), strict=True))
    clf = DecoupledClassifier(**parameters)
    clf._check_parameters()
    clf.transition_ = transition
    clf.classes_, clf.labels_ = _as_array(transition.classes), _as_array(transition.labels)
    clf.calibration_ = _calibration(content["power"])
    clf.class_calibration_ = _calibration(content["class_power"])
    clf.n_iter_, clf.converged_ = int(content["n_iter"]), bool(content["converged"])
    if content["n_features_in"] is not None:
        clf.n_features_in_ = content["n_features_in"]
    if content["feature_names_in"] is not None:
        clf.feature_names_in_ = np.array(content["feature_names_in"], dtype=object)
    return clf


def _calibration(power):
    if not 0 < float(power) < np.inf:
        raise ValueError(f"power must be positive and finite; it is {power}.")
    return Calibration(power=float(power))


def _transition(content):
    return Transition.from_json(json.dumps(content))


def _read_arrays(handle, clf):
    """Set the arrays; numbers that do not fit the names are refused."""
    _check_archive(handle)
    classes, labels = clf.transition_.classes, clf.transition_.labels
    with np.load(handle, allow_pickle=False) as arrays:
        match_names("it", arrays.files, ARRAY_NAMES)
        prior, ends, weights, factor, class_factor, objective = (arrays[k] for k in ARRAY_NAMES)
    clf.class_prior_ = numbers_by_name("class_prior", prior, classes)
    clf.class_prior_interval_ = None
    if ends.size:
        low, high = (numbers_by_name("class_prior_interval", end, classes) for end in ends)
        clf.class_prior_interval_ = low, high
    clf.label_weights_ = numbers_by_name("label_weights", weights, labels) if weights.size else None
    factor = numbers_by_name("factor", factor, labels) if factor.size else None
    clf.calibration_ = clf.calibration_._replace(factor=factor)
    if class_factor.size:
        factor = numbers_by_name("class_factor", class_factor, classes)
        floor = SURE if clf.calibrate == "classes" else 0.0
        clf.class_calibration_ = clf.class_calibration_._replace(factor=factor, floor=floor)
    clf.objective_ = objective.tolist()


def _read_estimator(skops, handle, trusted):
    """Return the estimator, if it holds trusted types only."""
    _check_archive(handle)
    try:
        with warnings.catch_warnings():  # said once, not again for each tree
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            return skops.load(handle, trusted=list(trusted))
    except skops.exceptions.UntrustedTypesFoundException:
        unknown = sorted(set(skops.get_untrusted_types(file=handle)) - set(trusted))
        raise ValueError(
            f"it holds types that are not known to be data, {', '.join(unknown)}. If you know "
            f"them, and who made the file: load(path, trusted={unknown})."
        ) from None


def _check_labels(clf):
    columns = clf.estimator_.classes_
    if isinstance(clf.estimator_, FrozenEstimator):
        columns = clf.transition_.label_index(columns)
    if not np.isin(columns, np.arange(len(clf.labels_))).all():
        raise ValueError(f"its labels are not those of {DECOUPLING}.")


def _check_classes(clf):
    forest = clf.class_estimator_
    if not isinstance(forest, ClassForest) or forest.estimators_[0].n_outputs_ != len(clf.classes_):
        raise ValueError(f"it is no forest of the classes of {DECOUPLING}.")


def _check_archive(handle):
    """Refuse archives that we do not write: with folders in them, or compressed (bombs are)."""
    with ZipFile(handle) as archive:
        for member in archive.infolist():
            if "/" in member.filename or "\\" in member.filename:
                raise ValueError(f"it holds the path {short_repr(member.filename)}.")
            if member.compress_type != ZIP_STORED:
                raise ValueError(f"it holds {short_repr(member.filename)}, compressed.")
    handle.seek(0)
