"""The options of the command `looselabels`, and the command line that repeats a run."""

from pathlib import Path
from shlex import quote

import click

MODELS = click.Choice(["auto", "forest", "linear", "kernel", "boosting"])
WITHOUT_EFFECT = ("out", "force", "as_json", "quiet", "debug", "jobs", "strict")  # on the numbers
PATHS = ("data", "proba", "design")


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
        option = [] if name == "data" else [f"--{name.replace('_', '-')}"]
        for one in value if isinstance(value, tuple) else (value,):
            one = Path(one).name if name in PATHS and one != "-" else one
            words += option if one is True else [*option, str(one)]
    return " ".join(quote(word) for word in words)


# ------------------------------------------------------------------------------------------ values


def _rate(_context, _parameter, value):
    if value in (None, "estimate"):
        return "estimate"
    try:
        rate = float(value)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < 1:
        raise click.BadParameter(f"{value!r} is neither a number from 0 to 1 nor 'estimate'.")
    return rate


def _character(_context, _parameter, value):
    value = {None: None, "\\t": "\t", "tab": "\t"}.get(value, value)
    if value is not None and (len(value) != 1 or value in '"\r\n\0'):
        raise click.BadParameter(f"{value!r} is not a single character, such as ';' or '\\t'.")
    return value


def _cores(_context, _parameter, value):
    if value == 0:
        raise click.BadParameter("0 is not a number of cores; -1 uses all of them.")
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
unlabeled = click.option(
    "--unlabeled",
    multiple=True,
    metavar="TEXT",
    help="Cell content that means 'no label', in addition to empty cells. Can be repeated.",
)
about_labels = add_options(
    click.option("--label", required=True, metavar="COLUMN", help="Column of labels."),
    unlabeled,
    click.option(
        "--negative",
        metavar="CLASS",
        help="Class without a label of its own: its rows are unlabeled, or labeled by mistake.",
    ),
    click.option(
        "--noise",
        callback=_rate,
        metavar="RATE",
        help="Share of wrong labels, such as 0.05.  [default: estimated; 0 with --design]",
    ),
    click.option(
        "--design",
        type=click.Path(path_type=Path),
        help="JSON file with the meaning of each label; see `looselabels design --help`.",
    ),
)
about_model = add_options(
    click.option("--features", metavar="A,B,…", help="Columns to learn from.  [default: all]"),
    click.option(
        "--groups",
        metavar="COLUMN",
        help="Column that says which rows belong together, such as a patient. They are predicted "
        "by models that have seen none of them.  [default: copies of a row belong together]",
    ),
    click.option(
        "--model",
        type=MODELS,
        default="auto",
        show_default=True,
        help="Classifier to fit; auto: forest or linear, whichever predicts the labels better.",
    ),
    click.option(
        "--jobs",
        type=int,
        callback=_cores,
        default=-1,
        show_default=True,
        help="Number of cores; -1 uses all.",
    ),
    click.option("--strict", is_flag=True, help="Exit with 4 if the inference did not converge."),
)
