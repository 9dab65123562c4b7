"""Transition: constructors, Bayes' rule, diagnostics, input and output, what labels mean."""

import copy
import json
import pickle
import sys
from datetime import date
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from looselabels._names import UNLABELED
from looselabels.exceptions import IdentifiabilityWarning, InconsistentLabelWarning
from looselabels.transition import (
    Transition,
    can_be_wrong,
    is_missing,
    named_class,
    named_classes,
    uninformative_labels,
)
from tests.strategies import names, positive_rows, simplex_rows

pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
polars = pytest.importorskip("polars", reason="polars is not installed")

PETS = Transition.partial(["cat", "dog"], labeled=0.1, negative="other")
CANINES = Transition.from_meanings({"dog": "dog", "canine": ["dog", "wolf"], "cat": "cat"})


@st.composite
def transitions(draw):
    n_classes, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    classes, labels = draw(names(n_classes)), draw(names(n_labels, missing=True))
    return Transition(draw(simplex_rows(n_classes, n_labels)), classes, labels)


# ---------------------------------------------------------------------------- the object


def test_it_keeps_a_copy_that_cannot_be_changed():
    given_array = np.array([[0.5, 0.5], [0.0, 1.0]])
    t = Transition(given_array, ["a", "b"], ["a", None])
    given_array[:] = 7
    assert t.proba.tolist() == [[0.5, 0.5], [0.0, 1.0]]
    with pytest.raises(ValueError, match="read-only"):
        t.proba[0, 0] = 1
    with pytest.raises(AttributeError, match="cannot assign to field 'classes'"):
        t.classes = ("x", "y")


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_a_copy_equals_its_original_and_is_as_frozen(remake):
    PETS.rank  # noqa: B018  a cached value must not travel
    again = remake(PETS)
    assert again == PETS
    assert hash(again) == hash(PETS)
    assert not again.proba.flags.writeable
    noisy = CANINES.with_noise(0.5)
    assert_array_equal(remake(noisy).is_right, noisy.is_right)


def test_equality_is_by_content():
    same = Transition.partial(["cat", "dog"], labeled=[0.1, 0.1], negative="other")
    assert len({PETS, same}) == 1
    assert Transition.partial(["cat", "dog"], labeled=0.2, negative="other") != PETS
    assert Transition.partial(["cat", "dog"], "?", negative="other") != PETS
    assert PETS != "pets"
    assert Transition([[-0.0, 1]], ["a"], [0, 1]) == Transition([[0.0, 1]], ["a"], [0, 1])


def test_it_is_an_array_where_one_is_needed():
    assert_array_equal(np.asarray(PETS), PETS.proba)
    assert np.asarray(PETS, dtype=np.float32).dtype == np.float32
    changed = np.array(PETS)
    changed[0, 0] = 7
    assert PETS.proba[0, 0] == 0.1


@given(transitions())
def test_making_a_transition_again_changes_no_bit(t):
    assert Transition(t.proba, t.classes, t.labels) == t


@given(simplex_rows(3, 4))
def test_rows_that_are_off_by_rounding_are_normalized(proba):
    t = Transition(proba * (1 + 1e-9), list("abc"), range(4))
    assert_allclose(t.proba.sum(axis=1), 1, atol=1e-15)
    assert_array_equal(t.proba == 0, proba == 0)


def test_names_are_plain_python_whatever_library_they_come_from():
    labels = [np.int64(1), np.float64(2.5), np.str_("x"), np.bool_(False), pandas.NA]
    t = Transition(np.full((1, 5), 0.2), np.array(["a"]), labels)
    assert t.labels == (1, 2.5, "x", False, None)
    assert [type(name) for name in t.labels[:4]] == [int, float, str, bool]
    for missing in (None, np.nan, float("nan"), pandas.NaT, np.datetime64("NaT", "s")):
        assert Transition([[1.0]], ["a"], [missing]).labels == (None,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 0], [0, 1]], "ab", ["a", "b"]), "classes must be a list of names; it is 'ab'"),
        (
            ([[1, 0], [0, 1]], ["a", "b"], ["a", "b", None]),
            r"transition has shape \(2, 2\); 2 classes and 3 labels need \(2, 3\)\.$",
        ),
        (([[1], [1]], ["a"], ["x", "y"]), r"need \(1, 2\)\. Pass the transpose\."),
        (([1, 0], ["a"], ["x", "y"]), r"transition must be a 2-D array.*shape is \(2,\)"),
        (
            ([[0.5, 0.1], [0.5, 0.9]], ["cat", "dog"], ["x", "y"]),
            "row 'cat' sums to 0.6. Its columns do: pass the transpose",
        ),
        (([[0.5, 0.49]], ["cat"], ["x", "y"]), "row 'cat' sums to 0.99"),
        (([[0, 0]], ["cat"], ["x", "y"]), "row 'cat' sums to 0"),
        (([[1.5, -0.5]], ["cat"], ["x", "y"]), "row 'cat', column 1 is -0.5"),
        (([[np.nan, 1]], ["cat"], ["x", "y"]), "row 'cat', column 0 is nan"),
        (([["x", "0"]], ["cat"], ["x", "y"]), "transition must be an array of numbers.*'x'"),
        (([[1, 0], [1]], ["a", "b"], ["x", "y"]), "transition must be an array of numbers"),
        (([[1, 0]], ["cat"], ["x", "x"]), r"labels must be distinct; \['x'\] occur more than once"),
        (([[1, 0]], ["cat"], [None, np.nan]), r"labels must be distinct; \['\(unlabeled\)'\]"),
        (([[1]], [None], ["x"]), "classes contains None; only a label can be missing. Give"),
        (([[1]], ["a"], ["(unlabeled)"]), "the text that displays the missing label; use None"),
        (
            ([[1]], ["a"], [("web", "(unlabeled)")]),
            "the text that displays the missing label; use None",
        ),
        (([[1]], [date(2020, 1, 1)], ["x"]), r"\(date\) cannot name a class or label"),
        (([[1]], [b"cat"], ["x"]), r"\(bytes\) cannot name a class or label"),
        (([[1]], [np.inf], ["x"]), r"inf \(float\) cannot name"),
        (([[1]],), "transition is an array without names; pass classes and labels"),
    ],
)
def test_a_bad_transition_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Transition(*arguments)


# ---------------------------------------------------------------------------- designs


def test_partial_takes_a_rate_for_each_class():
    t = Transition.partial(["cat", "dog"], "?", labeled={"dog": 0.2, "cat": 0.1})
    assert t.labels == ("cat", "dog", "?")
    assert t.proba.tolist() == [[0.1, 0, 0.9], [0, 0.2, 0.8]]


def test_a_negative_class_stays_where_it_is_among_the_classes():
    t = Transition.partial(["other", "cat"], negative="other")
    assert t.classes == ("other", "cat")
    assert t.labels == ("cat", None)
    assert t.proba.tolist() == [[0, 1], [0.1, 0.9]]


@pytest.mark.parametrize(
    ("labeled", "message"),
    [
        ({"cat": 0.1, "dog": 1.2}, "labeled of 'dog' is 1.2; it must be between 0 and 1"),
        (-0.1, "labeled of 'cat' is -0.1"),
        (np.nan, "labeled of 'cat' is nan"),
        ({"cat": 0.1}, r"labeled lacks \['dog'\]; it must name \('cat', 'dog'\)"),
        ({"cat": 0.1, "dog": 0.1, "bird": 0.1}, r"labeled names \['bird'\]; it can name \('cat',"),
        (
            [0.1, 0.2, 0.3],
            r"labeled has shape \(3,\); it needs one number each for \('cat', 'dog'\)",
        ),
        ("many", "labeled must be an array of numbers.*'many'"),
    ],
)
def test_a_wrong_rate_names_the_class(labeled, message):
    with pytest.raises(ValueError, match=message):
        Transition.partial(["cat", "dog"], labeled=labeled)


def test_the_unlabeled_label_cannot_be_a_class():
    with pytest.raises(ValueError, match=r"labels must be distinct; \['cat'\]"):
        Transition.partial(["cat", "dog"], unlabeled="cat")


@pytest.mark.parametrize(
    "design", [Transition.identity, Transition.partial, Transition.from_labels]
)
def test_a_design_too_large_for_memory_is_refused_before_it_is_allocated(design):
    with pytest.raises(ValueError, match=r"transition would need 7\.3 TiB .*Merge rare labels"):
        design(range(10**6))


LABELS = ["dog", None, "cat", None, "dog"]


@pytest.mark.parametrize(
    "y",
    [
        LABELS,
        tuple(LABELS),
        np.array(LABELS, dtype=object),
        np.ma.array(["dog", "", "cat", "", "dog"], mask=[0, 1, 0, 1, 0]),
        pandas.Series(LABELS),
        pandas.Series(LABELS, dtype="string"),
        pandas.Series(LABELS, dtype="category"),
        pandas.Series(LABELS, dtype=object, index=[9, 8, 7, 7, 7]),
        polars.Series(LABELS),
        polars.Series(LABELS, dtype=polars.Categorical),
        polars.Series(LABELS, dtype=polars.Enum(["dog", "cat"])),
        ["dog", float("nan"), "cat", pandas.NA, "dog"],
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]}-{getattr(y, 'dtype', '')}",
)
def test_from_labels_reads_any_column(y):
    t = Transition.from_labels(y)
    assert t.classes == ("cat", "dog")
    assert t.labels == ("cat", "dog", None)
    assert_allclose(t.proba, [[0.6, 0, 0.4], [0, 0.6, 0.4]])
    assert t.label_index(y).tolist() == [1, 2, 0, 2, 1]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array([3, 1, 3]), (1, 3)),
        (np.array([3.0, np.nan, 1.0]), (1, 3)),
        (np.array([3.0, 1.0], dtype=">f4"), (1, 3)),
        (pandas.Series([3, None, 1], dtype="Int64"), (1, 3)),
        (pandas.Series([True, None, False], dtype="boolean"), (False, True)),
        (np.array([True, False]), (False, True)),
        (polars.Series([3.0, float("nan"), None, 1.0]), (1, 3)),
        ([-1, 1], (-1, 1)),
    ],
)
def test_from_labels_reads_numbers_and_bool(y, classes):
    t = Transition.from_labels(y)
    assert t.classes == classes
    assert {type(name) for name in t.classes} <= {int, bool}
    assert len(t.label_index(y)) == len(y)


def test_without_missing_labels_each_label_is_its_class():
    assert Transition.from_labels(["b", "a", "b"]) == Transition.identity(["a", "b"])


@pytest.mark.parametrize(
    "y",
    [
        pandas.Series(["a", "b", None], dtype=pandas.CategoricalDtype(["b", "z", "a"])),
        polars.Series(["a", "b", None], dtype=polars.Enum(["b", "z", "a"])),
    ],
)
def test_unused_categories_are_classes_too(y):
    assert Transition.from_labels(y).classes == ("a", "b", "z")
    t = Transition.from_labels(y, negative="z", labeled=0.5)
    assert (t.classes, t.labels) == (("a", "b", "z"), ("a", "b", None))


def test_a_class_prior_gives_the_rate_of_each_class():
    # 2 of 10 samples are labeled cat and 1 dog; these are half of the 4 cats and 2 dogs
    y = ["cat", "cat", "dog"] + [None] * 7
    for prior in ({"cat": 0.4, "dog": 0.2}, {"other": 0.4, "dog": 0.2, "cat": 0.4}, [0.4, 0.2]):
        t = Transition.from_labels(y, negative="other", class_prior=prior)
        assert_allclose(t.proba, [[0.5, 0, 0.5], [0, 0.5, 0.5], [0, 0, 1]])


def test_one_number_is_a_class_prior_for_positive_unlabeled_data():
    t = Transition.from_labels([1, None, None, None], negative=0, class_prior=0.5)
    assert_allclose(t.proba, [[0.5, 0.5], [0, 1]])


def test_a_class_prior_without_a_negative_class_sets_rates_as_well():
    t = Transition.from_labels(["a", "b", None, None], class_prior={"a": 0.25, "b": 0.75})
    assert_allclose(t.proba, [[1, 0, 0], [0, 1 / 3, 2 / 3]])


def test_the_smallest_prior_possible_is_accepted_as_it_is_printed():
    y = ["cat", None, None]
    with pytest.raises(ValueError, match=r"class_prior of 'cat' is 0.1.*0\.333333 of all") as error:
        Transition.from_labels(y, negative="other", class_prior={"cat": 0.1})
    assert "must be at least that" in str(error.value)
    t = Transition.from_labels(y, negative="other", class_prior={"cat": 0.333333})
    assert t.proba.tolist() == [[1, 0], [0, 1]]


def test_noise_can_be_given_with_the_labels():
    t = Transition.from_labels(["a", "b", None, None], noise=0.1)
    assert_allclose(t.proba, [[0.45, 0.05, 0.5], [0.05, 0.45, 0.5]])
    assert_allclose(Transition.from_labels(["a", "b"], noise=0.1).proba, [[0.9, 0.1], [0.1, 0.9]])


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([1, "a"], {}, "labels must be of one type; y contains int and str, as in"),
        ([0.5, 1.0], {}, "Unknown label type: y contains 0.5 and looks like a continuous target"),
        (np.array(["2020-01-01"], dtype="M8[D]"), {}, "y contains times"),
        (pandas.to_datetime(pandas.Series(["2020-01-01"])), {}, "y contains times"),
        ([date(2020, 1, 1)], {}, r"\(date\) cannot name"),
        ([None, np.nan], {}, "y contains no label; label at least one"),
        ([], {}, "y contains no label; label at least one"),
        (["a", None], {}, r"y contains only one label, \['a'\].*negative='other'"),
        (["a", "a"], {}, "y contains only one label"),
        (
            ["a", None],
            {"negative": "o"},
            "does not determine the share of .* 'o'. Pass labeled=.*class_prior=",
        ),
        (["a", "o"], {"negative": "o"}, "negative is 'o', but y contains this label"),
        (["a", "b"], {"labeled": 0.1, "class_prior": [0.5, 0.5]}, "pass only one"),
        (
            ["a", "b", None],
            {"class_prior": [0.5, 0.6]},
            "class_prior.* sums to 1.1",
        ),
        (["a", None], {"negative": "o", "class_prior": {"x": 1}}, r"class_prior names \['x'\]"),
        ("ab", {}, "y must be a column of labels; it is 'ab'"),
        (np.eye(2), {}, r"y must be a column with one label per sample; its shape is \(2, 2\)"),
        (pandas.DataFrame({"y": ["a"]}), {}, r"its shape is \(1, 1\)"),
        ([["a"], ["b"]], {}, "y must be a column with one label per sample; its rows are lists"),
        (5, {}, "y must be a column"),
        (["a", "b"], {"sample_weight": [1, -1]}, r"sample_weight .* not negative; row 1 is -1"),
        (["a", "b"], {"sample_weight": [1, np.nan]}, r"sample_weight .* finite .*; row 1 is nan"),
        (["a", "b"], {"sample_weight": [1]}, r"sample_weight has shape \(1,\); 2 rows need"),
        (["a", "b"], {"sample_weight": ["x", 1]}, "sample_weight must be an array of numbers"),
        (["a", "b"], {"sample_weight": [0, 0]}, "sample_weight must contain a positive number"),
    ],
)
def test_a_bad_column_of_labels_is_named(y, options, message):
    with pytest.raises(ValueError, match=message):
        Transition.from_labels(y, **options)


# ---------------------------------------------------------------------------- noise


@given(simplex_rows(3, 4), st.floats(0, 1))
def test_noise_changes_labels_but_not_how_many_are_missing(proba, rate):
    t = Transition(proba, list("abc"), ["a", "b", "c", None])
    noisy = t.with_noise(rate)
    assert_allclose(noisy.proba[:, 3], t.proba[:, 3], atol=1e-14)
    assert_allclose(noisy.proba.sum(axis=1), 1, atol=1e-14)


def test_noise_spreads_over_the_other_labels_evenly():
    t = Transition.partial(list("abc"), labeled=0.5).with_noise({"b": 0.2})
    assert_allclose(t.proba[0], [0.5, 0, 0, 0.5])
    assert_allclose(t.proba[1], [0.05, 0.4, 0.05, 0.5])


def test_the_negative_class_gets_labels_only_when_it_is_named():
    assert_allclose(PETS.with_noise(0.2).proba[2], [0, 0, 1])
    assert_allclose(PETS.with_noise({"other": 0.2}).proba[2], [0.1, 0.1, 0.8])
    assert_allclose(PETS.with_noise({"other": 0.2}).proba[:2], PETS.proba[:2])
    assert_allclose(PETS.with_noise([0, 0, 0.2]).proba[2], [0.1, 0.1, 0.8])
    one = Transition.partial(["cat"], labeled=0.5, negative="other")
    assert_allclose(one.with_noise({"other": 0.01}).proba, [[0.5, 0.5], [0.01, 0.99]])


def test_the_unlabeled_label_can_have_another_name():
    t = Transition.partial(["a", "b"], unlabeled=-1, labeled=0.5).with_noise(0.2, unlabeled=-1)
    assert_allclose(t.proba, [[0.4, 0.1, 0.5], [0.1, 0.4, 0.5]])


def test_labels_that_are_right_for_every_class_keep_their_share():
    t = Transition.partial(["a", "b"], unlabeled=-1, labeled=0.5).with_noise(0.2)
    assert_allclose(t.proba, [[0.4, 0.1, 0.5], [0.1, 0.4, 0.5]])
    meanings = {"a": "a", "b": "b", "letter": ["a", "b"]}
    t = Transition.from_meanings(meanings, {"a": 1, "b": 1, "letter": 2}).with_noise(0.2)
    assert_allclose(t.proba, [[0.4, 0.1, 0.5], [0.1, 0.4, 0.5]])


@pytest.mark.parametrize("rate", [0.2, {"cat": 0.3, "other": 0.1}])
def test_noise_stays_within_each_data_set(rate):
    """Noise before data sets are merged, and noise after that, are the same."""
    crowd = Transition.identity(["cat", "dog"])
    sizes = {"pets": {"cat": 1, "dog": 2, "other": 5}, "crowd": 3}

    def rate_in(t):
        if not isinstance(rate, dict):
            return rate
        return {name: share for name, share in rate.items() if name in t.classes}

    parts = {"pets": PETS, "crowd": crowd}
    noisy = {name: t.with_noise(rate_in(t)) for name, t in parts.items()}
    merged = Transition.combine(parts, sizes).with_noise(rate)
    assert_allclose(merged.proba, Transition.combine(noisy, sizes).proba)
    sites = Transition.combine({"site": merged, "lab": crowd}, {"site": 1, "lab": 1})
    again = Transition.combine(
        {"site": Transition.combine(parts, sizes), "lab": crowd}, {"site": 1, "lab": 1}
    )
    assert_allclose(again.with_noise(rate).proba[:, :5], sites.proba[:, :5])


def test_several_labels_for_unlabeled_rows_keep_their_shares_next_to_noise_of_the_negative_class():
    names = {"classes": ["cat", "other"], "labels": ["cat", None, "unclear"]}
    is_right = [[1, 0], [1, 1], [1, 1]]
    t = Transition([[0.5, 0.2, 0.3], [0, 0.6, 0.4]], **names, is_right=is_right)
    noisy = t.with_noise({"other": 0.1})
    assert_allclose(noisy.proba, [[0.5, 0.2, 0.3], [0.1, 0.54, 0.36]])


def test_a_matrix_of_noise_is_multiplied_from_the_left():
    matrix = np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0, 0.05, 0.95]])
    assert_allclose(PETS.with_noise(matrix).proba, matrix @ PETS.proba)
    frame = pandas.DataFrame(matrix, PETS.classes, PETS.classes)
    shuffled = frame.loc[["other", "cat", "dog"], ["dog", "other", "cat"]]
    assert_allclose(PETS.with_noise(shuffled).proba, matrix @ PETS.proba)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (1.5, "rate of 'cat' is 1.5; it must be between 0 and 1"),
        ({"bird": 0.1}, r"rate names \['bird'\]"),
        (np.eye(2), r"rate has shape \(2, 2\); 3 classes and 3 classes need \(3, 3\)"),
        ([[1, 2], [3]], "rate must be an array of numbers"),
        ({"cat": [0.1]}, "rate must be an array of numbers"),
        ("much", "rate must be an array of numbers: could not convert string"),
        (np.zeros((1, 1, 1)), r"rate has shape \(1, 1, 1\); it needs one number each"),
        (np.full((3, 3), 0.5), "Each row of rate must sum to 1; row 'cat' sums to 1.5"),
    ],
)
def test_a_bad_noise_rate_is_named(rate, message):
    with pytest.raises(ValueError, match=message):
        PETS.with_noise(rate)


def test_noise_needs_a_label_to_move_to():
    with pytest.raises(ValueError, match=r"there is only one label.*\{'dog': 0\.01\}"):
        Transition.partial(["cat"], negative="dog").with_noise(0.1)


def test_noise_needs_two_labels_of_each_data_set():
    web = Transition.partial(["cat"], labeled=0.5, negative="dog")
    both = {"pets": Transition.identity(["cat", "dog"]), "web": web}
    merged = Transition.combine(both, {"pets": 1, "web": 1})
    with pytest.raises(ValueError, match=r"'web: cat' is the only .*combine.*\{'dog': 0\.01\}"):
        merged.with_noise(0.1)
    assert_array_equal(merged.with_noise(0).proba, merged.proba)
    noisy = merged.with_noise({"dog": 0.1})  # cats have no noise
    assert_allclose(noisy.proba, [[0.5, 0, 0.25, 0.25], [0.05, 0.45, 0.05, 0.45]])


def test_noise_needs_labels_whose_meaning_is_known():
    t = Transition([[0.8, 0.2], [0.2, 0.8]], ["a", "b"], ["x", "y"])  # x and y can mean a and b
    with pytest.raises(ValueError, match=r"no label .* can be wrong: .*\('x', 'y'\).*is_right"):
        t.with_noise(0.1)
    known = Transition(t.proba, t.classes, t.labels, is_right=[[1, 0], [0, 1]])
    assert_allclose(known.with_noise(0.5).proba, 0.5)


def test_an_unknown_name_for_unlabeled_is_an_error():
    with pytest.raises(
        ValueError, match=r"unlabeled is '\?'; it must be one of the labels \('cat', 'dog',"
    ):
        PETS.with_noise(0.1, unlabeled="?")


# ---------------------------------------------------------------------------- meanings and Bayes


def test_meanings_can_be_a_class_a_list_or_weights():
    t = Transition.from_meanings(
        {"cat": "cat", "not cat": ["dog", "other"], "pet": {"cat": 1, "dog": 3}, None: {"other"}},
        label_counts={"pet": 4, "cat": 1, None: 1, "not cat": 2},
    )
    # joint counts: cat 1 + 4/4, dog 1 + 3, other 1 + 1
    assert t.classes == ("cat", "dog", "other")
    assert_allclose(t.proba, [[0.5, 0, 0.5, 0], [0, 0.25, 0.75, 0], [0, 0.5, 0, 0.5]])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"x": "cat"}, r"No label with a positive count means \['dog'\]; remove the class"),
        ({"x": ["cat", "bird"]}, r"meanings\['x'\] names \['bird'\]; it can name \('cat', 'dog'\)"),
        ({"x": []}, r"meanings\['x'\] is \[\]; name at least one class"),
        ({"x": {"cat": -1}}, r"meanings\['x'\] of 'cat' is -1"),
        ({"x": [["cat"]]}, r"\['cat'\] \(list\) cannot name a class"),
        ({"x": [{"cat": 1}]}, r"\{'cat': 1\} \(dict\) cannot name a class"),
        ({"x": np.array([["cat"]])}, r"\(ndarray\) cannot name a class"),
        ({"x": {"cat": "much"}}, r"meanings\['x'\] must be an array of numbers"),
        ({"x": {np.nan: 1}}, r"meanings\['x'\] names \['\(unlabeled\)'\]; it can name"),
        (["cat"], r"meanings must map each label to its class or classes; it is \['cat'\]"),
        (None, "meanings must map each label to its class or classes; it is None"),
        ({}, r"meanings must map each label to its class or classes; it is \{\}"),
    ],
)
def test_bad_meanings_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        Transition.from_meanings(wrong, classes=["cat", "dog"])


def test_the_largest_numbers_are_only_proportions():
    meanings = {"pet": {"cat": 1e308, "dog": 1e308}, "dog": {"dog": 5e-324}}
    t = Transition.from_meanings(meanings, label_counts={"pet": 1.6e308, "dog": 1.6e308})
    assert_allclose(t.proba, [[1, 0], [1 / 3, 2 / 3]])
    both = {"a": Transition.identity([0, 1]), "b": Transition.identity([0, 1])}
    t = Transition.combine(both, sizes={"a": {0: 1.5e308, 1: 5e-324}, "b": {0: 1.5e308, 1: 0}})
    assert_allclose(t.proba, [[0.5, 0, 0.5, 0], [0, 1, 0, 0]])


@given(positive_rows(3, 4), positive_rows(1, 3))
def test_reverse_and_from_reverse_undo_each_other(proba, prior):
    t = Transition(proba, list("abc"), list("wxyz"))
    reverse = t.reverse(prior[0])
    assert_allclose(reverse.sum(axis=1), 1)
    again = Transition.from_reverse(reverse, prior[0] @ proba, classes=t.classes, labels=t.labels)
    assert_allclose(again.proba, t.proba, atol=1e-12)


def test_reverse_matches_frames_and_counts_by_name():
    frame = pandas.DataFrame([[1, 0], [0.5, 0.5]], ["s", "(unlabeled)"], ["cat", "dog"])
    t = Transition.from_reverse(
        frame, {None: 2, "s": 1}, classes=["dog", "cat"], labels=[None, "s"]
    )
    assert (t.classes, t.labels) == (("dog", "cat"), (None, "s"))
    assert_allclose(t.proba, [[1, 0], [0.5, 0.5]])
    series = pandas.Series({"dog": 0.25, "cat": 0.75})
    assert_allclose(t.reverse(series), t.reverse([0.25, 0.75]))


def test_a_label_without_samples_is_warned_about_and_promised_never_to_occur():
    with pytest.warns(
        InconsistentLabelWarning, match=r"label_counts of \['b'\] are 0: the transition rules"
    ):
        t = Transition.from_meanings({"a": ["x", "y"], "b": "x"}, label_counts=[1, 0])
    assert t.proba.tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, -1], "label_counts of 'b' is -1; it must be finite and not negative"),
        ([1, np.inf], "label_counts of 'b' is inf"),
        ([0, 1], r"No label with a positive count means \['y'\]"),
        ([1, 2, 3], r"label_counts has shape \(3,\)"),
    ],
)
def test_wrong_label_counts_name_the_label(counts, message):
    with pytest.raises(ValueError, match=message):
        Transition.from_meanings({"a": ["x", "y"], "b": "x"}, counts)


def test_reverse_rows_that_are_no_distribution_name_the_label():
    with pytest.raises(
        ValueError, match=r"Each row of reverse must sum to 1; row 's' sums to 0\.9"
    ):
        Transition.from_reverse([[0.9, 0], [0, 1]], 1, classes=[0, 1], labels=["s", "t"])
    with pytest.raises(
        ValueError, match=r"reverse has shape \(2, 1\); 1 labels and 2 classes need"
    ):
        Transition.from_reverse([[1], [0]], 1, classes=[0, 1], labels=["s"])


def test_the_reverse_of_a_label_that_no_class_can_have_is_the_class_prior():
    t = Transition([[1, 0], [1, 0]], ["a", "b"], ["x", "y"])
    assert_allclose(t.reverse([0.3, 0.7]), [[0.3, 0.7], [0.3, 0.7]])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.4, 0.2], "class_prior.* sums to 1.1"),
        ([0.5, 0.7, -0.2], "class_prior of 'other' is -0.2"),
        ([0.5, 0.5], r"class_prior has shape \(2,\); it needs one number each for \('cat', 'dog',"),
        ({"cat": 0.5, "dog": 0.5}, r"class_prior lacks \['other'\]"),
    ],
)
def test_a_wrong_class_prior_is_named(prior, message):
    for method in (PETS.reverse, PETS.label_costs, PETS.label_weights):
        with pytest.raises(ValueError, match=message):
            method(prior)


# ---------------------------------------------------------------------------- weights


@given(positive_rows(3, 4), positive_rows(1, 3))
def test_weights_are_the_expected_increase_in_cost(proba, prior):
    t, prior = Transition(proba, list("abc"), list("wxyz")), prior[0]
    costs, label_prior = t.label_costs(prior), prior @ proba
    increase = costs - np.diag(costs)[:, None]
    expected = increase @ label_prior
    assume(np.sum(expected > 1e-9) > 1)  # otherwise all weights are 1, which has its own test
    expected[expected < 1e-12] = 0
    different = expected / (1 - label_prior)  # s' = s adds nothing: only the normalization differs
    assert_allclose(t.label_weights(prior), expected, atol=1e-12)
    assert_allclose(t.label_weights(prior, "different"), different, atol=1e-12)


def test_the_unlabeled_of_plain_semi_supervised_data_have_no_weight():
    weights = Transition.partial(["a", "b"], labeled=0.1).label_weights([0.3, 0.7])
    assert_allclose(weights, [0.7, 0.3, 0], atol=1e-15)
    assert weights[2] == 0


def test_the_two_readings_differ_by_how_rare_the_other_labels_are():
    prior = [0.01, 0.99]
    t = Transition.partial(["a"], labeled=0.1, negative="b")
    ratio = t.label_weights(prior, "different") / t.label_weights(prior)
    assert_allclose(ratio, [1 / (1 - 0.001), 1 / 0.001])


@pytest.mark.parametrize(
    ("transition", "prior", "who"),
    [
        (Transition([[0.5, 0.5], [0.5, 0.5]], ["a", "b"], [0, 1]), [0.5, 0.5], "'a', 'b'"),
        # most unlabeled samples are "a": their weight would be negative, and "-" has no other label
        (Transition.partial(["a"], labeled=0.1, negative="-"), [0.9, 0.1], r"\['-'\]"),
    ],
)
def test_if_a_class_would_lose_all_weight_the_weights_are_equal(transition, prior, who):
    with pytest.warns(UserWarning, match=f"would be 0 for .*{who}.*all are set to 1"):
        assert transition.label_weights(prior).tolist() == [1, 1]


def test_an_unknown_reading_is_refused():
    with pytest.raises(ValueError, match="reading is 'x'; it must be 'expected' or 'different'"):
        PETS.label_weights([0.2, 0.2, 0.6], "x")


# ---------------------------------------------------------------------------- data sets


def test_a_class_that_a_data_set_lacks_does_not_occur_there():
    t = Transition.combine(
        {"pets": Transition.identity(["cat", "dog"]), "web": Transition.identity(["dog", "bird"])},
        sizes={"pets": 1, "web": 3},
    )
    assert t.classes == ("cat", "dog", "bird")
    assert t.labels == (("pets", "cat"), ("pets", "dog"), ("web", "dog"), ("web", "bird"))
    assert_allclose(t.proba, [[1, 0, 0, 0], [0, 0.25, 0.75, 0], [0, 0, 0, 1]])
    assert t.label_index([("web", "dog"), ("pets", "cat")]).tolist() == [2, 0]


def test_sizes_can_differ_by_class():
    both = {"a": Transition.identity([0, 1]), "b": Transition.identity([0, 1])}
    t = Transition.combine(both, sizes={"a": {0: 9, 1: 1}, "b": 1})
    assert_allclose(t.proba, [[0.9, 0, 0.1, 0], [0, 0.5, 0, 0.5]])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"a": 1}, r"sizes lacks \['b'\]"),
        ({"a": 1, "b": 1, "c": 1}, r"sizes names \['c'\]"),
        ({"a": 1, "b": -1}, r"sizes\['b'\] of 0 is -1"),
        ({"a": 1, "b": {0: 1}}, r"sizes\['b'\] lacks \[1\]"),
        ({"a": {0: 1, 1: 0}, "b": {0: 1, 1: 0}}, r"0 in each data set for class \[1\]"),
        ([1, 2], "transitions and sizes must both be mappings"),
    ],
)
def test_wrong_sizes_name_the_data_set(sizes, message):
    both = {"a": Transition.identity([0, 1]), "b": Transition.identity([0, 1])}
    with pytest.raises(ValueError, match=message):
        Transition.combine(both, sizes)


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        ([Transition.identity([0, 1])], "transitions and sizes must both be mappings"),
        ({}, "transitions and sizes must both be mappings"),
        (
            {"a": np.eye(2)},
            r"transitions\['a'\] must be a Transition; it is of type ndarray. Name its",
        ),
        ({"a": None}, r"transitions\['a'\] must be a Transition; it is of type NoneType"),
    ],
)
def test_what_is_no_transition_cannot_be_combined(transitions, message):
    with pytest.raises(ValueError, match=message):
        Transition.combine(transitions, {"a": 1})


# ---------------------------------------------------------------------------- diagnostics


def test_rank_and_condition_number():
    assert Transition.identity(["a", "b", "c"]).rank == 3
    assert Transition.identity(["a", "b", "c"]).condition_number == pytest.approx(1)
    assert PETS.condition_number == pytest.approx(np.linalg.cond(PETS.proba))
    rates = [
        Transition.partial([1], labeled=r, negative=0).condition_number for r in (0.5, 0.1, 0.01)
    ]
    assert all(a < b for a, b in pairwise(rates))


def test_classes_with_identical_label_distributions_are_named():
    t = Transition([[0.5, 0.5], [0.1, 0.9], [0.5, 0.5]], ["cat", "dog", "fox"], ["a", "b"])
    assert t.indistinct_classes() == (("cat", "fox"),)
    assert (t.rank, t.condition_number) == (2, np.inf)
    with pytest.warns(
        IdentifiabilityWarning,
        match=r"rank 2 for 3 classes .*inf.*classes \('cat', 'fox'\) have identical",
    ):
        t.check_identifiable()


def test_more_classes_than_labels_is_warned_about_without_equal_rows():
    t = Transition([[1, 0], [0.5, 0.5], [0, 1]], list("abc"), ["x", "y"])
    assert t.indistinct_classes() == ()
    with pytest.warns(
        IdentifiabilityWarning,
        match=r"rank 2 for 3 classes .*different mixtures of classes have identical",
    ):
        t.check_identifiable()


def test_an_identifiable_transition_is_not_warned_about():
    PETS.check_identifiable()  # warnings are errors


@given(positive_rows(5, 3))
def test_label_proba_of_a_class_distribution_are_feasible(class_proba):
    assert not PETS.infeasible(class_proba @ PETS.proba).any()


def test_rows_outside_the_reach_of_the_inverse_are_infeasible():
    label_proba = np.array([[0.05, 0.05, 0.9], [0.1, 0, 0.9], [0.2, 0, 0.8], [0.06, 0.06, 0.88]])
    outside = (label_proba @ np.linalg.inv(PETS) < -1e-9).any(axis=1)
    assert PETS.infeasible(label_proba).tolist() == outside.tolist() == [False, False, True, True]


def test_a_label_that_no_class_can_have_is_infeasible():
    t = Transition([[1, 0, 0], [0, 1, 0]], ["a", "b"], ["a", "b", "never"])
    assert t.infeasible([[0.5, 0.5, 0], [0.5, 0.4, 0.1]]).tolist() == [False, True]


def test_infeasible_reads_distributions_only():
    with pytest.raises(
        ValueError, match=r"Each row of label_proba must sum to 1; row 0 sums to 1\.5"
    ):
        PETS.infeasible([[0.5, 0.5, 0.5]])


# ---------------------------------------------------------------------------- what a label means


def test_the_missing_label_is_recognized_inside_tuples():
    assert is_missing(None)
    assert is_missing(("web", None))
    assert is_missing(("all", ("web", None)))
    for label in ("cat", 0, False, "", (), (None, "cat"), UNLABELED):
        assert not is_missing(label)


def test_a_label_names_the_class_it_equals_also_as_the_label_of_a_data_set():
    assert named_class("dog", ("cat", "dog")) == 1
    assert named_class(("web", "dog"), ("cat", "dog")) == 1
    assert named_class(("all", ("web", "dog")), ["cat", "dog"]) == 1
    for label in ("pet", None, ("web", None), ("dog", "web"), ()):
        assert named_class(label, ("cat", "dog")) is None


def test_a_class_that_is_a_tuple_is_named_by_the_whole_tuple_first():
    classes = (("a", "x"), "x")
    assert [named_class(label, classes) for label in (("a", "x"), ("b", "x"), "x")] == [0, 1, 1]


def test_labels_that_name_no_class_are_marked():
    t = Transition.from_meanings({"dog": "dog", "pet": ["dog", "cat"], "cat": "cat", None: "cat"})
    assert named_classes(t).tolist() == [0, -1, 1, -1]
    both = Transition.combine({"a": PETS, "b": Transition.identity(["other"])}, {"a": 1, "b": 1})
    assert named_classes(both).tolist() == [0, 1, -1, 2]


def test_a_label_is_uninformative_if_every_class_has_it_equally_often():
    at_random = Transition.partial(["cat", "dog"], labeled=0.3)
    assert uninformative_labels(at_random).tolist() == [False, False, True]
    assert uninformative_labels(PETS).tolist() == [False, False, False]
    nearly = Transition([[0.5, 0.5], [0.5 + 2e-9, 0.5 - 2e-9]], ["a", "b"], ["x", "y"])
    assert not uninformative_labels(nearly).any()
    rounding = Transition([[0.5, 0.5], [0.5 + 5e-10, 0.5 - 5e-10]], ["a", "b"], ["x", "y"])
    assert uninformative_labels(rounding).all()


def test_a_label_that_names_a_class_means_it():
    assert_array_equal(Transition.identity(["a", "b", "c"]).is_right, np.eye(3))
    noisy = Transition.identity(["a", "b", "c"]).with_noise(0.6)  # more often wrong than right
    assert_array_equal(noisy.is_right, np.eye(3))


def test_the_missing_label_is_right_even_for_a_class_that_rarely_has_it():
    t = Transition([[0.99, 0.0, 0.01], [0.0, 0.2, 0.8]], ["a", "b"], ["a", "b", None])
    assert_array_equal(t.is_right, [[1, 0], [0, 1], [1, 1]])


def test_the_missing_label_is_right_for_every_class():
    t = Transition.partial(["cat", "dog"], labeled={"cat": 1, "dog": 0.1}, negative="other")
    assert_array_equal(t.is_right, [[1, 0, 0], [0, 1, 0], [1, 1, 1]])


def test_a_coarse_label_means_each_of_its_classes():
    t = Transition.from_meanings({"dog": "dog", "canine": ["dog", "wolf"], "cat": "cat"})
    assert t.classes == ("dog", "wolf", "cat")
    assert_array_equal(t.is_right, [[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    assert_array_equal(t.with_noise(0.1).is_right, [[1, 0, 0], [1, 1, 0], [0, 0, 1]])


def test_not_a_cat_means_all_the_others():
    t = Transition.from_meanings({"cat": "cat", "dog": "dog", "not cat": ["dog", "fox"]})
    assert_array_equal(t.is_right[2], [0, 1, 1])


def test_labels_of_merged_data_sets_mean_what_they_mean_in_each():
    pets = Transition.identity(["cat", "dog"]).with_noise(0.2)
    web = Transition.partial(["cat"], labeled=0.5, negative="dog")
    t = Transition.combine({"pets": pets, "web": web}, sizes={"pets": 1, "web": 3})
    assert_array_equal(t.is_right, [[1, 0], [0, 1], [1, 0], [1, 1]])
    assert can_be_wrong(t).tolist() == [True, True, True, False]
    nested = Transition.combine({"all": t}, sizes={"all": 1})
    assert_array_equal(nested.is_right, t.is_right)


def test_a_tuple_that_is_a_class_means_itself():
    t = Transition.identity([("a", "x"), ("b", "x"), "x"]).with_noise(0.1)
    assert_array_equal(t.is_right, np.eye(3))


def test_a_label_that_no_class_can_have_is_never_wrong():
    t = Transition([[1, 0, 0], [0, 1, 0]], ["a", "b"], ["a", "b", "never"])
    assert_array_equal(t.is_right[2], [1, 1])
    assert can_be_wrong(t).tolist() == [True, True, False]


def test_a_label_that_names_no_class_is_wrong_for_classes_that_get_it_rarely():
    t = Transition([[0.5, 0.5], [0.05, 0.95], [0.0499, 0.9501]], list("abc"), ["x", "y"])
    assert_array_equal(t.is_right, [[1, 1, 0], [1, 1, 1]])  # a tenth of .5 is not rare yet


@pytest.mark.parametrize("rate", [0.5, {"cat": 0.4, "dog": 0.01}, np.full((3, 3), 1 / 3)])
def test_noise_does_not_change_what_a_label_means(rate):
    noisy = CANINES.with_noise(rate)
    assert (noisy.proba[:, 1] >= noisy.proba[:, 1].max() / 10).all()  # its numbers do not tell it
    assert_array_equal(noisy.is_right, CANINES.is_right)
    assert_array_equal(CANINES.with_proba(noisy.proba).is_right, CANINES.is_right)


def test_counts_of_labels_do_not_change_what_a_label_means():
    meanings = {"dog": "dog", "canine": ["dog", "wolf"], "cat": "cat"}
    t = Transition.from_meanings(meanings, {"dog": 1000, "canine": 10, "cat": 5})
    assert t.proba[0, 1] < t.proba[1, 1] / 100
    assert_array_equal(t.is_right, [[1, 0, 0], [1, 1, 0], [0, 0, 1]])


def test_weights_of_a_meaning_do_not_change_which_classes_it_has():
    t = Transition.from_meanings({"pet": {"cat": 0.99, "dog": 0.01}, "dog": "dog", "cow": "cow"})
    assert_array_equal(t.is_right, [[1, 1, 0], [0, 1, 0], [0, 0, 1]])


def test_rows_without_a_label_are_right_for_every_class_whatever_they_are_called():
    t = Transition.partial(["cat", "dog"], unlabeled=-1, labeled=0.99, negative="other")
    assert_array_equal(t.is_right, [[1, 0, 0], [0, 1, 0], [1, 1, 1]])


def test_a_merged_label_keeps_its_meaning_and_is_wrong_for_classes_of_other_data_sets():
    cows = Transition.identity(["cow", "cat"])
    t = Transition.combine({"a": CANINES.with_noise(0.5), "b": cows}, sizes={"a": 1, "b": 50})
    assert t.classes == ("dog", "wolf", "cat", "cow")
    assert_array_equal(t.is_right[1], [1, 1, 0, 0])
    assert_array_equal(t.is_right[3:], [[0, 0, 0, 1], [0, 0, 1, 0]])


def test_what_a_label_means_can_be_specified_with_the_numbers():
    t = Transition([[0.6, 0.4], [0.3, 0.7]], ["a", "b"], ["x", "y"], is_right=[[1, 0], [1, 1]])
    assert_array_equal(t.is_right, [[1, 0], [1, 1]])
    assert can_be_wrong(t).tolist() == [True, False]
    assert t != Transition(t.proba, t.classes, t.labels)
    with pytest.raises(ValueError, match="read-only"):
        t.is_right[0, 0] = False


@pytest.mark.parametrize("wrong", [[[1, 0]], [[1, 0], [2, 0]], [[1, 0], [0.5, 0]], [1, 0]])
def test_meanings_of_another_shape_are_refused(wrong):
    with pytest.raises(ValueError, match=r"is_right must be 0 or 1 .* of shape \(2, 2\); it is"):
        Transition(np.eye(2), ["a", "b"], ["x", "y"], is_right=wrong)


def test_json_has_meanings_only_if_names_and_numbers_do_not_tell_them():
    noisy = CANINES.with_noise(0.5)
    again = Transition.from_json(noisy.to_json())
    assert again == noisy
    assert_array_equal(again.is_right, CANINES.is_right)
    assert "is_right" not in json.loads(CANINES.to_json())  # as files of 0.1
    old = {k: v for k, v in json.loads(noisy.to_json()).items() if k != "is_right"}
    assert Transition.from_json(json.dumps(old)).is_right[1].all()


# ---------------------------------------------------------------------------- label_index


def test_unknown_labels_are_listed_with_a_similar_label():
    with pytest.raises(ValueError) as error:
        PETS.label_index(["bird", "cat"])
    assert str(error.value) == (
        "labels ['bird'] are not in the transition; it has ('cat', 'dog', '(unlabeled)')."
    )
    with pytest.raises(ValueError, match=r"Did you mean 'dog' for 'dogs'\?"):
        PETS.label_index(["dogs"])
    with pytest.raises(ValueError, match=r"Did you mean 1 for '1'\?"):
        Transition.identity([0, 1]).label_index(["1"])


def test_at_most_five_unknown_labels_are_listed():
    with pytest.raises(ValueError, match=r"labels \[0, 1, 2, 3, 4 and 95 more\] are not"):
        PETS.label_index(range(100))


def test_a_missing_label_needs_a_place():
    with pytest.raises(ValueError, match=r"\['\(unlabeled\)'\] are not in .*Transition\.partial"):
        Transition.identity(["cat", "dog"]).label_index(["cat", None])


def test_unused_categories_need_not_be_labels():
    y = pandas.Series(["dog"], dtype=pandas.CategoricalDtype(["bird", "dog"]))
    assert PETS.label_index(y).tolist() == [1]


@pytest.mark.parametrize("y", [np.array([1, 0, 1]), [1.0, 0.0, 1.0], np.array([True, False, True])])
def test_equal_numbers_are_equal_labels(y):
    assert Transition.identity([0, 1]).label_index(y).tolist() == [1, 0, 1]


# ---------------------------------------------------------------------------- tables and JSON


@given(transitions())
def test_json_comes_back_as_an_equal_transition(t):
    again = Transition.from_json(t.to_json())
    assert again == t
    assert list(map(type, again.labels)) == list(map(type, t.labels))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "text is not the JSON of a transition: Expecting property name"),
        ("[" * 100_000, "text is not the JSON of a transition"),
        (None, "text is not the JSON of a transition"),
        ("[1]", r"text has schema \[1\]; this version reads schema 1"),
        ('{"schema": 2}', "text has schema 2; this version reads schema 1"),
        ('{"schema": 1, "schema": 1}', "the key 'schema' occurs twice"),
        ('{"schema": 1, "classes": ["a"]}', r"text lacks \['labels', 'proba'\]"),
        (
            '{"schema": 1, "classes": [], "labels": [], "proba": [], "noise": 1}',
            r"text names \['noise'\]",
        ),
        ('{"schema": 1, "classes": ["a"], "labels": [1], "proba": [[NaN]]}', "NaN is not allowed"),
        (
            '{"schema": 1, "classes": ["a"], "labels": [{}], "proba": [[1]]}',
            r"\(dict\) cannot name",
        ),
        ('{"schema": 1, "classes": "a", "labels": [1], "proba": [[1]]}', "must be a list of names"),
        ('{"schema": 1, "classes": ["a"], "labels": [1], "proba": [["x"]]}', "array of numbers"),
    ],
)
def test_bad_json_is_named_in_one_line(text, message):
    with pytest.raises(ValueError, match=message) as error:
        Transition.from_json(text)
    assert "\n" not in str(error.value)


@given(transitions())
def test_a_pandas_frame_comes_back_as_an_equal_transition(t):
    assert Transition(t.to_frame()) == t


@given(transitions())
def test_a_polars_frame_comes_back_with_its_names(t):
    texts = ["class", *map(str, t.labels)]
    assume(len(set(texts)) == len(texts) and len(set(map(str, t.classes))) == len(t.classes))
    assert Transition(t.to_frame("polars"), t.classes, t.labels) == t


def test_tuples_are_names_in_a_pandas_frame_not_levels():
    t = Transition.combine({"web": PETS}, sizes={"web": 1})
    frame = t.to_frame()
    assert frame.columns.nlevels == 1
    assert frame.columns[2] == ("web", "(unlabeled)")
    assert Transition(frame) == t


def test_a_polars_frame_of_text_is_read_without_names():
    frame = PETS.to_frame("polars")
    assert frame.columns == ["class", "cat", "dog", "(unlabeled)"]
    assert Transition(frame) == PETS


def test_polars_has_no_two_columns_of_one_text():
    with pytest.raises(ValueError, match=r"As text, the columns \['class', '1', '1'\].*use pandas"):
        Transition([[0.5, 0.5]], ["a"], [1, "1"]).to_frame("polars")


def test_a_frame_is_matched_by_names():
    frame = PETS.to_frame().loc[["other", "dog", "cat"], ["(unlabeled)", "cat", "dog"]]
    assert Transition(frame, PETS.classes, PETS.labels) == PETS
    assert Transition(frame).classes == ("other", "dog", "cat")


@pytest.mark.parametrize(
    ("names_given", "message"),
    [
        ({"classes": ["cat", "dog"]}, r"classes of transition names \['other'\]"),
        ({"labels": ["cat", "dog", None, "x"]}, r"labels of transition lacks \['x'\]"),
    ],
)
def test_a_frame_with_other_names_is_refused(names_given, message):
    with pytest.raises(ValueError, match=message):
        Transition(PETS.to_frame(), **names_given)


def test_a_frame_with_a_gap_is_refused():
    frame = PETS.to_frame()
    frame.iloc[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"row 'cat', column 0 is nan"):
        Transition(frame)


def test_only_two_libraries_have_frames():
    with pytest.raises(ValueError, match="library is 'dask'; it must be 'pandas' or 'polars'"):
        PETS.to_frame("dask")


def test_without_pandas_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'pandas: pip install "looselabels\[tables\]"'):
        PETS.to_frame()


# ---------------------------------------------------------------------------- how it looks


def test_repr_is_one_line_however_many_labels():
    assert repr(PETS) == "Transition(3 classes, 3 labels: 'cat', 'dog', '(unlabeled)')"
    assert repr(Transition.identity(range(99))) == (
        "Transition(99 classes, 99 labels: 0, 1, 2, 3, 4 and 94 more)"
    )


def test_only_an_exact_zero_is_displayed_as_zero():
    t = Transition([[1e-9, 1 - 1e-9], [0, 1]], ["a", "b"], ["x", "y"])
    assert str(t).splitlines()[1:] == ["a      1e-09  1", "b          0  1"]


def test_a_large_table_is_cut_in_the_middle():
    lines = str(Transition.identity(range(1000))).splitlines()
    assert len(lines) == 1 + 20 + 1
    assert lines[0].split() == ["class", *map(str, range(9)), "…", "999"]
    assert lines[-1].split() == ["999", *["0"] * 9, "…", "1"]


@pytest.mark.parametrize("name", ["<b>&", "a\nb\x1b[31m", "x" * 10**6])
def test_strange_names_are_kept_and_shown_escaped_and_short(name):
    t = Transition([[1.0]], [name], [name])
    assert t.classes == (name,)
    assert len(str(t).splitlines()) == 2
    assert "\x1b" not in str(t) + repr(t)
    assert len(str(t)) < 500
    assert len(repr(t)) < 500
    assert "<b>" not in t._repr_html_()
    assert t._repr_html_().count("<tr>") == 2


def test_a_label_is_right_for_all_of_its_meanings_also_if_it_has_the_name_of_one():
    """In one data set "dog" is a dog or an emu; in the other one emus have their own label."""
    meanings = {"cat": "cat", "dog": ["dog", "emu"], None: ["cat", "dog", "emu"]}
    coarse = Transition.from_meanings(meanings)
    assert_array_equal(coarse.is_right, [[1, 0, 0], [0, 1, 1], [1, 1, 1]])
    merged = Transition.combine(
        {"a": coarse, "b": Transition.identity(["cat", "dog", "emu"])}, sizes={"a": 1, "b": 1}
    )
    assert merged.is_right[list(merged.labels).index(("a", "dog"))].tolist() == [False, True, True]
    assert merged.is_right[list(merged.labels).index(("b", "dog"))].tolist() == [False, True, False]
