"""Plots: Display objects in the style of scikit-learn."""

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
        slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        self._write_names(ax.set_xticks, self.labels, **slanted)
        self._write_names(ax.set_yticks, self.classes)
        ax.set(xlabel="label", ylabel="class")
        if len(self.classes) * len(self.labels) <= MAX_CELLS:
            self._write_numbers()
        else:
            self.figure_.colorbar(self.im_, ax=ax, label="p(label | class)")
        return self

    @staticmethod
    def _write_names(set_ticks, names, **text_style):
        step = -(-len(names) // MAX_NAMES)  # of many names, only every second, third, …
        ticks = range(0, len(names), step)
        texts = [shown(names[i], 20) for i in ticks]
        # parse_math=False: a name such as "$5" is not a formula
        set_ticks(ticks, labels=texts, parse_math=False, **text_style)

    def _write_numbers(self):
        for y, row in enumerate(self.proba):
            for s, value in enumerate(row):
                # only an exact zero reads 0, because it is a promise; dark cells need light text
                self.ax_.text(
                    s,
                    y,
                    f"{value:.2g}",
                    ha="center",
                    va="center",
                    color="w" if value > 0.5 else "k",
                )
