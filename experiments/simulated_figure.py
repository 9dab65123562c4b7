"""The figure of the simulated data, in four panels."""

import numpy as np

from experiments.simulated import BANDWIDTH, HALF_WIDTH, draw, square
from looselabels.datasets import gaussian_class_proba

# As in the paper: orange, turquoise and purple are labels; red, green and blue are classes.
LABELS = ("#E69F00", "#00A6A6", "#8E44AD", "#6E6E6E")
CLASSES = ("#D62728", "#2CA02C", "#1F4FD8", "#6E6E6E")
N_STEPS = 100
TITLES = (
    "(a) Samples of four Gaussians, regions of the true classes",
    "(b) Labels and their kernel densities",
    "(c) Regions of the most probable label",
    "(d) Regions of the inferred class; colors of samples: W",
)


def plot_simulated():
    """Return the figure of the first draw, in four panels."""
    from matplotlib.figure import Figure

    found, points = draw(0), square(N_STEPS)
    X, names = found.data.X, list(found.data.classes)
    label = np.array([3 if name is None else names.index(name) for name in found.labels])
    truth = np.array([names.index(name) for name in found.data.y])
    figure = Figure(figsize=(9, 9.9))
    figure.set_layout_engine("constrained", h_pad=0.1)  # space for the titles
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for ax, title in zip(axes, TITLES, strict=True):
        ax.set_title(title, loc="left", fontsize=10)
        ax.set(
            xlim=(-HALF_WIDTH, HALF_WIDTH),
            ylim=(-HALF_WIDTH, HALF_WIDTH),
            aspect="equal",
            xticks=[],
            yticks=[],
        )
        ax.spines[:].set_visible(True)
    _shade(axes[0], gaussian_class_proba(points), CLASSES)
    _scatter(axes[0], X, _rgb(CLASSES)[truth], np.full(len(X), True))
    for name, color in enumerate(LABELS[:3]):
        density = _density(points, X[label == name], X.std(axis=0)).reshape(N_STEPS, N_STEPS)
        levels = density.max() * np.array([0.05, 0.2, 0.5])
        axes[1].contour(*_mesh(points), density, levels, colors=color, linewidths=1)
    _shade(axes[2], found.kernels.predict_proba(points), LABELS)
    _shade(axes[3], found.class_proba(points), CLASSES)
    for ax in axes[1:3]:
        _scatter(ax, X, _rgb(LABELS)[label], label < 3)
    _scatter(axes[3], X, found.given @ _rgb(CLASSES), label < 3)
    for ax in axes[1:]:
        ax.scatter(*X[found.wrong].T, s=150, facecolors="none", edgecolors="k", linewidths=1.6)
    _legend(figure, names)
    return figure


def _shade(ax, proba, colors):
    """Color each point by its most probable column, paler for lower probabilities; draw borders."""
    best = proba.argmax(axis=1)
    certainty = (proba.max(axis=1, keepdims=True) - 0.25) / 0.75
    image = 1 - (0.15 + 0.4 * certainty) * (1 - _rgb(colors)[best])
    extent = (-HALF_WIDTH, HALF_WIDTH, -HALF_WIDTH, HALF_WIDTH)
    shape = (N_STEPS, N_STEPS)
    ax.imshow(image.reshape(*shape, 3), origin="lower", extent=extent, interpolation="nearest")
    for column in range(3):  # the last region is bordered by these three
        others = np.delete(proba, column, axis=1).max(axis=1)
        lead = (proba[:, column] - others).reshape(shape)
        ax.contour(*_mesh(square(N_STEPS)), lead, [0], colors="0.25", linewidths=0.7)


def _density(points, centers, scale):
    """Return the sum of kernels centered at `centers`, up to a constant factor."""
    distance = (((points[:, None] - centers) / scale) ** 2).sum(axis=2)
    return np.exp(-distance / (2 * BANDWIDTH**2)).sum(axis=1)


def _scatter(ax, X, colors, labeled):
    """Draw the samples, unlabeled ones smaller."""
    for rows, size, edge in ((~labeled, 14, "none"), (labeled, 42, "w")):
        ax.scatter(*X[rows].T, s=size, c=np.clip(colors[rows], 0, 1), edgecolors=edge, lw=0.7)


def _legend(figure, names):
    from matplotlib.lines import Line2D

    def dot(name, **style):
        return Line2D([], [], ls="", marker="o", label=name, **style)

    labels = [*(f"label “{name}”" for name in names[:3]), "unlabeled"]
    handles = []
    for label, label_color, name, class_color in zip(labels, LABELS, names, CLASSES, strict=True):
        handles += [dot(label, color=label_color), dot(f"class {name}", color=class_color)]
    handles.append(dot("wrong label", color="none", mec="k", mew=1.6, ms=11))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)


def _mesh(points):
    return points.T.reshape(2, N_STEPS, N_STEPS)


def _rgb(colors):
    from matplotlib.colors import to_rgb

    return np.array([to_rgb(color) for color in colors])
