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
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import check_array

C = 0.1  # inverse strength of the regularization of scaled features (benchmarks/quality_refit.py)
C_SPARSE = 1.0  # of sparse ones, which are mostly far below 1
TOLERANCE, MAX_STEPS = 1e-3, 300
MAX_WORDS = 30  # of a column of a DataFrame; rarer ones share a column
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


def as_numbers(X):
    """Return rows that a forest and a linear model can learn from in place of X, or None.

    In a DataFrame, frequent words of a column become columns of their own. A column with a word of
    its own in most rows is left out: it has texts or identifiers.

    >>> import pandas as pd
    >>> as_numbers(pd.DataFrame({"size": [1, 2, 3, 4], "color": ["red", "red", "blue", "blue"]}))
    array([[1., 0., 1.],
           [2., 0., 1.],
           [3., 1., 0.],
           [4., 1., 0.]], dtype=float32)
    """
    if is_table_of_numbers(X):
        return X
    if not hasattr(X, "iloc") or X.ndim != 2:  # a Series of texts, for one
        return None
    columns = (_column_as_numbers(X.iloc[:, [k]]) for k in range(X.shape[1]))
    found = [column for column in columns if column is not None]
    return np.hstack(found) if found else None


def _column_as_numbers(column):
    if is_table_of_numbers(column):
        return check_array(column, dtype=np.float32, ensure_all_finite="allow-nan")
    words = column.astype(object).map(str).to_numpy(dtype=str)
    if len(np.unique(words)) > len(words) / 2:
        return None
    encoder = OneHotEncoder(max_categories=MAX_WORDS, sparse_output=False, dtype=np.float32)
    return encoder.fit_transform(words)


def _is_sparse(X) -> bool:
    """Return whether scikit-learn learns from X as from a sparse matrix."""
    return issparse(X) or hasattr(X, "sparse")  # a DataFrame whose columns are all sparse
