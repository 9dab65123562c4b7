"""The options of the command `looselabels`, and the command line that repeats a run."""

import math
from pathlib import Path

import click

from looselabels.command.shell import shell_word, split_pair

MODELS = click.Choice(["auto", "forest", "linear", "kernel", "boosting"])
WITHOUT_EFFECT = (  # on the numbers
    *("out", "force", "as_json", "quiet", "debug", "strict"),
    *("jobs", "scheduler", "workers"),
)
PATHS = ("data", "proba", "design", "decisions", "annotations")
MAX_FIT_ROWS = 200_000  # that of `estimation.sampling`, which would import NumPy
FEATURE_FILES = (".npy", ".csv", ".parquet")
NOISE = ("estimate", "calibrated", "em", "joint", "confident")  # what `DecoupledClassifier` accepts


def add_options(*decorators):
    """Return one decorator that adds several options to a command, in this order."""

    def decorate(command):
        for option in reversed(decorators):
            command = option(command)
        return command

    return decorate


def repeatable_command() -> str:
    """Return the current command line as it can be repeated elsewhere, without folders."""
    context = click.get_current_context()
    words = ["looselabels", str(context.info_name)]
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params[parameter.name or ""]
        source = context.get_parameter_source(name)
        if source is not click.core.ParameterSource.COMMANDLINE or name in WITHOUT_EFFECT:
            continue
        no = "no-" if value is False else ""
        option = [] if name == "data" else [f"--{no}{name.replace('_', '-')}"]
        for one in value if isinstance(value, tuple) else (value,):
            is_path = is_feature_file(one) if name == "features" else name in PATHS and one != "-"
            is_path |= name == "merge" and Path(one).is_file()
            one = Path(one).absolute().name if is_path else one
            words += option if isinstance(one, bool) else [*option, str(one)]
    return " ".join(map(shell_word, words))


def check_about_labels(options) -> None:
    """Raise if options of `about_labels` contradict each other."""
    design, negative, source = (options[name] for name in ("design", "negative", "source"))
    for wrong, message in (
        (
            design is not None and negative is not None,
            "Pass either --negative or --design; a design can include the negative class.",
        ),
        (
            source is not None and design is None,
            "--source needs --design, a file with a design for each source.",
        ),
        (
            source is not None and isinstance(options["noise"], float),
            "Pass either --source or a --noise rate; the design can have a rate for each source.",
        ),
        (
            options["label_rate"] is not None and negative is None,
            "--label-rate needs --negative, the class that is never labeled.",
        ),
        (
            options["label_rate"] is not None and isinstance(options["noise"], str),
            "Pass either --label-rate or an estimated --noise; with --label-rate, give a number.",
        ),
        (
            options["label_rate"] is not None and bool(options["class_share"]),
            "Pass either --class-share or --label-rate; one follows from the other.",
        ),
    ):
        if wrong:
            raise click.UsageError(message)


# ------------------------------------------------------------------------------------------ values


def is_feature_file(value: str) -> bool:
    """Return whether the value of --features is a file; otherwise it names columns."""
    return value.lower().endswith(FEATURE_FILES) and Path(value).is_file()


def _noise(_context, _parameter, value):
    if value is None or value in NOISE:
        return value
    rate = _number(value)
    if not 0 <= rate < 1:
        names = ", ".join(map(repr, NOISE))
        raise click.BadParameter(
            f"{value!r} is neither a number from 0 to 1 (below 1) nor one of {names}."
        )
    return rate


def _shares(_context, _parameter, value):
    for word in value:
        name, _, share = word.rpartition("=")
        if not name or not 0 <= _number(share) <= 1:
            raise click.BadParameter(f"{word!r} is not CLASS=SHARE, with a share from 0 to 1.")
    return value


def _number(text) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0


def _character(_context, _parameter, value):
    value = {None: None, "\\t": "\t", "tab": "\t"}.get(value, value)
    if value is not None and (len(value) != 1 or value in '"\r\n\0'):
        raise click.BadParameter(f"{value!r} is not a single character, such as ';' or '\\t'.")
    return value


def _merges(_context, _parameter, value):
    for word in value:
        if split_pair(word) is None and not Path(word).is_file():
            raise click.BadParameter(f"{word!r} is neither FROM=TO nor a file.")
    return value


def _cores(_context, _parameter, value):
    if value == 0:
        raise click.BadParameter("0 is not a number of cores; -1 uses all of them.")
    return value


def _rate(_context, _parameter, value):
    if value is not None and math.isnan(value):  # which is in no range, and not outside either
        raise click.BadParameter("nan is not a rate, such as 0.3.")
    return value


def _proba(_context, _parameter, value):
    if value is not None and not 0 <= value < 1:
        raise click.BadParameter(f"{value} is not a probability below 1, such as 0.95.")
    return value


# ----------------------------------------------------------------------------------------- options

debug = click.option("--debug", is_flag=True, help="Show the traceback of an error.")
quiet = click.option("--quiet", is_flag=True, help="Do not show a progress bar.")
force = click.option("--force", is_flag=True, help="Replace the results of an earlier run.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
excel_safe = click.option(
    "--excel-safe", is_flag=True, help="Put ' before text that Excel would run as a formula."
)
seed = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Random seed.",
)
delimiter = click.option(
    "--delimiter",
    callback=_character,
    help="Character between the cells of a CSV file.  [default: comma; tab for .tsv]",
)
sheet = click.option(
    "--sheet", metavar="NAME", help="Sheet of an Excel file.  [default: the first one]"
)
unlabeled = click.option(
    "--unlabeled",
    multiple=True,
    metavar="TEXT",
    help="Cell content that means 'no label', in addition to empty cells. Can be repeated.",
)
id_column = click.option(
    "--id",
    metavar="COLUMN",
    help="Column with a unique name for each row.  [default: the line or number of the row]",
)
about_review = add_options(
    id_column,
    click.option(
        "--show",
        multiple=True,
        metavar="COLUMN",
        callback=lambda _context, _option, names: tuple(dict.fromkeys(names)),
        help="Column that the page shows for each row. Can be repeated.  [default: up to four]",
    ),
    click.option(
        "--decisions",
        multiple=True,
        type=click.Path(dir_okay=False),
        help="decisions.csv of an earlier review, whose classes are used as known. Can be "
        "repeated.",
    ),
    click.option(
        "--accept-above",
        type=float,
        callback=_proba,
        metavar="P",
        help="Write decisions.csv, which accepts suggestions with a probability above P: those "
        "that contradict a label and, with --negative, labeled classes for unlabeled rows.",
    ),
)
spelling = add_options(
    click.option(
        "--strip",
        is_flag=True,
        help="Remove spaces around labels, and repeated spaces in them.",
    ),
    click.option(
        "--merge",
        multiple=True,
        callback=_merges,
        metavar="FROM=TO",
        help="Read the label FROM as TO. In place of FROM=TO, a file of such pairs: JSON, or CSV "
        "with the columns from and to. Can be repeated. Cells are not changed.",
    ),
)
source = click.option(
    "--source",
    metavar="COLUMN",
    help="Column with the data set of each row, if --design has a design for each data set.",
)
source_of_model = click.option(
    "--source",
    metavar="COLUMN",
    help="Column with the data set of each row, for a model that was fitted with --source.",
)
how_labels_arise = add_options(
    unlabeled,
    spelling,
    click.option(
        "--negative",
        metavar="CLASS",
        help="Class without a label of its own: its rows are unlabeled, or labeled by mistake.",
    ),
    click.option(
        "--noise",
        callback=_noise,
        metavar="RATE",
        help=f"Share of wrong labels, such as 0.05; or how to estimate it: {', '.join(NOISE)}.  "
        "[default: estimate; 0 with --design or --label-rate]",
    ),
    click.option(
        "--design",
        type=click.Path(path_type=Path),
        help="JSON file with the meaning of each label; see `looselabels design --help`.",
    ),
    source,
    click.option(
        "--class-share",
        multiple=True,
        callback=_shares,
        metavar="CLASS=SHARE",
        help="Share of the rows that belong to a class, such as cat=0.3. Can be repeated; one "
        "class can be left out.  [default: estimated, or implied by the label counts]",
    ),
    click.option(
        "--label-rate",
        type=click.FloatRange(0, 1, min_open=True),
        callback=_rate,
        metavar="RATE",
        help="With --negative: which share of the rows of each other class is labeled.  "
        "[default: estimated]",
    ),
)


def one_label(help_text):
    """Return the option --label of a command that takes one column; the last one would win."""

    def only(context, parameter, columns):
        if len(columns) > 1:
            raise click.BadParameter(
                f"it is given {len(columns)} times. Only audit and predict take several columns."
            )
        return columns[0] if columns else None

    return click.option("--label", multiple=True, metavar="COLUMN", callback=only, help=help_text)


about_labels = add_options(
    one_label("Column of labels; required for a table."),
    how_labels_arise,
)
about_answers = add_options(
    click.option(
        "--label",
        multiple=True,
        metavar="COLUMN",
        help="Column of labels; required for a table. Repeat it if several annotators answered, "
        "each in a column of their own.",
    ),
    click.option(
        "--annotations",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Table with one answer per line, in place of --label: the row, as in the column --id "
        "of DATA, the annotator, and the label.",
    ),
    click.option(
        "--missing-is-label",
        is_flag=True,
        help="A missing answer says something about the class, as with labeling functions that "
        "abstain.  [default: the annotator was not asked]",
    ),
    how_labels_arise,
)
about_model = add_options(
    click.option(
        "--features",
        metavar="A,B,…|FILE",
        help="Columns to learn from, or a file with features of your own, such as embeddings: .npy "
        "with a row per row of DATA, or .csv or .parquet whose first column identifies the rows: "
        "DATA has a column with this name and the same values.  [default: all columns]",
    ),
    click.option(
        "--text",
        multiple=True,
        metavar="COLUMN",
        help="Column of words, even if its cells look like numbers, dates or identifiers. Can be "
        "repeated.",
    ),
    click.option(
        "--image",
        metavar="COLUMN",
        help="Column of paths of image files, relative to the folder of DATA.  [default: the "
        "columns whose cells end in .png, .jpg, … and whose files exist]",
    ),
    click.option(
        "--groups",
        metavar="COLUMN",
        help="Column that says which rows belong together, such as a patient. They are predicted "
        "by models that have seen none of them. Copies of a row belong together in any case, "
        "unless this column is different in each row; with --proba it must be.",
    ),
    click.option(
        "--model",
        type=MODELS,
        default="auto",
        show_default=True,
        help="Classifier to fit; auto: forest or linear, whichever predicts the labels better. To "
        "estimate noise, both are fitted next to the others too, except with --negative.",
    ),
    click.option(
        "--refit/--no-refit",
        default=True,
        show_default=True,
        help="Whether models also learn the inferred classes, if this predicts the labels of "
        "held-out rows better. --no-refit is faster.",
    ),
    click.option(
        "--max-fit-rows",
        type=click.IntRange(min=2),
        default=MAX_FIT_ROWS,
        show_default=True,
        metavar="N",
        help="About how many rows models learn from, if DATA has more. They predict the others.",
    ),
    click.option(
        "--jobs",
        type=int,
        callback=_cores,
        default=-1,
        show_default=True,
        help="Number of cores; -1 uses all.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Fit on the cluster of this Dask scheduler, such as tcp://10.0.0.1:8786.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1),
        metavar="N",
        help="Fit on a Dask cluster of N processes that is started on this machine.",
    ),
    click.option(
        "--strict", is_flag=True, help="Exit with code 4 if the inference did not converge."
    ),
)
