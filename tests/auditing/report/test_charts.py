"""Coordinates of the charts."""

import re

import numpy as np
import pytest

from looselabels.auditing.report import _charts as charts
from looselabels.auditing.report._charts import Matrix


def matrix_of(proba):
    n_classes, n_labels = np.shape(proba)
    return Matrix(tuple(range(n_classes)), tuple(range(n_labels)), *[np.asarray(proba)] * 3)


# ---------------------------------------------------------------------------------------- heat map


def test_shades_cover_each_cell_once_and_zeros_never():
    proba = np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    merged = dict(charts._strokes(proba, merge=True))
    assert merged == {8: "M1 0h2", 10: "M0 1h1"}
    apart = dict(charts._strokes(proba, merge=False))
    assert apart[8].count("M") == 2


@pytest.mark.parametrize(("n", "numbers"), [(3, 9), (12, 144), (30, 900), (31, 0), (130, 0)])
def test_large_heat_maps_have_no_numbers(n, numbers):
    drawn = charts.heat_map(matrix_of(np.full((n, n), 1 / n)), (np.arange(n), np.arange(n)))
    assert len(drawn["numbers"]) == numbers
    assert drawn["width"] < 1000
    assert drawn["left_out"] == (max(0, n - 120),) * 2
    assert drawn["row_names"][0][1] == str(max(0, n - 120))  # the heaviest are kept


def test_only_numbers_with_an_interval_show_one():
    proba = np.array([[0.8, 0.2]])
    matrix = matrix_of(proba)._replace(low=proba - [[0.1, 0]])
    assert [number[2:4] for number in charts.heat_map(matrix)["numbers"]] == [
        ("80%", "70–80"),
        ("20%", ""),
    ]
    assert matrix.has_intervals
    assert not matrix_of(proba).has_intervals


def test_a_matrix_is_read_from_json_with_tuples_as_names():
    part = {"classes": ["cat"], "labels": [["web", "cat"], None], "proba": [[0.4, 0.6]]}
    matrix = Matrix.from_json(part | {"low": [[0.3, 0.5]], "high": [[0.5, 0.7]]})
    assert matrix.labels == (("web", "cat"), None)
    assert matrix.low.tolist() == [[0.3, 0.5]]
    assert Matrix.from_json(part).high.tolist() == [[0.4, 0.6]]
    assert Matrix.from_json({"classes": ["cat"], "labels": [None]}) is None
    assert Matrix.from_json(None) is None


# -------------------------------------------------------------------------------------------- flow


def test_bands_fill_their_nodes():
    rows = np.array([[10.0, 2.0], [0.1, 20.0]])
    drawn = charts.flow(rows, ["cat", "dog"], ["cat", "dog"], np.eye(2, dtype=bool))
    assert [band[2] for band in drawn["bands"]] == [
        "cat to cat: 10 rows",
        "cat to dog: 2 rows",
        "dog to dog: 20 rows",
    ]
    assert [band[1] for band in drawn["bands"]] == [True, False, True]
    # the second band of a label starts where the first ends
    first, second = (re.findall(r"-?[\d.]+", band[0]) for band in drawn["bands"][:2])
    assert second[1] == first[-1]
    heights = [sum(node[1] for node in drawn[side]) for side in ("left", "right")]
    assert heights[0] == pytest.approx(heights[1], abs=0.5)


def test_with_many_names_only_wrong_labels_are_drawn():
    n = 50
    rows, is_right = 100 * np.eye(n) + 1, np.eye(n, dtype=bool)
    drawn = charts.flow(rows, list(range(n)), list(range(n)), is_right)
    assert len(drawn["bands"]) == charts.MAX_BANDS
    assert not any(right for _, right, _ in drawn["bands"])
    assert drawn["hidden_right"] == 101 * n
    assert drawn["rest"] + len(drawn["bands"]) == n * (n - 1)


def test_without_rows_there_is_no_flow():
    assert charts.flow(np.zeros((2, 2)), ["a", "b"], ["a", "b"], np.eye(2, dtype=bool)) is None


# ------------------------------------------------------------------------------------- calibration


def test_reliability_points_lie_on_the_diagonal_where_prediction_and_observation_agree():
    bins = [{"confidence": p, "frequency": p, "count": n} for p, n in ((0.2, 10), (0.9, 40))]
    empty = {"confidence": None, "frequency": None, "count": 0}
    points = charts.reliability([*bins, empty])["points"]
    assert [x + y for x, y, *_ in points] == [340, 340]
    assert [radius for _, _, radius, _ in points] == [6.5, 10]
    assert points[0][3] == "predicted 20%, observed 20%, 10 rows"
