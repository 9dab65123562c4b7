"""The command `looselabels`: words in, words out. Nothing heavy is imported before it is needed."""

import os
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path

import click

from looselabels import __version__

OK, BUG, USAGE, DATA, NOT_CONVERGED, IO, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
MODELS = click.Choice(["forest", "linear", "kernel", "boosting"])


class NotConverged(Exception):
    """The inference stopped short of its certificate, and --strict was given."""


def run(arguments=None) -> int:
    """Run the command and return its exit code; whatever goes wrong becomes one line on stderr."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        main(arguments, prog_name="looselabels", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        return _say("Interrupted; nothing was left half-written.", INTERRUPTED)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        return _say(*_explained(error))
    return OK


def entry():
    """Run the command as a program."""
    sys.exit(run())


def _explained(error):
    """Return one line on an error, and its exit code."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, NotConverged):
        return text, NOT_CONVERGED
    if isinstance(error, ImportError):
        return text, USAGE
    if isinstance(error, MemoryError):
        return f"Not enough memory: {text}", IO
    if isinstance(error, OSError):
        name = f"{error.filename}: {error.strerror}" if error.strerror else text
        return name, IO
    if isinstance(error, ValueError):
        return text, DATA
    return f"This is a bug, please report it: {type(error).__name__}: {text} (--debug)", BUG


def _say(words, code=OK):
    """Write a line to stderr; control characters of names do not reach the terminal."""
    safe = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in words)
    click.echo(safe, err=True)
    return code


@contextmanager
def _steps(label, quiet=False):
    """Yield a function that moves a progress bar to a percentage; shown on a terminal only."""
    hidden = quiet or not sys.stderr.isatty()
    with click.progressbar(
        length=100, label=label, file=sys.stderr, hidden=hidden, show_eta=True
    ) as bar:

        def reach(percent, doing=None):
            if doing:
                bar.label = doing
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


debug = click.option("--debug", is_flag=True, help="Show the traceback of an error.")
quiet = click.option("--quiet", is_flag=True, help="No progress bar.")
force = click.option("--force", is_flag=True, help="Replace what is there.")
seed = click.option("--seed", default=0, show_default=True, help="Seed of all that is random.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
delimiter = click.option("--delimiter", help="Of a CSV file; by default a comma, a tab for .tsv.")
the_labels = _options(
    click.option("--label", required=True, metavar="COLUMN", help="The column of labels."),
    click.option(
        "--unlabeled",
        multiple=True,
        metavar="TEXT",
        help="A cell that means 'no label', besides an empty one. May be repeated.",
    ),
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
        type=click.Path(dir_okay=False, path_type=Path),
        help="How labels arise: a JSON file, see `looselabels design --help`.",
    ),
    click.option("--features", metavar="A,B,…", help="The columns to learn from; default: all."),
    click.option("--model", type=MODELS, default="forest", show_default=True),
    click.option("--jobs", type=int, default=-1, show_default=True, help="Cores to use; -1: all."),
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
    from looselabels import workflow
    from looselabels.auditing import audit as audit_rows

    out = _out(data, out, "audit")
    workflow.check_folder(out, force)
    with _steps("reading", quiet) as reach, workflow.noted() as notes:
        frame, y, labels = _read(data, options)
        reach(10, "features")
        features, X, clf = None, None, None
        if proba is None:
            features, X = _features(frame, options)
            notes.extend(features.notes)
            reach(25, "fitting")
            clf = _fit(X, y, labels, options)
        else:
            clf = workflow.fit_from_proba(_load_proba(proba), y, labels, seed=options["seed"])
        reach(85, "auditing")
        found = audit_rows(clf, y, random_state=options["seed"])
        name = "stdin" if data == "-" else Path(data).name
    command = _command("audit", data, options)
    content = workflow.page_content(found, labels, name, command, notes, features, options["seed"])
    with _steps("writing", quiet) as reach, workflow.new_folder(out) as folder:
        workflow.write_audit(
            folder,
            content,
            found,
            frame,
            _suffix(data),
            images=workflow.thumbnails(X, features, found),
            excel_safe=excel_safe,
        )
        reach(50, "saving the model")
        workflow.write_model(folder / "model", clf, features)
        reach(100)
    _tell(content, out, as_json)
    _check_converged(clf, options)


@main.command()
@click.argument("data")
@the_labels
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder; default: DATA-model.")
@_options(delimiter, seed, force, quiet, debug)
def fit(data, out, force, quiet, debug, **options):
    """Learn the classes of the table DATA and save a model.

    \b
    Examples:
      looselabels fit animals.csv --label species -o animals-model
      looselabels fit pets.csv --label kind --negative other --model linear
    """
    from looselabels import workflow

    out = _out(data, out, "model")
    if out.exists() and force and (out / "classifier").is_dir():
        workflow.check_folder(out.parent / f".{out.name}", force)
    else:
        workflow.check_folder(out, force)
    with _steps("reading", quiet) as reach, workflow.noted() as notes:
        frame, y, labels = _read(data, options)
        reach(10, "features")
        features, X = _features(frame, options)
        notes.extend(features.notes)
        reach(25, "fitting")
        clf = _fit(X, y, labels, options)
        reach(95, "saving")
        with workflow.new_folder(out) as folder:
            workflow.write_model(folder / "model", clf, features)
            for part in (folder / "model").iterdir():
                part.rename(folder / part.name)
            (folder / "model").rmdir()
        reach(100)
    for note in notes:
        _say(f"Note: {note}")
    _say(f"Model: {out}")
    _check_converged(clf, options)


@main.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", default="-")
@click.option("-o", "--out", default="-", help="File (.csv, .tsv, .parquet); default: stdout.")
@click.option("--label", metavar="COLUMN", help="Labels of these rows, to take into account.")
@click.option("--all-classes", is_flag=True, help="A column p(class) for every class.")
@click.option("--excel-safe", is_flag=True, help="Put ' before text that Excel would run.")
@_options(delimiter, force, quiet, debug)
def predict(model, data, out, label, all_classes, excel_safe, delimiter, force, quiet, debug):
    """Predict the classes of the rows of DATA, block by block.

    \b
    Examples:
      looselabels predict animals-audit/model new.csv -o classes.csv
      cat new.csv | looselabels predict animals-audit/model - | head
    """
    from looselabels import tables, workflow

    workflow.read_model(model)
    tables.check_place(out, force)
    with tables.table_writer(out, force=force, excel_safe=excel_safe) as write:
        blocks = workflow.predict_blocks(
            model, data, write, label=label, delimiter=delimiter, all_classes=all_classes
        )
        done = 0
        for done in blocks:
            if not quiet and sys.stderr.isatty():
                click.echo(f"\r{done:,} rows", nl=False, err=True)
    _say(f"{done:,} rows predicted.")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write the transition as JSON.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw it: .png, .svg or .pdf.")
@_options(force, debug)
def design(file, out, plot, force, debug):
    """Show how labels arise: p(label | class), from a small JSON file.

    \b
    Examples:
      looselabels design coarse.json --plot coarse.png
    where coarse.json says what each label means:
      {"meanings": {"dog": "dog", "canine": ["dog", "wolf"], "not cat": ["dog", "wolf"]},
       "counts": {"dog": 200, "canine": 50, "not cat": 10}, "noise": 0.05}
    or holds a transition that an audit wrote (transition.json).
    """
    from looselabels.tables import check_place, new_file

    transition = _read_design(file)
    for path in (out, plot):
        if path is not None:
            check_place(path, force)
    click.echo(str(transition))
    if out is not None:
        with new_file(out, force) as fresh:
            Path(fresh).write_text(transition.to_json(), encoding="utf-8")
    if plot is not None:
        import matplotlib

        matplotlib.use("Agg")
        display = transition.plot()
        with new_file(plot, force) as fresh:
            display.figure_.savefig(fresh, format=plot.suffix.lstrip(".") or "png")


@main.command()
@click.option("--seeds", default=5, show_default=True, help="How often labels are planted.")
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("looselabels-demo"))
@_options(quiet, debug)
def demo(seeds, out, quiet, debug):
    """Audit scikit-learn's digits: 10 % labeled, 20 % of these wrong, 7 to 9 merged into "other".

    \b
    Examples:
      looselabels demo
      looselabels demo --seeds 1 -o /tmp/demo
    """
    from looselabels import workflow
    from looselabels.demo import audit_digits

    out = out.absolute()
    workflow.check_folder(out, force=True)
    found, right = audit_digits(out, seeds, _steps("auditing", quiet))
    click.echo(f"Planted errors found, of {seeds} × about 36: {found:.0%} come first.")
    click.echo(f"Of these, suggested class right: {right:.0%}.")
    click.echo(f"Page: {_shortest(out / 'report.html')}")


# ----------------------------------------------------------------------------------------- helpers


def _shortest(path):
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _out(data, out, kind):
    if out is not None:
        return out
    stem = "stdin" if data == "-" else Path(data).name.split(".")[0]
    return Path(f"{stem}-{kind}")


def _suffix(data):
    return ".parquet" if str(data).endswith((".parquet", ".pq")) else ".csv"


def _read(data, options):
    """Return the table, its labels, and what is known of them."""
    from looselabels.tables import read_table
    from looselabels.workflow import Labels, read_labels

    design = options["design"]
    labels = Labels(
        options["label"],
        options["unlabeled"],
        options["negative"],
        options["noise"] if design is None or options["noise"] != "estimate" else 0.0,
        None if design is None else _read_design(design),
    )
    if design is not None and labels.negative is not None:
        raise click.UsageError("--negative is for tables without a --design; name it there.")
    frame = read_table(data, label=labels.column, delimiter=options["delimiter"])
    return frame, read_labels(frame, labels), labels


def _features(frame, options):
    from looselabels.features import Features

    chosen = options["features"]
    columns = None if chosen is None else [name.strip() for name in chosen.split(",")]
    impute = options["model"] in ("linear", "kernel")
    return Features.fit_transform(frame, label=options["label"], columns=columns, impute=impute)


def _fit(X, y, labels, options):
    from looselabels import workflow

    return workflow.fit(
        X, y, labels, model=options["model"], seed=options["seed"], n_jobs=options["jobs"]
    )


def _load_proba(path):
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is no array of numbers (.npy): {error}") from None


def _read_design(path):
    """Return the transition of a JSON file: one that was written, or what each label means."""
    import json

    from looselabels.transition import Transition, _once, _refuse

    text = path.read_text(encoding="utf-8")
    try:
        content = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise click.UsageError(f"{path} must hold an object; see looselabels design --help.")
    if "meanings" not in content:
        if "proba" not in content:
            raise click.UsageError(f"{path} has neither 'meanings' nor 'proba'.")
        return Transition.from_json(text)
    strange = sorted(set(content) - {"meanings", "counts", "noise"})
    if strange:
        raise click.UsageError(
            f"{path} has the key {strange[0]!r}; it can have 'meanings', 'counts' and 'noise'."
        )
    meanings = content["meanings"]
    if not isinstance(meanings, dict):
        raise click.UsageError(f"{path}: meanings must map each label to its classes.")
    transition = Transition.from_meanings(meanings, content.get("counts"))
    return transition.with_noise(content.get("noise", 0.0))


def _command(verb, data, options):
    """Return the command that was given, as it can be given again."""
    from shlex import quote

    words = ["looselabels", verb, "-" if data == "-" else Path(data).name]
    for name, value in options.items():
        if (
            name == "jobs"
            or value in (None, False, (), "estimate")
            or (name, value)
            in (
                ("model", "forest"),
                ("seed", 0),
            )
        ):
            continue
        for one in value if isinstance(value, tuple) else (value,):
            words += [f"--{name}"] if one is True else [f"--{name}", str(one)]
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
    _say(f"Page: {out / 'report.html'}")
    if as_json:
        from looselabels.workflow import to_json

        click.echo(to_json(content))


def _check_converged(clf, options):
    if options["strict"] and not clf.converged_:
        raise NotConverged("The inference did not converge; its results were written all the same.")


if __name__ == "__main__":
    entry()
