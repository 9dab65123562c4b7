"""The tables and sentences about several answers per row."""

from dataclasses import replace

import pytest

from looselabels.command.consensus import annotators_table, describe, with_consensus
from looselabels.transition import Transition
from tests.auditing.crowds import NAMES, crowd
from tests.auditing.test_consensus import audited
from tests.command.calls import cells, pd


@pytest.fixture(scope="module")
def found():
    return audited(crowd(60)[0])


def test_the_table_has_no_number_above_ten(found):
    unsure = replace(found, transition=Transition([[0.55, 0.45], [0.45, 0.55]], NAMES, NAMES))
    table = with_consensus(pd.DataFrame({"x": range(60)}), unsure)
    assert set(table["more_answers"]) <= {str(n) for n in range(11)} | {">10"}
    assert (table["more_answers"] == ">10").any()
    assert table["more_answers"][table["probability"] >= 0.95].eq("0").all()


def test_columns_that_the_table_has_already_are_kept(found):
    table = with_consensus(pd.DataFrame({"consensus": ["by hand"] * 60}), found)
    assert table["consensus"].eq("by hand").all()
    assert set(table["looselabels_consensus"]) <= set(NAMES)


def test_each_annotator_has_a_row(found):
    table = annotators_table(found)
    assert table["annotator"].tolist() == [0, 1, 2]
    assert table["answers"].sum() == found.annotations.n_answers
    most = found.annotators[2]["confusions"][0]
    assert table["confusions"][2].startswith(f"{most[0]} as {most[1]} {most[2]:.1%}")


def test_a_copy_has_the_name_of_its_original(found):
    annotators = [one | {"copy_of": None if k else 1} for k, one in enumerate(found.annotators)]
    table = annotators_table(replace(found, annotators=annotators))
    assert cells(table[["copy_of"]]) == [["1"], [None], [None]]


def test_the_sentences_say_whether_there_are_features(found):
    assert "There are no features: classes follow from the answers alone." in describe(found, None)
