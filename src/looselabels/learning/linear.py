"""A regularized linear model of p(label | x): the alternative to the default forest.

Text and other sparse or wide data are predicted better by a linear model than by trees. Which of
the two predicts the labels better is decided by the labels themselves, out of sample.
"""

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


def linear_model(X):
    """Return a logistic regression for features like X: scaled if dense, as they are if sparse."""
    is_sparse = issparse(X)
    model = LogisticRegression(C=C_SPARSE if is_sparse else C, tol=TOLERANCE, max_iter=MAX_STEPS)
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
    try:  # a forest needs single precision
        check_array(X, accept_sparse=True, dtype=np.float32, ensure_all_finite="allow-nan")
    except (TypeError, ValueError):
        return False
    return True
