"""The command `looselabels`: words in, words out. Nothing heavy is imported before it is needed."""

import io
import os
import re
import signal
import sys
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from looselabels import __version__

OK, BUG, USAGE, DATA, NOT_CONVERGED, IO, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 5, 130, 143
MODELS = click.Choice(["forest", "linear", "kernel", "boosting"])
SUFFIX = r"(?i)\.(csv|tsv|tab|txt|parquet|pq)(\.gz)?$"
NO_RESULT = ("out", "force", "as_json", "quiet", "debug", "jobs", "strict")  # change no number


class NotConverged(Exception):
    """The inference stopped short of its certificate, and --strict was given."""


class Terminated(BaseException):
    """The program was told to end: unlike SIGTERM alone, this cleans up on its way."""


def run(arguments=None) -> int:
    """Run the command and return its exit code; whatever goes wrong becomes one line on stderr."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        main(arguments, prog_name="looselabels", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return _say_usage(error)
    except (KeyboardInterrupt, click.Abort):
        return _say("Interrupted; nothing was left half-written.", INTERRUPTED)
    except Terminated:
        return _say("Terminated; nothing was left half-written.", TERMINATED)
    except (BrokenPipeError, SystemExit):  # `| head` has seen enough; click exits where it does
        _drop_stdout()
        return OK
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        return _say(*_explained(error))
    return OK


def entry():
    """Run the command as a program."""

    def terminate(_signal, _frame):
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # where it has no letter, it shows a number
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())


def _drop_stdout():
    """Let stdout go where it takes nothing; else Python tries again, and complains, at its end."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        with suppress(AttributeError, OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explained(error):
    """Return one line on an error, and its exit code."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, NotConverged):
        return text, NOT_CONVERGED
    if isinstance(error, ImportError):
        return text, USAGE
    if isinstance(error, MemoryError):
        return f"Not enough memory: {text}. Take fewer rows or columns.", IO
    if isinstance(error, OSError):
        return _without_number(error, text), IO
    if isinstance(error, ValueError):
        return text, DATA
    return f"This is a bug, please report it: {type(error).__name__}: {text} (--debug)", BUG


def _without_number(error, text):
    """Return an error of the system without "[Errno 28]" and "None"."""
    if not error.strerror:
        return text
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _say_usage(error):
    """Say what is wrong with the words of the command, and how it is used."""
    words = io.StringIO()
    error.show(words)
    return _say(words.getvalue().rstrip(), USAGE)


def _say(words, code=OK):
    """Write a line to stderr; control characters of names do not reach the terminal."""
    safe = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in words)
    click.echo(safe, err=True)
    return code


@contextmanager
def _steps(label, quiet=False):
    """Yield a function that moves a progress bar to a percentage; shown on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda percent, doing=None: None
        return
    with click.progressbar(length=100, label=label, file=sys.stderr, show_eta=True) as bar:

        def reach(percent, doing=None):
            bar.label = doing or bar.label
            bar.update(percent - bar.pos)

        yield reach


# ------------------------------------------------------------------------------------- the options


def _options(*options):
    def decorate(command):
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _rate(_context, _parameter, value):
    if value in (None, "estimate"):
        return "estimate"
    try:
        rate = float(value)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < 1:
        raise click.BadParameter(f"{value!r} is no rate from 0 to 1, nor 'estimate'.")
    return rate


def _character(_context, _parameter, value):
    value = {None: None, "\\t": "\t", "tab": "\t"}.get(value, value)
    if value is not None and (len(value) != 1 or value in '"\r\n\0'):
        raise click.BadParameter(f"{value!r} is not one character, such as ';' or '\\t'.")
    return value


def _cores(_context, _parameter, value):
    if value == 0:
        raise click.BadParameter("0 cores can do nothing; -1 is all of them.")
    return value


debug = click.option("--debug", is_flag=True, help="Show the traceback of an error.")
quiet = click.option("--quiet", is_flag=True, help="No progress bar.")
force = click.option("--force", is_flag=True, help="Replace what an earlier run wrote.")
seed = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of all that is random.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
delimiter = click.option(
    "--delimiter",
    callback=_character,
    help="Of a CSV file; by default a comma, a tab for .tsv.",
)
unlabeled = click.option(
    "--unlabeled",
    multiple=True,
    metavar="TEXT",
    help="A cell that means 'no label', besides an empty one. May be repeated.",
)
the_labels = _options(
    click.option("--label", required=True, metavar="COLUMN", help="The column of labels."),
    unlabeled,
    click.option(
        "--negative",
        metavar="CLASS",
        help="A class that no label names; its rows are among the unlabeled.",
    ),
    click.option(
        "--noise",
        callback=_rate,
        metavar="RATE",
        help="How often a label is wrong, such as 0.05. By default it is estimated.",
    ),
    click.option(
        "--design",
        type=click.Path(path_type=Path),
        help="How labels arise: a JSON file, see `looselabels design --help`.",
    ),
    click.option("--features", metavar="A,B,…", help="The columns to learn from; default: all."),
    click.option("--model", type=MODELS, default="forest", show_default=True),
    click.option(
        "--jobs",
        type=int,
        callback=_cores,
        default=-1,
        show_default=True,
        help="Cores to use; -1: all.",
    ),
    click.option("--strict", is_flag=True, help="Exit with 4 if the inference did not converge."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main():
    """Learn classes from labels that are not quite the classes.

    \b
    Examples:
      looselabels demo                                    what it does, on digits
      looselabels audit animals.csv --label species       labels to doubt, a page, a model
      looselabels audit pets.csv --label kind --negative other --noise 0.05
      looselabels predict animals-audit/model new.csv -o classes.csv
      looselabels design coarse.json                      show how labels arise
    """


# ------------------------------------------------------------------------------------ the commands


@main.command()
@click.argument("data")
@the_labels
@click.option("--proba", type=click.Path(dir_okay=False), help="p(label | x) of your model, .npy.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder; default: DATA-audit.")
@click.option("--excel-safe", is_flag=True, help="Put ' before text that Excel would run.")
@_options(delimiter, seed, force, as_json, quiet, debug)
def audit(data, out, proba, excel_safe, force, as_json, quiet, debug, **options):
    """Say which labels of the table DATA to doubt, and what they should be.

    \b
    Examples:
      looselabels audit animals.csv --label species
      looselabels audit animals.parquet --label species --unlabeled "?" -o out/
      looselabels audit pets.csv --label kind --negative other
      looselabels audit animals.csv --label species --proba mine.npy

    DATA is a CSV or Parquet file, or - for CSV on stdin. The folder gets labels.csv (the table,
    with suggestions), report.html, summary.json, transition.json and model/.
    """
    from looselabels.auditing.audit import audit as audit_rows
    from looselabels.command import workflow

    out = workflow.check_folder(_out(data, out, "audit"), force)
    with _steps("reading", quiet) as reach, workflow.noted() as notes:
        frame, y, labels = _read(data, options)
        reach(10, "fitting")
        if proba is None:
            clf, X, features = _fit(frame, y, labels, options, notes)
        else:
            clf, X, features = _fit_proba(_load_proba(proba), y, labels, options), None, None
        reach(80, "auditing")
        found = audit_rows(clf, y, random_state=options["seed"])
        content = workflow.page_content(
            found, labels, _file_name(data), _command(), notes, features, options["seed"]
        )
        reach(90, "writing")
        with workflow.new_folder(out, force) as folder:
            images = workflow.thumbnails(X, features, found)
            workflow.write_audit(
                folder, content, found, frame, _suffix(data), images=images, excel_safe=excel_safe
            )
            workflow.write_model(folder / "model", clf, features)
        reach(100)
    _tell(content, out, as_json)
    _check_converged(clf, options)


@main.command()
@click.argument("data")
@the_labels
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder; default: DATA-model.")
@_options(delimiter, seed, force, as_json, quiet, debug)
def fit(data, out, force, as_json, quiet, debug, **options):
    """Learn the classes of the table DATA and save a model.

    \b
    Examples:
      looselabels fit animals.csv --label species -o animals-model
      looselabels fit pets.csv --label kind --negative other --model linear
    """
    from looselabels.command import workflow

    out = workflow.check_folder(_out(data, out, "model"), force, workflow.MODEL)
    with _steps("reading", quiet) as reach, workflow.noted() as notes:
        frame, y, labels = _read(data, options)
        reach(10, "fitting")
        clf, _, features = _fit(frame, y, labels, options, notes)
        reach(90, "saving")
        with workflow.new_folder(out, force, workflow.MODEL) as folder:
            workflow.write_model(folder, clf, features)
        reach(100)
    notes += workflow.ignored_columns(features)
    for note in notes:
        _say(f"Note: {note}")
    _say(f"Model: {_shortest(out)}")
    if as_json:
        converged = bool(clf.converged_)
        found = {"model": out.name, "classes": clf.classes_.tolist(), "converged": converged}
        click.echo(workflow.to_json(found | {"warnings": notes}))
    _check_converged(clf, options)


@main.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", default="-")
@click.option("-o", "--out", default="-", help="File (.csv, .tsv, .parquet); default: stdout.")
@click.option("--label", metavar="COLUMN", help="Labels of these rows, to take into account.")
@unlabeled
@click.option("--all-classes", is_flag=True, help="A column p(class) for every class.")
@click.option("--excel-safe", is_flag=True, help="Put ' before text that Excel would run.")
@_options(delimiter, force, quiet, debug)
def predict(model, data, out, excel_safe, delimiter, force, quiet, debug, **options):
    """Predict the classes of the rows of DATA, block by block.

    \b
    Examples:
      looselabels predict animals-audit/model new.csv -o classes.csv
      cat new.csv | looselabels predict animals-audit/model - | head
    """
    from looselabels.command import tables, workflow

    tables.check_place(out, force)
    loaded, done = workflow.read_model(model), 0
    counts = not quiet and sys.stderr.isatty()
    with tables.table_writer(out, force=force, excel_safe=excel_safe) as write:
        for frame in tables.read_blocks(data, label=options["label"], delimiter=delimiter):
            write(workflow.with_classes(frame, *loaded, **options))
            done += len(frame)
            if counts:
                click.echo(f"\r{done:,} rows", nl=False, err=True)
    click.echo("\r" if counts else "", nl=False, err=True)
    _say(f"{done:,} rows predicted.")


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write the transition as JSON.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw it: .png, .svg or .pdf.")
@_options(force, as_json, debug)
def design(file, out, plot, force, as_json, debug):
    """Show how labels arise: p(label | class), from a small JSON file.

    \b
    Examples:
      looselabels design coarse.json --plot coarse.png
    where coarse.json says what each label means ("" is the missing label):
      {"meanings": {"dog": "dog", "canine": ["dog", "wolf"], "": ["dog", "wolf"]},
       "counts": {"dog": 200, "canine": 50, "": 10}, "noise": 0.05}
    or holds a transition that an audit wrote (transition.json).
    """
    from looselabels.command.tables import check_place, new_file

    transition = _read_design(file)
    for path in (out, plot):
        if path is not None:
            check_place(path, force)
    if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
        raise click.UsageError(f"--plot {plot}: a picture is .png, .svg or .pdf.")
    click.echo(transition.to_json() if as_json else str(transition))
    if out is not None:
        with new_file(out, force) as fresh:
            Path(fresh).write_text(transition.to_json(), encoding="utf-8")
    if plot is not None:
        with new_file(plot, force) as fresh:
            _draw(transition, fresh, plot.suffix[1:])


@main.command()
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="How often labels are planted.",
)
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("looselabels-demo"))
@_options(as_json, quiet, debug)
def demo(seeds, out, as_json, quiet, debug):
    """Audit scikit-learn's digits: 10 % labeled, 20 % of these wrong, 7 to 9 merged into "other".

    \b
    Examples:
      looselabels demo
      looselabels demo --seeds 1 -o /tmp/demo
    """
    from looselabels.command import workflow
    from looselabels.command.demo import audit_digits

    out = workflow.check_folder(out, force=True)
    with _steps("auditing", quiet) as reach:
        found, right = audit_digits(out, seeds, reach)
    page = _shortest(out / "report.html")
    if as_json:
        click.echo(workflow.to_json({"found": found, "right": right, "page": str(page)}))
        return
    click.echo(f"Planted errors found, of {seeds} × about 36: {found:.0%} come first.")
    click.echo(f"Of these, suggested class right: {right:.0%}.")
    click.echo(f"Page: {page}")


# ----------------------------------------------------------------------------------------- helpers


def _shortest(path):
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _out(data, out, kind):
    if out is not None:
        return out
    stem = "stdin" if data == "-" else re.sub(SUFFIX, "", Path(data).name)
    return Path(f"{stem}-{kind}")


def _file_name(data):
    return "stdin" if data == "-" else Path(data).name


def _suffix(data):
    return ".parquet" if str(data).lower().endswith((".parquet", ".pq")) else ".csv"


def _read(data, options):
    """Return the table, its labels, and what is known of them."""
    from looselabels.command.tables import read_table
    from looselabels.command.workflow import Labels, read_labels

    design, noise = options["design"], options["noise"]
    if design is not None and options["negative"] is not None:
        raise click.UsageError("--negative is for tables without a --design; name it there.")
    labels = Labels(
        options["label"],
        options["unlabeled"],
        options["negative"],
        0.0 if design is not None and noise == "estimate" else noise,
        None if design is None else _read_design(design),
    )
    frame = read_table(data, label=labels.column, delimiter=options["delimiter"])
    return frame, read_labels(frame, labels), labels


def _fit(frame, y, labels, options, notes):
    """Return the classifier, the matrix that it was fitted to, and how columns became that."""
    from looselabels.command import workflow
    from looselabels.command.features import Features

    chosen, model = options["features"], options["model"]
    columns = None if chosen is None else [*dict.fromkeys(map(str.strip, chosen.split(",")))]
    impute = model in ("linear", "kernel")
    features, X = Features.fit_transform(frame, label=labels.column, columns=columns, impute=impute)
    notes.extend(features.notes)
    seed, jobs = options["seed"], options["jobs"]
    return workflow.fit(X, y, labels, model=model, seed=seed, n_jobs=jobs), X, features


def _fit_proba(label_proba, y, labels, options):
    from looselabels.command import workflow

    return workflow.fit_from_proba(label_proba, y, labels, seed=options["seed"])


def _load_proba(path):
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is no array of numbers (.npy): {error}") from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise ValueError(f"{path} is an archive (.npz) of arrays; save one of them by np.save.")
    return found


def _read_design(path):
    """Return the transition of a JSON file: one that was written, or what each label means."""
    from looselabels.command.workflow import read_design

    try:
        return read_design(path)
    except (ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        raise click.UsageError(f"{path}: {reason}. See looselabels design --help.") from None


def _draw(transition, file, kind):
    from looselabels._validation import import_extra
    from looselabels.command.workflow import noted

    import_extra("matplotlib", '"looselabels[plot]"').use("Agg")  # no window
    with noted():  # that a letter has no shape in this font
        display = transition.plot()
        display.figure_.savefig(file, format=kind)
    import_extra("matplotlib.pyplot", '"looselabels[plot]"').close(display.figure_)


def _command():
    """Return the command that was given, as it can be given again; folders are left out."""
    from shlex import quote

    context = click.get_current_context()
    words = ["looselabels", str(context.info_name)]
    for parameter in context.command.params:
        name, value = parameter.name, context.params[parameter.name]
        source = context.get_parameter_source(name)
        if source is not click.core.ParameterSource.COMMANDLINE or name in NO_RESULT:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            one = Path(one).name if name in ("data", "proba", "design") and one != "-" else one
            option = [] if name == "data" else [f"--{name.replace('_', '-')}"]
            words += option if one is True else [*option, str(one)]
    return " ".join(quote(word) for word in words)


def _tell(content, out, as_json):
    """Say in a few lines what was found; with --json, print the summary."""
    wrong, n_labeled = content["wrong"], content["n_labeled"]
    for note in content["warnings"]:
        _say(f"Note: {note}")
    _say(
        f"About {wrong['expected']:.0f} of {n_labeled:,} labels are wrong "
        f"({wrong['low']:.0f} to {wrong['high']:.0f}); {wrong['doubted']:,} to look at first."
    )
    _say(f"Page: {_shortest(out / 'report.html')}")
    if as_json:
        from looselabels.command.workflow import to_json

        click.echo(to_json(content))


def _check_converged(clf, options):
    if options["strict"] and not clf.converged_:
        raise NotConverged("The inference did not converge; its results were written all the same.")


if __name__ == "__main__":
    entry()
