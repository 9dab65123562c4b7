"""The command `looselabels`: reads options, calls the other modules, and prints results.

Heavy modules are imported when a command needs them, so that --help is fast.
"""

import atexit
import io
import re
import signal
import sys
import traceback
from collections import Counter
from errno import ENOENT
from functools import partial
from pathlib import Path

import click

from looselabels import __version__
from looselabels._files import CURRENT_IS_GONE
from looselabels._progress import steps
from looselabels.command.options import (
    about_answers,
    about_labels,
    about_model,
    about_review,
    add_options,
    as_json,
    debug,
    delimiter,
    excel_safe,
    force,
    id_column,
    one_label,
    quiet,
    repeatable_command,
    seed,
    sheet,
    source_of_model,
    spelling,
    unlabeled,
)
from looselabels.command.terminal import (
    drop_broken_stdout,
    leave,
    open_closed_streams,
    print_line,
    progress,
    shortest,
)

OK, BUG, USAGE, DATA, NOT_CONVERGED, IO, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 5, 130, 143
SUFFIX = (  # of a file with a table
    r"(?i)\.(csv|tsv|tab|txt|parquet|pq|feather|arrow|ipc|xlsx|xlsm|jsonl|ndjson)"
    r"(\.(gz|bz2|xz|zst))?$"
)


class NotConverged(Exception):
    """The inference did not converge, and --strict was passed."""


class Terminated(BaseException):
    """The process received SIGTERM; as an exception it lets context managers clean up."""


def run(arguments=None) -> int:
    """Run the command and return its exit code; an error is one line on stderr."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        main(arguments, prog_name="looselabels", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return _print_usage_error(error)
    except (KeyboardInterrupt, click.Abort):
        print_line("Interrupted; no incomplete file was left.")
        return INTERRUPTED
    except Terminated:
        print_line("Terminated; no incomplete file was left.")
        return TERMINATED
    except (BrokenPipeError, SystemExit):  # `| head` closed the pipe; click exits by SystemExit
        drop_broken_stdout()
        return OK
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        text, code = _line_and_code(error)
        print_line(text)
        return code
    return OK


def entry():
    """Run the command as a program."""
    code = BUG

    def terminate(_signal, _frame):
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    atexit.register(lambda: leave(code))  # registered first, so that it is called last
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # show a code for a character that it lacks
            stream.reconfigure(errors="backslashreplace")
    code = run()
    sys.exit(code)


def _line_and_code(error):
    """Return the line to print for an error, and the exit code."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, NotConverged):
        return text, NOT_CONVERGED
    if isinstance(error, ImportError):
        return text, USAGE
    if isinstance(error, MemoryError):
        return f"Not enough memory: {text}. Use fewer rows or columns.", IO
    if isinstance(error, OSError):
        return _without_number(error, text), IO
    if isinstance(error, ValueError):
        return text, DATA
    text = f"{type(error).__name__}: {text}"
    return f"Internal error, please report it: {text} (--debug shows the traceback)", BUG


def _without_number(error, text):
    """Return the message of an operating system error without "[Errno 28]"."""
    if not error.strerror:
        return text
    if error.errno == ENOENT and error.filename is None:
        return CURRENT_IS_GONE[0].upper() + CURRENT_IS_GONE[1:]  # only os.getcwd names no file
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _print_usage_error(error):
    """Print what is wrong with the command line, and how the command is used."""
    text = io.StringIO()
    error.show(text)
    print_line(text.getvalue().rstrip())
    return USAGE


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main():
    """Find wrong labels, and learn classes from noisy, partial or coarse labels.

    \b
    Examples:
      looselabels demo                                 find planted label errors in digits
      looselabels audit animals.csv --label species    find wrong labels; write a page and a model
      looselabels audit pets.csv --label kind --negative other --noise 0.05
      looselabels apply animals.csv decisions.csv --label species
      looselabels predict animals-audit/model new.csv -o classes.csv
      looselabels design coarse.json                   show p(label | class) of a design file
    """


# ---------------------------------------------------------------------------------------- commands


@main.command()
@click.argument("data")
@add_options(about_answers, about_model, about_review)
@click.option(
    "--proba",
    type=click.Path(dir_okay=False),
    help="Out-of-sample p(label | x) of your own model, which replaces --model: a table with a "
    "column per label, or .npy with the labels in sorted order, (unlabeled) last; with --design, "
    "in its order.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the results.  [default: DATA-audit]",
)
@add_options(excel_safe, delimiter, sheet, seed, force, as_json, quiet, debug)
def audit(data, out, proba, excel_safe, force, as_json, quiet, debug, **options):
    """Find wrong labels in the table DATA and suggest corrections.

    \b
    Examples:
      looselabels audit animals.csv --label species
      looselabels audit animals.parquet --label species --unlabeled "?" -o out/
      looselabels audit pets.csv --label kind --negative other
      looselabels audit scans.csv --label finding --groups patient
      looselabels audit animals.csv --label species --proba mine.csv
      looselabels audit both.csv --label species --source shop --design shops.json
      looselabels audit animals.csv --label species --id name --decisions decisions.csv
      looselabels audit photos/ --features embeddings.npy
      looselabels audit texts.csv --label ann --label bob --label eve
      looselabels audit texts.csv --annotations answers.csv --id text_id
      looselabels audit texts.csv --label rule1 --label rule2 --missing-is-label

    DATA is a CSV, Parquet, Feather, Excel (.xlsx) or JSON lines (.jsonl) file, - for CSV from
    stdin, or a folder of images with one subfolder per class. The folder of results contains
    labels.csv (the table with suggestions; .parquet or .feather if DATA is such a file),
    report.html, summary.json, transition.json and model/. With several answers per row, labels.csv
    has the class that they suggest, and annotators.csv how accurate each annotator is.

    Open report.html next. `looselabels apply` corrects the table with your decisions.
    """
    from looselabels._files import new_folder
    from looselabels.auditing.audit import audit as audit_rows
    from looselabels.command import results, workflow
    from looselabels.command.answers import has_answers
    from looselabels.command.models import write_model
    from looselabels.command.notes import collect_warnings
    from looselabels.command.places import check_folder
    from looselabels.command.review import (
        check_can_accept,
        check_earlier,
        keep_earlier,
        read_review,
        write_accepted,
    )
    from looselabels.command.writing import format_note

    several = has_answers(options, proba)
    check = partial(check_folder, force=force, written=results.AUDIT_FILES)
    out = check(_out(data, out, "audit"))
    _check_not_read(out, data, options["annotations"], proba)
    if several:
        clf, content = _audit_answers(data, out, options, check, excel_safe, quiet)
        _finish_audit(clf, content, out, options, as_json)
        return
    check_earlier(out, options["accept_above"])
    with progress(quiet), steps(2, 84, 2, 3, 9) as begin, collect_warnings() as notes:
        begin("reading")
        frame, labels = workflow.read(data, options)
        results.check_shown(frame, options["show"])
        review = read_review(frame, labels, options["id"], options["decisions"])
        labels = workflow.with_counts(labels, review.labels, options)
        begin("fitting")
        clf, X, features = workflow.fit(
            frame, review.labels, labels, options, notes, proba, review.known_classes
        )
        begin("auditing")
        found = audit_rows(clf, review.labels, random_state=options["seed"])
        notes += format_note(data)
        content = results.page_content(
            found, labels, _file_name(data), repeatable_command(), notes, features, options["seed"]
        )
        hidden = (labels.column, options["id"])
        columns = options["show"] or results.columns_to_show(frame, hidden, features)
        content |= results.review_content(found, frame, review, columns, _suffix(data))
        begin("writing")
        with new_folder(out, check) as folder:
            rows, image = content["rows"], options["image"]
            images = results.thumbnails(X, features, rows, frame, image)
            results.write_audit(folder, content, found, frame, images=images, excel_safe=excel_safe)
            begin("saving")
            write_model(folder / "model", clf, features)
            keep_earlier(out, folder)
            accepted = write_accepted(folder, found, review, options["accept_above"])
    _finish_audit(clf, content, out, options, as_json, accepted)
    check_can_accept(found, options["accept_above"])


@main.command()
@click.argument("data")
@add_options(about_labels, about_model)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the model.  [default: DATA-model]",
)
@add_options(delimiter, sheet, seed, force, as_json, quiet, debug)
def fit(data, out, force, as_json, quiet, debug, **options):
    """Learn the classes of the table DATA and save a model.

    \b
    Examples:
      looselabels fit animals.csv --label species -o animals-model
      looselabels fit pets.csv --label kind --negative other --model linear

    This is an audit without a report and without suggestions: it only writes the model, for
    `looselabels predict`.
    """
    from looselabels._files import new_folder
    from looselabels.command import workflow
    from looselabels.command.labels import read_labels
    from looselabels.command.models import MODEL_FILES, write_model
    from looselabels.command.notes import collect_warnings, ignored_columns, useless_model
    from looselabels.command.places import check_folder
    from looselabels.command.results import to_json
    from looselabels.command.spelling import describe_variants, spelling_variants

    check = partial(check_folder, force=force, written=MODEL_FILES)
    out = check(_out(data, out, "model"))
    with progress(quiet), steps(2, 88, 10) as begin, collect_warnings() as notes:
        begin("reading")
        frame, labels = workflow.read(data, options)
        y = read_labels(frame, labels)
        labels = workflow.with_counts(labels, y, options)
        begin("fitting")
        clf, _, features = workflow.fit(frame, y, labels, options, notes)
        begin("saving")
        with new_folder(out, check) as folder:
            write_model(folder, clf, features)
    variants = [] if labels.design else spelling_variants(Counter(y))
    notes += ignored_columns(features) + describe_variants(variants) + useless_model(clf)
    for note in notes:
        print_line(f"Note: {note}")
    print_line(f"Model: {shortest(out)}")
    if as_json:
        converged = bool(clf.converged_)
        found = {"model": out.name, "classes": clf.classes_.tolist(), "converged": converged}
        click.echo(to_json(found | {"warnings": notes}))
    _check_converged(clf, options)


@main.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", default="-")
@click.option(
    "-o",
    "--out",
    default="-",
    help="File (.csv, .tsv, .parquet, .feather).  [default: CSV to stdout]",
)
@click.option(
    "--label",
    multiple=True,
    metavar="COLUMN",
    help="Column of labels to take into account, if DATA has one. Can be repeated for a model that "
    "was fitted to several answers per row: the columns of some annotators.",
)
@add_options(unlabeled, spelling, source_of_model)
@click.option(
    "--features",
    type=click.Path(dir_okay=False, exists=True),
    metavar="FILE",
    help="File with the features of the rows of DATA, for a model that was fitted to such a file.",
)
@click.option("--all-classes", is_flag=True, help="Add a column per class with its probability.")
@add_options(excel_safe, delimiter, sheet, force, quiet, debug)
def predict(
    model, data, out, features, excel_safe, delimiter, sheet, force, quiet, debug, **options
):
    """Predict the classes of the rows of DATA.

    \b
    Examples:
      looselabels predict animals-audit/model new.csv -o classes.csv
      looselabels predict texts-audit/model more.csv --label ann --label eve
      cat new.csv | looselabels predict animals-audit/model - | head

    MODEL is a folder written by audit or fit. DATA is a CSV, Parquet, Feather, Excel (.xlsx) or
    JSON lines (.jsonl) file, - for CSV from stdin, or a folder of images, if the model was fitted
    to one. It is read in blocks, so that it need not fit into memory (except Excel).
    """
    from looselabels.command import tables
    from looselabels.command.feature_file import FeatureFile
    from looselabels.command.image_folder import PATH, image_folder_blocks
    from looselabels.command.models import read_model, with_classes
    from looselabels.command.notes import collect_warnings
    from looselabels.command.places import check_file
    from looselabels.command.spelling import read_merges
    from looselabels.command.writing import check_writable, table_writer

    _check_not_read(out, data, features)
    check_file(out, force)
    check_writable(out)
    loaded, done = read_model(model), 0
    options["merge"] = read_merges(options["merge"])
    shows_count = not quiet and sys.stderr.isatty()
    writer = table_writer(out, force=force, excel_safe=excel_safe)
    file = None if features is None else FeatureFile(features)
    is_folder = Path(data).is_dir()
    if is_folder:
        blocks = image_folder_blocks(data)
    else:
        first = next(iter(options["label"]), None)
        reading = {"label": first, "delimiter": delimiter, "sheet": sheet}
        blocks = tables.read_blocks(data, **reading)
    with collect_warnings() as notes, writer as write:
        for frame in blocks:
            rows = None if file is None else file.of(frame, PATH if is_folder else None, done)
            write(with_classes(frame, *loaded, rows=rows, **options))
            done += len(frame)
            if shows_count:
                click.echo(f"\r{done:,} rows", nl=False, err=True)
        if file is not None:
            file.check_length(done)
    click.echo("\r" if shows_count else "", nl=False, err=True)
    for note in notes:
        print_line(f"Note: {note}")
    print_line(f"{done:,} rows predicted.")


@main.command()
@click.argument("data")
@click.argument("decisions", nargs=-1, required=True, type=click.Path(dir_okay=False))
@one_label("Column of labels, as in the audit of a table.")
@add_options(id_column, unlabeled, spelling)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="File (.csv, .tsv, .parquet, .feather).  [default: DATA-corrected, the format of DATA "
    "or .csv]",
)
@add_options(delimiter, sheet, force, debug)
def apply(data, decisions, out, force, debug, **options):
    """Correct the labels of the table DATA as decided in DECISIONS, one file or more.

    \b
    Examples:
      looselabels apply animals.csv decisions.csv --label species
      looselabels apply animals.csv decisions.csv --label species --id name -o better.csv
      looselabels apply photos/ decisions.csv

    DECISIONS are files that the page of an audit or --accept-above wrote. The corrected table and
    a list of what changed, such as animals-corrected-changes.csv, are new files. If a decision
    does not fit the table, nothing is written. If DATA is a folder of images, the corrected table
    has their paths, relative to the folder of this table, and their labels; no image is moved.
    """
    from looselabels.command import workflow
    from looselabels.command.decisions import correct, next_steps
    from looselabels.command.image_folder import with_paths_from
    from looselabels.command.labels import Labels
    from looselabels.command.notes import collect_warnings
    from looselabels.command.places import check_file
    from looselabels.command.spelling import read_merges
    from looselabels.command.writing import check_writable, table_writer

    out = _out(data, out, f"corrected{_suffix(data)}")
    log = out.with_name(re.sub(SUFFIX, "", out.name) + "-changes.csv")
    for path in (out, log):
        _check_not_read(path, data, *decisions)
        check_file(path, force)
    check_writable(out)
    workflow.set_columns(data, options)
    with collect_warnings() as notes:
        frame = workflow.read_rows(data, options)
        merge = read_merges(options["merge"])
        labels = Labels(options["label"], options["unlabeled"], strip=options["strip"], merge=merge)
        corrected, changes, sentence = correct(frame, labels, options["id"], decisions)
    if Path(data).is_dir():  # so that the table can be used where it is
        corrected = with_paths_from(corrected, data, out.absolute().parent)
    with (
        table_writer(out, force=force) as write_table,
        table_writer(log, force=force) as write_changes,
    ):
        write_table(corrected)
        write_changes(changes)
    for note in notes:
        print_line(f"Note: {note}")
    print_line(sentence)
    print_line(f"Table: {shortest(out)}")
    print_line(f"Changes: {shortest(log)}")
    for step in next_steps(frame, labels, changes, data, decisions):
        print_line(step)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="File for the transition, as JSON."
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="File for a plot: .png, .svg or .pdf."
)
@add_options(force, as_json, debug)
def design(file, out, plot, force, as_json, debug):
    """Show p(label | class) of a design file.

    \b
    Examples:
      looselabels design coarse.json --plot coarse.png
    where coarse.json lists the classes that each label can stand for ("" is the missing label):
      {"meanings": {"dog": "dog", "canine": ["dog", "wolf"], "": ["dog", "wolf"]},
       "counts": {"dog": 200, "canine": 50, "": 10}, "noise": 0.05}
    or contains a transition, such as the transition.json of an audit. An audit takes counts that
    are not in the file from the table; here they are equal.

    \b
    For several data sets in one table, with a column that names the data set of each row
    (--source), the file has a design for each of them:
      {"sources": {"shop": {"meanings": {"dog": "dog", "canine": ["dog", "wolf"]}, "noise": 0.05},
                   "checked": {"meanings": {"dog": "dog", "wolf": "wolf"}}}}
    The rows of each class in each data set follow from the label counts. If you know them, add
      "sizes": {"shop": {"dog": 300, "wolf": 10}, "checked": {"dog": 20, "wolf": 20}}
    """
    from looselabels._files import new_file
    from looselabels.command.design import read_design_file
    from looselabels.command.places import check_file

    transition = read_design_file(file)
    check = partial(check_file, force=force)
    for path in (out, plot):
        if path is not None:
            _check_not_read(path, file)
            check(path)
    if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
        raise click.UsageError(f"--plot {plot}: the file must end in .png, .svg or .pdf.")
    click.echo(transition.to_json() if as_json else str(transition))
    if out is not None:
        with new_file(out, check) as temporary:
            temporary.write_text(transition.to_json(), encoding="utf-8")
    if plot is not None:
        with new_file(plot, check) as temporary:
            _draw(transition, temporary, plot.suffix[1:])


@main.command()
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Number of repetitions with other random labels.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("looselabels-demo"),
    show_default=True,
    help="Folder for the results.",
)
@add_options(as_json, quiet, debug)
def demo(seeds, out, as_json, quiet, debug):
    """Find planted label errors in the digits of scikit-learn.

    10% of the images have a label, 20% of these labels are wrong, and the digits 7 to 9 are merged
    into one class "other".

    \b
    Examples:
      looselabels demo
      looselabels demo --seeds 1 -o /tmp/demo
    """
    from looselabels.command.demo import audit_digits
    from looselabels.command.places import check_folder
    from looselabels.command.results import AUDIT_FILES, to_json

    out = check_folder(out, force=True, written=AUDIT_FILES)
    with progress(quiet):
        shares = audit_digits(out, seeds)
    page = shortest(out / "report.html")
    if as_json:
        click.echo(to_json({**shares._asdict(), "page": str(page)}))
        return
    click.echo(f"{shares.found:.0%} of the planted errors are among the top suggestions.")
    click.echo(f"{shares.right:.0%} of these suggestions name the correct class.")
    click.echo(f"Page: {page}")


# ----------------------------------------------------------------------------------------- helpers


def _out(data, out, kind):
    """Return where results are written; by default the name follows that of the table."""
    if str(out) == "-":
        raise click.UsageError("--out is -, but more than one file is written: pass another name.")
    if out is not None:
        return out
    return Path(f"{re.sub(SUFFIX, '', _file_name(data))}-{kind}")


def _check_not_read(place, *inputs):
    """Raise if results would replace an input: a file at `place`, or one in the folder `place`."""
    from looselabels._files import resolved

    if place == "-" or not (place := resolved(place)).exists():
        return
    for given in inputs:
        if given not in (None, "-") and resolved(given).is_relative_to(place):
            raise click.UsageError(f"{given} is an input and is not replaced. Pass another --out.")


def _file_name(data):
    return "stdin" if data == "-" else Path(data).absolute().name


def _suffix(data):
    from looselabels.command.writing import suffix_for

    return suffix_for(data)


def _draw(transition, file, kind):
    from looselabels._validation import import_extra
    from looselabels.command.notes import collect_warnings

    import_extra("matplotlib", '"looselabels[plot]"').use("Agg")  # no window
    with collect_warnings():  # not shown: the font may lack a character
        display = transition.plot()
        display.figure_.savefig(file, format=kind)
    import_extra("matplotlib.pyplot", '"looselabels[plot]"').close(display.figure_)


def _audit_answers(data, out, options, check, excel_safe, quiet):
    """Audit several answers per row; return the classifier and the content of the page."""
    from looselabels._files import new_folder
    from looselabels.auditing.consensus import audit_answers
    from looselabels.command import consensus, results, workflow
    from looselabels.command.models import write_model
    from looselabels.command.notes import collect_warnings
    from looselabels.command.review import keep_earlier
    from looselabels.command.writing import format_note

    with progress(quiet), steps(2, 84, 2, 3, 9) as begin, collect_warnings() as notes:
        begin("reading")
        frame, rest, annotations, identity = workflow.read_answers(data, options)
        results.check_shown(frame, options["show"])
        begin("fitting")
        clf, X, features = workflow.fit_answers(rest, annotations, options, notes)
        begin("auditing")
        found = audit_answers(clf, annotations, random_state=options["seed"])
        notes += format_note(data)
        about = (_file_name(data), repeatable_command(), notes, features, options["seed"])
        content = consensus.page_content(found, *about)
        columns = options["show"] or results.columns_to_show(rest, (options["id"],), features)
        content |= consensus.list_content(found, frame, identity, columns, _suffix(data))
        begin("writing")
        with new_folder(out, check) as folder:
            images = results.thumbnails(X, features, content["rows"], frame, options["image"])
            written = {"images": images, "excel_safe": excel_safe}
            consensus.write_consensus(folder, content, found, frame, **written)
            begin("saving")
            if features is not None:  # without features, there is nothing to predict from
                write_model(folder / "model", clf, features)
            keep_earlier(out, folder)
    return clf, content


def _finish_audit(clf, content, out, options, as_json, accepted=None):
    """Print the results of an audit; raise if it should have converged and did not."""
    from looselabels.command import results

    _print_findings(content, out)
    if accepted is not None:
        print_line(accepted)
    if as_json:
        click.echo(results.to_json(results.without_rows(content)))
    _check_converged(clf, options)


def _print_findings(content, out):
    """Print what an audit found, in a few lines."""
    from looselabels.command.notes import describe_result
    from looselabels.command.spelling import describe_variants

    for note in content["warnings"] + describe_variants(content["variants"]):
        print_line(f"Note: {note}")
    for sentence in describe_result(content):
        print_line(sentence)
    print_line(f"Page: {shortest(out / 'report.html')}")


def _check_converged(clf, options):
    if options["strict"] and not clf.converged_:
        raise NotConverged("The inference did not converge. The results were written anyway.")


if __name__ == "__main__":
    entry()
