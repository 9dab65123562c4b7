"""Display objects, drawn without a screen."""

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
    display = Transition.partial(["cat", "dog"], negative="other").plot()
    assert isinstance(display, TransitionDisplay)
    assert tick_texts(display.ax_.xaxis) == ["cat", "dog", "(unlabeled)"]
    assert tick_texts(display.ax_.yaxis) == ["cat", "dog", "other"]
    assert display.im_.get_array().shape == (3, 3)
    assert display.im_.get_clim() == (0, 1)
    assert display.figure_ is display.ax_.figure


def test_a_small_matrix_has_its_numbers_in_the_cells():
    display = Transition.partial(["cat"], labeled=0.1, negative="other").plot()
    assert [text.get_text() for text in display.ax_.texts] == ["0.1", "0.9", "0", "1"]


def test_a_large_matrix_has_a_color_bar_instead_and_fewer_names():
    display = Transition.identity(range(90)).plot()
    assert not display.ax_.texts
    assert len(display.figure_.axes) == 2
    assert tick_texts(display.ax_.xaxis)[:2] == ["0", "5"]


def test_it_draws_on_the_axes_it_is_given():
    _, ax = pyplot.subplots()
    assert Transition.identity(["a", "b"]).plot(ax=ax).ax_ is ax


@pytest.mark.parametrize(
    "name", [r"$\foo$", "$", "_x", "a\nb\x00", "x" * 10_000, ("web", None), 1.5]
)
def test_any_name_can_be_drawn(name):
    display = Transition([[1.0]], ["class"], [name]).plot()
    display.figure_.canvas.draw()
    (text,) = tick_texts(display.ax_.xaxis)
    assert len(text) <= 30
    assert text.isprintable()


def test_without_matplotlib_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'matplotlib: pip install "looselabels\[plot\]"'):
        Transition.identity(["a", "b"]).plot()
