"""The demo finds most of the errors that it planted."""

import numpy as np
import pytest

from looselabels._progress import listen
from looselabels.command.demo import CLASSES, audit_digits, spoiled_digits
from tests.command.calls import WRITTEN, files


def test_a_tenth_is_labeled_and_a_fifth_of_the_labels_is_wrong():
    _, classes, y = spoiled_digits(0)
    labeled = np.array([label is not None for label in y])
    assert set(classes) == set(CLASSES)
    assert labeled.mean() == pytest.approx(0.1, abs=0.02)
    assert (y != classes)[labeled].mean() == pytest.approx(0.2, abs=0.08)


def test_the_first_audit_is_written_and_progress_is_reported(tmp_path):
    reached = []
    with listen(lambda share, words: reached.append(share)):
        shares = audit_digits(tmp_path / "out", 1)
    assert shares.found > 0.6
    assert shares.right > 0.6
    assert reached[-1] == 1
    assert len(reached) > 100
    assert files(tmp_path / "out") == [name for name in WRITTEN if name != "model"]
    assert "data:image" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_four_of_five_planted_errors_are_found(tmp_path):
    shares = audit_digits(tmp_path / "out", 5)
    assert shares.found >= 0.8
    assert shares.right >= 0.75
