"""Real audits for the tests of the page; each is fitted once."""

import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.naive_bayes import GaussianNB

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition, audit
from looselabels.datasets import make_loose_labels
from tests.auditing.report.samples import SCRIPT

SPECIES = ("setosa", "versicolor", "virginica")
NAMES = ("cat", "dog", SCRIPT, "10", "9")  # a script, and numbers that are text


def iris_audit(design, **parameters):
    """Return the audit of irises whose labels are drawn from `design`."""
    X, y = load_iris(return_X_y=True)
    labels = make_loose_labels([SPECIES[k] for k in y], design, random_state=0)
    clf = DecoupledClassifier(GaussianNB(), cv=3, random_state=0, **parameters)
    return audit(clf.fit(X, labels), labels)


@pytest.fixture(scope="session")
def partly_labeled():
    """How the labels of most audits here arise: 70 % of rows have a label, 10 % are wrong."""
    return Transition.partial(SPECIES, labeled=0.7).with_noise(0.1)


@pytest.fixture(scope="session")
def noise_estimated(partly_labeled):
    return iris_audit(partly_labeled, noise="estimate")


@pytest.fixture(scope="session")
def specified(partly_labeled):
    return iris_audit(partly_labeled, transition=partly_labeled)


@pytest.fixture(scope="session")
def noise_specified(partly_labeled):
    return iris_audit(partly_labeled, noise=0.1)


@pytest.fixture(scope="session")
def positive_unlabeled():
    """Half of two species are labeled, the third never is; the labeling rates are estimated."""
    rates = [[0.5, 0, 0.5], [0, 0.5, 0.5], [0, 0, 1]]
    design = Transition(rates, classes=SPECIES, labels=[*SPECIES[:2], None])
    return iris_audit(design, negative="virginica", class_prior="best-bin")  # the fastest method


@pytest.fixture(scope="session")
def five_digits():
    """The digits 0 to 4 under other names, one of them a script; 10 % of labels are wrong."""
    X, y = load_digits(n_class=5, return_X_y=True)
    design = Transition.identity(NAMES).with_noise(0.1)
    labels = make_loose_labels([NAMES[k] for k in y], design, random_state=0)
    forest = BalancedForestClassifier(50, min_samples_leaf=3, random_state=0)
    clf = DecoupledClassifier(forest, noise="estimate", random_state=0)
    return audit(clf.fit(X, labels), labels)
