"""The models that predict the labels: the user's estimator, or the better of two default models.

The default models are a forest and a linear model. They are also fitted next to an estimator of the
user if noise is to be estimated (`needs_pool`). How labels arise does not depend on the model that
learns the classes, and where one model does not fit, right labels look wrong; all models together
fit better (`pool_scores`). Models that the user did not ask for learn from a limited number of
rows, and are left out, without an error, if they cannot learn from these.
"""

import warnings
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import _check_method_params

from looselabels._names import listed
from looselabels._progress import each
from looselabels._validation import as_counts, short_repr
from looselabels.estimation.weighting import multiply_weights
from looselabels.learning.dask_rows import DaskRows
from looselabels.learning.dask_training import score_on_dask, trains_on_dask
from looselabels.learning.forest import BalancedForestClassifier
from looselabels.learning.label_design import LabelDesign
from looselabels.learning.label_model import OWN_MODEL, LabelScores, model_labels, pool_scores
from looselabels.learning.linear import as_numbers, linear_model
from looselabels.learning.out_of_sample import (
    OWN,
    choose_folds,
    predicts_own_rows,
    weight_parameter,
)
from looselabels.learning.row_sample import (
    choose_rows,
    score_all_rows,
    scores_of_sample,
    weigh_sample,
)
from looselabels.learning.training import Training, fit_alone_or_drawn
from looselabels.learning.weighted_copies import weight_name
from looselabels.transition import is_missing

MAX_EXTRA_ROWS = 5_000  # about: of models next to the user's; noise needs 3,000 rows at most
CLOSE = 1.02  # times the log-loss of all models together: below that, one model is about as good


class Settings(NamedTuple):
    """What the user specified about models; `LabelDesign` has what is about labels."""

    estimator: Any  #: None: one of the default models
    cv: Any
    max_fit_rows: int | None
    may_draw: bool  #: whether many models like the estimator may be fitted, to draws of the rows
    n_jobs: int | None
    random_state: Any
    router: Any  #: has requested the metadata of its estimator and splitter
    report: Callable  #: is called with words after each step

    @property
    def is_frozen(self) -> bool:
        """Whether the estimator is used as it is."""
        return isinstance(self.estimator, FrozenEstimator)

    @property
    def most_rows(self) -> int | None:
        """About how many rows models learn from; None: all."""
        is_list = not (
            self.cv is None or isinstance(self.cv, Integral | str) or hasattr(self.cv, "split")
        )
        return None if is_list else self.max_fit_rows  # row numbers in a list are those of all rows


class FitData(NamedTuple):
    """The rows that models are fitted to, and the parameters of the fit, some of them per row."""

    X: Any
    y: Any
    design: LabelDesign
    fit_params: dict

    def take(self, rows) -> "FitData":
        """Return the same rows of everything."""
        X = self.X[rows] if isinstance(self.X, DaskRows) else _safe_indexing(self.X, rows)
        fit_params = _check_method_params(self.X, self.fit_params, indices=rows)
        return FitData(X, _safe_indexing(self.y, rows), self.design.take(rows), fit_params)


class Scored(NamedTuple):
    """A fitted estimator, and p(label | x) by it and by other models."""

    training: Any  #: a Training; None if models learned from a part of the rows, or on a cluster
    estimator: Any
    scores: LabelScores  #: by the estimator, of all rows
    pooled: LabelScores  #: to estimate noise from: by all models together, or the same as `scores`
    single: dict  #: scores by each model alone, by its name; empty if there is one model only
    losses: dict | None = None  #: the log-loss of the labels by each of them
    pooled_rows: Any = None  #: the rows that `pooled` and `single` are about; None: all
    n_fit_rows: int = 0  #: how many rows the estimator learned from


def default_forest(n_jobs=None, random_state=None) -> BalancedForestClassifier:
    """Return the forest among the default models."""
    forest = BalancedForestClassifier(n_jobs=n_jobs, random_state=random_state)
    if get_config()["enable_metadata_routing"]:  # nobody else can request it
        forest.set_fit_request(sample_weight=True)
    return forest


# ------------------------------------------------------------------------------- which rows


def score_models(settings: Settings, data: FitData) -> Scored:
    """Return what `choose_model` returns, but for tables of any size, and with scores of all rows.

    Models learn from a sample of a large table, and the chosen one predicts the other rows.
    """
    n_rows = len(data.design.label_index)
    if trains_on_dask(settings.estimator, data.X):
        _check_for_dask(settings, data)
        estimator, scores = score_on_dask(settings.estimator, data.X, data.design)
        return Scored(None, estimator, scores, scores, {}, n_fit_rows=n_rows)
    rows = rows_to_fit(settings, data.design, settings.most_rows)
    if rows is None:
        return choose_model(settings, data)._replace(n_fit_rows=n_rows)
    settings.report(f"models learn from {len(rows):,} of {n_rows:,} rows")
    return _predict_other_rows(choose_model(settings, data.take(rows)), data, rows)


def _predict_other_rows(found: Scored, data: FitData, rows) -> Scored:
    """Return scores of all rows, after models learned from a sample of them."""
    scores = score_all_rows(found.estimator, data.X, data.design, rows, found.scores)

    def of_all_rows(part):  # only the chosen model has predicted all rows; weights replace the rest
        return scores if part is found.scores else weigh_sample(data.design, rows, part)

    pooled, pooled_rows = of_all_rows(found.pooled), found.pooled_rows
    if pooled is not scores:
        pooled_rows = rows if pooled_rows is None else rows[pooled_rows]
    return found._replace(
        training=None,
        scores=scores,
        pooled=pooled,
        single={name: of_all_rows(part) for name, part in found.single.items()},
        pooled_rows=pooled_rows,
        n_fit_rows=len(rows),
    )


def rows_to_fit(settings: Settings, design: LabelDesign, max_rows):
    """Return the rows that models learn from, in increasing order; None: all."""
    index, weights = design.label_index, None if settings.is_frozen else design.training_weights
    weight = multiply_weights(design.sample_weight, None if weights is None else weights[index])
    return choose_rows(
        index,
        max_rows,
        is_learned=None if weight is None else weight > 0,
        groups=None if design.groups is None else design.groups.group_index,
        random_state=settings.random_state,
    )


def _check_for_dask(settings, data):
    """Raise if a parameter cannot be used with an estimator that is trained on Dask."""
    given = [name for name, value in data.fit_params.items() if value is not None]
    given += ["cv"] * (settings.cv is not None)
    given += ["label_weights"] * data.design.has_explicit_weights
    if given:
        raise ValueError(
            f"{type(settings.estimator).__name__} is trained on a cluster of Dask, on blocks of "
            f"rows; then {listed(given)} cannot be used."
        )


# ------------------------------------------------------------------------------ which models


def choose_model(settings: Settings, data: FitData) -> Scored:
    """Fit the estimator, or the default model that predicts the labels best, and score all rows.

    The default models are also fitted next to an estimator of the user if `needs_pool`.
    """
    if settings.estimator is None:
        return _choose_default(settings, data)
    training = make_training(settings, data, settings.estimator)
    _check_labels_are_seen_again(training, data.fit_params)
    training, fitted, scores = fit_alone_or_drawn(training)
    found = Scored(training, fitted, scores, scores, {})
    if not needs_pool(settings, data.design):
        return found
    rows, extra = _score_extra_models(settings, data)
    if not extra:
        return found
    own = scores if rows is None else scores_of_sample(data.design, rows, scores)
    single = {OWN_MODEL: own, **extra}
    pooled = pool_scores(list(single.values()))
    return found._replace(pooled=pooled, single=single, losses=_losses(single), pooled_rows=rows)


def _choose_default(settings, data) -> Scored:
    """Fit the default models, and return the one that predicts the labels best."""
    trained: dict = {}
    for name, model in _default_models(settings, data):
        training = make_training(_named(settings, name), data, model)
        if not trained:
            _check_labels_are_seen_again(training, data.fit_params)
        elif not training.can_predict_labels():
            continue
        trained[name] = training, *training.score()
    single = {name: scores for name, (*_, scores) in trained.items()}
    losses = _losses(single)
    training, fitted, scores = trained[min(losses, key=losses.__getitem__)]
    is_pooled = needs_pool(settings, data.design)
    pooled = pool_scores(list(single.values())) if is_pooled else scores
    return Scored(training, fitted, scores, pooled, single, losses)


def _score_extra_models(settings, data) -> tuple:
    """Return some rows (None: all), and their out-of-sample scores by each default model by name.

    A model that cannot learn from these rows is left out.
    """
    rows, scored = rows_to_fit(settings, data.design, MAX_EXTRA_ROWS), {}
    for name, model in _default_models(settings, data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            training = make_training(_named(settings, name), data, model)
            if rows is not None:
                training = training.part(rows)._replace(report=training.report)
            training = training._replace(X=as_numbers(training.X)).in_few_folds()
            if training.X is not None and training.can_predict_labels():
                _, scores = training.score()
                scored[name] = scores if rows is None else weigh_sample(data.design, rows, scores)
    return rows, scored


def _default_models(settings, data):
    """Yield the names of the default models, and the models."""
    models = {"forest": default_forest(settings.n_jobs, settings.random_state)}
    if settings.cv != OWN:
        models["linear"] = linear_model(data.X, data.design.mean_copies)
    # a linear model is much faster than a forest, unless there are very many columns
    yield from each(models.items(), 1.1 if len(models) > 1 else 1)


def _named(settings, name):
    """Return the settings with reports that name the model."""
    return settings._replace(report=lambda words: settings.report(f"{words} ({name})"))


def _losses(single):
    return {name: scores.log_loss() for name, scores in single.items()}


def needs_pool(settings: Settings, design: LabelDesign) -> bool:
    """Return whether noise is to be estimated from all models together.

    If label rates are estimated too, it is not: they follow from the most certain rows, and the
    best model alone has more of these than a pool.
    """
    return (
        design.noise_method is not None
        and design.rate_method is None
        and not design.has_explicit_weights
        and not settings.is_frozen
    )


def rival_wrong_shares(design: LabelDesign, scored: Scored) -> dict:
    """Return the range of the share of wrong labels by the best single model, with its name as key.

    The result is empty unless this model predicts the labels about as well as `scored.pooled`, from
    which noise was estimated. Without a pool, it is the best model that was not chosen.
    """
    others = {name: one for name, one in scored.single.items() if one is not scored.pooled}
    if design.noise_method != "estimate" or not others:
        return {}
    losses = _losses(others)
    best = min(losses, key=losses.__getitem__)
    if losses[best] >= CLOSE * scored.pooled.log_loss():
        return {}
    with warnings.catch_warnings():  # the estimate that is used has warned of the same
        warnings.simplefilter("ignore")
        return {best: model_labels(design, others[best]).wrong_share_interval}


# ------------------------------------------------------------------- what models are fitted with


def make_training(settings: Settings, data: FitData, model) -> Training:
    """Return the rows, folds and parameters that a model is fitted with.

    Of the parameters of the user's fit, other models get the weights only.
    """
    X, y, design, _ = data
    fit_params, split_params = _route(settings, data, model)
    weights, folds, seed = None, [], settings.random_state
    if not isinstance(model, FrozenEstimator):
        index, weights = design.label_index, design.training_weights
        folds = choose_folds(model, settings.cv, X, y, index, split_params, seed, design.groups)
    return Training(
        model, X, design, folds, fit_params, weights, settings.n_jobs, seed, settings.report,
        may_draw=_may_draw(settings, design, model, fit_params),
        # leaving out rows helps models that follow single wrong labels; forests hardly do
        may_leave_out=not predicts_own_rows(model),
    )  # fmt: skip


def _may_draw(settings, design, model, fit_params):
    """Return whether more models than one may be fitted, to draws of the rows.

    An estimator that predicts its own rows, like our forests, needs none. Parameters of its fit
    other than weights could not be passed on to models that learn classes.
    """
    return (
        settings.may_draw
        and settings.estimator is not None
        and not design.has_explicit_weights
        and not settings.is_frozen
        and not hasattr(model, "fit_out_of_sample")
        and not set(fit_params) - {weight_name(model)}
    )


def _route(settings, data, model) -> tuple[dict, dict]:
    """Return what is passed to the fit of a model, and what to the splitter."""
    sample_weight, label_weights = data.design.sample_weight, data.design.label_weights
    is_own = model is settings.estimator
    if not is_own:  # a regularized model would take weights that sum to 1 for one row
        sample_weight = None if sample_weight is None else as_counts(sample_weight)
    given = {name: value for name, value in data.fit_params.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        routed = process_routing(settings.router, "fit", **weights, **given)
        fit = dict(routed.estimator.fit)
        split = dict(routed.splitter.split) if has_routing(settings.cv) else {}
    else:
        fit = {name: value for name, value in given.items() if name != "groups"}
        split = {name: value for name, value in given.items() if name == "groups"}
        if sample_weight is not None:
            _pass_weight(model, fit, sample_weight)
    if settings.estimator is not None and not is_own:
        fit = {} if sample_weight is None else {weight_name(model): sample_weight}
    if label_weights is not None:
        row_weights = label_weights[data.design.label_index]
        fit[weight_parameter(model)] = multiply_weights(sample_weight, row_weights)
    return fit, split


def has_routing(cv) -> bool:
    """Return whether a splitter takes metadata."""
    return hasattr(cv, "get_metadata_routing")


def _pass_weight(model, fit, sample_weight):
    name = weight_parameter(model)
    if name is not None:
        fit[name] = sample_weight
    elif not isinstance(model, FrozenEstimator):
        warnings.warn(
            f"{type(model).__name__} takes no sample_weight: weights count in the inference only.",
            UserWarning,
            stacklevel=7,
        )


def read_folds(cv):
    """Return `cv` so that it can be used several times: folds of a generator as a list."""
    return list(cv) if isinstance(cv, Iterator) else cv


def _check_labels_are_seen_again(training, fit_params):
    """Raise if no model can predict a label that it has seen in other rows."""
    if not training.folds or training.sees_labels_again():
        return
    labels, index = training.design.transition.labels, training.design.label_index
    label, groups = next(s for s in index if not is_missing(labels[s])), fit_params.get("groups")
    name = short_repr(labels[label])
    of_label: list = (
        [] if groups is None else np.asarray(groups, dtype=object)[index == label].tolist()
    )
    if len({*of_label}) != 1:
        raise ValueError(
            "No row is predicted by a model that has seen its label in other rows, such as "
            f"{name}. Use a splitter that stratifies by label, such as LabelStratifiedKFold."
        )
    raise ValueError(
        f"Every row with label {name} is in group {short_repr(of_label[0])}, and each other label "
        "is in one group too. Rows are predicted by models that have seen no row of their group, "
        "so no label could be predicted. Use groups that have several labels each, or no groups if "
        "rows are independent."
    )
