"""Answers of several annotators from tables: columns, or a file with one answer per line."""

import pytest

from looselabels.command.answers import answers_in_columns, answers_in_file
from looselabels.command.identity import identify
from looselabels.command.labels import Labels
from looselabels.command.tables import TableError, read_table
from tests.command.calls import pd

SPELLING = Labels("")


def table(n_rows=12):
    """Return a table of named animals with the answers of three annotators."""
    kinds = ["cat", "dog"] * (n_rows // 2)
    return pd.DataFrame(
        {
            "name": [f"pet {k}" for k in range(n_rows)],
            "size": [k % 2 + k / 100 for k in range(n_rows)],
            "ann": kinds,
            "bob": [*kinds[:-1], "cat"],
            "eve": [None, *kinds[1:]],
        }
    )


@pytest.fixture
def pets(folder):
    """Write a table, and return a function that writes answers and reads them for this table."""
    table().drop(columns=["ann", "bob", "eve"]).to_csv("pets.csv", index=False)
    identity = identify(read_table("pets.csv"), "name", label=[])

    def read(lines, spelling=SPELLING, name="answers.csv"):
        (folder / name).write_text("\n".join(lines) + "\n")
        return answers_in_file(name, spelling, identity)

    return read


def lines(header="name,annotator,label"):
    """Return a file of answers: ann answers all rows, bob every second one."""
    frame = table()
    ann = [f"{pet},ann,{kind}" for pet, kind in zip(frame["name"], frame["ann"], strict=True)]
    return [header, *ann, *(f"pet {k},bob,dog" for k in range(0, 12, 2))]


# ------------------------------------------------------------------------------------------ columns


def test_each_column_is_an_annotator():
    found = answers_in_columns(table(), SPELLING, ["ann", "bob", "eve"])
    assert found.annotators == ("ann", "bob", "eve")
    assert found.labels == ("cat", "dog")
    assert len(found) == 12
    assert found.n_answers == 35  # an empty cell is no answer


def test_labels_are_spelled_as_in_one_column():
    frame = table().assign(eve=["?", " cat", *["dog"] * 10], bob="hound")
    spelling = Labels("", unlabeled=("?",), strip=True, merge={"hound": "dog"})
    found = answers_in_columns(frame, spelling, ["ann", "bob", "eve"])
    assert found.labels == ("cat", "dog")
    assert found.n_answers == 35


def test_an_unknown_column_is_named():
    with pytest.raises(TableError, match=r"no column 'anne'\. Did you mean 'ann'"):
        answers_in_columns(table(), SPELLING, ["anne", "bob"])


def test_a_word_that_matches_no_cell_is_a_warning():
    with pytest.warns(UserWarning, match="--unlabeled 'xx' matches no cell"):
        answers_in_columns(table(), Labels("", unlabeled=("xx",)), ["ann", "bob"])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (None, "contains no label"),
        ("cat", r"only one label, \['cat'\]; two are needed"),
        ([f"label {k}" for k in range(24)], "24 different labels"),
        ("(unlabeled)", "contains the text '\\(unlabeled\\)'"),
    ],
)
def test_columns_that_nothing_can_be_learned_from_are_refused(cells, message):
    frame = table(24).assign(ann=cells, bob=cells)
    with pytest.raises(ValueError, match=message):
        answers_in_columns(frame, SPELLING, ["ann", "bob"])


# --------------------------------------------------------------------------------------------- file


def test_a_file_has_one_answer_per_line(pets):
    found = pets(lines())
    assert found.annotators == ("ann", "bob")
    assert found.to_frame()["ann"].tolist() == ["cat", "dog"] * 6
    assert found.to_frame()["bob"].tolist() == ["dog", None] * 6


def test_three_columns_are_read_in_their_order(pets):
    assert pets(lines("item,worker,answer")) == pets(lines())


def test_named_columns_are_found_in_any_order(pets):
    header, *rest = lines()
    swapped = [",".join([*reversed(line.split(",")), "2026"]) for line in rest]
    assert pets(["label,annotator,name,year", *swapped]) == pets([header, *rest])
    assert pets(["label,annotator,row,year", *swapped]) == pets([header, *rest])


def test_other_columns_are_an_error_that_names_those_it_needs(pets):
    rest = lines()[1:]
    with pytest.raises(TableError, match="needs the columns 'name', 'annotator' and 'label'"):
        pets(["a,b,c,d", *(f"{line},2026" for line in rest)])


def test_answers_for_rows_that_are_not_in_the_table_are_named(pets):
    wrong = ["pet 98,ann,cat", "pet 99,bob,cat", "pet 98,bob,cat"]
    with pytest.raises(TableError) as error:
        pets([*lines(), *wrong])
    message = str(error.value)
    assert message.startswith("answers.csv, line 20: column 'name' of the table has no 'pet 98'.")
    assert "answers for 2 such rows: 'pet 98', 'pet 99'." in message
    with pytest.raises(TableError, match=r"answers for one such row: 'pet 98'\."):
        pets([*lines(), wrong[0]])


def test_two_answers_of_one_annotator_to_one_row_are_refused(pets):
    with pytest.raises(TableError) as error:
        pets([*lines(), "pet 3,ann,cat"])
    assert str(error.value) == (
        "answers.csv, line 5 and answers.csv, line 20: 'ann' answered 'pet 3' twice. Keep one of "
        "them."
    )


def test_an_empty_label_is_no_answer(pets):
    found = pets([*lines(), "pet 3,ann,", "pet 3,bob,?"], Labels("", unlabeled=("?",)))
    assert found == pets(lines())


def test_an_annotator_without_an_answer_is_kept(pets):
    assert pets([*lines(), "pet 3,eve,"]).annotators == ("ann", "bob", "eve")


@pytest.mark.parametrize("line", [",ann,cat", "pet 3,,cat"])
def test_an_answer_needs_a_row_and_an_annotator(pets, line):
    with pytest.raises(TableError, match=r"line 20: column .* is empty, but each answer needs"):
        pets([*lines(), line])


def test_identifiers_that_are_numbers_match_those_of_another_format(folder):
    table().assign(name=range(12)).to_csv("pets.csv", index=False)
    identity = identify(read_table("pets.csv"), "name", label=[])
    answers = pd.DataFrame({"name": [*range(12), 0], "annotator": [1] * 12 + [2], "label": "dog"})
    answers.loc[0, "label"] = "cat"
    answers.to_parquet("answers.parquet", index=False)
    found = answers_in_file("answers.parquet", SPELLING, identity)
    assert found.annotators == ("1", "2")
    assert found.n_answers == 13
