"""Hypothesis strategies that several test files share."""

import os

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from looselabels._names import UNLABELED

# the first call of a compiled function takes its time; a property is about the answer
# examples are the same in every run, like all seeds; LOOSELABELS_TEST_SEEDS looks for new ones
FIXED = "LOOSELABELS_TEST_SEEDS" not in os.environ
settings.register_profile("looselabels", deadline=None, derandomize=FIXED)
settings.load_profile("looselabels")

# few distinct weights: zeros, corners, ties and tiny numbers all come up often
WEIGHTS = st.one_of(st.just(0.0), st.sampled_from([1e-9, 0.5, 1.0]), st.floats(1e-3, 1.0))


@st.composite
def simplex_rows(draw, n, m, elements=WEIGHTS):
    """Draw an (n, m) array whose rows are distributions, corners and zeros among them."""
    rows = draw(arrays(float, (n, m), elements=elements))
    empty = np.flatnonzero(rows.sum(axis=1) == 0)
    rows[empty, empty % m] = 1.0
    return rows / rows.sum(axis=1, keepdims=True)


def positive_rows(n, m):
    """Draw an (n, m) array whose rows are distributions without zeros."""
    return arrays(float, (n, m), elements=st.floats(0.01, 1.0)).map(
        lambda rows: rows / rows.sum(axis=1, keepdims=True)
    )


def names(n, *, missing=False):
    """Draw n distinct names: of classes or, with `missing`, of labels (None among them)."""
    simple = st.one_of(
        st.text(max_size=5), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
    )
    if missing:
        simple = st.one_of(st.none(), simple)
    simple = simple.filter(lambda name: name != UNLABELED)
    name = st.one_of(simple, st.tuples(simple, simple))
    return st.lists(name, min_size=n, max_size=n, unique=True)


# sample weights and pseudocounts: zeros, and numbers whose products and quotients are extreme
MASSES = st.one_of(st.just(0.0), st.sampled_from([1e-300, 1e-12, 1.0, 1e12]), st.floats(0.1, 10.0))


@st.composite
def joint_problems(draw):
    """Draw label_proba, a transition and keywords of `infer` with pseudocounts."""
    n_rows, n_classes, n_labels = (draw(st.integers(1, most)) for most in (6, 4, 4))
    elements = draw(st.sampled_from([WEIGHTS, st.sampled_from([0.0, 1.0, 2.0, 3.0])]))
    transition = draw(simplex_rows(n_classes, n_labels, elements))
    shape = transition.shape
    counts = draw(st.just(np.zeros(shape)) | arrays(float, shape, elements=MASSES))
    options = {
        "pseudocounts": np.where(transition > 0, counts, 0.0),
        "sample_weight": draw(st.none() | arrays(float, n_rows, elements=MASSES).filter(np.any)),
        "class_prior": draw(st.none() | positive_rows(1, n_classes).map(lambda rows: rows[0])),
        "max_iter": draw(st.sampled_from([30, 3, 2, 1])),
    }
    return draw(simplex_rows(n_rows, n_labels, elements)), transition, options
