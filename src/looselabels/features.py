"""Tables with text, categories and dates as numbers, for any classifier.

The command `looselabels` encodes its tables in the same way, so that a DataFrame gives the same
results in Python as its file in the command.
"""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from looselabels._validation import short_repr
from looselabels.command.features import Features

__all__ = ["Features", "TableFeatures"]


class TableFeatures(TransformerMixin, BaseEstimator):
    """Turn the columns of a DataFrame into a float32 matrix, as the command does.

    Numbers are used as they are. Dates become days and their parts. Up to 40 categories become one
    column of 0 and 1 each. More categories and free text become 20 components of their n-grams
    (latent semantic analysis). Columns without information, such as identifiers, are ignored. Leave
    the column of labels out of the table.

    It needs pandas and pyarrow: ``pip install "looselabels[tables]"``.

    Parameters
    ----------
    columns : list of str, default=None
        The columns to use, even if they look like identifiers. None: all.
    impute : bool, default=False
        Whether to replace missing numbers by the median of their column, and to add a column that
        is 1 where a number was missing. Otherwise missing numbers are NaN, which forests and
        `DecoupledClassifier` with its default estimator accept.
    text : sequence of str, default=()
        Columns of words, even if most of their cells look like numbers, dates or identifiers.

    Attributes
    ----------
    features_ : Features
        How each column is encoded: ``used``, ``ignored`` (with reasons), ``notes`` on how columns
        were read, and ``image_shape`` if the columns are pixels. ``features_.save(folder)`` writes
        it without pickle.
    feature_names_in_ : array of str
        The columns of the table that was fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.5, 2, 4], "color": ["red", "blue", None]})
    >>> features = TableFeatures()
    >>> features.fit_transform(frame).shape
    (3, 4)
    >>> features.get_feature_names_out().tolist()
    ['size', 'color = blue', 'color = red', 'color is missing']
    >>> features.transform(pd.DataFrame({"size": [3.0], "color": ["red"]}))
    array([[3., 0., 1., 0.]], dtype=float32)
    """

    def __init__(self, columns=None, impute=False, text=()):
        self.columns = columns
        self.impute = impute
        self.text = text

    def fit(self, X, y=None):
        """Choose an encoding for each column of the DataFrame `X`; `y` is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X, y=None):
        """Fit to the DataFrame `X` and return its matrix, (n_rows, n_features); `y` is ignored."""
        frame = _as_pandas(X)
        found, matrix = Features.fit_transform(frame, **self.get_params())
        self.features_ = found
        self.feature_names_in_ = np.array(list(frame.columns), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return matrix

    def transform(self, X):
        """Return the matrix of a DataFrame, (n_rows, n_features).

        Columns are matched by name. Additional columns and new categories are ignored.
        """
        check_is_fitted(self)
        return self.features_.transform(_as_pandas(X))

    def get_feature_names_out(self, input_features=None):
        """Return the name of each column of the matrix; `input_features` is ignored."""
        check_is_fitted(self)
        return np.array([str(name) for name in self.features_.feature_names], dtype=object)


def _as_pandas(X):
    """Return a DataFrame of pandas, or raise if X has no named columns."""
    if not hasattr(X, "columns"):
        raise TypeError(
            f"TableFeatures takes a DataFrame of pandas or polars; X is {type(X).__name__} "
            f"{short_repr(getattr(X, 'shape', ''))}. Arrays of numbers need no encoding."
        )
    return X if hasattr(X, "iloc") else X.to_pandas(use_pyarrow_extension_array=True)
