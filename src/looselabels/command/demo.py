"""What `looselabels demo` does: scikit-learn's digits, with labels spoiled on purpose."""

import numpy as np
from sklearn.datasets import load_digits

from looselabels._validation import import_extra
from looselabels.auditing.audit import audit
from looselabels.command import workflow
from looselabels.command.features import Features
from looselabels.datasets import make_loose_labels
from looselabels.transition import Transition

LABELED, WRONG = 0.1, 0.2
CLASSES = (*"0123456", "other")


def spoiled_digits(seed):
    """Return pixels, classes (7 to 9 are "other") and labels: 10 % labeled, 20 % of these wrong."""
    X, y = load_digits(return_X_y=True)
    classes = np.array([CLASSES[min(digit, 7)] for digit in y], dtype=object)
    design = Transition.partial(CLASSES, labeled=LABELED).with_noise(WRONG)
    return X, classes, make_loose_labels(classes, design, random_state=seed)


def audit_digits(out, seeds, reach) -> tuple[float, float]:
    """Audit the digits of several seeds; the first goes to the folder `out`.

    Returns which share of the planted errors comes first among as many suggestions, and for which
    share of those the suggested class is right. `reach` is told the percentage that is done.
    """
    shares, labels = [], workflow.Labels("label")
    for seed in range(seeds):
        X, classes, y = spoiled_digits(seed)
        with workflow.noted() as notes:
            clf = workflow.fit(X, y, labels, seed=seed)
            found = audit(clf, y)
            shares.append(_found_and_right(found, classes, y))
            if seed == 0:
                _write(out, X, y, labels, found, notes)
        reach(100 * (seed + 1) / seeds)
    found_share, right_share = np.mean(shares, axis=0).tolist()
    return found_share, right_share


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
    content = workflow.page_content(found, labels, "digits", "looselabels demo", notes, features)
    with workflow.new_folder(out, force=True) as folder:
        images = workflow.thumbnails(X, features, found)
        workflow.write_audit(folder, content, found, frame, ".csv", images=images, excel_safe=False)
