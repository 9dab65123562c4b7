"""The peers, called as a user would: with their own defaults and the same base classifier."""

import numpy as np
from benchmarks.quality.answer import FOREST, LEAF, TREES, Answer, make_base, place_columns
from sklearn.base import clone
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier

SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
MAX_DRAWS = 50  # of held-out rows, until a positive row is among them
NONE_HELD_OUT = ("hold-out", "array with 0 sample")  # in pulearn's message if there is none

# ------------------------------------------------------------------- scikit-learn alone


def plain(problem, seed, base) -> Answer:
    """Fit the base classifier to the rows whose label names one class."""
    rows = problem.exact >= 0
    return _plain(problem, problem.X[rows], problem.exact[rows], None, seed, base)


def as_negative(problem, seed, base) -> Answer:
    """Fit the base classifier with unlabeled rows as the negative class."""
    return _plain(problem, problem.X, negative_for_missing(problem), None, seed, base)


def split_labels(problem, seed, base) -> Answer:
    """Fit the base classifier to one copy of a row per possible class; its weights sum to 1."""
    meant = [problem.meanings[label] for label in problem.labels]
    sizes = np.array([len(classes) for classes in meant])
    rows = np.repeat(np.arange(len(sizes)), sizes)
    return _plain(problem, problem.X[rows], np.concatenate(meant), 1 / sizes[rows], seed, base)


def all_known(problem, seed, base) -> Answer:
    """Fit the base classifier to the true classes: an upper bound."""
    return _plain(problem, problem.X, problem.truth, None, seed, base)


def self_training(problem, seed, base) -> Answer:
    """Self-training; rows whose label does not name exactly one class are unlabeled."""
    model = SelfTrainingClassifier(make_base(base, seed)).fit(problem.X, problem.exact)
    return Answer(_proba(model, problem))


def label_spreading(problem, seed, base) -> Answer:
    """Label spreading, a reference: it has no base classifier."""
    model = LabelSpreading(kernel="knn", n_neighbors=7).fit(problem.X, problem.exact)
    return Answer(_proba(model, problem))


def negative_for_missing(problem):
    return np.where(problem.exact < 0, problem.negative, problem.exact)


def _plain(problem, X, y, weight, seed, base):
    model = make_base(base, seed).fit(X, y, sample_weight=weight)
    return Answer(_proba(model, problem))


def _proba(model, problem):
    proba = model.predict_proba(problem.X_test)
    proba = np.where(np.isfinite(proba), proba, 0)  # LabelSpreading gives NaN far from all labels
    return place_columns(proba, model.classes_, len(problem.classes))


# ------------------------------------------------------------------- cleanlab


def cleanlab(problem, seed, base) -> Answer:
    """Clean the labels of the labeled rows, and report which were wrong."""
    rows = problem.exact >= 0
    return _cleanlab(problem, problem.X[rows], problem.exact[rows], seed, base)


def cleanlab_as_negative(problem, seed, base) -> Answer:
    """Clean the labels, with unlabeled rows as the negative class."""
    found = _cleanlab(problem, problem.X, negative_for_missing(problem), seed, base)
    return Answer(found.class_proba)


def _cleanlab(problem, X, labels, seed, base):
    from cleanlab.classification import CleanLearning
    from cleanlab.rank import get_label_quality_scores
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(
        5, shuffle=True, random_state=seed
    )  # its default, drawn once for all scores
    present, index = np.unique(labels, return_inverse=True)  # it requires 0, 1, … without gaps
    model = make_base(base, seed)
    label_proba = cross_val_predict(model, X, index, cv=folds, method="predict_proba")
    alone = {"n_jobs": 1}  # it cannot start processes within a process of joblib
    model = CleanLearning(model, seed=seed, find_label_issues_kwargs=alone)
    issues = model.find_label_issues(labels=index, pred_probs=label_proba)
    model.fit(X, index, label_issues=issues)
    wrong = issues["is_label_issue"].to_numpy()
    proba = model.predict_proba(problem.X_test)
    doubt = [-get_label_quality_scores(index, label_proba, method=score) for score in SCORES]
    corrected = np.where(wrong, issues["predicted_label"].to_numpy(), index)
    known = present[model.clf.classes_]  # a class may have lost all its rows
    return Answer(
        place_columns(proba, known, len(problem.classes)),
        transition=_transition(problem, present, model.noise_matrix),
        doubt=[-issues["label_quality"].to_numpy(), *doubt],
        is_doubted=wrong,
        n_wrong=float(wrong.sum()),
        corrected=present[corrected],
    )


def _transition(problem, present, noise_matrix):
    """Return p(label | class): cleanlab's noise matrix times the labeled share."""
    n_classes, labels = len(problem.classes), problem.transition.labels
    if noise_matrix is None or problem.negative is not None:
        return None
    noise = np.eye(n_classes)
    noise[np.ix_(present, present)] = np.asarray(
        noise_matrix
    ).T  # columns of noise_matrix are classes
    labeled = np.mean(problem.exact >= 0)
    missing = np.full((n_classes, len(labels) - n_classes), 1 - labeled)
    return np.hstack([labeled * noise, missing])


# ------------------------------------------------------------------- pulearn


def elkan_noto(problem, seed, base) -> Answer:
    """Elkan and Noto's classifier: p(s = 1 | y = 1) is the mean score of held-out positives."""
    from pulearn import ElkanotoPuClassifier

    def fit(X, y):
        model = ElkanotoPuClassifier(make_base(base, seed), random_state=seed)
        return fit_with_redraws(model, X, y)

    return one_versus_rest(problem, fit)


def elkan_noto_weighted(problem, seed, base) -> Answer:
    """Elkan and Noto's classifier with weights."""
    from pulearn import WeightedElkanotoPuClassifier

    def fit(X, y):
        model = WeightedElkanotoPuClassifier(
            make_base(base, seed), labeled=int(y.sum()), unlabeled=int((y == 0).sum()),
            random_state=seed,
        )  # fmt: skip
        return fit_with_redraws(model, X, y)

    return one_versus_rest(problem, fit)


def pu_bagging(problem, seed, base) -> Answer:
    """Bagging: each model learns from all positives and as many unlabeled rows.

    The models are the trees of a forest, or logistic regressions, as many as pulearn's default.
    """
    from pulearn import BaggingPuClassifier

    if base == FOREST:
        tree = DecisionTreeClassifier(min_samples_leaf=LEAF, max_features="sqrt")
        model = BaggingPuClassifier(tree, n_estimators=TREES)
    else:
        model = BaggingPuClassifier(make_base(base, seed))

    def fit(X, y):
        n_drawn = int(min(y.sum(), (y == 0).sum()))
        model.set_params(max_samples=n_drawn, oob_score=False, n_jobs=1, random_state=seed)
        return clone(model).fit(X, y)

    return one_versus_rest(problem, fit)


def fit_with_redraws(model, X, y):
    """Fit; draw other held-out rows if none is positive, which is an error in pulearn."""
    for _ in range(MAX_DRAWS):
        try:
            return model.fit(X, y)
        except ValueError as error:
            if not any(part in str(error) for part in NONE_HELD_OUT):
                raise
            model.set_params(random_state=model.random_state + 1000)
    raise ValueError(f"None of {MAX_DRAWS} draws of held-out rows has a positive row.")


def one_versus_rest(problem, fit) -> Answer:
    """Fit one model per positive class; a row is negative if no class reaches 1/2."""
    positive = [k for k in problem.classes if k != problem.negative]
    scores, prior = [], []
    for k in positive:
        y = (problem.exact == k).astype(int)
        model = fit(problem.X, y)
        scores.append(np.clip(model.predict_proba(problem.X_test)[:, 1], 0, 1))
        prior.append(min(1.0, y.mean() / model.c) if hasattr(model, "c") else np.nan)
    scores = np.column_stack(scores)
    class_proba = np.column_stack([scores, 1 - scores.max(axis=1)])  # `negative` is the last class
    class_proba /= class_proba.sum(axis=1, keepdims=True)
    known = None if np.isnan(prior).any() else np.append(prior, max(0, 1 - np.sum(prior)))
    return Answer(class_proba, class_prior=known)


def histogram_prior(problem, seed, base) -> Answer:
    """Only the class prior, by histograms of its own linear scores, because it fits in sample."""
    from pulearn.priors import HistogramMatchPriorEstimator

    found = HistogramMatchPriorEstimator().estimate(problem.X, (problem.exact == 0).astype(int))
    return Answer(class_prior=np.array([found.pi, 1 - found.pi]))
