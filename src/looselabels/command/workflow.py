"""What `audit` and `fit` have in common: options and a table → labels, features, a classifier."""

from pathlib import Path

import click

from looselabels.command import fitting
from looselabels.command.answers import answers_in_columns, answers_in_file
from looselabels.command.cluster import on_cluster
from looselabels.command.design import class_prior, read_design_file
from looselabels.command.feature_file import FeatureFile
from looselabels.command.features import Features, read_groups
from looselabels.command.identity import identify
from looselabels.command.image_folder import LABEL, PATH, read_image_folder
from looselabels.command.images import image_column
from looselabels.command.labels import Labels, note_copies
from looselabels.command.notes import errors_of_command
from looselabels.command.options import check_about_labels, is_feature_file
from looselabels.command.spelling import read_merges
from looselabels.command.tables import as_numbers, read_table
from looselabels.learning.copies import copy_groups


def read(data, options):
    """Return the table, and what was specified about its labels.

    The column of images, if one was recognized, is added to the options.
    """
    set_columns(data, options)
    check_about_labels(options)
    design, noise = options["design"], options["noise"]
    labels = Labels(
        options["label"],
        options["unlabeled"],
        options["negative"],
        0.0 if noise is None and options["label_rate"] is not None else noise,
        None if design is None else read_design_file(design),
        strip=options["strip"],
        merge=read_merges(options["merge"]),
        source=options["source"],
        label_rate=options["label_rate"],
    )
    if labels.design and isinstance(labels.design.labels[0], tuple) != bool(labels.source):
        raise click.UsageError(
            f"{design}: --source is for a design with 'sources', and such a design needs --source."
        )
    frame = read_rows(data, options)
    options["image"] = image_column(frame, options["image"], labels.column)
    return frame, labels


def read_rows(data, options):
    """Return a table: that of a file, or the paths and labels of a folder of images."""
    if Path(data).is_dir():
        return read_image_folder(data)
    return read_table(data, **{name: options[name] for name in ("label", "delimiter", "sheet")})


def set_columns(data, options):
    """Check --label, and set the options that name columns of a folder of images."""
    is_folder = Path(data).is_dir()
    if is_folder and options["label"] is not None:
        raise click.UsageError(
            f"{data} is a folder. For a table, name its file; for images by class, omit --label."
        )
    if not is_folder and options["label"] is None:
        raise click.UsageError("Missing option '--label', which names the column of labels.")
    for name in ("id", "image"):
        if is_folder and options.get(name) is not None:
            raise click.UsageError(f"Omit --{name}: images of a folder are named by their paths.")
    if is_folder:
        options |= {"label": LABEL, "image": PATH, "id": PATH}


def read_answers(data, options):
    """Return the table, the part of it that features are made of, its answers, and its identity.

    `options` get the column of images, and those of a folder of images.
    """
    columns, is_folder = options["label"], Path(data).is_dir()
    if columns or is_folder:
        set_columns(data, options | {"label": columns or None})
    if is_folder:
        options |= {"image": PATH, "id": PATH}
        frame = read_image_folder(data, labeled=False).drop(columns=LABEL)
    else:
        frame = read_table(data, delimiter=options["delimiter"], sheet=options["sheet"])
    if options["id"] is None and not columns:
        raise click.UsageError("--annotations needs --id, the column of DATA that names its rows.")
    if options["id"] in columns:
        raise click.UsageError(f"--id {options['id']!r} is a --label too; it cannot name rows.")
    merge = read_merges(options["merge"])
    labels = Labels("", options["unlabeled"], strip=options["strip"], merge=merge)
    annotations, silence = None, options["missing_is_label"]
    if columns:
        annotations = answers_in_columns(frame, labels, columns, silence)
    rest = frame.drop(columns=list(columns))
    identity = identify(frame, options["id"], label=list(columns))
    if annotations is None:
        annotations = answers_in_file(options["annotations"], labels, identity, silence)
    options["image"] = image_column(rest, options["image"], None)
    return frame, rest, annotations, identity


def fit_answers(frame, annotations, options, notes):
    """Return the classifier, its matrix and the features; the last two are None without columns."""
    groups, features, X = read_groups(frame, options["groups"], None), None, None
    unused = {options["id"], options["groups"]} - {options["image"]}
    if options["features"] is not None or set(frame.columns) - unused:
        features, X = _features(frame, None, options)
        notes.extend(features.notes)
    else:
        notes.append("There is no column to learn from: classes follow from the answers alone.")
    with on_cluster(options["scheduler"], options["workers"]):
        clf = fitting.fit_answers(
            X,
            annotations,
            model=options["model"],
            groups=groups,
            seed=options["seed"],
            n_jobs=options["jobs"],
            refit=options["refit"],
        )
    return clf, X, features


def with_counts(labels, y, options):
    """Return what was specified about labels, with what follows from their counts."""
    if labels.design is not None:
        labels = labels._replace(design=read_design_file(options["design"], y))
    return labels._replace(class_prior=class_prior(y, labels, options["class_share"]))


def fit(frame, y, labels, options, notes, proba=None, known_classes=None):
    """Return the classifier, the matrix it was fitted to, and the features of that matrix.

    With `proba`, a file with the probabilities of another model, there is no matrix.
    """
    seed, jobs = options["seed"], options["jobs"]
    if proba is not None:
        if options["scheduler"] is not None or options["workers"] is not None:
            raise click.UsageError("Pass either a cluster or --proba, which needs no fit.")
        copies = _find_copies(frame, labels, options)
        label_proba = fitting.read_proba(proba, y, labels)
        with errors_of_command(proba):
            clf = fitting.fit_from_proba(
                label_proba,
                y,
                labels,
                known_classes=known_classes,
                copies=copies,
                seed=seed,
            )
        return clf, None, None
    groups = read_groups(frame, options["groups"], labels.column)
    if labels.source not in (None, options["groups"]):
        frame = frame.drop(columns=labels.source)  # it is not a feature
    features, X = _features(frame, labels.column, options)
    notes.extend(features.notes)
    if features.file is None:
        notes.extend(note_copies(frame, y, features.used))
    with errors_of_command(), on_cluster(options["scheduler"], options["workers"]):
        clf = fitting.fit(
            X,
            y,
            labels,
            model=options["model"],
            groups=groups,
            known_classes=known_classes,
            seed=seed,
            n_jobs=jobs,
            max_fit_rows=options["max_fit_rows"],
            refit=options["refit"],
        )
    if clf.n_fit_rows_ < len(X):
        notes.append(
            f"The models learned from a sample of {clf.n_fit_rows_:,} of the {len(X):,} rows, and "
            "predicted the other rows."
        )
    return clf, X, features


def _find_copies(frame, labels, options):
    """Return which rows are copies of each other; None if there are none, or --groups says so."""
    groups = read_groups(frame, options["groups"], labels.column)
    if groups is not None:
        if len(set(groups)) < len(groups):
            raise click.UsageError(
                "Pass either --groups or --proba, which needs no fit. Only a column that is "
                "different in each row can be passed with --proba: it says that no row is a copy."
            )
        return None
    unused = {labels.column, labels.source, options["id"]}
    numbers = as_numbers(frame[[name for name in frame if name not in unused]])
    return None if numbers is None else copy_groups(numbers)


def _features(frame, label, options):
    """Return the features of a table and their matrix, from its columns or from a file."""
    chosen, text = options["features"], options["text"]
    impute = options["model"] in ("linear", "kernel")
    if chosen is not None and is_feature_file(chosen):
        file = FeatureFile(chosen)
        file.check_length(len(frame))
        rows = file.of(frame, options.get("id")).drop(columns=[label], errors="ignore")
        features, X = Features.fit_transform(rows, impute=impute, text=text)
        features.file = file.path.name
        return features, X
    if str(chosen).endswith(".npy") and chosen not in frame.columns:
        raise FileNotFoundError(f"{chosen} does not exist.")
    columns = None if chosen is None else [*dict.fromkeys(map(str.strip, chosen.split(",")))]
    name = options.get("id")
    if name is not None and name != options["image"] and name not in (columns or ()):
        frame = frame.drop(columns=name)  # it says nothing about the class
    return Features.fit_transform(
        frame,
        label=label,
        groups=options["groups"],
        columns=columns,
        impute=impute,
        image=options["image"],
        text=text,
    )
