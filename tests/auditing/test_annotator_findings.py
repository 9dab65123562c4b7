"""Annotators who break an assumption: the sentences about them."""

import numpy as np

from looselabels.annotations import Annotations
from looselabels.auditing.annotator_findings import find_constant, find_copies, find_pairs
from looselabels.estimation.agreement import AgreeingPair
from looselabels.transition import Transition
from tests.auditing.crowds import NAMES, crowd


def test_an_annotator_who_never_changes_is_named():
    annotations, truth = crowd()
    annotations = Annotations.from_table(annotations.to_frame().assign(lazy="cat"))
    typical = Transition([[0.8, 0.2], [0.2, 0.8]], NAMES, NAMES)
    (finding,) = find_constant(annotations, np.eye(2)[truth], typical)
    assert finding.words.startswith("All 200 answers of 'lazy' are 'cat'")


def test_pairs_that_agree_too_often_are_findings_and_the_rest_is_counted():
    annotations, _ = crowd()
    pairs = [AgreeingPair(0, 2, 120, 0.97, 0.8, 0.001)] * 8
    found = find_pairs(annotations, pairs)
    assert found[0].words.startswith(
        "'0' and '2' agree in 97% of the 120 rows that both answered; 80% are expected if all"
    )
    assert [finding.p_value for finding in found] == [0.001] * 5 + [None]
    assert found[-1].words.startswith("3 more pairs of annotators agree")


def test_a_copy_is_named_with_its_original():
    annotators = [{"name": "ann", "copy_of": None}, {"name": "bob", "copy_of": "ann"}]
    (finding,) = find_copies(annotators)
    assert finding.words.startswith("'bob' gave the same answers as 'ann' to all rows")
    assert find_copies([{"name": "ann"}]) == []
