"""Save a fitted classifier to a folder and load it again, without pickle."""

import json
import re
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

from looselabels import __version__
from looselabels._files import (
    check_archive,
    check_parent,
    left_behind,
    new_folder,
    reading,
    resolved,
    unexpected_files,
)
from looselabels._names import listed, match_names, numbers_by_name
from looselabels._validation import (
    as_numpy,
    check_row_stochastic,
    import_extra,
    parse_json,
    short_repr,
)
from looselabels.estimation.annotator_powers import Powers
from looselabels.estimation.calibration import Calibration
from looselabels.learning.annotated import QUALITY, quality_table
from looselabels.learning.annotation_design import AnnotatorTransitions
from looselabels.learning.classifier import DecoupledClassifier, as_name_array
from looselabels.learning.label_design import (
    ASSUMED,
    ESTIMATED,
    IMPLIED,
    SPECIFIED,
    Sources,
    check_specified,
    sources_of,
)
from looselabels.learning.label_model import LabelModel
from looselabels.learning.out_of_sample import PrecomputedProba, label_columns
from looselabels.learning.soft_labels import ClassForest
from looselabels.transition import Transition

SCHEMA = 6
INSTALL = '"looselabels[save]"'
DECOUPLING, ARRAYS = "decoupling.json", "arrays.npz"
ESTIMATOR, CLASS_ESTIMATOR = "estimator.skops", "class_estimator.skops"
FILES = (DECOUPLING, ARRAYS, ESTIMATOR, CLASS_ESTIMATOR)
KEYS = (
    *("schema", "looselabels", "scikit-learn", "parameters", "estimator", "has_class_estimator"),
    *("transition", "assumed", "strength", "sources", "calibration", "class_calibration"),
    *("n_iter", "converged", "n_features_in", "feature_names_in", "n_rounds", "candidate_losses"),
    *("wrong_share_interval", "annotators", "hashes"),
)
ARRAY_NAMES = (
    "class_prior", "class_prior_interval", "label_weights", "factor", "class_factor", "objective",
)  # fmt: skip
TRANSITIONS = "transitions"  # a further array: those of the annotators, if there are several
# elsewhere: only its p(label | x) was given; none: the fit to several annotators had no features
ESTIMATORS = ("default", "given", "elsewhere", "none")
PLAIN_PARAMETERS = (
    *("negative", "noise", "cv", "calibrate", "refit", "decide"),
    *("max_fit_rows", "n_jobs", "random_state", "verbose"),
)

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

    Everything that affects predictions is saved, and so is what was found about annotators. Results
    for the training rows are not: ``label_scores_``, ``label_proba_``, ``class_proba_``,
    ``class_proba_given_label_`` and ``gap_``; an estimator may contain rows of its own. Parameters
    that JSON cannot represent (a splitter as `cv`, a RandomState as `random_state`, a mapping as
    `transition`) have their defaults after loading.

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
    if path.is_file():
        raise ValueError(f"{path} is a file; load reads the folder that save wrote, not a pickle.")
    left = left_behind(resolved(path))  # waits for a save that is replacing the folder
    if not path.exists():
        hint = "" if left is None else f" A save that was killed left the old model in {left}."
        raise FileNotFoundError(
            f"{path} does not exist; load reads the folder that save wrote.{hint}"
        )
    with reading(path / DECOUPLING) as handle:
        content = _read_json(handle)
        clf = _read_decoupling(content)
    with _reading(path / ARRAYS, content["hashes"]) as handle:
        _read_arrays(handle, clf, content["annotators"])
    clf.class_estimator_ = None
    if content["estimator"] == "none":
        clf.estimator_ = None
        return clf
    if content["estimator"] == "elsewhere":
        clf.estimator_ = PrecomputedProba(clf.transition_.labels)
        return clf
    if content["scikit-learn"] != sklearn.__version__:
        versions = {
            "current_sklearn_version": sklearn.__version__,
            "original_sklearn_version": content["scikit-learn"],
        }
        name = type(clf).__name__
        warnings.warn(InconsistentVersionWarning(estimator_name=name, **versions), stacklevel=2)
    skops = import_extra("skops.io", INSTALL)
    with _reading(path / ESTIMATOR, content["hashes"]) as handle:
        clf.estimator_ = _read_estimator(skops, handle, trusted)
        _check_labels(clf)
        clf.estimator = clone(clf.estimator_) if content["estimator"] == "given" else None
    if content["has_class_estimator"]:
        with _reading(path / CLASS_ESTIMATOR, content["hashes"]) as handle:
            clf.class_estimator_ = _read_estimator(skops, handle, trusted)
            _check_classes(clf)
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
    content = _describe(clf)
    types: list[str] = []
    found = (
        clf.class_prior_,
        clf.class_prior_interval_,
        clf.training_label_weights_,
        clf.calibration_.factor,
        clf.class_calibration_.factor,
        clf.objective_,
    )
    arrays: dict = {
        name: np.array([] if array is None else array)
        for name, array in zip(ARRAY_NAMES, found, strict=True)
    }
    if hasattr(clf, "annotators_"):
        arrays[TRANSITIONS] = np.asarray(clf.transitions_.proba)
    with open(folder / ARRAYS, "xb") as handle:  # np.savez may append .npz to a name
        np.savez(handle, **arrays)
    if content["estimator"] in ("default", "given"):
        skops = import_extra("skops.io", INSTALL)
        with open(folder / ESTIMATOR, "xb") as handle:
            skops.dump(clf.estimator_, handle)
        if clf.class_estimator_ is not None:
            with open(folder / CLASS_ESTIMATOR, "xb") as handle:
                skops.dump(clf.class_estimator_, handle)
        names = (ESTIMATOR, CLASS_ESTIMATOR) if content["has_class_estimator"] else (ESTIMATOR,)
        types = [one for name in names for one in skops.get_untrusted_types(file=folder / name)]
    content["hashes"] = {file.name: _sha256(file) for file in sorted(folder.iterdir())}
    with open(folder / DECOUPLING, "xb") as handle:
        handle.write(json.dumps(content, allow_nan=False).encode())
    try:
        load(folder, trusted=types)
    except ValueError as error:
        raise ValueError(f"Not saved, because it could not be loaded: {error}") from error


def _sha256(file) -> str:
    """Return the hash of a file, which ties it to the others of its model."""
    with open(file, "rb") as handle:
        return file_digest(handle, "sha256").hexdigest()


def _describe(clf) -> dict:
    """Return everything but arrays and estimators, in types that JSON has."""
    names, model = getattr(clf, "feature_names_in_", None), clf.label_model_
    kind = "default" if clf.estimator is None else "given"
    if clf.estimator_ is None:
        kind = "none"
    return {
        "schema": SCHEMA,
        "looselabels": __version__,
        "scikit-learn": sklearn.__version__,
        "parameters": _parameters(clf),
        "estimator": "elsewhere" if isinstance(clf.estimator_, PrecomputedProba) else kind,
        "has_class_estimator": clf.class_estimator_ is not None,
        "transition": _transition_to_json(model.transition),
        "assumed": _transition_to_json(model.assumed),
        "strength": str(float(model.strength)),  # JSON has no infinity
        "sources": model.sources._asdict(),
        "calibration": {"power": clf.calibration_.power, "floor": clf.calibration_.floor},
        "class_calibration": {
            "power": clf.class_calibration_.power,
            "floor": np.asarray(clf.class_calibration_.floor).tolist(),
        },
        "n_iter": clf.n_iter_,
        "converged": bool(clf.converged_),
        "n_features_in": getattr(clf, "n_features_in_", None),
        "feature_names_in": None if names is None else names.tolist(),
        "n_rounds": clf.n_rounds_,
        "wrong_share_interval": model.wrong_share_interval,
        "candidate_losses": clf.candidate_losses_,
        "annotators": _describe_annotators(clf) if hasattr(clf, "annotators_") else None,
    }


def _describe_annotators(clf) -> dict:
    """Return the names and the quality of the annotators, in types that JSON has."""
    quality = {name: clf.annotator_quality_[name] for name in QUALITY}
    quality = {k: getattr(v, "tolist", lambda v=v: v)() for k, v in quality.items()}
    found = clf.transitions_
    return {"names": list(found.annotators), "quality": quality, "powers": list(found.powers)}


def _parameters(clf) -> dict:
    """Return the parameters that JSON can represent; numbers by name in the order of the names."""
    parameters = {}
    for name in PLAIN_PARAMETERS:
        value = getattr(clf, name)
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, str | int | float | None):
            parameters[name] = value
    parameters["strength"] = str(float(clf.strength))
    if isinstance(clf.transition, Transition):
        parameters["transition"] = _transition_to_json(clf.transition)
    model = clf.label_model_
    for name, names in _names_of(model.transition):
        value = getattr(clf, name)
        if name == "class_prior" and model.sources.class_prior == SPECIFIED:
            value = model.class_prior  # includes the negative class, which may be left out
        if value is not None and not isinstance(value, str):
            value = numbers_by_name(name, value, names).tolist()
        parameters[name] = value
    return parameters


def _names_of(transition):
    return (("class_prior", transition.classes), ("label_weights", transition.labels))


def _transition_to_json(transition):
    return None if transition is None else json.loads(transition.to_json())


# -------------------------------------------------------------------------------------------- load


@contextmanager
def _reading(file, hashes):
    """Open a file that belongs to a model whose other file has these hashes, if it has any."""
    with reading(file) as handle:
        if hashes is not None and file_digest(handle, "sha256").hexdigest() != hashes.get(
            file.name
        ):
            raise ValueError(
                f"it does not belong to {DECOUPLING}. If the model was saved again in the "
                "meantime, load it once more; otherwise a file was changed."
            )
        handle.seek(0)
        yield handle


def _read_json(handle) -> dict:
    content = parse_json(handle.read())
    found = content.get("schema") if isinstance(content, dict) else content
    if found == 3:
        content = _upgrade(content)
    elif found != SCHEMA:
        is_older = isinstance(found, int) and found < SCHEMA
        raise ValueError(
            f"it has schema {short_repr(found)}; looselabels {__version__} reads schemas 3 and "
            f"{SCHEMA}. "
            + ("Fit and save the model again." if is_older else "A newer looselabels may read it.")
        )
    match_names("it", content, KEYS)
    if content["estimator"] not in ESTIMATORS:
        found = short_repr(content["estimator"])
        raise ValueError(f"estimator must be one of {ESTIMATORS}; it is {found}.")
    for name in ("looselabels", "scikit-learn"):  # a warning may print them
        if not re.fullmatch(r"[\w.+!-]{1,40}", str(content[name]), re.ASCII):
            raise ValueError(f"{short_repr(content[name])} is no version of {name}.")
    return content


def _upgrade(content) -> dict:
    """Return the content of a file of 0.1, schema 3, in the present form.

    It does not say where numbers come from; this follows from the parameters. Nor does it contain
    the floor of the class calibration, which was a constant.
    """
    content = dict(content)
    parameters = content["parameters"]
    keys = ("negative", "noise", "class_prior")
    specified = {key: parameters.get(key) for key in keys}
    strength, transition = float(parameters["strength"]), parameters.get("transition")
    sources = sources_of(transition, **specified, strength=strength)
    floor = 1e-6 if parameters.get("calibrate") == "classes" else 0.0
    content["calibration"] = {"power": content.pop("power"), "floor": 0.0}
    content["class_calibration"] = {"power": content.pop("class_power"), "floor": floor}
    return content | {
        "schema": SCHEMA,
        "assumed": None,
        "strength": str(strength),
        "sources": sources._asdict(),
        "n_rounds": int(content["has_class_estimator"]),
        "wrong_share_interval": None,
        "candidate_losses": None,
        "annotators": None,
        "hashes": None,
    }


def _read_decoupling(content) -> DecoupledClassifier:
    """Return the classifier without its arrays and its estimator."""
    transition = _read_transition(content["transition"])
    parameters = content["parameters"]
    parameters["strength"] = float(parameters["strength"])
    if "transition" in parameters:
        parameters["transition"] = _read_transition(parameters["transition"])
    for name, names in _names_of(transition):
        if isinstance(parameters[name], list):
            numbers = numbers_by_name(name, parameters[name], names)
            parameters[name] = dict(zip(names, numbers.tolist(), strict=True))
    clf = DecoupledClassifier(**parameters)
    clf._check_parameters()
    check_specified(clf.transition, clf.negative, clf.noise, clf.class_prior, clf.strength)
    clf.transition_ = transition
    clf.label_model_ = LabelModel(
        transition=transition,
        assumed=_read_transition(content["assumed"]),
        class_prior=np.empty(0),  # among the arrays
        class_prior_interval=None,
        strength=_read_strength(content["strength"]),
        sources=_read_sources(content["sources"]),
        wrong_share_interval=_read_interval(content["wrong_share_interval"]),
    )
    clf.classes_, clf.labels_ = map(as_name_array, (transition.classes, transition.labels))
    clf.calibration_ = _read_calibration(content["calibration"], transition.labels)
    clf.class_calibration_ = _read_calibration(content["class_calibration"], transition.classes)
    clf.n_iter_, clf.n_rounds_ = (_read_count(content, name) for name in ("n_iter", "n_rounds"))
    clf.converged_, losses = bool(content["converged"]), content["candidate_losses"]
    clf.candidate_losses_ = None if losses is None else {k: float(v) for k, v in losses.items()}
    if content["n_features_in"] is not None:
        clf.n_features_in_ = _read_count(content, "n_features_in")
    if content["feature_names_in"] is not None:
        names = np.array(content["feature_names_in"], dtype=object)
        are_texts = all(isinstance(name, str) for name in names)
        if names.shape != (content["n_features_in"],) or not are_texts:
            raise ValueError("feature_names_in does not name each of the features.")
        clf.feature_names_in_ = names
    return clf


def _read_count(content, name) -> int:
    found = content[name]
    if type(found) is not int or found < 0:
        raise ValueError(f"{name} must be a whole number from 0; it is {short_repr(found)}.")
    return found


def _read_calibration(content, names) -> Calibration:
    match_names("calibration", content, ("power", "floor"))
    power, floor = float(content["power"]), np.asarray(content["floor"], dtype=float)
    fits = floor.shape in ((), (len(names),))
    if not (0 < power < np.inf and fits and np.all((floor >= 0) & (floor < 1))):
        raise ValueError(
            "power must be positive and finite and floor from 0 to 1, one number or one for each "
            f"of {listed(names)}; they are {power}, {floor}."
        )
    return Calibration(power=power, floor=floor if floor.ndim else float(floor))


def _read_interval(content):
    """Return the ends of an interval of a share, or None."""
    if content is None:
        return None
    low, high = map(float, content)
    if not 0 <= low <= high <= 1:
        raise ValueError(f"wrong_share_interval must be from 0 to 1; it is {content}.")
    return low, high


def _read_transition(content):
    return None if content is None else Transition.from_json(json.dumps(content))


def _read_sources(content) -> Sources:
    match_names("sources", content, Sources._fields)
    known = (SPECIFIED, IMPLIED, ESTIMATED, ASSUMED)
    strange = [value for value in content.values() if value not in known]
    if strange:
        raise ValueError(f"a source must be one of {known}; it is {short_repr(strange[0])}.")
    return Sources(**content)


def _read_strength(text) -> float:
    strength = float(text)
    if not strength >= 0:
        raise ValueError(f"strength must be 0 or more; it is {strength}.")
    return strength


def _read_arrays(handle, clf, annotators):
    """Set the arrays; numbers that do not fit the names are refused."""
    check_archive(handle)
    classes, labels = clf.transition_.classes, clf.transition_.labels
    with np.load(handle, allow_pickle=False) as arrays:
        known = ARRAY_NAMES if annotators is None else (*ARRAY_NAMES, TRANSITIONS)
        match_names("it", arrays.files, known)
        if annotators is not None:
            _read_annotators(annotators, arrays[TRANSITIONS], clf)
        prior, ends, weights, factor, class_factor, objective = (arrays[k] for k in ARRAY_NAMES)
    clf.class_prior_ = numbers_by_name("class_prior", prior, classes)
    if abs(clf.class_prior_.sum() - 1) > 1e-5:
        raise ValueError(f"class_prior must sum to 1; it sums to {clf.class_prior_.sum():.6g}.")
    clf.class_prior_interval_ = None
    if ends.size:
        name = "class_prior_interval"
        low, high = (numbers_by_name(name, end, classes, maximum=1) for end in ends)
        if (low > high).any():
            raise ValueError(f"{name} must have low ends below high ends; it is {low}, {high}.")
        clf.class_prior_interval_ = low, high
    weights = numbers_by_name("label_weights", weights, labels) if weights.size else None
    clf.training_label_weights_ = weights
    if factor.size:
        factor = numbers_by_name("factor", factor, labels)
        clf.calibration_ = clf.calibration_._replace(factor=factor)
    if class_factor.size:
        factor = numbers_by_name("class_factor", class_factor, classes)
        clf.class_calibration_ = clf.class_calibration_._replace(factor=factor)
    if objective.ndim != 1 or not np.isfinite(as_numpy("objective", objective)).all():
        raise ValueError(f"objective must be a list of finite numbers; it is {objective}.")
    clf.objective_ = objective.tolist()
    clf.label_model_ = clf.label_model_._replace(
        class_prior=clf.class_prior_, class_prior_interval=clf.class_prior_interval_
    )


def _tuple_name(name):
    return tuple(map(_tuple_name, name)) if isinstance(name, list) else name  # JSON has no tuples


def _read_annotators(content, proba, clf):
    """Set what was found about annotators."""
    match_names("annotators", content, ("names", "quality", "powers"))
    match_names("quality", content["quality"], QUALITY)
    names = tuple(map(_tuple_name, content["names"]))
    classes, labels = clf.transition_.classes, clf.transition_.labels
    if proba.shape != (len(names), len(classes), len(labels)):
        raise ValueError(f"transitions have shape {proba.shape}, which does not fit the names.")
    check_row_stochastic("transitions", proba.reshape(-1, len(labels)))
    clf.annotators_ = as_name_array(names)
    quality = dict(content["quality"])
    copied = map(_tuple_name, quality["copy_of"])
    same_as = [a if of is None else names.index(of) for a, of in enumerate(copied)]
    powers = Powers(*map(float, content["powers"]))
    if not all(0 < power <= 1 for power in powers):
        raise ValueError(f"powers must be above 0 and at most 1; they are {listed(powers)}.")
    found = names, proba, classes, labels, np.array(same_as), powers
    clf.transitions_ = AnnotatorTransitions(*found)
    quality["confusions"] = [list(map(_tuple_name, of_one)) for of_one in quality["confusions"]]
    clf.annotator_quality_ = quality_table(names, quality)


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
