"""Small data sets, and a slow second route to the predictions of a tree."""

import numpy as np


def rare_labels(seed=0, n_rare=20, n_other=400, n_features=3):
    """Return blobs of the rare labels "a" and "b" among many rows with label "u"."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b", "u"], [n_rare, n_rare, n_other])
    means = np.repeat([2.0, -2.0, 0.0], [n_rare, n_rare, n_other])
    shuffled = rng.permutation(len(y))
    X = means[:, None] + rng.standard_normal((len(y), n_features))
    return X[shuffled].astype(np.float32), y[shuffled]


def overlapping_classes(n_rows, seed=0):
    """Return two classes along a line: p(1 | x) rises from .2 to .8."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 1)).astype(np.float32)
    return X, (rng.random(n_rows) < 0.5 + 0.3 * X[:, 0]).astype(int)


def unrelated_labels(n_rows, seed=0):
    """Return two labels, equally frequent, that X says nothing about."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 5)).astype(np.float32)
    return X, rng.permutation(np.arange(n_rows) % 2)


def places(shares, per_place):
    """Return rows at a few places, and labels that have exactly these shares there."""
    counts = np.rint(np.asarray(shares) * per_place).astype(int)
    n_places, n_labels = counts.shape
    place = np.repeat(np.arange(n_places), per_place)
    y = np.concatenate([np.repeat(np.arange(n_labels), c) for c in counts])
    return place[:, None].astype(float), y


def predict_row_by_row(tree, X, leaf_size):
    """Return the value of the last node with `leaf_size` rows on the way from root to leaf."""
    nodes, found = tree.tree_, []
    for row in X:
        node = chosen = 0
        while nodes.children_left[node] >= 0:
            is_left = row[nodes.feature[node]] <= nodes.threshold[node]
            node = nodes.children_left[node] if is_left else nodes.children_right[node]
            if nodes.n_node_samples[node] >= leaf_size:
                chosen = node
        found.append(nodes.value[chosen].ravel())
    return np.array(found)


def crowd(n_rows=300, n_answers=2, n_annotators=8, n_features=4, seed=0):
    """Return features, three classes, and a table with a few answers per row by a mixed crowd.

    The first annotator is always right, the second one answers by chance, the others are right in
    60 to 80 % of their answers.
    """
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=n_rows)
    X = rng.standard_normal((n_rows, n_features)) + 1.5 * np.eye(3, n_features)[classes]
    accuracy = np.r_[1.0, 1 / 3, rng.uniform(0.6, 0.8, n_annotators - 2)]
    table = np.full((n_rows, n_annotators), None, dtype=object)
    for row, k in enumerate(classes):
        for a in rng.choice(n_annotators, n_answers, replace=False):
            wrong = (k + rng.integers(1, 3)) % 3
            table[row, a] = "cdh"[k if rng.random() < accuracy[a] else wrong]
    return X, np.array(list("cdh"))[classes], table
