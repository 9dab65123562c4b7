"""DecoupledClassifier: scikit-learn plumbing around `infer`. No equations here."""

import warnings
from collections.abc import Iterable
from inspect import signature
from numbers import Integral, Real

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    validate_data,
)

from looselabels._names import as_column, listed, numbers_by_name, read_column
from looselabels._rows import on_simplex
from looselabels._validation import (
    as_counts,
    check_class_prior,
    check_row_stochastic,
    short_repr,
)
from looselabels.estimation.calibration import (
    Calibration,
    beside_shares,
    class_losses,
    fit_class_calibration,
    from_real_world,
    to_real_world,
    unweighted_transition,
    weighted_transition,
)
from looselabels.estimation.class_prior import METHODS as PRIOR_METHODS
from looselabels.estimation.class_prior import estimate_class_prior, shared_out
from looselabels.estimation.noise import noise_matrix
from looselabels.estimation.transition import METHODS as TRANSITION_METHODS
from looselabels.estimation.transition import estimate_transition
from looselabels.inference import class_proba_from, condition_on_label, infer
from looselabels.learning.density import KernelDensityClassifier
from looselabels.learning.forest import BalancedForestClassifier, ClassForest, class_draw_sizes
from looselabels.learning.out_of_sample import align, fit_and_predict
from looselabels.model_selection import LabelStratifiedKFold
from looselabels.transition import Transition

SOME_NOISE = 0.1  # what a method of estimate_transition starts from
TRUST = 0.5  # in class shares that were estimated, beside those that the calibration finds
MOST_DRAWN = 5_000  # rows a tree; with more a refit gains nothing (ARCHITECTURE.md)

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9: `verbose` alone tells of progress

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn has no callbacks."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


class DecoupledClassifier(CallbackSupportMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier of classes, learned from labels that are not quite the classes.

    Fits `estimator` to the labels as given, predicts each training row by a model that has not seen
    it, and infers from these p(label | x) what the classes are, through the transition.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Estimates p(label | x). None is a `BalancedForestClassifier`. A ``FrozenEstimator`` is used
        as it is, with its own labels; fit then needs rows that it was not trained on.
    transition : Transition, default=None
        How labels arise. None is ``Transition.from_labels(y, class_prior=class_prior)``: labels are
        the classes; where some are missing, they are missing at random.
    negative : name, default=None
        A class that no label names, whose rows are among the unlabeled (where `transition` is
        None). Which share of the other classes is labeled follows from `class_prior`; without it
        one share for all of them is estimated, by "density-ratio".
    noise : float or str, default=0
        How often a label is wrong: a rate, as in `Transition.with_noise`; "estimate", what the
        labels say of it themselves; or a method of `estimate_transition`, such as "calibrated". A
        rate comes on top of `transition`; one to estimate on has no noise.
    strength : float, default=inf
        How many samples a class the transition is worth as a belief. ``inf`` keeps it as it is; a
        number lets the data move it (the paper's pseudo-counts).
    class_prior : mapping, sequence or str, default=None
        The share of each class; with `negative` also a method of `estimate_class_prior`, such as
        "density-ratio", which estimates one for each of them. Sets the label rates where
        `transition` is None, and the costs of `label_weights`; and where "classes" are calibrated,
        the mean of p(class | x) agrees with shares that were given, and goes half of the way to
        shares that were estimated. None: what the label shares imply, with `negative` by the share
        that is estimated.
        `negative` is left out of a sequence, and may be left out of a mapping: it has the rest.
    label_weights : None, "costs", mapping or sequence, default=None
        How much a sample of each label counts in training: alike, by the paper's costs, as given.
        None leaves labels that all classes have alike, such as one that is missing at random, out
        of a `BalancedForestClassifier` whose rows are predicted out of bag: they tell nothing.
        The inference follows the weights; probabilities are those of the real world.
    cv : int, splitter, iterable or "oob", default=None
        How training rows are predicted out of sample: by folds, stratified by label, or by the
        out-of-bag rows of a forest. None is "oob" for a forest with bootstrap samples, else 5; a
        `KernelDensityClassifier` leaves one out by itself.
    calibrate : "classes", "temperature", "marginals" or None, default="classes"
        What is corrected on out-of-sample rows. "classes": class_proba, by a power and a factor a
        class under which the labels are most likely through the transition. "temperature":
        label_proba, by one power. "marginals": label_proba, by a factor a label that makes its mean
        equal the labels' frequencies.
    refit : bool, default=True
        Whether in the end a forest learns p(class | x, label) of all rows and predicts the classes,
        where `estimator` is a `BalancedForestClassifier` whose rows are predicted out of bag, and
        `label_weights` is None. It learns from unlabeled rows, and from labels that were put right,
        with leaves of its own choice. Where a tree would draw more than 5,000 rows (the labeled
        ones, and up to three unlabeled ones for each) the inference alone is as good, and is left
        alone. A row's own label then reaches its class_proba_ a little, by way of rows beside it:
        to correct few labels among many missing ones, False is better.
    decide : "probable" or "balanced", default="probable"
        Which class `predict` takes: the most probable one, which is right most often; or the one
        whose probability is highest beside its share, p(class | x) / p(class), which is right most
        often in the mean over classes, and finds more rows of rare ones.
    n_jobs : int, default=None
        Folds that are fitted at once; trees of the default forest.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the default forest.
    verbose : int, default=0
        Prints what was assumed and each fold as it ends.

    Attributes
    ----------
    classes_, labels_ : arrays
        Classes, the columns of `predict_proba`; labels, the columns of `predict_label_proba`.
    transition_ : Transition
        As assumed, or as inferred.
    estimator_ : classifier
        Of p(label | x), fitted to all rows.
    class_estimator_ : forest or None
        Of p(class | x), where there was a `refit`; it is what `predict_proba` asks.
    class_prior_ : array
        The share of each class: as given or estimated; as the label shares imply it; where noise
        was estimated, the mean of `class_proba_`.
    class_prior_interval_ : tuple of arrays or None
        The ends of a 90 % interval of `class_prior_`, where it was estimated.
    label_weights_ : array or None
        How many times as frequent each label is in training as in the data: `label_weights`, and
        the draws of a forest that balances labels.
    calibration_, class_calibration_ : Calibration
        The corrections of label_proba, and of class_proba on its way to the real world.
    label_proba_, class_proba_, class_proba_given_label_ : arrays
        Of the training rows: p(label | x) out of sample, as the estimator gives it; p(class | x);
        p(class | x, label).
    sample_weight_ : array or None
        Of the training rows, as given.
    objective_, gap_, n_iter_, converged_
        Of the inference; see `infer`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> names = load_iris().target_names[y].astype(object)
    >>> names[::3] = None  # a third is unlabeled
    >>> clf = DecoupledClassifier(random_state=0).fit(X, names)
    >>> clf.classes_.tolist()
    ['setosa', 'versicolor', 'virginica']
    >>> bool(clf.score(X, load_iris().target_names[y]) > 0.95)
    True
    """

    def __init__(
        self,
        estimator=None,
        transition=None,
        *,
        negative=None,
        noise=0.0,
        strength=np.inf,
        class_prior=None,
        label_weights=None,
        cv=None,
        calibrate="classes",
        refit=True,
        decide="probable",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.transition = transition
        self.negative = negative
        self.noise = noise
        self.strength = strength
        self.class_prior = class_prior
        self.label_weights = label_weights
        self.cv = cv
        self.calibrate = calibrate
        self.refit = refit
        self.decide = decide
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------------------------- fit

    @with_callbacks
    def fit(self, X, y, sample_weight=None, **fit_params):
        """Fit to features `X` and labels `y` as given; None, NaN and NA mean unlabeled.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or list of shape (n_samples, n_features)
            What `estimator` takes.
        y : column of shape (n_samples,)
            Labels: text, numbers, bool, categories.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts.
        **fit_params
            For the fit of `estimator`, and ``groups`` for the splitter.
        """
        estimator = self._check_parameters()
        X, y = indexable(X, as_column(y))
        validate_data(self, X, skip_check_array=True)
        sample_weight = _check_weight(sample_weight, X)
        design, index = self._assume(y, sample_weight)
        weights = self._weigh_labels(estimator, design, index, sample_weight)
        fit_params, split_params = self._route(
            estimator, sample_weight, None if weights is None else weights[index], fit_params
        )
        learn_from = None
        if isinstance(estimator, FrozenEstimator):
            check_is_fitted(estimator)
            label_proba = _label_proba(estimator, X, design)
        else:
            folds = self._folds(estimator, X, y, index, split_params)
            estimator, label_proba = fit_and_predict(
                estimator, X, index, len(design.labels), folds, fit_params, self.n_jobs,
                self._progress(1 if isinstance(folds, str) else 1 + len(folds)),
            )  # fmt: skip
            if self.refit and folds == "oob" and self.label_weights is None:
                learn_from = X if _is_worth_a_refit(estimator, index, sample_weight) else None
        weights = _times(weights, _weights_of_draws(estimator, design))
        return self._decouple(
            estimator, design, label_proba, index, sample_weight, weights, learn_from
        )

    def fit_from_proba(self, label_proba, y, sample_weight=None):
        """Fit to out-of-sample p(label | x) of a model that lives elsewhere, and the labels `y`.

        The columns of `label_proba` are those of the transition's labels (`labels_`). Afterwards
        the predict methods take label_proba of new rows where they would take X.
        """
        self._check_parameters()
        y = as_column(y)
        sample_weight = _check_weight(sample_weight, y)
        design, index = self._assume(y, sample_weight)
        estimator = GivenProba(len(design.labels))
        label_proba = estimator.predict_proba(label_proba)
        if len(label_proba) != len(index):
            raise ValueError(f"label_proba has {len(label_proba)} rows; y has {len(index)}.")
        validate_data(self, label_proba, skip_check_array=True)
        return self._decouple(estimator, design, label_proba, index, sample_weight, None)

    def _assume(self, y, sample_weight):
        """Return what is assumed of the labels, and the position of each of them."""
        if _num_samples(y) < 2:
            raise ValueError(f"fit needs at least two samples; y has n_samples={_num_samples(y)}.")
        design = self.transition
        if design is None:
            design = Transition.from_labels(
                y,
                negative=self.negative,
                labeled=0.5 if self._rate_is_open() else None,  # until there is label_proba
                class_prior=None if self._rate_is_open() else self.class_prior,
                sample_weight=sample_weight,
            )
        if self._told_noise():
            design = design.with_noise(self._told_noise())
        index = design.label_index(y)
        absent = np.setdiff1d(np.arange(len(design.labels)), index)
        unseen = [design.labels[s] for s in absent if design.labels[s] is not None]
        if unseen:
            warnings.warn(
                f"Labels {listed(unseen)} of the transition are not in y: nothing is learned of "
                "them.",
                UserWarning,
                stacklevel=3,
            )
        if self._rate_is_open():
            _check_some_of_each(design, index, sample_weight)
        design.check_identifiable()
        self._say(f"assumed {design!r}")
        return design, index

    def _told_noise(self):
        return 0.0 if isinstance(self.noise, str) else self.noise

    def _prior_is_told(self):
        return not isinstance(self.class_prior, str | None)

    def _rate_is_open(self):
        return self.negative is not None and not self._prior_is_told()

    def _class_prior(self, design, index, sample_weight):
        """Return the share of each class: as given, or as the label shares imply it."""
        if not self._prior_is_told():
            shares = np.bincount(index, sample_weight, minlength=len(design.labels))
            return class_proba_from(shares[None, :] / shares.sum(), design)[0]
        return check_class_prior(self._given_prior(design), len(design.classes))

    def _given_prior(self, design):
        """Return `class_prior` as an array; the negative class may have been left out of it."""
        named: Iterable = getattr(self.class_prior, "keys", tuple)()
        if self.negative is None or self.negative in named:
            return numbers_by_name("class_prior", self.class_prior, design.classes)
        given = numbers_by_name("class_prior", self.class_prior, design.classes[:-1])
        return np.append(given, max(1 - given.sum(), 0.0))  # `partial` puts it last

    def _complete(self, design, label_proba, index, sample_weight, weights):
        """Return the design with the numbers that only p(label | x) can tell, and an interval."""
        interval = None
        if self._rate_is_open():
            rates, interval = self._label_rates(design, label_proba, index, sample_weight, weights)
            design = Transition.partial(design.classes, labeled=rates, negative=self.negative)
            design = design.with_noise(self._told_noise())
        if isinstance(self.noise, str):
            design = _with_estimated_noise(
                self.noise, design, label_proba, index, sample_weight, weights
            )
        return design, interval

    def _label_rates(self, design, label_proba, index, sample_weight, weights):
        """Return the share that is labeled of each class, and the interval of the class prior."""
        method = {"one_rate": True} if self.class_prior is None else {"method": self.class_prior}
        found = estimate_class_prior(
            label_proba, index, label_weights=weights, sample_weight=sample_weight, **method
        )
        rates = dict(zip(design.classes[:-1], found.labeled.tolist(), strict=True))
        return rates, (found.low, found.high)

    def _decouple(self, estimator, design, label_proba, index, sample_weight, weights, X=None):
        """Go down the line (calibrate, infer, condition on the label) and keep what was found.

        Where there is X, a forest learns the classes from what was found.
        """
        counts = None if sample_weight is None else as_counts(sample_weight)
        design, interval = self._complete(design, label_proba, index, counts, weights)
        frequency = _times(sample_weight, None if weights is None else weights[index])
        calibration = Calibration.fit(self.calibrate, label_proba, index, frequency)
        inner = design.proba if weights is None else weighted_transition(design.proba, weights)
        found = infer(
            calibration.apply(label_proba),
            inner,
            sample_weight=counts,
            pseudocounts=None if np.isinf(self.strength) else self.strength * inner,
        )
        if np.isfinite(self.strength):
            design = _learned(found.transition, design, weights)
        known, forest = (design, index, counts), None
        of_classes, class_proba, given_label = self._classes(found.class_proba, *known, weights)
        if X is not None:
            forest = _learn_classes(estimator, X, given_label, *known)
            drawn = _unseen_classes(forest, class_proba, design), *known, forest.label_weights_
            of_classes, class_proba, given_label = self._classes(*drawn)
            self._say("learned the classes from what was inferred")
        # Nothing is set before all is done: what fails leaves the last fit whole.
        self.estimator_, self.class_estimator_ = estimator, forest
        self.transition_, self.label_weights_ = design, weights
        self.classes_, self.labels_ = _as_array(design.classes), _as_array(design.labels)
        self.class_prior_ = self._class_prior(design, index, sample_weight)
        if isinstance(self.noise, str) and interval is None and not self._prior_is_told():
            # the label shares would imply it by a transition that was estimated itself
            self.class_prior_ = np.average(class_proba, axis=0, weights=sample_weight)
        if interval is not None and self.class_prior is None:
            # noise moves rows from one positive class to another, and leaves how many there are
            interval = tuple(shared_out(end, self.class_prior_[:-1]) for end in interval)
        self.class_prior_interval_ = interval
        self.calibration_, self.class_calibration_ = calibration, of_classes
        self.label_proba_, self.sample_weight_ = label_proba, sample_weight
        self.class_proba_, self.class_proba_given_label_ = class_proba, given_label
        self.objective_, self.gap_ = found.objective, found.gap
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        return self

    def _classes(self, class_proba, design, index, counts, weights):
        """Return what corrects class_proba of the world of `weights`, and what comes out of it.

        That is p(class | x) and p(class | x, label), of the real world.
        """
        of_classes = self._class_calibration(class_proba, design, index, counts, weights)
        class_proba = of_classes.apply(class_proba)
        return of_classes, class_proba, condition_on_label(class_proba, design.proba, index)

    def _class_calibration(self, class_proba, design, index, counts, weights):
        """Return what corrects class_proba of the world of `weights`, and moves it to the real."""
        if self.calibrate != "classes":
            return Calibration() if weights is None else to_real_world(design.proba, weights)
        found, _ = fit_class_calibration(class_proba, design.proba, index, counts, weights)
        if not (self._prior_is_told() or self._rate_is_open()):
            return found
        shares = self._class_prior(design, index, counts)
        part = 1.0 if self._prior_is_told() else TRUST
        return found.matched(class_proba, shares, counts, part)

    # --------------------------------------------------------------------------------- predict

    def predict_label_proba(self, X):
        """Return p(label | x); columns are `labels_`.

        It is what p(class | x) and the transition imply; where nothing corrects p(class | x) and
        the estimator is of the real world, what it says, calibrated.
        """
        learned = self._fitted().class_estimator_ is not None
        if learned or not self.class_calibration_.is_none:
            return self.predict_proba(X) @ self.transition_.proba
        return self.calibration_.apply(_label_proba(self.estimator_, X, self.transition_))

    def predict_proba(self, X):
        """Return p(class | x); columns are `classes_`."""
        forest = self._fitted().class_estimator_
        if forest is not None:
            return self.class_calibration_.apply(forest.predict(X))
        label_proba = _label_proba(self.estimator_, X, self.transition_)
        inner = self.transition_.proba
        if self.label_weights_ is not None:
            inner = weighted_transition(inner, self.label_weights_)
        class_proba = class_proba_from(self.calibration_.apply(label_proba), inner)
        return self.class_calibration_.apply(class_proba)

    def predict_log_proba(self, X):
        """Return log p(class | x), −inf where a class is ruled out."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        """Return the class of each row, as `decide` says."""
        class_proba = self._fitted().predict_proba(X)
        if self.decide == "balanced":
            class_proba = beside_shares(class_proba, self.class_prior_)
        return self.classes_[class_proba.argmax(axis=1)]

    def predict_proba_given_label(self, X, y):
        """Return p(class | x, label), for rows whose labels `y` are given."""
        index = self._fitted().transition_.label_index(as_column(y))
        return condition_on_label(self.predict_proba(X), self.transition_.proba, index)

    def score(self, X, y, sample_weight=None):
        """Return the accuracy against the *classes* `y`; rows where it is missing are left out."""
        names, index = read_column("y", as_column(y))
        rows = np.flatnonzero(np.array([name is not None for name in names])[index])
        if not len(rows):
            raise ValueError("y has no class to score against; all are missing.")
        (X,) = indexable(X)
        predicted = self.predict(_safe_indexing(X, rows)).tolist()
        right = [guess == names[k] for guess, k in zip(predicted, index[rows], strict=True)]
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(np.average(right, weights=weight))

    def _fitted(self):
        check_is_fitted(self, "converged_")
        return self

    # -------------------------------------------------------------------------------- plumbing

    def _check_parameters(self):
        """Return the estimator to use, or say which parameter is off."""
        if not (isinstance(self.strength, Real) and float(self.strength) >= 0):
            raise ValueError(f"strength must be 0 or more; it is {short_repr(self.strength)}.")
        self._check_noise_and_prior()
        if self.negative is not None and self.transition is not None:
            raise ValueError("negative is for transition=None; the transition has its own classes.")
        if self.calibrate not in (None, "classes", "temperature", "marginals"):
            raise ValueError(
                "calibrate must be 'classes', 'temperature', 'marginals' or None; it is "
                f"{short_repr(self.calibrate)}."
            )
        if self.decide not in ("probable", "balanced"):
            raise ValueError(
                f"decide must be 'probable' or 'balanced'; it is {short_repr(self.decide)}."
            )
        if not isinstance(self.transition, Transition | None):
            raise ValueError(
                f"transition must be a Transition; it is {short_repr(self.transition)}. "
                "Name its classes and labels: Transition(proba, classes, labels)."
            )
        estimator = self._default_estimator() if self.estimator is None else self.estimator
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"estimator {type(estimator).__name__} has no predict_proba, which the inference "
                "needs. Wrap it: CalibratedClassifierCV(estimator)."
            )
        return estimator

    def _check_noise_and_prior(self):
        """Say which of the two is off, or that they do not go together."""
        if self.noise not in ("estimate", *TRANSITION_METHODS) and not (
            isinstance(self.noise, Real) and 0 <= float(self.noise) < 1
        ):
            raise ValueError(
                "noise must be a rate from 0 to 1, 'estimate', or a method of estimate_transition; "
                f"it is {short_repr(self.noise)}. Noise by class goes into transition.with_noise."
            )
        if isinstance(self.class_prior, str) and (
            self.negative is None or self.class_prior not in PRIOR_METHODS
        ):
            raise ValueError(
                f"class_prior by a method ({', '.join(PRIOR_METHODS)}) needs negative, the class "
                f"that has no labels; class_prior is {short_repr(self.class_prior)} and negative "
                f"{short_repr(self.negative)}."
            )
        if isinstance(self.class_prior, str) and self.noise != 0:
            raise ValueError(
                f"class_prior={self.class_prior!r} takes labels for right; with noise="
                f"{self.noise!r} leave one of them out, or give the share of each class."
            )

    def _default_estimator(self):
        return BalancedForestClassifier(n_jobs=self.n_jobs, random_state=self.random_state)

    def _weigh_labels(self, estimator, design, index, sample_weight):
        """Return the weight of each label in training, or None for equal ones."""
        if self.label_weights is None:
            unseen = self.cv is None or isinstance(self.cv, str)  # a fold may have no other label
            if unseen and isinstance(estimator, BalancedForestClassifier):
                return _leave_out(design, index, sample_weight)
            return None
        if _weight_parameter(estimator) is None:
            warnings.warn(
                f"{type(estimator).__name__} takes no sample_weight: label_weights are left out.",
                UserWarning,
                stacklevel=3,
            )
            return None
        if isinstance(self.label_weights, str):
            if self.label_weights != "costs":
                raise ValueError(
                    "label_weights must be None, 'costs' or a weight for each label; it is "
                    f"{self.label_weights!r}."
                )
            weights = design.label_weights(self._class_prior(design, index, sample_weight))
        else:
            weights = numbers_by_name("label_weights", self.label_weights, design.labels)
        weighted_transition(design.proba, weights)  # says if a class would be lost
        return None if np.ptp(weights) == 0 else weights

    def _route(self, estimator, sample_weight, label_weight, fit_params):
        """Return what goes to the fit of the estimator, and what to the splitter."""
        if get_config()["enable_metadata_routing"]:
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
            routed = process_routing(self, "fit", **given, **fit_params)
            fit = dict(routed.estimator.fit)
            split = dict(routed.splitter.split) if _has_routing(self.cv) else {}
        else:
            fit = {name: value for name, value in fit_params.items() if name != "groups"}
            split = {name: value for name, value in fit_params.items() if name == "groups"}
            if sample_weight is not None:
                self._pass_weight(estimator, fit, sample_weight)
        if label_weight is not None:
            fit[_weight_parameter(estimator)] = _times(sample_weight, label_weight)
        return fit, split

    @staticmethod
    def _pass_weight(estimator, fit, sample_weight):
        name = _weight_parameter(estimator)
        if name is not None:
            fit[name] = sample_weight
        elif not isinstance(estimator, FrozenEstimator):
            warnings.warn(
                f"{type(estimator).__name__} takes no sample_weight: it counts in the inference "
                "only.",
                UserWarning,
                stacklevel=4,
            )

    def _folds(self, estimator, X, y, index, split_params):
        cv = self.cv
        forest = "oob_score" in estimator.get_params(deep=False)
        if split_params and not hasattr(cv, "split"):
            raise ValueError(
                f"groups need a splitter that keeps them together; cv is {short_repr(cv)}. Pass "
                "cv=StratifiedGroupKFold(5)."
            )
        if cv is None:
            cv = "oob" if forest and getattr(estimator, "bootstrap", False) else 5
            if isinstance(estimator, KernelDensityClassifier):
                return "loo"
        if isinstance(cv, str):
            if cv != "oob" or not forest:
                raise ValueError(
                    f"cv is {cv!r} for {type(estimator).__name__}; 'oob' is for forests with "
                    "oob_score, others take a number of folds or a splitter."
                )
            return cv
        if isinstance(cv, bool | float) or (isinstance(cv, Integral) and cv < 2):
            raise ValueError(f"cv must be 2 folds or more, a splitter or 'oob'; it is {cv!r}.")
        if isinstance(cv, Integral):
            folds = LabelStratifiedKFold(int(cv), random_state=self.random_state)
            return list(folds.split(X, y))
        if hasattr(cv, "split"):
            return list(cv.split(X, index, **split_params))
        return list(cv)

    def _progress(self, n_steps):
        """Return a function that tells of each step: to scikit-learn's callbacks, and in words."""
        if not hasattr(self, "_init_callback_context"):
            return self._say
        context = self._init_callback_context(max_subtasks=n_steps)

        def tell(words):
            step = context.subcontext(task_name=words)
            step.call_on_fit_task_begin(estimator=self)
            step.call_on_fit_task_end(estimator=self)
            self._say(words)

        return tell

    def _say(self, words):
        if self.verbose:
            print(f"[DecoupledClassifier] {words}")

    def get_metadata_routing(self):
        """Return how metadata travels: to the fit of `estimator`, and to the splitter `cv`."""
        estimator = self._default_estimator() if self.estimator is None else self.estimator
        fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=estimator, method_mapping=fit)
        if _has_routing(self.cv):
            split = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=split)
        return router

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        estimator = self._default_estimator() if self.estimator is None else self.estimator
        tags.input_tags = get_tags(estimator).input_tags
        return tags


class GivenProba(BaseEstimator):
    """Stands for a model that lives elsewhere: its X is the p(label | x) that it gave."""

    def __init__(self, n_labels):
        self.n_labels = n_labels

    @property
    def classes_(self):
        """Positions of the labels."""
        return np.arange(self.n_labels)

    def predict_proba(self, label_proba):
        """Return label_proba, checked."""
        label_proba = np.asarray(label_proba, dtype=float)
        if label_proba.ndim != 2 or label_proba.shape[1] != self.n_labels:
            raise ValueError(
                f"label_proba has shape {label_proba.shape}; {self.n_labels} labels need as many "
                "columns, in the order of the transition's labels."
            )
        return check_row_stochastic("label_proba", label_proba, tol=1e-5)


def _check_weight(sample_weight, rows):
    """Return one weight a row, not negative and not all zero, or None."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must have a positive number; all are zero.")
    return weight


def _check_some_of_each(design, index, sample_weight):
    """Say which label has no rows: how many of its class are labeled cannot be estimated."""
    counts = np.bincount(index, sample_weight, len(design.labels))
    if not counts.all():
        label = design.labels[int(np.argmin(counts))]
        rows = "row without a label" if label is None else f"row labeled {short_repr(label)}"
        raise ValueError(
            f"negative needs rows of every label, and some without one; no {rows} has weight. "
            "Leave negative out, or give class_prior."
        )


def _times(weight, other):
    """Return the product of two weights, each of which may be None for all ones."""
    if weight is None or other is None:
        return other if weight is None else weight
    return weight * other


def _leave_out(design, index, sample_weight):
    """Return weight 0 for labels that all classes have alike: they tell nothing of the class.

    Mostly the missing label, where it is missing at random. In the trees it would be noise.
    """
    tells = np.ptp(design.proba, axis=0) > 1e-9
    counts = np.bincount(index, sample_weight, len(tells))
    return None if tells.all() or not counts[tells].any() else tells.astype(float)


def _weights_of_draws(estimator, design):
    """Return the label weights of a forest that balances labels by its draws, or None."""
    last = estimator
    while not isinstance(last, BalancedForestClassifier):
        if isinstance(last, Pipeline):
            last = last.steps[-1][1]
        elif isinstance(last, FrozenEstimator):
            last = last.estimator
        elif hasattr(last, "best_estimator_"):  # of a search
            last = last.best_estimator_
        else:
            return None
    columns = last.classes_
    if isinstance(estimator, FrozenEstimator):  # it knows the labels by their names
        columns = design.label_index(columns)
    weights = np.ones(len(design.labels))
    weights[columns] = last.label_weights_
    return None if np.ptp(last.label_weights_) == 0 else weights


def _with_estimated_noise(method, design, label_proba, index, sample_weight, weights):
    """Return the design with the noise that labeled rows tell of; each label must name a class."""
    named = np.flatnonzero([label in design.classes for label in design.labels])
    if len(named) != len(design.labels) - (None in design.labels):
        raise ValueError(
            f"noise={method!r} needs labels that name classes; of {listed(design.labels)} not all "
            "do. Give a rate, or a transition with noise."
        )
    classes = np.array([design.classes.index(design.labels[s]) for s in named], dtype=int)
    _check_no_noise(method, design, classes, named)
    if weights is not None:  # of a label without weight label_proba says nothing
        classes, named = classes[weights[named] > 0], named[weights[named] > 0]
    counts = np.ones(len(index)) if sample_weight is None else sample_weight
    rows = np.flatnonzero(np.isin(index, named) & (counts > 0))
    if not len(rows):
        raise ValueError(f"noise={method!r} needs rows with labels; y has none. Give a rate.")
    real = label_proba[np.ix_(rows, named)]
    real = on_simplex(real if weights is None else real / weights[named])
    position = np.zeros(len(design.labels), dtype=int)
    position[named] = np.arange(len(named))
    noise = np.eye(len(design.classes))
    given = real, position[index[rows]]
    if method == "estimate" or len(named) == 1:
        found = noise_matrix(*given, counts[rows])
    else:
        start = Transition.identity(range(len(named))).with_noise(SOME_NOISE)
        found = estimate_transition(*given, start, method=method, sample_weight=counts[rows])[0]
    noise[np.ix_(classes, classes)] = found
    return design.with_noise(noise)


def _learned(fitted, design, weights):
    """Return the design with the transition that was fitted in the world of `weights`."""
    if weights is not None:
        fitted = unweighted_transition(fitted, design.proba, weights)
    return Transition(fitted, design.classes, design.labels)


def _is_worth_a_refit(estimator, index, sample_weight):
    """Whether it is a forest, and labels are not so many that the inference alone is as good."""
    rows = slice(None) if sample_weight is None else sample_weight > 0
    drawn = class_draw_sizes(np.bincount(index[rows])).sum()
    return isinstance(estimator, BalancedForestClassifier) and drawn <= MOST_DRAWN


def _learn_classes(forest, X, given_label, design, index, sample_weight):
    """Return a forest as large as `forest` that has learned p(class | x, label) of all rows."""
    settings = forest.get_params(deep=False)
    alike = {name: settings[name] for name in ("n_estimators", "max_features", "n_jobs")}
    learned = ClassForest(**alike, random_state=settings["random_state"])

    def losses(class_proba, rows, weight):
        given = design.proba, index[rows], weight, learned.label_weights_
        return class_losses(class_proba, *given)

    return learned.fit(X, given_label, index, len(design.labels), losses, sample_weight)


def _unseen_classes(forest, otherwise, design):
    """Return p(class | x) of the training rows, out of bag, in the world of the forest.

    Of rows that all of its trees drew it is `otherwise`, of the real world.
    """
    class_proba = forest.oob_proba_
    del forest.oob_proba_  # a model does not carry its training rows around
    otherwise = from_real_world(design.proba, forest.label_weights_).apply(otherwise)
    return np.where(np.isnan(class_proba), otherwise, class_proba)


def _check_no_noise(method, design, classes, named):
    """Say that noise which is estimated as a whole cannot come on top of some."""
    noisy = design.proba[np.ix_(classes, named)] > 0
    np.fill_diagonal(noisy, False)
    if noisy.any():
        k, s = np.argwhere(noisy)[0]
        label, name = design.labels[named[s]], design.classes[classes[k]]
        raise ValueError(
            f"noise={method!r} estimates all of the noise, and the transition has some: class "
            f"{short_repr(name)} gets label {short_repr(label)} with "
            f"{design.proba[classes[k], named[s]]:.3g}. Leave one of them out."
        )


def _as_array(names):
    """Return names as an array: of their own type where they have one, else of objects."""
    if len({type(name) for name in names}) == 1 and isinstance(names[0], str | int | float):
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def _weight_parameter(estimator):
    """Return the name under which the fit of `estimator` takes sample weights, or None."""
    if isinstance(estimator, Pipeline) and not get_config()["enable_metadata_routing"]:
        inner = _weight_parameter(estimator.steps[-1][1])
        return None if inner is None else f"{estimator.steps[-1][0]}__{inner}"
    if isinstance(estimator, Pipeline) or "sample_weight" in signature(estimator.fit).parameters:
        return "sample_weight"
    return None


def _has_routing(cv):
    return hasattr(cv, "get_metadata_routing")


def _label_proba(estimator, X, design):
    """Return p(label | x) as the estimator says it, one column a label of the design."""
    columns = None
    if isinstance(estimator, FrozenEstimator):  # it knows the labels by their names
        columns = design.label_index(estimator.classes_)
    return align(estimator, X, len(design.labels), columns)
