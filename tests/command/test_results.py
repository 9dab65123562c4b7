"""The results of an audit, as they are written."""

import json

import numpy as np
import pytest

from looselabels import Transition
from looselabels._files import unexpected_files
from looselabels.auditing.audit import audit
from looselabels.command.features import Features
from looselabels.command.results import (
    AUDIT_FILES,
    COLUMNS,
    page_content,
    thumbnails,
    to_json,
    with_suggestions,
    write_audit,
)
from tests.command.calls import files, pd, read_csv


@pytest.fixture(scope="module")
def found(fitted):
    return audit(fitted.clf, fitted.y)


def test_the_summary_is_strict_json(fitted, found):
    content = page_content(
        found, fitted.labels, "data.csv", "looselabels audit", ["a note"], fitted.features, 7
    )
    again = json.loads(to_json(content), parse_constant=pytest.fail)
    assert again["warnings"] == ["a note"]
    assert again["columns"] == {"used": 2, "ignored": []}
    assert again["reproduce"]["seed"] == 7
    assert again["design"]["words"]
    with pytest.raises(ValueError, match="JSON"):
        to_json({"share": np.nan})


def test_suggestions_are_added_next_to_columns_of_the_same_name(fitted, found):
    after = with_suggestions(fitted.frame.assign(doubt="mine"), found)
    assert (after["doubt"] == "mine").all()
    np.testing.assert_array_equal(after["looselabels_doubt"], found.doubt)
    assert set(after["suggestion"]) == {"cat", "dog"}
    assert list(with_suggestions(fitted.frame, found).columns[3:]) == list(COLUMNS)


def test_an_audit_is_a_table_a_page_and_two_json_files(fitted, found, tmp_path):
    content = page_content(found, fitted.labels, "data.csv", "looselabels audit", [])
    for suffix in (".csv", ".parquet"):
        folder = tmp_path / suffix
        folder.mkdir()
        write_audit(folder, content, found, fitted.frame, suffix, images=None, excel_safe=False)
        assert files(folder) == [
            f"labels{suffix}",
            "report.html",
            "summary.json",
            "transition.json",
        ]
        assert unexpected_files(folder, AUDIT_FILES) == []
    assert len(read_csv(tmp_path / ".csv" / "labels.csv")) == 60
    text = (tmp_path / ".csv" / "transition.json").read_text(encoding="utf-8")
    assert Transition.from_json(text) == found.transition


def test_rows_of_pixels_get_thumbnails_in_the_order_of_the_page(fitted, found, rng):
    X = rng.integers(0, 256, (60, 64))
    pixels = Features.fit(pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)]))
    images = thumbnails(X, pixels, found)
    assert len(images) == 60
    np.testing.assert_array_equal(images[0], X[found.order[0]].reshape(8, 8))
    assert thumbnails(fitted.X, fitted.features, found) is None
    assert thumbnails(None, None, found) is None
