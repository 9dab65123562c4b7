"""The minimum of a smooth function of a few numbers."""

from looselabels._blocks import one_blas_thread


def minimize_smooth(function, start, bounds=None, **options):
    """Return SciPy's result of L-BFGS-B; `function` returns its value and its gradient.

    With so few numbers, BLAS threads only wait for each other: one thread takes a third of the
    processor time.

    >>> minimize_smooth(lambda x: ((x[0] - 3) ** 2, 2 * (x - 3)), [0.0]).x.round(6)
    array([3.])
    """
    from scipy.optimize import minimize

    with one_blas_thread():
        return minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
