"""Display objects, drawn without a screen by the Agg backend."""

import sys

import pytest

from looselabels.plotting import TransitionDisplay
from looselabels.transition import Transition

matplotlib = pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def tick_texts(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def test_classes_are_rows_and_labels_are_columns():
    t = Transition.partial(["cat", "dog"], negative="other")
    display = t.plot()
    assert isinstance(display, TransitionDisplay)
    assert tick_texts(display.ax_.xaxis) == ["cat", "dog", "(unlabeled)"]
    assert tick_texts(display.ax_.yaxis) == ["cat", "dog", "other"]
    assert display.im_.get_array().tolist() == t.proba.tolist()
    assert display.im_.get_clim() == (0, 1)
    assert display.figure_ is display.ax_.figure


def test_a_small_matrix_has_its_numbers_in_the_cells():
    display = Transition.partial(["cat"], labeled=0.1, negative="other").plot()
    assert [text.get_text() for text in display.ax_.texts] == ["0.1", "0.9", "0", "1"]
    assert [text.get_color() for text in display.ax_.texts] == ["k", "w", "k", "w"]
    assert len(display.figure_.axes) == 1


def test_a_large_matrix_has_a_color_bar_instead_and_fewer_names():
    display = Transition.identity(range(90)).plot()
    assert not display.ax_.texts
    assert len(display.figure_.axes) == 2
    assert tick_texts(display.ax_.xaxis) == [str(k) for k in range(0, 90, 5)]


def test_it_draws_on_the_axes_it_is_given():
    _, ax = pyplot.subplots()
    assert Transition.identity(["a", "b"]).plot(ax=ax).ax_ is ax


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (r"$\foo$", r"$\foo$"),
        ("$", "$"),
        ("_x", "_x"),
        ("a\nb\x00", r"a\nb\x00"),
        ("x" * 10_000, "x" * 19 + "…"),
        (("web", None), "web: (unlabeled)"),
        (1.5, "1.5"),
    ],
)
def test_any_name_can_be_drawn(name, text):
    display = Transition([[1.0]], ["class"], [name]).plot()
    display.figure_.canvas.draw()
    assert tick_texts(display.ax_.xaxis) == [text]


def test_without_matplotlib_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'matplotlib: pip install "looselabels\[plot\]"'):
        Transition.identity(["a", "b"]).plot()
