"""Real audits for the tests of the page, each fitted once, and a browser to open it in."""

import shutil

import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.naive_bayes import GaussianNB

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition, audit
from looselabels.auditing.report import render
from looselabels.datasets import make_loose_labels
from tests.auditing.report.samples import SCRIPT, content_of

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


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def content(five_digits):
    """A real audit with five classes, one of them named by a script."""
    return content_of(five_digits) | {"data": "animals.csv"}


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page. At the end, check that it logged nothing and loaded nothing."""
    errors, requests, pages = [], [], []

    def opened(content, images=None, **settings):
        path = tmp_path / "report.html"
        path.write_text(render(content, images), encoding="utf-8")
        page = browser.new_page(**settings)
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert errors == []
    assert requests
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)
