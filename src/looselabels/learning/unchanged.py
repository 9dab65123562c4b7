"""A fit that fails leaves the estimator as it was."""

from contextlib import contextmanager


@contextmanager
def unchanged_on_failure(estimator):
    """Restore all attributes of `estimator` if the block raises, Ctrl-C included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
