"""The table of docs/reliability.md is complete, and every test that it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
TEST = r"`(tests/[\w/]+\.py)::(test_\w+)`"
N_ROWS = 111


def rows():
    """Return the cells of each row of the tables: number, fault, what is done, tests."""
    lines = [line for line in PAGE.splitlines() if re.match(r"\| *\d+ *\|", line)]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


@cache
def functions_of(path):
    """Return the names of the test functions in a file, without running it."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_row_is_there_once_and_has_all_cells():
    assert [int(row[0]) for row in rows()] == list(range(1, N_ROWS + 1))
    for row in rows():
        assert len(row) == 4, row
        assert row[1].strip(), row
        assert row[2].strip(), row


def test_every_row_has_a_test_or_says_that_it_is_not_offered():
    for _, fault, answer, tests in rows():
        assert bool(re.search(TEST, tests)) != ("not offered" in answer), fault


def test_every_test_that_is_named_exists():
    named = re.findall(TEST, PAGE)
    assert len(named) >= N_ROWS
    for path, test in named:
        assert test in functions_of(path), f"{path}::{test}"


def test_a_test_that_does_not_exist_would_be_noticed():
    assert "test_every_row_is_there_once_and_has_all_cells" in functions_of(
        "tests/test_reliability.py"
    )
    assert "test_nothing" not in functions_of("tests/test_reliability.py")


def test_cells_of_tests_hold_nothing_else():
    for *_, tests in rows():
        assert re.fullmatch(rf" *({TEST}(, )?)* *", tests), tests
