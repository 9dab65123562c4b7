"""A regularized linear model of p(label | x): the alternative to the default forest.

Text and other sparse or wide data are predicted better by a linear model than by trees. Which of
the two predicts the labels better is decided by the labels themselves, out of sample.
"""

import warnings

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

C = 0.1  # inverse strength of the regularization of scaled features (benchmarks/quality_refit.py)
C_SPARSE = 1.0  # of sparse ones, which are mostly far below 1
TOLERANCE, MAX_STEPS = 1e-3, 300
MAX_STEPS_SPARSE = 100  # enough for TF-IDF; unscaled counts would not converge in 300 either


def linear_model(X, mean_copies=1.0):
    """Return a logistic regression for features like X: scaled if dense, as they are if sparse.

    It is regularized as strongly as without copies: C multiplies a sum over all rows.
    """
    is_sparse = _is_sparse(X)
    strength = (C_SPARSE if is_sparse else C) / mean_copies
    n_steps = MAX_STEPS_SPARSE if is_sparse else MAX_STEPS
    model = LogisticRegression(C=strength, tol=TOLERANCE, max_iter=n_steps)
    scaler = StandardScaler()
    if get_config()["enable_metadata_routing"]:  # nobody else can request it
        model.set_fit_request(sample_weight=True)
        scaler.set_fit_request(sample_weight=False)
    if is_sparse:
        return model
    return make_pipeline(SimpleImputer(keep_empty_features=True), scaler, model)


def is_table_of_numbers(X) -> bool:
    """Return whether a forest and a linear model can learn from rows like these.

    >>> is_table_of_numbers([[1.0, float("nan")]]), is_table_of_numbers(["a text"])
    (True, False)
    """
    finite = True if _is_sparse(X) else "allow-nan"  # sparse rows have no imputer
    try:  # a forest needs single precision
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_array(X, accept_sparse=True, dtype=np.float32, ensure_all_finite=finite)
    except (OverflowError, TypeError, ValueError):
        return False
    return True


def _is_sparse(X) -> bool:
    """Return whether scikit-learn learns from X as from a sparse matrix."""
    return issparse(X) or hasattr(X, "sparse")  # a DataFrame whose columns are all sparse
