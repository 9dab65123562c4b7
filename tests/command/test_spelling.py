"""Spellings of labels."""

import pytest

from looselabels.command.labels import cells_as_labels
from looselabels.command.spelling import describe_variants, read_merges, spelling_variants
from tests.command.calls import pd


def test_merges_are_read_from_words_and_files(tmp_path):
    table, mapping = tmp_path / "merge.csv", tmp_path / "a=b.json"
    table.write_text("from,to\n=x,y\n")
    mapping.write_text('{"c": "d"}')
    words = ["a=b", r"p\=q=r", str(table), str(mapping), "d=e"]
    assert read_merges(words) == {"a": "b", "p=q": "r", "=x": "y", "c": "e", "d": "e"}


def test_a_merge_fits_each_spelling_of_a_number_or_a_bool():
    for words in (["True=TRUE"], ["true=TRUE"], ["TRUE=TRUE", "True=TRUE"], ["yes=True", "1=TRUE"]):
        merge = read_merges([*words, "True=TRUE"])
        cells = pd.Series(["True", "TRUE", "true", "no"])
        assert cells_as_labels(cells, merge=merge) == ["TRUE", "TRUE", "TRUE", "no"]
    for words, kept in ((["1=1.0"], "1.0"), (["1.0=1"], "1"), (["1.0=one", "one=yes"], "yes")):
        assert cells_as_labels(pd.Series(["1", "1.0"]), merge=read_merges(words)) == [kept, kept]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a=b", "a=c"], r"'a' is mapped to each of \['b', 'c'\]; keep one"),
        (["a=b", "b=a"], "form a circle; name the label to keep"),
        (["a="], "names no label. Is it --unlabeled 'a'"),
        (["x.json"], "is not valid JSON"),
        (["y.json"], "must map labels to labels"),
        (["x.csv"], r"must have the columns from and to; it has \['a', 'b'\]"),
        (["y.csv"], "'a' names no label"),
    ],
)
def test_merges_that_contradict_each_other_are_refused(words, message, folder):
    (folder / "x.json").write_text("{")
    (folder / "y.json").write_text('{"a": 1}')
    (folder / "x.csv").write_text("a,b\nc,d\n")
    (folder / "y.csv").write_text("from,to\na,\n")
    with pytest.raises(ValueError, match=message):
        read_merges(words)


def test_labels_that_differ_only_in_case_or_spaces_are_variants():
    counts = {"cat": 3, "Cat ": 5, "dog": 1, "dog ": 9, "DOG": 0, "cow": 2, None: 4, 7: 1}
    found = spelling_variants(counts, "looselabels audit x.csv")
    assert [variant["labels"] for variant in found] == [["Cat ", "cat"], ["DOG", "dog", "dog "]]
    assert found[0]["options"] == "--merge 'Cat =Cat' --merge cat=Cat"
    assert {variant["command"] for variant in found} == {  # one command for all of them
        "looselabels audit x.csv --merge 'Cat =Cat' --merge cat=Cat --merge DOG=dog "
        "--merge 'dog =dog' --force"
    }
    assert describe_variants(found) == [
        "Labels ['Cat ', 'cat'] differ only in case or spaces.",
        "Labels ['DOG', 'dog', 'dog '] differ only in case or spaces. To merge all of these, add "
        "--merge 'Cat =Cat' --merge cat=Cat --merge DOG=dog --merge 'dog =dog'.",
    ]
    assert describe_variants([]) == []
    assert spelling_variants({"a b": 1, "a  b": 1, " a b": 1})[0]["options"] == "--strip"
    assert spelling_variants({"a": 1, "b": 1}) == []


def test_numbers_with_and_without_a_decimal_are_variants():
    found = spelling_variants({"1.0": 7, "1": 3, "10": 2, "1.5": 1, "v1": 1, "v1.0": 1})
    assert describe_variants(found) == [
        "Labels ['1', '1.0'] are spellings of one number. To merge them, add --merge 1=1.0."
    ]
    (found,) = spelling_variants({"2.0": 1, "2": 9, " 2": 1})
    assert found["options"] == "--merge ' 2=2' --merge 2.0=2"


def test_variants_have_the_same_order_in_every_run():
    labels = [letter + space for letter in "hgfedcba" for space in ("", " ")]
    for counts in (dict.fromkeys(labels, 2), dict.fromkeys(labels[::-1], 2)):
        found = spelling_variants(counts)
        assert [variant["labels"][0] for variant in found] == list("abcdefgh")
        assert found[0]["command"] == "--strip --force"  # once
