"""Plots: Display objects in the style of scikit-learn."""

import numpy as np

from looselabels._names import shown
from looselabels._validation import import_extra

MAX_CELLS = 150  # a larger matrix has a color bar instead of a number in each cell
MAX_NAMES = 20  # per axis


class TransitionDisplay:
    """Heat map of a transition as in figure 1 of the paper: rows are classes, columns are labels.

    Parameters
    ----------
    proba : array of shape (n_classes, n_labels)
    classes, labels : sequences of names

    Attributes
    ----------
    ax_, im_, figure_ : the matplotlib Axes, image and Figure; set by `plot`

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = TransitionDisplay([[0.1, 0.9], [0, 1]], ["cat", "other"], ["cat", None])
    >>> display = display.plot()
    >>> [text.get_text() for text in display.ax_.get_xticklabels()]
    ['cat', '(unlabeled)']
    """

    def __init__(self, proba, classes, labels):
        self.proba = proba
        self.classes = classes
        self.labels = labels

    def plot(self, ax=None):
        """Draw on `ax`, or on a new figure, and return the display."""
        pyplot = import_extra("matplotlib.pyplot", '"looselabels[plot]"')
        if ax is None:
            size = (1.5 + 0.7 * len(self.labels), 1.2 + 0.5 * len(self.classes))
            _, ax = pyplot.subplots(figsize=[min(side, 12) for side in size], layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.im_ = ax.imshow(self.proba, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        _write_names(ax, self.labels, self.classes)
        ax.set(xlabel="label", ylabel="class")
        if len(self.classes) * len(self.labels) <= MAX_CELLS:
            self._write_numbers()
        else:
            self.figure_.colorbar(self.im_, ax=ax, label="p(label | class)")
        return self

    def _write_numbers(self):
        # only an exact zero reads 0, because it is a promise
        texts = [[f"{value:.2g}" for value in row] for row in self.proba]
        _write_cells(self.ax_, texts, np.asarray(self.proba) > 0.5)


class AuditDisplay:
    """Two plots of an audit: how many rows have which doubt, and which classes labels stand for.

    Parameters
    ----------
    values : array of shape (n_rows,)
        The doubts of the labels, or the probabilities of unlabeled rows to be of a labeled class.
    flow : array of shape (n_labels, n_classes)
        The expected number of rows of each label that are of each class.
    classes, labels : sequences of names
    name : str
        What `values` are.

    Attributes
    ----------
    axes_, im_, figure_ : the two matplotlib Axes, the image and the Figure; set by `plot`

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> flow = [[18, 2], [1, 19]]
    >>> display = AuditDisplay([0.1, 0.9], flow, ["cat", "dog"], ["cat", "dog"], "doubt").plot()
    >>> [text.get_text() for text in display.axes_[1].texts]
    ['18', '2', '1', '19']
    """

    def __init__(self, values, flow, classes, labels, name):
        self.values = values
        self.flow = flow
        self.classes = classes
        self.labels = labels
        self.name = name

    def plot(self, axes=None):
        """Draw on two `axes`, or on a new figure, and return the display."""
        pyplot = import_extra("matplotlib.pyplot", '"looselabels[plot]"')
        if axes is None:
            size = (5 + 0.6 * len(self.classes), max(3, 1.2 + 0.5 * len(self.labels)))
            _, axes = pyplot.subplots(
                1, 2, figsize=[min(side, 12) for side in size], layout="constrained"
            )
        self.axes_, self.figure_ = axes, axes[0].figure
        self._draw_values(axes[0])
        self._draw_flow(axes[1])
        return self

    def _draw_values(self, ax):
        # most labels are right: without a logarithm, the others would not be visible
        ax.hist(self.values, bins=np.linspace(0, 1, 21), color="C0", log=len(self.values) > 0)
        ax.axvline(0.5, color="k", linestyle="--", linewidth=1)
        ax.set(xlabel=self.name, ylabel="rows", xlim=(0, 1))

    def _draw_flow(self, ax):
        rows = np.asarray(self.flow, dtype=float)
        share = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
        self.im_ = ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        _write_names(ax, self.classes, self.labels)
        ax.set(xlabel="class", ylabel="label", title="expected rows")
        if rows.size <= MAX_CELLS:
            texts = [[f"{value:,.0f}" if value >= 0.5 else "" for value in row] for row in rows]
            _write_cells(ax, texts, share > 0.5)
        else:
            self.figure_.colorbar(self.im_, ax=ax, label="p(class | label)")


def _write_names(ax, columns, rows):
    """Write the names of columns and rows; of many names, only every second, third, …"""
    slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    for set_ticks, names, style in (
        (ax.set_xticks, columns, slanted),
        (ax.set_yticks, rows, {}),
    ):
        ticks = range(0, len(names), -(-len(names) // MAX_NAMES))
        texts = [shown(names[i], 20) for i in ticks]
        # parse_math=False: a name such as "$5" is not a formula
        set_ticks(ticks, labels=texts, parse_math=False, **style)


def _write_cells(ax, texts, is_dark):
    """Write a text into each cell of a heat map; dark cells need light text."""
    for y, row in enumerate(texts):
        for s, text in enumerate(row):
            ax.text(s, y, text, ha="center", va="center", color="w" if is_dark[y][s] else "k")
