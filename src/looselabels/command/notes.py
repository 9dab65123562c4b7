"""Sentences for the user: what was assumed, what was ignored, and which warnings occurred."""

import re
import warnings
from contextlib import contextmanager

from looselabels._names import shown
from looselabels._validation import short_repr
from looselabels.auditing.audit import (
    ASSUMED_TO_BE_RIGHT,
    USELESS_ESTIMATOR,
    USELESS_FEATURES,
    USELESS_PROBA,
    Audit,
)
from looselabels.auditing.diagnose import mean_skill, skills_of, useless_features
from looselabels.auditing.report import facts, reviewed_sentence, verdict
from looselabels.command.features import Features
from looselabels.command.labels import Labels

MAX_COLUMNS = 5  # ignored columns that are named
MAX_SHARES = 10  # classes whose share is named
# What the command says in place of words that name a parameter of the library.
WORDS_OF_COMMAND = {
    ASSUMED_TO_BE_RIGHT: (
        "Labels were assumed to be right, as you specified. "
        "To look for wrong labels, pass --noise estimate."
    ),
    USELESS_FEATURES: "the columns do not predict the labels.",
    USELESS_ESTIMATOR: "the --model does not predict the labels, but another does.",
    USELESS_PROBA: "--proba does not predict the labels.",
}
RIGHT_WITH_RATE = (
    "Labels were assumed to be right: with --label-rate, the share of wrong labels is not "
    "estimated. To look for wrong labels, pass their share as --noise, or leave --label-rate out."
)
# Words of the library in its errors and warnings, and the options that they stand for.
OPTIONS = (
    (r"\bcolumns of label_proba (lacks|names)\b", r"The header of label_proba \1"),
    (r"\bhas shape \((\d+), (\d+)\)", r"has \1 rows and \2 columns"),
    (r"the order of the transition's labels", "sorted order, or in that of the design"),
    (r"\brow (\d+) sums to", r"row \1, counted from 0, sums to"),
    (r"\blabel_proba\b", "--proba"),
    (r"\bnegative needs\b", "--negative needs"),
    (r"\b(L|l)eave negative out\b", r"\1eave --negative out"),
    (r"\b(L|l)eave noise out\b", r"\1eave --noise out"),
    (r"\bgive class_prior\b", "pass --class-share"),
    (r"\bclass_prior\b", "--class-share"),
    (r"\bnoise='?([\w.]+)'?", r"--noise \1"),
    (r"\bwhich the transition never\b", "which the design never"),
    (r"\bSpecify negative=(.+) in place of the transition\b", r"Pass --negative \1, not --design"),
    (r"\bas in transition\.with_noise\(\{'?(.+?)'?: (.+)\}\)", r'as in "noise": {"\1": \2}'),
    (r"specify it as noise, such as ([\d.]+\d)", r"pass it as in --noise \1"),
    (
        r"specify (?:groups|copies) with a different value for each row",
        "pass --groups with a column that is different in each row",
    ),
    (r"\bthe transition (has|rules|to)\b", r"the design \1"),
    (r"\bof the transition do not occur in y\b", "of the design do not occur in the table"),
    (
        r"\by contains the label (?:'([\w.-]+)'|(.+?)) in (.+), replace it with None\.",
        r"The label \1\2 occurs in \3, pass --unlabeled \1\2.",
    ),
    (r"\by (has|contains)\b", r"the table \1"),
    (
        r"\bY contains the label (?:'([\w.-]+)'|(.+?)) in (.+), replace it with None\. "
        r"If (.+), also pass .*",
        r"The label \1\2 occurs in \3, pass --unlabeled \1\2. "
        r"If \4, also pass --missing-is-label.",
    ),
    (r"\bpass Annotations\.from_table\(Y, missing_is_label=True\)", "pass --missing-is-label"),
    (r", and pass the classes to diagnose\b", ""),
    (
        r"Specify the share of each class that is labeled: Transition\.partial\(.*?\)",
        "If you know the share of each class, specify it with --class-share",
    ),
    (r"\b(Y|y)our estimator\b", r"\1our --model"),
    (r"\bestimator=None\b", "--model auto"),
    (r"Another estimator or another transition may", "Another --model or --design may"),
)


@contextmanager
def collect_warnings():
    """Yield a list that receives each distinct warning as one line; none of them is shown."""
    notes: list[str] = []
    about_code = (DeprecationWarning, FutureWarning, PendingDeprecationWarning)

    def note(message, category, *_):
        text = words_of_command(" ".join(str(message).split()))
        if not issubclass(category, about_code) and text not in notes:
            notes.append(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield notes


@contextmanager
def errors_of_command(proba=None):
    """Translate errors of the library into the words of the command; `proba` names its file."""
    try:
        yield
    except ValueError as error:
        text = words_of_command(str(error))
        if text == str(error):
            raise
        option = "--proba" if proba is None else f"--proba {proba}"
        raise ValueError(text.replace("--proba", option, 1)) from error


def words_of_command(text: str) -> str:
    """Return a sentence of the library with options in place of its parameters.

    >>> words_of_command("label_proba has 100 rows; y has 178.")
    '--proba has 100 rows; the table has 178.'
    """
    for words, option in OPTIONS:
        text = re.sub(words, option, text)
    return text


def why_no_count(found: Audit, labels: Labels) -> str | None:
    """Return why wrong labels cannot be counted, in the words of the command; None: they can."""
    if found.why_no_count == ASSUMED_TO_BE_RIGHT and labels.label_rate is not None:
        return RIGHT_WITH_RATE
    return _of_command(found.why_no_count)


def why_no_unlabeled_count(found: Audit) -> str | None:
    """Return why unlabeled rows cannot be counted, in the words of the command; None: they can."""
    return _of_command(found.why_no_unlabeled_count)


def _of_command(why: str | None) -> str | None:
    for words, of_command in WORDS_OF_COMMAND.items():
        why = why and why.replace(words, of_command)
    return why


def useless_model(clf) -> list[str]:
    """Return a note if the columns do not predict the labels out of sample, else nothing."""
    if getattr(clf, "annotators_", None) is not None:  # their answers say the class without columns
        return []
    skill = mean_skill(skills_of(clf.label_model_, clf.label_scores_))
    found = useless_features(skill, clf.candidate_losses_)
    return [found.words] if found.found else []


def describe_result(content) -> list[str]:
    """Return the verdict and the main numbers of the page as lines for the terminal."""
    numbers = facts(content)
    width = max(len(name) for name, _, _ in numbers)
    lines = (f"  {name:<{width}}  {number}  {note}".rstrip() for name, number, note in numbers)
    reviewed = reviewed_sentence(content)
    return [verdict(content), *lines, *([reviewed] if reviewed else [])]


def describe(found: Audit, labels: Labels) -> list[str]:
    """Return sentences on what was assumed about the labels, and what was not specified.

    Estimates are not assumptions: the page shows them elsewhere.
    """
    n_labeled, n_rows = int(found.has_label.sum()), len(found.label_index)
    return [
        f"{n_labeled:,} of {n_rows:,} rows have a label ({n_labeled / n_rows:.0%}).",
        *_describe_label_rates(found, labels, n_labeled < n_rows),
        *_describe_class_shares(labels),
        _describe_noise(found, labels),
        *_describe_dependence(found),
    ]


def _describe_label_rates(found, labels, has_unlabeled):
    source = found.model.sources.label_rates
    if source == "specified":
        return ["You specified p(label | class) with a design."] if labels.design else []
    negative = f"'{shown(labels.negative)}'"
    if source == "estimated":
        rates = "All other classes are labeled at the same rate; you did not specify which rate."
        if labels.class_prior is not None:
            rates = "How often other classes are labeled follows from class shares and noise."
        text = f"Unlabeled rows may belong to any class. {negative} has no label of its own."
        return [f"{text} {rates}"]
    if labels.label_rate is not None:
        none = "" if labels.noise else f", and none of {negative}"
        rate = f"{100 * labels.label_rate:.3g}% of the rows of each class are labeled"
        return [f"You specified that {rate}{none}."]
    if has_unlabeled and labels.class_prior is not None:
        return ["Which share of each class is labeled follows from the class shares."]
    if has_unlabeled:
        return [
            "Labels are missing at random: every class is labeled at the same rate, which follows "
            "from the label counts."
        ]
    return []


def _describe_class_shares(labels):
    if labels.class_prior is None or labels.label_rate is not None:
        return []
    shares = [f"{shown(name)} {100 * p:.3g}%" for name, p in labels.class_prior.items()]
    more = f" and {len(shares) - MAX_SHARES} more" if len(shares) > MAX_SHARES else ""
    return [f"You specified the class shares: {', '.join(shares[:MAX_SHARES])}{more}."]


def _describe_noise(found, labels):
    if found.model.sources.noise == "estimated":
        return "You did not specify how often labels are wrong."
    if labels.noise:
        return f"You specified that {100 * labels.noise:.3g}% of labels are wrong."
    if labels.design is not None:
        return "You specified no label noise beyond that of the design."
    if labels.label_rate is not None:
        return "Given labels are taken to be correct: you specified --label-rate, but no noise."
    return "You specified that given labels are correct."


def _describe_dependence(found):
    """Say whether it was tested that labels depend on the class only; failures are warnings."""
    return [
        "Labels are assumed to depend only on the class of a row "
        f"({'not tested' if finding.p_value is None else 'a test found no contradiction'})."
        for finding in found.findings
        if finding.kind == "instance" and not finding.found
    ]


def ignored_columns(features: Features | None) -> list[str]:
    """Return one sentence on the columns that are not used, or an empty list."""
    if features is None or not features.ignored:
        return []
    named = features.ignored[:MAX_COLUMNS]
    reasons = "; ".join(f"{short_repr(name)}: {why}" for name, why in named)
    n_more = len(features.ignored) - len(named)
    more = f"; and {n_more} more" if n_more else ""
    return [f"Ignored columns: {reasons}{more}."]
