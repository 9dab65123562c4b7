"""DecoupledClassifier: scikit-learn plumbing around `decoupling`. No equations here."""

import warnings
from copy import copy
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    validate_data,
)

from looselabels._dask import in_memory, is_dask
from looselabels._names import as_column, check_distinct_columns, read_column
from looselabels._progress import steps
from looselabels._renamed import warn_of_old_name
from looselabels._validation import as_numpy, short_repr
from looselabels.annotations import read_annotations
from looselabels.estimation.calibration import Calibration, relative_to_shares
from looselabels.estimation.noise import MAX_ROWS as NOISE_ROWS
from looselabels.estimation.sampling import MAX_FIT_ROWS
from looselabels.inference import condition_on_label
from looselabels.learning.annotated import (
    ROUGH,
    annotator_quality,
    annotator_transitions,
    consensus_labels,
    count_copies_once,
    design_consensus,
    explain_single_consensus,
    infer_from_answers,
    learn_from_answers,
    model_answers,
    warn_if_answers_cannot_be_compared,
)
from looselabels.learning.annotation_design import check_parameters, design_annotations
from looselabels.learning.candidates import (
    FitData,
    Settings,
    choose_model,
    default_forest,
    has_routing,
    read_folds,
    rival_wrong_shares,
    score_models,
)
from looselabels.learning.copies import group_rows, specified_copies
from looselabels.learning.dask_rows import DaskRows, apply_to_rows, read_rows
from looselabels.learning.dask_training import ask_dask, trains_on_dask
from looselabels.learning.decoupling import (
    decouple,
    label_proba_of_training_rows,
    learn_classes,
)
from looselabels.learning.label_design import design_labels
from looselabels.learning.label_model import (
    model_labels,
    score_labels,
)
from looselabels.learning.out_of_sample import (
    PrecomputedProba,
    label_columns,
    weight_parameter,
)
from looselabels.learning.row_sample import scores_with_known_classes
from looselabels.learning.training import (
    learn_in_rounds,
    plan_rounds,
    predict_classes,
    predict_labels,
)
from looselabels.learning.unchanged import unchanged_on_failure
from looselabels.learning.workers import each_warning_once

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9: only `verbose` reports progress

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replaces the class that older versions of scikit-learn do not have."""

    def with_callbacks(method):
        """Return the method unchanged."""
        return method


OF_ANNOTATORS = (
    *("annotators_", "transitions_", "annotator_quality_"),
    *("annotation_design_", "annotator_inference_"),
)


class DecoupledClassifier(CallbackSupportMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier of classes, learned from labels that are not quite the classes.

    It fits `estimator` to the labels as given, predicts each training row by a model that has not
    seen it, and infers the classes from these label probabilities and the transition.

    If Y is a table with the answers of several annotators, each annotator has a transition of its
    own, which is estimated, and classes are inferred from x and all answers of a row. `negative`,
    `noise` and `label_weights` are for one label per row.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Estimates p(label | x). None: a `BalancedForestClassifier` or a linear model, whichever
        predicts the labels better out of sample; with ``cv="oob"``, the forest. A
        ``FrozenEstimator`` is used as it is, with its own labels; `fit` then needs rows that it was
        not trained on.
    transition : Transition or mapping, default=None
        How labels arise from classes. None: ``Transition.from_labels(y, class_prior=class_prior)``,
        that is, each label is a class, and missing labels are missing at random. With several
        annotators: what their labels mean if they are right, or a mapping from some annotators to
        their transitions (see `strength`).
    negative : name, default=None
        A class that has no label of its own: its rows are among the unlabeled ones (positive-
        unlabeled learning). Only if `transition` is None. Which share of the other classes is
        labeled follows from `class_prior`. Without it, one share for all of them is estimated.
        With `noise`, labels can also be on rows of this class.
    noise : float, str or None, default=None
        How often labels are wrong. Pass 0 if you know that labels are right. None is "estimate",
        but 0 if you specify `transition`, a finite `strength`, or a method as `class_prior`.

        - A rate is added to `transition` (`Transition.with_noise`). With `negative` it is the share
          of the rows with each label that belong to any other class.
        - "estimate" estimates rates and directions (which label a wrong one is) from the data.
        - A method of `estimate_transition`, such as "calibrated", estimates them in another way.

        To estimate noise, `transition` must have none, and each of its classes must have a label.
        Noise is estimated from `estimator`, a forest and a linear model together, because right
        labels look wrong where a single model does not fit. The forest and the linear model learn
        from about 5,000 rows of a larger table. They are left out if X has no columns of numbers
        or of repeated words, such as texts; the linear model also with ``cv="oob"``. Only
        `estimator` is used if label rates are estimated too (`negative`), with `label_weights`, if
        it is frozen, and if it learns on a cluster of Dask.
    strength : float, default=inf
        Prior pseudocount per class for the transition. inf keeps the transition fixed; with a
        finite number it is inferred together with the classes, as in the paper. With several
        annotators, of each transition in a mapping: how many answers per class it is worth. A
        zero in a transition always stays zero.
    class_prior : mapping, sequence or str, default=None
        The share of each class. It determines the label rates if `transition` is None and some
        labels are missing, and the costs of `label_weights`. With ``calibrate="classes"``, the
        mean of p(class | x) is matched to it. With `negative` it can also name a method of
        `estimate_class_prior`, such as "density-ratio"; the mean of p(class | x) is then averaged
        with the estimated shares. None: the shares that the label counts imply. Leave the negative
        class out of a sequence; in a mapping it is optional. It gets the rest.
    label_weights : None, "costs", number, mapping or sequence, default=None
        Weights of labels in the training of `estimator`. None: equal weights; "costs": the paper's
        costs; a mapping or sequence: explicit weights. With None, and a fixed transition, the
        estimator does not learn from rows whose label is uninformative (equally likely under every
        class, such as labels missing at random); pass 1 to keep these rows. All results are
        converted to the real label distribution.
    cv : int, splitter, iterable or "oob", default=None
        How training rows are predicted out of sample: by folds stratified by label, or "oob", by
        the estimator itself (out-of-bag rows of a forest, leave-one-out of kernel densities). None
        is "oob" if the estimator can do that, else 5.
    calibrate : "classes", "temperature", "marginals" or None, default="classes"
        What is corrected on out-of-sample rows. "classes": class_proba, by one power and a factor
        per class that make the given labels most likely. "temperature": label_proba, by one power.
        "marginals": label_proba, by a factor per label that matches the label frequencies.
    refit : bool or int, default=True
        In how many rounds models learn the classes. In each round, a model learns p(class | x) from
        p(class | x, label) of all rows; the model of the last round predicts the classes. True: as
        many rounds as help to predict the labels of held-out rows, at most three. False: none. A
        number: as many, without held-out rows. A model of the same kind as `estimator` learns from
        copies of each row, one per class, weighted by the probability of the class; the default
        forest learns from class probabilities directly. If this is True, a model other than a
        forest learns only from the rows whose class is most certain, if the held-out rows say that
        this is better (`looselabels.learning.sure_rows`). There is no refit for a frozen estimator,
        with `label_weights`, or with many rows: more than 20,000 to learn classes from, or more
        than 5,000 in a tree of the default forest. Rows of an abundant label count only in part.
        If this is True, and `cv` and `calibrate` have their defaults, many models like `estimator`
        are fitted to balanced draws of the rows (`BalancedDraws`) if a label is far more frequent
        than others, or if they predict the labels better than one model.
        With several labels per row, True means until p(class | x, labels) hardly changes, at most
        four rounds, for any number of rows.
    decide : "probable" or "balanced", default="probable"
        Which class `predict` returns. "probable": the most probable class, which maximizes
        accuracy. "balanced": the class that maximizes p(class | x) / p(class), which maximizes
        balanced accuracy and finds more rows of rare classes.
    max_fit_rows : int or None, default=200000
        About how many rows models learn from. Of a larger table they learn from a random sample:
        all rows of rare labels, equally many of the others (at least two), and groups as a whole.
        The remaining rows are predicted by the fitted model, so `fit` returns an answer for every
        row; there is no `refit`. None, or folds as a list in `cv`: all rows. Not with several
        labels per row. If X is in Dask, these rows are gathered, and workers predict the others.
        An `estimator` that learns from arrays of Dask itself, such as ``DaskLGBMClassifier``,
        learns from all rows.
    n_jobs : int, default=None
        Number of folds to fit in parallel, or of trees of the default forest.
    random_state : int, RandomState or None, default=None
        Seed of all that is drawn at random: folds, the rows of a sample or of a balanced draw, and
        the default forest.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    classes_, labels_ : arrays
        Classes, the columns of `predict_proba`; labels, the columns of `predict_label_proba`.
    label_design_ : LabelDesign
        What was specified about the labels, and what is to be estimated.
    label_model_ : LabelModel
        How labels arise: transition, class prior, and ``sources``, which says for each number
        whether it was specified, implied by label counts, or estimated. Noise can also be assumed
        (to be 0, because of another parameter).
    label_scores_ : LabelScores
        Out-of-sample p(label | x) of the training rows as the estimator gives it, with the labels,
        and the label weights of the distribution in which it was learned.
    transition_ : Transition
        ``label_model_.transition``. With several annotators: of a typical one.
    estimator_ : classifier
        Estimates p(label | x), fitted to all rows; a `BalancedDraws` of `estimator` if draws were
        used (see `refit`).
    candidate_losses_ : dict or None
        The out-of-sample log-loss of the labels by each model, if there are several: "forest",
        "linear", and "estimator" for the one that you passed.
    rival_wrong_shares_ : dict
        The range of the share of wrong labels by the best single model, with its name as key. Empty
        unless noise was estimated and this model predicts the labels about as well as what noise
        was estimated from, which is usually all models together. `diagnose` says if both disagree.
    class_estimator_ : estimator or None
        Estimates p(class | x) after a `refit`; `predict_proba` then uses it.
    n_fit_rows_ : int
        How many rows models learned from (see `max_fit_rows`); 0 if none was fitted.
    n_rounds_ : int
        How often a model learned the classes.
    class_prior_ : array
        The share of each class.
    class_prior_interval_ : tuple of arrays or None
        The ends of a 90 % interval of `class_prior_`, if label rates were estimated.
    training_label_weights_ : array or None
        How many times as frequent each label is in training as in the data, by `label_weights` and
        by the draws of a balanced forest.
    calibration_, class_calibration_ : Calibration
        The corrections of label_proba and of class_proba.
    label_proba_, class_proba_, class_proba_given_label_ : arrays
        For the training rows, out of sample: p(label | x), matched to the label frequencies;
        p(class | x); p(class | x, label).
    sample_weight_ : array or None
        As given.
    objective_, gap_, n_iter_, converged_
        Of the inference; see `infer`. With several annotators see `infer_from_annotators`; then
        ``gap_`` is None.
    annotators_ : array
        The names of several annotators; this attribute and the next two exist only for these.
    transitions_ : mapping
        The transition of each annotator.
    annotator_quality_ : DataFrame, or dict of columns if pandas is not installed
        For each annotator: ``answers``, their number; ``accuracy``, the share that is right, with
        ``low`` and ``high``, the ends of a 90 % interval; ``confusions``, the most frequent errors,
        each as class, label and share of the answers; and ``copy_of``, whose answers it repeats.

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
        noise=None,
        strength=np.inf,
        class_prior=None,
        label_weights=None,
        cv=None,
        calibrate="classes",
        refit=True,
        decide="probable",
        max_fit_rows=MAX_FIT_ROWS,
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
        self.max_fit_rows = max_fit_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------------------------- fit

    __metadata_request__fit = {"groups": True, "known_classes": True}  # noqa: RUF012  for scikit-learn

    @with_callbacks
    def fit(self, X, y, sample_weight=None, *, groups=None, known_classes=None, **fit_params):
        """Fit to features `X` and labels `y` as given; None, NaN and NA mean unlabeled.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or list of shape (n_samples, n_features)
            Whatever `estimator` accepts, or an array or a table of Dask with such rows. With
            several annotators also None: the classes are inferred from their answers alone.
        y : column of shape (n_samples,), or table of shape (n_samples, n_annotators)
            Labels: text, numbers, bool, categories. In a DataFrame or 2-D array each column has the
            answers of one annotator, and a missing value means that it was not asked. For answers
            as (row, annotator, label), pass the result of
            `looselabels.annotations.annotations_to_table`.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts.
        groups : column of shape (n_samples,), default=None
            Rows that belong together, such as the images of one patient. A row is predicted by a
            model that has seen no row of its group. In any case, if far more rows of X are equal
            than by chance, equal rows are copies; they are kept together, and count once in
            estimates. If they are not copies, pass a different value for each row.
        known_classes : column of shape (n_samples,), default=None
            The classes of rows that were reviewed, missing for all others. The choice of rows to
            review may depend on x and label: review the most doubtful labels, for example. Keep the
            labels of these rows as they were. The likelihood of a reviewed row is
            p(class | x) T[class, label] of its class, and its known class is used even if T
            excludes it. Known classes are used by ``noise="estimate"``, by the calibration of
            classes and by `refit`, but not for label rates, other methods of `noise`, or a finite
            `strength`. Noise is estimated from at most 3,000 rows, drawn at random; known classes
            of other rows do not change it.
        **fit_params
            Passed to the fit of `estimator`.
        """
        with unchanged_on_failure(self), each_warning_once():
            estimator, settings = self._check_parameters(), self._settings()
            X = read_rows(X, 0 if trains_on_dask(estimator, X) else settings.most_rows)
            y, sample_weight, groups = map(in_memory, (y, sample_weight, groups))
            known_classes, annotations = in_memory(known_classes), read_annotations(y)
            fit_params = {name: in_memory(value) for name, value in fit_params.items()}
            if annotations is not None:
                check_parameters(self, known_classes)
                design = self._design_answers(annotations, sample_weight)
                X = X[:] if isinstance(X, DaskRows) else X
                return self._fit_to_answers(settings, X, design, groups, fit_params)
            if X is None:
                raise ValueError("X is None, but y has one label per row: it needs features.")
            X, y = indexable(X, as_column(y))
            columns = X.meta if isinstance(X, DaskRows) else X
            check_distinct_columns(columns)
            validate_data(self, columns, skip_check_array=True)
            design = self._design(y, _check_weight(sample_weight, X), estimator, known_classes)
            design = design._replace(groups=group_rows(X, groups))
            fit_params["groups"] = groups
            with steps(*_costs(design, self.refit)) as begin:
                begin("predicting labels")
                scored = score_models(settings, FitData(X, y, design, fit_params))
                self.candidate_losses_, self.n_fit_rows_ = scored.losses, scored.n_fit_rows
                scores, training = scored.scores, scored.training
                begin("inferring classes")
                model = model_labels(design, scored.pooled)
                self.rival_wrong_shares_ = rival_wrong_shares(design, scored)
                found = decouple(scores, model, self.calibrate)
                begin("learning classes")
                rounds = plan_rounds(self.refit, training, model, scored.pooled, self.calibrate)
                begin("learning classes")
                found = learn_in_rounds(training, scores, found, self.calibrate, rounds)
            self.n_rounds_ = rounds.number
            self._pooled = scored.pooled._replace(remote=None), scored.pooled_rows
            return self._keep(scored.estimator, design, scores, found)

    def fit_from_proba(
        self, label_proba, y, sample_weight=None, *, known_classes=None, copies=None
    ):
        """Fit to out-of-sample p(label | x) of a model that was fitted elsewhere, and labels `y`.

        The columns of `label_proba` are the transition's labels (`labels_`), matched by name if it
        is a DataFrame. Afterwards the predict methods take label_proba of new rows in place of X.
        `label_weights` play no part: they belong to the training of an estimator. `known_classes`
        are as in `fit`. `copies` is a column with equal values in rows that are copies of each
        other, which count once in estimates; None: no row is a copy. Noise is estimated from
        `label_proba` alone.
        """
        with unchanged_on_failure(self):
            self._check_parameters()
            y = as_column(y)
            design = self._design(y, _check_weight(sample_weight, y), None, known_classes)
            estimator = PrecomputedProba(design.transition.labels)
            label_proba = estimator.predict_proba(label_proba)
            if len(label_proba) != len(design.label_index):
                raise ValueError(
                    f"label_proba has {len(label_proba)} rows; y has {len(design.label_index)}."
                )
            if copies is not None:
                design = design._replace(groups=specified_copies(copies, len(label_proba)))
            validate_data(self, label_proba, skip_check_array=True)
            self.n_rounds_, self.candidate_losses_, self.rival_wrong_shares_ = 0, None, {}
            self.n_fit_rows_ = 0
            scores = score_labels(design, label_proba)
            found = decouple(scores, model_labels(design, scores), self.calibrate)
            self._pooled = scores, None
            return self._keep(estimator, design, scores, found)

    def with_known_classes(self, known_classes):
        """Return a copy that knows the classes of more training rows, without fitting estimators.

        Only the label model and what follows from it are computed again. `known_classes` is as in
        `fit`; classes that the classifier knows already are kept where it is missing.
        """
        if hasattr(self._fitted(), "annotators_"):
            check_parameters(self, known_classes)  # raises: they are answers of an expert
        if not hasattr(self, "label_design_"):
            raise ValueError("A model loaded from a file has no rows whose class can be known.")
        design = self.label_design_.with_known_classes(known_classes)
        if design is self.label_design_:
            return self
        pooled, rows = self._pooled
        pooled = scores_with_known_classes(design, pooled, rows)
        scores = scores_with_known_classes(design, self.label_scores_)
        found = decouple(scores, model_labels(design, pooled), self._calibrate)
        if self._learned is not None:
            power = self.class_calibration_.power  # labels of other rows have chosen it
            found = learn_classes(found, scores, lambda *_: self._learned, self._calibrate, power)
        new = copy(self)._keep(self.estimator_, design, scores, found)
        new._pooled = pooled, rows
        new.rival_wrong_shares_ = {}  # those of the fit do not know these classes
        return new

    def _fit_to_answers(self, settings, X, design, groups, fit_params):
        """Fit to several labels per row; if X is None, without features."""
        self.candidate_losses_, self.rival_wrong_shares_ = None, {}
        self.n_fit_rows_ = 0 if X is None else len(design.annotations)
        design, rough = count_copies_once(design)
        if X is None:
            warn_if_answers_cannot_be_compared(design)
            return self._keep_answers(None, None, None, infer_from_answers(design))
        (X,) = indexable(X)
        if _num_samples(X) != len(design.annotations):
            raise ValueError(f"X has {_num_samples(X)} rows; Y has {len(design.annotations)}.")
        check_distinct_columns(X)
        validate_data(self, X, skip_check_array=True)
        found = infer_from_answers(design, rough, tol=ROUGH, accuracy=False)
        labels = design_consensus(design, found.inference)._replace(groups=group_rows(X, groups))
        consensus, fit_params["groups"] = consensus_labels(labels), groups
        with steps(1, 4) as begin:
            begin("predicting labels")
            # one model in each round: models learn again from better labels
            settings = settings._replace(may_draw=False)
            with explain_single_consensus(labels):
                scored = choose_model(settings, FitData(X, consensus, labels, fit_params))
            self.candidate_losses_, training = scored.losses, scored.training
            begin("learning classes")
            n_rounds = self.refit if training.can_learn_classes(max_rows=np.inf) else 0
            given = training, scored.estimator, scored.scores
            found = learn_from_answers(*given, found, self.calibrate, n_rounds)
        return self._keep_answers(scored.estimator, labels, scored.scores, found)

    def _design(self, y, sample_weight, estimator, known_classes):
        """Read the parameters that say something about labels; they are not read again."""
        if _num_samples(y) < 2:
            raise ValueError(f"fit needs at least two samples; y has n_samples={_num_samples(y)}.")
        design = design_labels(
            y,
            transition=self.transition,
            negative=self.negative,
            noise=self.noise,
            class_prior=self.class_prior,
            strength=self.strength,
            # label_proba that was learned elsewhere has weights of its own
            label_weights=None if estimator is None else self.label_weights,
            sample_weight=sample_weight,
        ).with_known_classes(known_classes)
        if design.label_weights is not None and weight_parameter(estimator) is None:
            warnings.warn(
                f"{type(estimator).__name__} takes no sample_weight: label_weights are ignored.",
                UserWarning,
                stacklevel=3,
            )
            design = design._replace(label_weights=None, has_explicit_weights=False)
        self._calibrate = self.calibrate  # `with_known_classes` calibrates as the fit did
        self._print(f"assumed {design.transition!r}")
        return design

    def _design_answers(self, annotations, sample_weight):
        """Read the parameters that say something about answers; they are not read again."""
        weight = _check_weight(sample_weight, annotations)
        prior, strength = self.class_prior, self.strength
        return design_annotations(annotations, self.transition, prior, weight, strength)

    def _settings(self) -> Settings:
        """Read the parameters that say something about models."""
        return Settings(
            estimator=self.estimator,
            cv=read_folds(self.cv),
            max_fit_rows=self.max_fit_rows,
            # with other parameters, a user can still ask for exactly one model
            may_draw=self.cv is None and self.refit is True and self.calibrate == "classes",
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            router=self,
            report=self._progress(),
        )

    def _keep_answers(self, estimator, labels, scores, found):
        """Set the fitted attributes for several labels per row."""
        model, design, inference = model_answers(found), found.design, found.inference
        self.estimator_, self.class_estimator_ = estimator, found.class_estimator
        self.label_design_, self.label_scores_, self._learned = labels, scores, None
        self.annotation_design_, self.annotator_inference_ = design, inference
        self.annotators_ = as_name_array(design.annotations.annotators)
        self.transitions_ = annotator_transitions(design, inference)
        self.annotator_quality_ = annotator_quality(design, inference)
        self._keep_model(model)
        self.training_label_weights_, self.calibration_ = None, Calibration()
        self.class_calibration_, self.class_proba_ = found.class_calibration, found.class_proba
        self.label_proba_ = found.class_proba @ model.transition.proba
        self.class_proba_given_label_ = inference.class_proba_given_label
        self.sample_weight_, self.n_rounds_ = design.sample_weight, found.n_rounds
        self.objective_, self.gap_ = inference.objective, None
        self.n_iter_, self.converged_ = inference.n_iter, inference.converged
        return self

    def _keep_model(self, model):
        self.label_model_, self.transition_ = model, model.transition
        self.classes_ = as_name_array(model.transition.classes)
        self.labels_ = as_name_array(model.transition.labels)
        self.class_prior_ = model.class_prior
        self.class_prior_interval_ = model.class_prior_interval

    def _keep(self, estimator, design, scores, found):
        """Set the fitted attributes."""
        for name in filter(partial(hasattr, self), OF_ANNOTATORS):  # of an earlier fit
            delattr(self, name)
        self._keep_model(found.model)
        self.estimator_, self.class_estimator_ = estimator, found.class_estimator
        self.label_design_, self._learned = design, found.learned
        self.label_scores_ = scores._replace(remote=None)  # workers forget it
        self.training_label_weights_ = scores.label_weights
        self.calibration_ = found.label_calibration
        self.class_calibration_ = found.class_calibration
        self.label_proba_ = label_proba_of_training_rows(scores, found)
        self.class_proba_ = found.class_proba
        self.class_proba_given_label_ = found.class_proba_given_label
        self.sample_weight_ = scores.sample_weight
        self.objective_, self.gap_ = found.objective, found.gap
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        return self

    # --------------------------------------------------------------------------------- predict

    def predict_label_proba(self, X):
        """Return p(label | x); columns are `labels_`.

        It follows from p(class | x) and the transition; if p(class | x) needs no correction, it is
        what the estimator predicts, calibrated.
        """
        has_learned = self._fitted().class_estimator_ is not None
        if has_learned or not self.class_calibration_.is_identity:
            return self.predict_proba(X) @ self.transition_.proba
        estimator, X = ask_dask(self.estimator_, X)
        predict = partial(
            predict_labels,
            estimator=estimator,
            columns=label_columns(estimator, self.transition_),
            n_labels=len(self.labels_),
            calibration=self.calibration_,
        )
        return apply_to_rows(predict, X, len(self.labels_))

    def predict_proba(self, X):
        """Return p(class | x); columns are `classes_`."""
        if self._fitted().estimator_ is None:
            raise ValueError(
                "The classifier was fitted to answers without features (X=None): it cannot predict "
                "rows by x. predict_proba_given_label(None, Y) predicts rows by their answers."
            )
        estimator, X = ask_dask(self.estimator_, X)
        predict = partial(
            predict_classes,
            estimator=estimator,
            class_estimator=self.class_estimator_,
            transition=self.transition_,
            label_weights=self.training_label_weights_,
            label_calibration=self.calibration_,
            class_calibration=self.class_calibration_,
        )
        return apply_to_rows(predict, X, len(self.classes_))

    def predict_log_proba(self, X):
        """Return log p(class | x), −inf where a class is ruled out."""
        return apply_to_rows(_log, self.predict_proba(X), len(self.classes_))

    def predict(self, X):
        """Return the class of each row, chosen as `decide` says."""
        class_proba = self._fitted().predict_proba(X)
        prior = self.class_prior_ if self.decide == "balanced" else None
        choose = partial(_choose_class, classes=self.classes_, class_prior=prior)
        return apply_to_rows(choose, class_proba, None, self.classes_.dtype)

    def predict_proba_given_label(self, X, y):
        """Return p(class | x, label) for rows with labels `y`.

        After a fit to several labels per row, `y` is a table with some of the annotators. Given all
        labels of a row; if X is None, class shares take the place of p(class | x).
        """
        if hasattr(self._fitted(), "annotators_"):
            class_proba = self.class_prior_[None, :] if X is None else self.predict_proba(X)
            class_proba, y = in_memory(class_proba), in_memory(y)
            return self.transitions_.condition(class_proba, y, self.class_prior_)
        y = y if is_dask(X) and is_dask(y) else as_column(in_memory(y))
        index = apply_to_rows(self.transition_.label_index, y, None, int)
        return condition_on_label(self.predict_proba(X), self.transition_.proba, index)

    def score(self, X, y, sample_weight=None):
        """Return the accuracy against the *classes* `y`; rows with a missing class are left out."""
        names, index = read_column("y", as_column(in_memory(y)))
        predict, sample_weight = self.predict, in_memory(sample_weight)
        if is_dask(X):
            X, predict = in_memory(self.predict(X)), np.asarray
        (X,) = indexable(X)
        for name, column in (("y", index), ("sample_weight", sample_weight)):
            if column is not None and _num_samples(column) != _num_samples(X):
                raise ValueError(
                    f"{name} has {_num_samples(column)} rows; X has {_num_samples(X)}. Each row of "
                    "X needs one."
                )
        rows = np.flatnonzero(np.array([name is not None for name in names])[index])
        if not len(rows):
            raise ValueError("y has no class to score against; all are missing.")
        predicted = predict(_safe_indexing(X, rows)).tolist()
        right = [guess == names[k] for guess, k in zip(predicted, index[rows], strict=True)]
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(np.average(right, weights=weight))

    def _fitted(self):
        check_is_fitted(self, "converged_")
        return self

    @property
    def label_weights_(self):
        """The old name of `training_label_weights_`, until 0.3.

        In other estimators, ``label_weights_`` describes the distribution that they predict.
        """
        warn_of_old_name("label_weights_", "training_label_weights_")
        return self.training_label_weights_

    # -------------------------------------------------------------------------------- plumbing

    def _check_parameters(self):
        """Return the estimator to use; raise if a parameter that is not about labels is invalid."""
        if self.calibrate not in (None, "classes", "temperature", "marginals"):
            raise ValueError(
                "calibrate must be 'classes', 'temperature', 'marginals' or None; it is "
                f"{short_repr(self.calibrate)}."
            )
        if not (isinstance(self.refit, Integral) and int(self.refit) >= 0):
            raise ValueError(
                f"refit must be True, False or a number of rounds; it is {short_repr(self.refit)}."
            )
        most = self.max_fit_rows
        if most is not None and not (isinstance(most, Integral) and int(most) >= 2):
            raise ValueError(
                f"max_fit_rows must be 2 or more, or None for all rows; it is {short_repr(most)}."
            )
        if self.decide not in ("probable", "balanced"):
            raise ValueError(
                f"decide must be 'probable' or 'balanced'; it is {short_repr(self.decide)}."
            )
        estimator = self._estimator_or_default()
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"estimator {type(estimator).__name__} has no predict_proba, which the inference "
                f"needs. {_way_to_proba(estimator)}."
            )
        return estimator

    def _estimator_or_default(self):
        if self.estimator is None:
            return default_forest(self.n_jobs, self.random_state)
        return self.estimator

    def _progress(self):
        """Return a function that reports each step to scikit-learn's callbacks, and prints it."""
        if not hasattr(self, "_init_callback_context"):
            return self._print
        # unknown number of steps: how often classes are learned is chosen on the way
        context = self._init_callback_context(max_subtasks=None)

        def report(words):
            step = context.subcontext(task_name=words)
            step.call_on_fit_task_begin(estimator=self)
            step.call_on_fit_task_end(estimator=self)
            self._print(words)

        return report

    def _print(self, words):
        if self.verbose:
            print(f"[DecoupledClassifier] {words}")

    def get_metadata_routing(self):
        """Return how metadata is routed: to the fit of `estimator`, and to the splitter `cv`."""
        fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self._estimator_or_default(), method_mapping=fit)
        if has_routing(self.cv):
            split = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=split)
        return router

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._estimator_or_default()).input_tags
        return tags


def _way_to_proba(estimator):
    """Return what gives an estimator a predict_proba; a stack of default kind is not calibrated."""
    is_made = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    for name, value in estimator.get_params().items() if is_made else ():
        if name.endswith("final_estimator") and value is None:
            return f"Set {name}=LogisticRegression()"
    return "Wrap it: CalibratedClassifierCV(estimator)"


def _log(proba):
    with np.errstate(divide="ignore"):
        return np.log(proba)


def _choose_class(class_proba, classes, class_prior):
    """Return the class with the largest probability, relative to class shares if there are some."""
    if class_prior is not None:
        class_proba = relative_to_shares(class_proba, class_prior)
    return classes[class_proba.argmax(axis=1)]


def _costs(design, refit):
    """Return about how long the steps of a fit take, relative to each other (bench_audit.py)."""
    n_rows = len(design.label_index)
    noise = 0 if design.noise_method is None else min(n_rows, NOISE_ROWS) / 3
    rounds = 4 * n_rows if refit is True else 0
    return n_rows, noise + n_rows / 100, rounds, int(refit) * n_rows


def _check_weight(sample_weight, rows):
    """Return one weight per row, not negative and not all zero, or None."""
    if sample_weight is None:
        return None
    if not isinstance(sample_weight, Real):
        sample_weight = as_numpy("sample_weight", sample_weight)
    weight = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must contain a positive number; all are zero.")
    return weight


def as_name_array(names) -> np.ndarray:
    """Return names as an array: of their own type if they share one, else of objects."""
    if len({type(name) for name in names}) == 1 and isinstance(names[0], str | int | float):
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array
