"""A block that fails leaves all attributes as they were."""

from types import SimpleNamespace

import pytest

from looselabels.learning.unchanged import unchanged_on_failure


def change(estimator, error=None):
    """Replace an attribute, add one and remove one; then fail, if an error is given."""
    with unchanged_on_failure(estimator):
        estimator.alpha = 2
        estimator.coef_ = [1.0]
        del estimator.old_
        if error is not None:
            raise error("why")


@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt, SystemExit])
def test_a_block_that_raises_changes_no_attribute_and_the_error_is_passed_on(error):
    old = [0.0]
    estimator = SimpleNamespace(alpha=1, old_=old)
    with pytest.raises(error, match="why"):
        change(estimator, error)
    assert vars(estimator) == {"alpha": 1, "old_": [0.0]}
    assert estimator.old_ is old


def test_a_block_that_succeeds_keeps_its_changes():
    estimator = SimpleNamespace(alpha=1, old_=[0.0])
    change(estimator)
    assert vars(estimator) == {"alpha": 2, "coef_": [1.0]}


def test_of_two_nested_blocks_the_inner_one_restores_what_it_found():
    estimator = SimpleNamespace(alpha=0, old_=[0.0])
    with unchanged_on_failure(estimator):
        estimator.alpha = 1
        with pytest.raises(ValueError, match="why"):
            change(estimator, ValueError)
    assert vars(estimator) == {"alpha": 1, "old_": [0.0]}
