"""A fitted classifier as plain values, and back: text and numbers for JSON, and arrays.

`describe` and `arrays_of` take a classifier apart, all but its estimators. `read_description`,
`rebuild` and `add_arrays` put it together again. They trust nothing that they read: names,
lengths and ranges are checked, because a file may be damaged or forged.
"""

import json
import re
from operator import attrgetter

import numpy as np
import sklearn

from looselabels import __version__
from looselabels._names import listed, match_names, numbers_by_name
from looselabels._validation import as_numpy, check_row_stochastic, parse_json, short_repr
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
from looselabels.learning.out_of_sample import PrecomputedProba
from looselabels.transition import Transition

SCHEMA = 7
KEYS = (
    *("schema", "looselabels", "scikit-learn", "parameters", "estimator", "has_class_estimator"),
    *("transition", "assumed", "strength", "sources", "calibration", "class_calibration"),
    *("n_iter", "converged", "n_features_in", "feature_names_in", "n_rounds", "candidate_losses"),
    *("wrong_share_interval", "class_share_room", "annotators", "hashes"),
)
NOT_IN_0_1 = (
    *("assumed", "wrong_share_interval", "class_share_room", "candidate_losses", "annotators"),
    "hashes",
)
ARRAY_PLACES = {  # by the name of the array: where a classifier has it
    "class_prior": "class_prior_",
    "class_prior_interval": "class_prior_interval_",
    "label_weights": "training_label_weights_",
    "factor": "calibration_.factor",
    "class_factor": "class_calibration_.factor",
    "objective": "objective_",
}
ARRAY_NAMES = tuple(ARRAY_PLACES)
TRANSITIONS = "transitions"  # a further array: those of the annotators, if there are several
# elsewhere: only its p(label | x) was given; none: the fit to several annotators had no features
ESTIMATORS = ("default", "given", "elsewhere", "none")
PLAIN_PARAMETERS = (
    *("negative", "noise", "cv", "calibrate", "refit", "decide"),
    *("max_fit_rows", "n_jobs", "random_state", "verbose"),
)


# ---------------------------------------------------------------------------------- to plain values


def describe(clf) -> dict:
    """Return everything but arrays and estimators, in types that JSON has.

    Of `KEYS`, only ``hashes`` is missing: the hashes of the other files, or None.
    """
    names, model = getattr(clf, "feature_names_in_", None), clf.label_model_
    room = model.class_share_room
    return {
        "schema": SCHEMA,
        "looselabels": __version__,
        "scikit-learn": sklearn.__version__,
        "parameters": _parameters(clf),
        "estimator": _kind_of_estimator(clf),
        "has_class_estimator": clf.class_estimator_ is not None,
        "transition": _plain_transition(model.transition),
        "assumed": _plain_transition(model.assumed),
        "strength": str(float(model.strength)),  # JSON has no infinity
        "sources": model.sources._asdict(),
        "calibration": _plain_calibration(clf.calibration_),
        "class_calibration": _plain_calibration(clf.class_calibration_),
        "n_iter": clf.n_iter_,
        "converged": bool(clf.converged_),
        "n_features_in": getattr(clf, "n_features_in_", None),
        "feature_names_in": None if names is None else names.tolist(),
        "n_rounds": clf.n_rounds_,
        "wrong_share_interval": model.wrong_share_interval,
        "class_share_room": None if room is None else room.tolist(),
        "candidate_losses": clf.candidate_losses_,
        "annotators": _plain_annotators(clf) if hasattr(clf, "annotators_") else None,
    }


def arrays_of(clf) -> dict:
    """Return the arrays by name; one that a classifier does not have is empty."""
    arrays = {name: attrgetter(place)(clf) for name, place in ARRAY_PLACES.items()}
    if hasattr(clf, "annotators_"):
        arrays[TRANSITIONS] = clf.transitions_.proba
    return {name: np.asarray([] if array is None else array) for name, array in arrays.items()}


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
        parameters["transition"] = _plain_transition(clf.transition)
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
    """Return which parameters are numbers by name, with the names."""
    return (("class_prior", transition.classes), ("label_weights", transition.labels))


def _kind_of_estimator(clf) -> str:
    if clf.estimator_ is None:
        return "none"
    if isinstance(clf.estimator_, PrecomputedProba):
        return "elsewhere"
    return "default" if clf.estimator is None else "given"


def _plain_transition(transition):
    return None if transition is None else json.loads(transition.to_json())


def _plain_calibration(calibration) -> dict:
    """Return a calibration without its factors, which are an array."""
    return {"power": calibration.power, "floor": np.asarray(calibration.floor).tolist()}


def _plain_annotators(clf) -> dict:
    """Return the names and the quality of the annotators."""
    quality = {name: clf.annotator_quality_[name] for name in QUALITY}
    quality = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in quality.items()}
    found = clf.transitions_
    return {"names": list(found.annotators), "quality": quality, "powers": list(found.powers)}


# -------------------------------------------------------------------------------- from plain values


def read_description(text) -> dict:
    """Return what `describe` described, from JSON; a description by 0.1 in the present form."""
    content = parse_json(text)
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
    specified = {key: parameters.get(key) for key in ("negative", "noise", "class_prior")}
    strength, transition = float(parameters["strength"]), parameters.get("transition")
    sources = sources_of(transition, **specified, strength=strength)
    floor = 1e-6 if parameters.get("calibrate") == "classes" else 0.0
    upgraded = {
        "schema": SCHEMA,
        "strength": str(strength),
        "sources": sources._asdict(),
        "calibration": {"power": content.pop("power"), "floor": 0.0},
        "class_calibration": {"power": content.pop("class_power"), "floor": floor},
        "n_rounds": int(content["has_class_estimator"]),
    }
    return content | upgraded | dict.fromkeys(NOT_IN_0_1)


def rebuild(content) -> DecoupledClassifier:
    """Return the classifier of a description, without its arrays and its estimators."""
    transition = _read_transition(content["transition"])
    clf = DecoupledClassifier(**_read_parameters(content["parameters"], transition))
    clf._check_parameters()
    check_specified(clf.transition, clf.negative, clf.noise, clf.class_prior, clf.strength)
    model = LabelModel(
        transition=transition,
        assumed=_read_transition(content["assumed"]),
        class_prior=np.empty(0),  # among the arrays
        class_prior_interval=None,
        strength=_read_strength(content["strength"]),
        sources=_read_sources(content["sources"]),
        wrong_share_interval=_read_interval(content["wrong_share_interval"]),
        class_share_room=_read_room(content["class_share_room"], transition.classes),
    )
    clf._keep_model(model)
    clf.calibration_ = _read_calibration(content["calibration"], transition.labels)
    clf.class_calibration_ = _read_calibration(content["class_calibration"], transition.classes)
    clf.n_iter_, clf.n_rounds_ = (_read_count(content, name) for name in ("n_iter", "n_rounds"))
    clf.converged_, losses = bool(content["converged"]), content["candidate_losses"]
    clf.candidate_losses_ = None if losses is None else {k: float(v) for k, v in losses.items()}
    if content["n_features_in"] is not None:
        clf.n_features_in_ = _read_count(content, "n_features_in")
    if content["feature_names_in"] is not None:
        clf.feature_names_in_ = _read_feature_names(content)
    return clf


def _read_parameters(content, transition) -> dict:
    """Return the parameters of the classifier; numbers by name as a mapping."""
    parameters = content | {"strength": float(content["strength"])}
    if "transition" in parameters:
        parameters["transition"] = _read_transition(parameters["transition"])
    for name, names in _names_of(transition):
        if isinstance(parameters[name], list):
            numbers = numbers_by_name(name, parameters[name], names)
            parameters[name] = dict(zip(names, numbers.tolist(), strict=True))
    return parameters


def _read_transition(content):
    return None if content is None else Transition.from_json(json.dumps(content))


def _read_strength(text) -> float:
    strength = float(text)
    if not strength >= 0:
        raise ValueError(f"strength must be 0 or more; it is {strength}.")
    return strength


def _read_sources(content) -> Sources:
    match_names("sources", content, Sources._fields)
    known = (SPECIFIED, IMPLIED, ESTIMATED, ASSUMED)
    strange = [value for value in content.values() if value not in known]
    if strange:
        raise ValueError(f"a source must be one of {known}; it is {short_repr(strange[0])}.")
    return Sources(**content)


def _read_interval(content):
    """Return the ends of an interval of a share, or None."""
    if content is None:
        return None
    low, high = map(float, content)
    if not 0 <= low <= high <= 1:
        raise ValueError(f"wrong_share_interval must be from 0 to 1; it is {content}.")
    return low, high


def _read_room(content, classes):
    """Return how far class shares can be below and above their estimate, or None."""
    if content is None:
        return None
    below, above = content
    name = "class_share_room"
    return np.array([numbers_by_name(name, room, classes, maximum=1) for room in (below, above)])


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


def _read_count(content, name) -> int:
    found = content[name]
    if type(found) is not int or found < 0:
        raise ValueError(f"{name} must be a whole number from 0; it is {short_repr(found)}.")
    return found


def _read_feature_names(content) -> np.ndarray:
    names = np.array(content["feature_names_in"], dtype=object)
    are_texts = all(isinstance(name, str) for name in names)
    if names.shape != (content["n_features_in"],) or not are_texts:
        raise ValueError("feature_names_in does not name each of the features.")
    return names


def add_arrays(clf, arrays, annotators) -> None:
    """Add the arrays of an open file, and what the description says about `annotators`, if any."""
    known = ARRAY_NAMES if annotators is None else (*ARRAY_NAMES, TRANSITIONS)
    match_names("it", arrays.files, known)
    if annotators is not None:
        _add_annotators(clf, annotators, arrays[TRANSITIONS])
    prior, ends, weights, factor, class_factor, objective = (arrays[name] for name in ARRAY_NAMES)
    classes, labels = clf.transition_.classes, clf.transition_.labels
    prior = numbers_by_name("class_prior", prior, classes)
    if abs(prior.sum() - 1) > 1e-5:
        raise ValueError(f"class_prior must sum to 1; it sums to {prior.sum():.6g}.")
    interval = _read_prior_interval(ends, classes) if ends.size else None
    clf._keep_model(clf.label_model_._replace(class_prior=prior, class_prior_interval=interval))
    clf.training_label_weights_ = _numbers_if_any("label_weights", weights, labels)
    factor = _numbers_if_any("factor", factor, labels)
    clf.calibration_ = clf.calibration_._replace(factor=factor)
    factor = _numbers_if_any("class_factor", class_factor, classes)
    clf.class_calibration_ = clf.class_calibration_._replace(factor=factor)
    if objective.ndim != 1 or not np.isfinite(as_numpy("objective", objective)).all():
        raise ValueError(f"objective must be a list of finite numbers; it is {objective}.")
    clf.objective_ = objective.tolist()


def _numbers_if_any(name, array, names):
    return numbers_by_name(name, array, names) if array.size else None


def _read_prior_interval(ends, classes):
    """Return the low and the high end of each class."""
    name = "class_prior_interval"
    low, high = (numbers_by_name(name, end, classes, maximum=1) for end in ends)
    if (low > high).any():
        raise ValueError(f"{name} must have low ends below high ends; it is {low}, {high}.")
    return low, high


def _add_annotators(clf, content, proba):
    """Add what was found about annotators."""
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
    same_as = np.array([a if of is None else names.index(of) for a, of in enumerate(copied)])
    powers = Powers(*map(float, content["powers"]))
    if not all(0 < power <= 1 for power in powers):
        raise ValueError(f"powers must be above 0 and at most 1; they are {listed(powers)}.")
    clf.transitions_ = AnnotatorTransitions(names, proba, classes, labels, same_as, powers)
    quality["confusions"] = [list(map(_tuple_name, of_one)) for of_one in quality["confusions"]]
    clf.annotator_quality_ = quality_table(names, quality)


def _tuple_name(name):
    return tuple(map(_tuple_name, name)) if isinstance(name, list) else name  # JSON has no tuples
