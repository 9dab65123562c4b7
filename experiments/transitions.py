"""Figure 1 of the paper: the transitions of seven learning problems."""

from looselabels import Transition


def designs() -> dict[str, Transition]:
    """Return the seven transitions of figure 1; docs/transitions.md explains them."""
    meanings = {
        "s1": "dog", "s2": "cat", "s3": {"-": 0.8, "dog": 0.1, "cat": 0.1}, "s4": ["-", "dog"],
    }  # fmt: skip
    pair, partial = ["a", "b"], Transition.partial
    rates = {"a": 0.1, "b": 0.2, "c": 0.3}
    return {
        "(a) supervised": Transition.identity(["+", "-"]),
        "(b) positive-unlabeled": partial(["+"], labeled=0.1, negative="-"),
        "(c) semi-supervised": partial(pair, labeled=0.1),
        "(d) with a negative class": partial(pair, labeled=0.1, negative="-"),
        "(e) several positive classes": partial(rates, labeled=rates, negative="-"),
        "(f) and noisy labels": partial(pair, labeled=0.1, negative="-").with_noise(0.01),
        "(g) data integration": Transition.from_meanings(meanings, classes=["-", "dog", "cat"]),
    }


def table() -> list[dict]:
    """Return the numbers of the figure: all nonzero p(label | class)."""
    return [
        {"design": title, "class": name, "label": label, "probability": float(value)}
        for title, design in designs().items()
        for name, row in zip(design.classes, design.proba, strict=True)
        for label, value in zip(design.labels, row, strict=True)
        if value > 0
    ]
