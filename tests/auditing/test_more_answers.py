"""How many more answers settle a row: numbers that follow by hand, and a second route."""

import numpy as np
import pytest

from looselabels.auditing.more_answers import MOST, answers_to_settle


def symmetric(accuracy, n_classes=2):
    wrong = (1 - accuracy) / (n_classes - 1)
    return np.full((n_classes, n_classes), wrong) + (accuracy - wrong) * np.eye(n_classes)


def test_a_settled_row_needs_no_answer():
    proba = [[0.95, 0.05], [0.0, 1.0]]
    assert answers_to_settle(proba, symmetric(0.6)).tolist() == [0, 0]


def test_one_answer_of_an_expert_is_enough():
    assert answers_to_settle([[0.5, 0.5]], symmetric(0.96)).tolist() == [1]


def test_agreeing_answers_add_up():
    # odds of 9 after one answer and of 81 after two; 19 are needed, and 82 % of pairs agree
    assert answers_to_settle([[0.5, 0.5]], symmetric(0.9)).tolist() == [2]
    # a lead of three answers is needed: the first three agree in 54 % of the futures
    found = answers_to_settle([[0.5, 0.5]], symmetric(0.81), n_futures=2000)
    assert found.tolist() == [3]


def test_a_future_that_was_settled_once_stays_settled():
    # A lead of four answers gives odds of 6, where 4 are needed. 55 % of the futures have had this
    # lead by the tenth answer, but only 46 % have it after the tenth answer.
    proba = symmetric(0.61)
    found = answers_to_settle([[0.5, 0.5]], proba, settled=0.8, n_futures=2000)
    assert found.tolist() == [10]


def test_a_row_that_is_almost_settled_needs_fewer_answers():
    proba = [[0.5, 0.5], [0.9, 0.1]]
    open_row, almost = answers_to_settle(proba, symmetric(0.8))
    assert almost < open_row


@pytest.mark.parametrize("accuracy", [0.5, 0.55])
def test_answers_that_say_little_never_give_a_number(accuracy):
    assert answers_to_settle([[0.5, 0.5]], symmetric(accuracy)).tolist() == [np.inf]


def test_classes_that_annotators_confuse_stay_open():
    transition = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    confused, distinct = answers_to_settle([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]], transition)
    assert (confused, distinct) == (np.inf, 1)


def test_it_agrees_with_a_simulation_answer_by_answer():
    rng = np.random.default_rng(0)
    transition = np.array([[0.7, 0.2, 0.1], [0.15, 0.75, 0.1], [0.1, 0.2, 0.7]])
    proba = np.array([[0.6, 0.3, 0.1], [0.34, 0.34, 0.32], [0.86, 0.1, 0.04]])
    for row, found in zip(proba, answers_to_settle(proba, transition), strict=True):
        needed = [answers_of_one_future(rng, row, transition) for _ in range(2000)]
        shares = [np.mean(np.array(needed) <= k) for k in range(MOST + 1)]
        # the two routes draw different futures, so a share close to one half is a tie
        assert shares[int(found)] > 0.45
        assert shares[int(found) - 1] < 0.55


def answers_of_one_future(rng, proba, transition):
    of_class = rng.choice(len(proba), p=proba)
    for k in range(1, MOST + 1):
        proba = proba * transition[:, rng.choice(3, p=transition[of_class])]
        proba = proba / proba.sum()
        if proba.max() >= 0.95:
            return k
    return np.inf


def test_many_classes_and_equal_probabilities_are_possible():
    n_classes = 300
    proba = np.full((2, n_classes), 1 / n_classes)
    assert answers_to_settle(proba, symmetric(0.99, n_classes)).tolist() == [1, 1]


def test_rows_do_not_depend_on_each_other():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    together = answers_to_settle(proba, symmetric(0.8, 3))
    alone = [answers_to_settle(row[None], symmetric(0.8, 3))[0] for row in proba]
    assert together.tolist() == alone


def test_impossible_answers_are_no_error():
    transition = [[1.0, 0.0], [0.0, 1.0]]
    assert answers_to_settle([[0.5, 0.5], [0.9, 0.1]], transition).tolist() == [1, 1]


def test_a_table_without_rows_has_no_numbers():
    assert answers_to_settle(np.ones((0, 2)), symmetric(0.9)).tolist() == []
