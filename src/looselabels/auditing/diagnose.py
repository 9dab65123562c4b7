"""Tests of the model's assumptions: when not to trust an answer.

- **instance**: labels depend on more than the class, p(label | class, x) ≠ p(label | class).
- **identifiability**: some classes, or mixtures of them, have identical label distributions.
- **calibration**: predicted label probabilities, out of sample, differ from observed frequencies.
- **missing**: labels that should be missing at random are missing more often in some classes.
- **features**: the features do not predict the labels better than label frequencies alone.
- **copies**: rows are copies of other rows, so that there is less evidence than rows.
- **candidates**: one model predicts the labels as well as the models that noise was estimated from,
  but finds another number of wrong labels.
- **estimator**: another model predicts the labels better than the estimator of the user. This is
  only tested if other models were fitted too, to estimate noise.

What labels alone can say about the first has a limit: *every* p(label | x) can be explained by
overlapping classes without any noise (T = I). So a transition that was estimated from the labels
cannot be tested with them. A specified transition can (`instance_dependence`). And a few hundred
rows whose classes are known need no transition (`dependence_given_class`).
"""

from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from looselabels._names import as_column, in_label_order, listed, read_classes
from looselabels._rows import on_simplex
from looselabels._validation import (
    as_counts,
    as_numpy,
    check_row_stochastic,
    check_scores,
    short_repr,
    weight_of_rows,
)
from looselabels.estimation.calibration import fit_class_calibration
from looselabels.estimation.losses import LabelSkill, label_skill
from looselabels.estimation.reliability import LARGE_ERROR, SMALL_ERROR, calibration_error
from looselabels.estimation.sampling import sample_rows
from looselabels.inference import class_proba_from, condition_on_label
from looselabels.learning.label_model import OWN_MODEL
from looselabels.learning.out_of_sample import PrecomputedProba
from looselabels.transition import Transition, can_be_wrong, data_set, uninformative_labels

LEVEL = 0.01  # the rate of false alarms of each test
MAX_ROWS = 20_000  # that are tested: with more rows, differences are found that do not matter
MIN_LABEL_PROBA = 0.01  # relative to 1 / n_labels: smaller estimates differ by noise only
WORSE = 1.05  # times the best log-loss
MODELS = {"forest": "a forest", "linear": "a linear model", OWN_MODEL: "your estimator"}
MAX_CONDITION = 1000.0  # condition number above which errors of a classifier hide the classes


class Finding(NamedTuple):
    """The result of testing one assumption."""

    kind: str  #: "instance", "identifiability", … as in the list at the top of this module
    found: bool  #: whether the assumption is violated
    p_value: float | None  #: of the test; None if there was none
    words: str  #: what was found, and what to do


# ------------------------------------------------------------------------------ a fitted classifier


def diagnose(clf, y, classes=None) -> list[Finding]:
    """Test the assumptions of a fitted classifier and report violations.

    Parameters
    ----------
    clf : DecoupledClassifier, or a Pipeline that ends with one
        Fitted in this process to one label per row: a model loaded from a file has no training
        rows.
    y : column of shape (n_samples,)
        The labels that it was fitted to.
    classes : column of shape (n_samples,), default=None
        The true class where it is known, for example of a few hundred rows that were drawn at
        random and checked; None, NaN and NA elsewhere. Without it, an estimated transition is not
        tested for instance dependence.

    Examples
    --------
    20 % of the labels are wrong, more often where x is close to the border between the classes:

    >>> from looselabels import DecoupledClassifier
    >>> rng = np.random.default_rng(0)
    >>> label_1 = 1 / (1 + np.exp(-3.5 * rng.uniform(-1, 1, 2000)))
    >>> y = (rng.random(2000) < label_1).astype(int)
    >>> label_proba = np.column_stack([1 - label_1, label_1])
    >>> clf = DecoupledClassifier(noise=0.2).fit_from_proba(label_proba, y)
    >>> [finding.kind for finding in diagnose(clf, y) if finding.found]
    ['instance', 'calibration']
    """
    if isinstance(clf, Pipeline):
        clf = clf[-1]
    check_is_fitted(clf, "converged_")
    if getattr(clf, "annotators_", None) is not None:
        raise ValueError(
            "diagnose is for one label per row, and the classifier was fitted to several answers "
            "per row. audit(clf, Y) says how good the annotators are, and which of them agree."
        )
    model, index = clf.label_model_, clf.transition_.label_index(as_column(y))
    n_rows = len(getattr(clf, "class_proba_", ()))
    if len(index) != n_rows:
        raise ValueError(
            f"y has {len(index)} rows; the classifier has {n_rows} training rows (none if it was "
            "loaded from a file). Pass the labels that it was fitted to."
        )
    scores = clf.label_scores_._replace(label_index=index)
    return [
        _instance_finding(model, scores, classes),
        identifiability(model.transition),
        _calibration_finding(model, scores, clf.class_proba_),
        _missing_finding(model, scores, clf.class_proba_),
        useless_features(
            mean_skill(skills_of(model, scores)),
            clf.candidate_losses_,
            has_own_proba=isinstance(clf.estimator_, PrecomputedProba),
        ),
        _copies_finding(scores, clf.n_fit_rows_ > 0),
        _candidates_finding(model, clf.rival_wrong_shares_),
        _estimator_finding(clf.candidate_losses_),
    ]


def diagnose_new_rows(model, scores) -> list[Finding]:
    """Test what can be tested on rows that the classifier was not fitted to.

    Whether the features predict labels was tested in the fit. New rows contradict it only if the
    predictions are much worse than they promise: few labels, or nearly equal ones, say nothing.
    """
    skill = mean_skill(skills_of(model, scores))
    is_tested = skill is not None and (skill.is_useful or skill.is_contradicted)
    found = [useless_features(skill)] if is_tested else []
    return [*found, _copies_finding(scores, were_fitted=False)]


def _instance_finding(model, scores, classes):
    seen, transition = scores.seen_labels, model.transition
    weight = scores.row_counts
    chosen = np.isin(scores.label_index, seen) & (weight > 0)
    if classes is not None:
        n_rows = len(scores.label_index)
        class_index = read_classes("classes", classes, transition.classes, n_rows)
        chosen &= class_index >= 0
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return Finding("instance", False, None, "No row has a known class: nothing to test.")
    if classes is not None:
        label_proba, position = _real_scores(scores, seen, rows)
        return dependence_given_class(label_proba, class_index[rows], position)
    if model.sources.transition == "estimated":
        words = (
            "Whether labels depend on more than the class was not tested, because the transition "
            "was estimated from the same labels. Check a few hundred labels by hand, and pass the "
            "classes to diagnose."
        )
        return Finding("instance", False, None, words)
    known = on_simplex(transition.proba[:, seen])
    rows = rows[sample_rows(len(rows), MAX_ROWS)]  # before all of them are converted
    label_proba, position = _real_scores(scores, seen, rows)
    return instance_dependence(label_proba, known, position, weight[rows])


def _real_scores(scores, labels, rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the real p(label | x) of rows with some of the labels, and the labels' positions."""
    return scores.real(labels, rows), np.searchsorted(labels, scores.label_index[rows])


def _calibration_finding(model, scores, class_proba):
    """Test the predicted probabilities of the labels that are not missing, as the page shows."""
    transition, weight = model.transition, scores.row_counts
    informative = np.flatnonzero(can_be_wrong(transition))
    rows = np.flatnonzero(np.isin(scores.label_index, informative) & (weight > 0))
    if not len(rows):
        return Finding("calibration", False, None, "No label can be wrong: nothing to test.")
    rows = rows[sample_rows(len(rows), MAX_ROWS)]  # before labels of all of them are predicted
    predicted = on_simplex((class_proba[rows] @ transition.proba)[:, informative])
    position = np.searchsorted(informative, scores.label_index[rows])
    return miscalibration(predicted, position, weight[rows])


def _missing_finding(model, scores, class_proba):
    """Test labels that the estimator did not learn from: label_proba does not show them."""
    left_out = np.setdiff1d(np.arange(len(model.transition.labels)), scores.seen_labels)
    left_out = left_out[uninformative_labels(model.transition)[left_out]]
    weight = scores.row_counts
    rows = np.flatnonzero(weight > 0)
    is_left_out = np.isin(scores.label_index[rows], left_out)
    if not is_left_out.any() or is_left_out.all():
        words = "No label is assumed to be missing at random: nothing to test."
        return Finding("missing", False, None, words)
    names = model.transition.classes
    return missing_dependence(class_proba[rows], is_left_out, weight[rows], names)


def mean_skill(skills: dict) -> LabelSkill | None:
    """Return how well labels are predicted on average over the rows, from `skills_of`."""
    if not skills:
        return None
    accuracy, gain, error, surprise = np.transpose([skill for skill, _ in skills.values()])
    weight = np.array([weight for _, weight in skills.values()])
    weight /= weight.sum()
    errors = np.linalg.norm(weight * error)  # data sets are independent
    return LabelSkill(
        float(weight @ accuracy), float(weight @ gain), float(errors), float(weight @ surprise)
    )


def skills_of(model, scores) -> dict:
    """Return how well labels are predicted out of sample, and the rows' weight, by data set.

    Each label is compared with others of its data set only: which data set a row is from is known,
    and need not be predicted. The key is None if data sets were not merged, or if none has two
    labels. Labels that cannot be wrong, such as the missing one, are left out if two others remain.
    """
    seen, labels = scores.seen_labels, model.transition.labels
    sources = [data_set(labels[s], model.transition.classes) for s in seen]
    found = {}
    for source in dict.fromkeys(sources):
        own = seen[[name == source for name in sources]]
        found[source] = _skill_among(own, model, scores)
    found = {source: skill for source, skill in found.items() if skill is not None}
    if not found and (skill := _skill_among(seen, model, scores)) is not None:
        return {None: skill}
    return found


def _skill_among(labels, model, scores):
    """Return the skill for rows with some of the labels, and the weight of these rows."""
    weight, informative = scores.row_counts, labels[can_be_wrong(model.transition)[labels]]
    labels = informative if len(informative) > 1 else labels
    rows = np.flatnonzero(np.isin(scores.label_index, labels) & (weight > 0))
    total, rows = weight[rows].sum(), rows[sample_rows(len(rows), MAX_ROWS)]
    if len(np.unique(scores.label_index[rows])) < 2:
        return None
    return label_skill(*_real_scores(scores, labels, rows), weight[rows]), float(total)


def useless_features(skill: LabelSkill | None, losses=None, *, has_own_proba=False) -> Finding:
    """Report whether the features predict the labels; if not, no wrong label can be found.

    `losses` are those of several models; it can be the estimator that does not predict the labels,
    or probabilities that the user passed, `has_own_proba`.
    """
    if skill is None:
        return Finding("features", False, None, "There are no two labels to predict.")
    if skill.is_useful:
        words = f"The features predict {skill.accuracy:.0%} of the labels, out of sample."
        return Finding("features", False, None, words)
    words = (
        "The features do not predict the labels better than the label frequencies alone. Wrong "
        "labels cannot be found with them: add features that depend on the class."
    )
    if has_own_proba:
        words = (
            "The given probabilities do not predict the labels better than the label frequencies "
            "alone. Wrong labels cannot be found with them: use a model that predicts the labels."
        )
    better = better_model(losses)
    if better is not None:
        words = (
            "Your estimator does not predict the labels better than the label frequencies alone, "
            f"but {MODELS[better]} does. Wrong labels cannot be found with your estimator: use "
            "another one, or estimator=None."
        )
    return Finding("features", True, None, words)


def _copies_finding(scores, were_fitted):
    """Report copies; if models were fitted to the rows, no model has predicted a copy of its own.

    `groups` of `DecoupledClassifier.fit`, or `copies` where nothing is fitted, can deny them.
    """
    groups, weight = scores.groups, scores.sample_weight
    weight = np.ones(len(scores.label_index)) if weight is None else as_counts(weight)
    if groups is None or round(groups.copies_per_row(weight), 6) == 1:
        return Finding("copies", False, None, "No row was treated as a copy of another row.")
    treated, name = ("were kept together, and ", "groups") if were_fitted else ("", "copies")
    words = (
        f"{groups.n_copies:,} of {len(scores.label_index):,} rows are copies of other rows. Copies "
        f"{treated}count once in estimates. If equal rows are not copies, specify {name} with a "
        "different value for each row."
    )
    return Finding("copies", True, None, words)


def _candidates_finding(model, rivals):
    """Report whether the best single model finds another share of wrong labels.

    `rivals` are the `rival_wrong_shares_` of the classifier.
    """
    used = model.wrong_share_interval
    for name, (low, high) in rivals.items() if used is not None else ():
        is_other = low > used[1] or high < used[0]
        if is_other and _range(low, high) != _range(*used):
            words = (
                f"{MODELS[name].capitalize()} alone predicts the labels about as well as what was "
                f"used, but finds {_range(low, high)} of the labels wrong instead of "
                f"{_range(*used)}. Labels look wrong where a model does not fit: check some of "
                "them before you rely on the number."
            )
            return Finding("candidates", True, None, words)
    words = "No model that predicts the labels as well finds a different number of wrong labels."
    return Finding("candidates", False, None, words)


def better_model(losses) -> str | None:
    """Return the name of a model that predicts the labels better than the user's estimator."""
    if not losses or OWN_MODEL not in losses:
        return None
    best = min(losses, key=lambda name: losses[name])
    return best if losses[OWN_MODEL] > WORSE * losses[best] else None


def _estimator_finding(losses):
    """Report whether another model predicts the labels better than the user's estimator."""
    best = better_model(losses)
    if OWN_MODEL not in (losses or {}):
        words = "No other model was fitted next to an estimator of yours: nothing to compare."
        return Finding("estimator", False, None, words)
    if best is None:
        words = "No other model predicts the labels clearly better than the estimator."
        return Finding("estimator", False, None, words)
    words = (
        f"{MODELS[best].capitalize()} predicts the labels better than your estimator: the "
        f"log-loss is {losses[best]:.3g} instead of {losses[OWN_MODEL]:.3g}. How often labels are "
        "wrong was estimated with all models together, but doubts and suggestions are those of "
        "your estimator. Consider estimator=None."
    )
    return Finding("estimator", True, None, words)


def _range(low, high):
    """Return a range of shares; one number if both ends are written the same."""
    return f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"


# ------------------------------------------------------------------------------ more than the class


def instance_dependence(label_proba, transition, label_index, sample_weight=None) -> Finding:
    """Test whether labels depend on more than the class, for a *known* transition.

    If x says more about a label than its class does, some of that shows in label_proba g, as
    p(s | y, x) ∝ T[y, s] g(s | x)^a. This is a score test of a = 0 against a > 0: with p(class | x)
    from the transition, calibrated (`fit_class_calibration`), and W = p(class | x, label),

        q_i = Σ_y W_iy (h_iy[s_i] − Σ_s T[y, s] h_iy[s]),    h_iy = log g_i − its mean over class y

    has mean 0, and z = Σ q / √Σ q². The calibration was fitted to the same labels, which makes the
    test slightly conservative.

    The test detects labels that are wrong, or missing, more often in some rows of a class than in
    others, if `label_proba` can tell which. A wrong transition has the same effect, the more so the
    more noise it assumes. The test detects nothing if the transition was estimated from these
    labels, or if each class has only one label.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        Real p(label | x), out of sample. Columns of a DataFrame are matched by name with a
        `Transition`.
    transition : Transition or array of shape (n_classes, n_labels)
    label_index : integer array of shape (n_samples,)
        The column of the transition for each row's label.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.

    Examples
    --------
    20 % of the labels are wrong: first equally often everywhere, then mostly close to the border.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, 2000)
    >>> known = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> for label_1 in np.where(x > 0, 0.8, 0.2), 1 / (1 + np.exp(-3.5 * x)):
    ...     labels = (rng.random(2000) < label_1).astype(int)
    ...     label_proba = np.column_stack([1 - label_1, label_1])
    ...     print(instance_dependence(label_proba, known, labels).found)
    False
    True
    """
    labels = getattr(transition, "labels", None)
    label_proba = in_label_order("label_proba", label_proba, labels)
    transition = check_row_stochastic("transition", as_numpy("transition", transition))
    label_proba, label_index, weight = _checked_sample(label_proba, label_index, sample_weight)
    identity = np.eye(label_proba.shape[1])
    of_labels, _ = fit_class_calibration(label_proba, identity, label_index, weight)
    label_proba = of_labels.apply(label_proba)
    class_proba = class_proba_from(label_proba, transition)
    of_classes, _ = fit_class_calibration(class_proba, transition, label_index, weight)
    class_proba = of_classes.apply(class_proba)
    given_label = condition_on_label(class_proba, transition, label_index)
    score = weight * _dependence_score(label_proba, transition, label_index, given_label, weight)
    if np.max(abs(score)) < 1e-6:
        words = "p(label | x) says no more about a label than its class does: nothing to test."
        return Finding("instance", False, None, words)
    p_value = _p_value(score.sum() / np.sqrt(score @ score))
    words = (
        "the transition is wrong, or labels are wrong or missing more often in some rows of a "
        "class than in others. Check a few hundred labels by hand, and pass the classes to "
        "diagnose."
    )
    return _dependence_finding(p_value, words)


def _dependence_score(label_proba, transition, label_index, given_label, weight):
    """Return q_i, the slope of each row's log-likelihood in a."""
    logs = np.log(np.maximum(label_proba, MIN_LABEL_PROBA / label_proba.shape[1]))
    of_class = given_label * weight[:, None]
    mean = (of_class.T @ logs) / np.maximum(of_class.sum(axis=0), 1e-9)[:, None]
    own = logs[np.arange(len(logs)), label_index][:, None] - mean.T[label_index]
    expected = logs @ transition.T - np.sum(transition * mean, axis=1)
    return np.sum(given_label * (own - expected), axis=1)


def dependence_given_class(label_proba, class_index, label_index) -> Finding:
    """Test whether labels depend on more than the class, on rows whose class is known.

    If labels depend on the class only, they can be permuted among the rows of a class:
    Σ log g_i(s_i) is compared with its mean and variance over all such permutations (for a matrix A
    with one row per sample and one column per label: ΣA / n, and ΣD² / (n − 1) with D = A centered
    by row and column).

    Nothing is assumed about label_proba, overlap, or the form of the noise. label_proba must be out
    of sample, and rows must not have been selected by their labels.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
    class_index, label_index : integer arrays of shape (n_samples,)
        The class and the column of the label of each row.

    Examples
    --------
    >>> label_proba = np.array([[0.9, 0.1], [0.5, 0.5]] * 50)
    >>> label_index = np.array([0, 1, 0, 0] * 25)
    >>> dependence_given_class(label_proba, np.zeros(100, dtype=int), label_index).found
    True
    """
    label_proba, label_index, _ = check_scores(label_proba, label_index)
    logs = np.log(np.maximum(label_proba, MIN_LABEL_PROBA / label_proba.shape[1]))
    excess, variance = 0.0, 0.0
    for k in np.unique(class_index):
        rows = np.flatnonzero(class_index == k)
        own = logs[rows] - logs[rows].mean(axis=0)
        counts = np.bincount(label_index[rows], minlength=own.shape[1])
        excess += np.sum(own[np.arange(len(rows)), label_index[rows]])
        own = own - (own @ counts / len(rows))[:, None]
        variance += np.sum(own**2 @ counts) / max(len(rows) - 1, 1)
    if variance <= 1e-12:
        words = "All rows of each known class have the same label: nothing to test."
        return Finding("instance", False, None, words)
    p_value = _p_value(excess / np.sqrt(variance))
    words = (
        "within a class, some rows are labeled wrong, or not at all, more often than others. "
        "Doubts are too low for these and too high for the rest: use their order, not their values."
    )
    return _dependence_finding(p_value, words)


def _dependence_finding(p_value, words):
    if p_value < LEVEL:
        text = f"Labels depend on more than the class (p = {p_value:.2g}): {words}"
    else:
        text = f"No evidence that labels depend on more than the class (p = {p_value:.2g})."
    return Finding("instance", p_value < LEVEL, p_value, text)


# -------------------------------------------------------------------- identifiability, calibration


def identifiability(transition: Transition) -> Finding:
    """Report whether different classes, or mixtures of them, have identical label distributions.

    That is so if the rank of T is below the number of classes. In practice it is so as well if T is
    so badly conditioned that errors of label_proba are larger than the differences.

    >>> pets = Transition.from_meanings({"pet": ["cat", "dog"], "other": "other"})
    >>> print(identifiability(pets).words)
    Classes ('cat', 'dog') have identical label distributions: how rows divide between them is a \
guess. Add labels that distinguish them, or merge them.
    """
    kind, groups = "identifiability", transition.indistinct_classes()
    if groups:
        words = (
            f"Classes {', '.join(listed(group) for group in groups)} have identical label "
            "distributions: how rows divide between them is a guess. Add labels that distinguish "
            "them, or merge them."
        )
    elif transition.rank < len(transition.classes):
        words = (
            "Some mixtures of classes have identical label distributions (rank "
            f"{transition.rank} for {len(transition.classes)} classes): class shares are a guess. "
            "Add labels."
        )
    elif transition.condition_number > MAX_CONDITION:
        words = (
            "Classes have nearly identical label distributions (condition number "
            f"{transition.condition_number:.3g}): small errors of the model move rows from class "
            "to class. Label more rows of the classes that have few labels."
        )
    else:
        return Finding(kind, False, None, "Labels distinguish all classes.")
    return Finding(kind, True, None, words)


def missing_dependence(class_proba, is_missing, sample_weight=None, classes=None) -> Finding:
    """Test whether labels are missing more often in some classes than in others.

    If labels are missing at random, rows with and without a label have the same mean of
    p(class | x). With d the difference of the two means and S the covariance of p(class | x),

        d S⁺ dᵀ / (1 / n_missing + 1 / n_present)

    has a chi-squared distribution with rank(S) degrees of freedom. A small difference causes no
    alarm, however many rows there are.

    Parameters
    ----------
    class_proba : array of shape (n_samples, n_classes)
        p(class | x), without the row's own label.
    is_missing : bool array of shape (n_samples,)
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.
    classes : sequence of names, default=None
        For the words.

    Examples
    --------
    >>> class_proba = np.repeat([[0.9, 0.1], [0.1, 0.9]], 100, axis=0)
    >>> missing_dependence(class_proba, np.arange(200) % 2 == 0).found
    False
    >>> is_missing = np.arange(200) % 3 < np.repeat([2, 1], 100)
    >>> print(missing_dependence(class_proba, is_missing).words)
    Labels are not missing at random (p = 1.5e-06): rows that look like class 0 have a label \
less often than others. Specify the share of each class that is labeled: \
Transition.partial(classes, labeled={…}).
    """
    from scipy.stats import chi2

    weight = weight_of_rows(sample_weight, len(class_proba))
    groups = [np.where(is_missing, weight, 0.0), np.where(is_missing, 0.0, weight)]
    means = [group @ class_proba / group.sum() for group in groups]
    difference = means[0] - means[1]
    variance = sum(np.sum(group**2) / group.sum() ** 2 for group in groups)
    centered = class_proba - weight @ class_proba / weight.sum()
    covariance = (weight * centered.T) @ centered / weight.sum()
    rank = np.linalg.matrix_rank(covariance, hermitian=True)
    statistic = difference @ np.linalg.pinv(covariance, hermitian=True) @ difference / variance
    p_value = float(chi2.sf(statistic, max(rank, 1)))
    if p_value >= LEVEL or np.max(abs(difference)) < SMALL_ERROR:
        words = f"No evidence against labels missing at random (p = {p_value:.2g})."
        return Finding("missing", False, p_value, words)
    k = int(np.argmax(difference))
    words = (
        f"Labels are not missing at random (p = {p_value:.2g}): rows that look like class "
        f"{short_repr(k if classes is None else classes[k])} have a label less often than others. "
        "Specify the share of each class that is labeled: "
        "Transition.partial(classes, labeled={…})."
    )
    return Finding("missing", True, p_value, words)


def miscalibration(
    label_proba, label_index, sample_weight=None, *, n_draws=400, random_state=0
) -> Finding:
    """Test whether the most probable label is given as often as label_proba says.

    The calibration error (`reliability`) is compared with the errors of labels that are drawn from
    label_proba itself, so that few rows cause no false alarm. A small error causes none either,
    however many rows there are. Only the most probable label of each row is tested.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        Real p(label | x), out of sample.
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    sample_weight : array of shape (n_samples,), default=None
        How often each row counts.

    Examples
    --------
    >>> miscalibration(np.array([[0.9, 0.1]] * 200), np.array([0, 0, 0, 1] * 50)).found
    True
    """
    label_proba, label_index, weight = _checked_sample(label_proba, label_index, sample_weight)
    best, confidence = label_proba.argmax(axis=1), label_proba.max(axis=1)
    error = calibration_error(confidence, best == label_index, weight)
    rng = np.random.default_rng(random_state)
    by_chance = [
        calibration_error(confidence, rng.random(len(best)) < confidence, weight)
        for _ in range(n_draws)
    ]
    p_value = float((1 + np.sum(np.array(by_chance) >= error)) / (1 + n_draws))
    points = f"off by {100 * error:.1f} percentage points on average (p = {p_value:.2g})"
    if p_value >= LEVEL or error < SMALL_ERROR:
        words = f"Predicted label probabilities are {points}."
        return Finding("calibration", False, p_value, words)
    trust = "treat single doubts with care" if error < LARGE_ERROR else "do not trust single doubts"
    words = (
        f"Predicted label probabilities are {points}: {trust}. Another estimator or another "
        "transition may fit better."
    )
    return Finding("calibration", True, p_value, words)


def _checked_sample(label_proba, label_index, sample_weight):
    """Return all three as arrays, with at most MAX_ROWS rows."""
    label_proba, index, weight = check_scores(label_proba, label_index, sample_weight)
    some = sample_rows(len(index), MAX_ROWS)
    return label_proba[some], index[some], weight[some]


def _p_value(z) -> float:
    from scipy.special import ndtr

    return float(ndtr(-z))
