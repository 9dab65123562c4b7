"""Progress is reported to whoever listens, and changes nothing."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from looselabels import BalancedForestClassifier, DecoupledClassifier
from looselabels._progress import each, listen, steps

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = np.where(X[:, 0] > 0, "a", "b")
FOREST = BalancedForestClassifier(10, random_state=0)


def reports(work, *arguments):
    """Return the shares and the words that `work` reports."""
    found = []
    with listen(lambda share, words: found.append((share, words))):
        work(*arguments)
    return found


def divided():
    with steps(1, 2, 0, 1) as begin:
        begin("first")
        begin("second")
        for _ in each("ab", 2):
            with steps(1, 1) as begin_part:
                begin_part()
                begin_part("part")
        begin("free")
        begin("last")


def test_steps_are_divided_in_proportion_to_their_costs():
    assert reports(divided) == [
        *((0, "first"), (0.25, "second")),
        *((0.25, "second"), (0.375, "part"), (0.5, "part"), (0.5, "second")),
        *((0.5, "second"), (0.625, "part"), (0.75, "part"), (0.75, "second")),
        *((0.75, "last"), (1, "last")),
    ]


def test_nobody_needs_to_listen():
    divided()
    assert list(each("ab", 5)) == ["a", "b"]


def test_an_item_takes_its_part_while_it_is_made():
    def made():
        for _ in range(2):
            yield list(each("ab", 2))

    def work():
        list(each(made(), 2))

    assert [share for share, _ in reports(work)] == [0.25, 0.5, 0.5, 0.75, 1, 1]


def test_what_follows_gets_what_is_left():
    def work():
        list(each("abc", 4))
        list(each("ab", 2))
        list(each("", 0))

    assert [share for share, _ in reports(work)] == [0.25, 0.5, 0.75, 0.875, 1]


def test_more_items_than_expected_do_not_exceed_the_step():
    def work():
        with steps(1, 1) as begin:
            begin()
            list(each("abcd", 2))
            begin()

    assert [share for share, _ in reports(work)] == [0, 0.25, 0.5, 0.5, 0.5, 0.5, 1]


def fail():
    with steps(1, 1) as begin:
        begin()
        raise ZeroDivisionError


def test_after_a_failure_or_a_break_the_next_step_begins_where_it_should():
    def work():
        with steps(1, 1) as begin:
            begin()
            with pytest.raises(ZeroDivisionError):
                fail()
            for _ in each("ab", 2):
                break
            begin()

    assert [share for share, _ in reports(work)] == [0, 0, 0.5, 1]
    assert reports(list, "ab") == []
    list(each("ab", 2))  # nobody listens any more


@pytest.mark.parametrize("listens", [False, True])
def test_what_makes_the_items_stops_when_they_are_no_longer_used(listens):
    stopped = []

    def made():
        try:
            yield from range(3)
        finally:
            stopped.append(True)

    items = made()  # has a name, so that it is not closed by being forgotten

    def work():
        for _ in each(items, 3):
            break
        assert stopped

    reports(work) if listens else work()


@pytest.mark.parametrize(
    ("estimator", "settings", "least"),
    [
        (FOREST, {"refit": 1}, 20),
        (FOREST, {"refit": True}, 30),
        (FOREST, {"cv": 3, "noise": "estimate", "refit": False}, 40),
        (LogisticRegression(), {"refit": True, "n_jobs": 2}, 20),
        (LogisticRegression(), {"refit": False}, 6),
    ],
)
def test_a_fit_moves_on_with_its_trees_and_folds(estimator, settings, least):
    settings = {"random_state": 0, **settings}
    silent = DecoupledClassifier(estimator, **settings).fit(X, Y)
    clf = DecoupledClassifier(estimator, **settings)
    shares = [share for share, _ in reports(clf.fit, X, Y)]
    assert len(set(shares)) >= least
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert_array_equal(clf.class_proba_given_label_, silent.class_proba_given_label_)
