"""The command `looselabels`: words in, words out. Nothing heavy is imported before it is needed."""

import click

from looselabels import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main():
    """Learn classes from labels that are not quite the classes.

    \b
    Examples:
      looselabels demo          infer classes on simulated data, with named tables
    """


@main.command()
@click.option("--seed", default=0, show_default=True, help="Seed of the simulation.")
def demo(seed):
    """Infer classes from partial, noisy labels of four Gaussians.

    Three classes are labeled now and then, sometimes wrongly; the fourth, "other", never is.
    """
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier

    from looselabels.datasets import make_gaussians, make_loose_labels
    from looselabels.inference import condition_on_label, infer
    from looselabels.transition import Transition

    data = make_gaussians(4000, random_state=seed)
    design = Transition.partial(data.classes[:3], labeled=0.3, negative="other").with_noise(0.05)
    labels = make_loose_labels(data.y, design, random_state=seed)
    index = design.label_index(labels)
    forest = RandomForestClassifier(200, min_samples_leaf=10, oob_score=True, random_state=seed)
    label_proba = forest.fit(data.X, index).oob_decision_function_

    found = infer(label_proba, design, pseudocounts=1000 * design.proba)
    given_label = condition_on_label(found.class_proba, found.transition, index)
    truth = np.array([data.classes.index(name) for name in data.y])
    click.echo(f"4000 points, {np.mean(index < 3):.0%} labeled. How labels arise:\n\n{design}\n")
    click.echo(f"Inferred:\n\n{Transition(found.transition, design.classes, design.labels)}\n")
    click.echo("Right class, of all points:")
    as_given = np.where(index < 3, index, 3)
    for words, guess in {
        "the label as given (unlabeled = other)": as_given,
        "the label the forest predicts": label_proba.argmax(axis=1),
        "p(class | x)": found.class_proba.argmax(axis=1),
        "p(class | x, label)": given_label.argmax(axis=1),
        "the best possible from x alone": data.class_proba.argmax(axis=1),
    }.items():
        click.echo(f"  {np.mean(guess == truth):6.1%}  {words}")
    click.echo(f"\nMean gap {found.gap.mean():.1e} nats after {found.n_iter} passes.")
