"""The demo: find label errors that were planted in the digits of scikit-learn."""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from looselabels._files import new_folder
from looselabels._progress import each
from looselabels._validation import import_extra
from looselabels.auditing.audit import audit
from looselabels.command.features import Features
from looselabels.command.fitting import fit
from looselabels.command.identity import identify
from looselabels.command.labels import Labels
from looselabels.command.notes import collect_warnings
from looselabels.command.places import check_folder
from looselabels.command.results import (
    AUDIT_FILES,
    page_content,
    review_content,
    thumbnails,
    write_audit,
)
from looselabels.command.review import Review
from looselabels.datasets import make_loose_labels
from looselabels.transition import Transition

LABELED, WRONG = 0.1, 0.2
CLASSES = (*"0123456", "other")


def spoiled_digits(seed):
    """Return pixels, classes (7 to 9 are "other") and labels: 10% labeled, 20% of these wrong."""
    X, y = load_digits(return_X_y=True)
    classes = np.array([CLASSES[min(digit, 7)] for digit in y], dtype=object)
    design = Transition.partial(CLASSES, labeled=LABELED).with_noise(WRONG)
    return X, classes, make_loose_labels(classes, design, random_state=seed)


class Shares(NamedTuple):
    """How well planted errors were found, on average over the seeds."""

    found: float  #: of the planted errors, the share among as many top suggestions
    right: float  #: of those, the share whose suggested class is correct


def audit_digits(out, seeds) -> Shares:
    """Audit digits with labels of several seeds; the first audit is written to the folder `out`."""
    shares, labels = [], Labels("label")
    for seed in each(range(seeds), seeds):
        X, classes, y = spoiled_digits(seed)
        with collect_warnings() as notes:
            clf = fit(X, y, labels, seed=seed, refit=False)  # a refit takes minutes for all seeds
            found = audit(clf, y)
            shares.append(_found_and_right(found, classes, y))
            if seed == 0:
                _write(out, X, y, labels, found, notes)
    return Shares(*np.mean(shares, axis=0).tolist())


def _found_and_right(found, classes, y):
    planted = np.array([label is not None for label in y]) & (y != classes)
    first = found.order[: planted.sum()]
    hits = first[planted[first]]
    suggested = np.array(CLASSES, dtype=object)[found.suggestion[hits]]
    return len(hits) / planted.sum(), np.mean(suggested == classes[hits])


def _write(out, X, y, labels, found, notes):
    pandas = import_extra("pandas", '"looselabels[cli]"')
    names = [f"pixel{i}" for i in range(X.shape[1])]
    frame = pandas.DataFrame(X.astype(int), columns=names).assign(label=y)
    features = Features.fit(frame, label="label")
    content = page_content(found, labels, "digits", "looselabels demo", notes, features)
    review = Review(identify(frame, label="label"), y, None, {})
    content |= review_content(found, frame, review)
    check = partial(check_folder, force=True, written=AUDIT_FILES)
    with new_folder(out, check) as folder:
        images = thumbnails(X, features, content["rows"])
        write_audit(folder, content, found, frame, images=images, excel_safe=False)
