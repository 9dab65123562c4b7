"""The warnings of looselabels. Use them as categories of warning filters.

>>> import warnings
>>> warnings.simplefilter("ignore", IdentifiabilityWarning)
"""


class IdentifiabilityWarning(UserWarning):
    """Different class distributions explain the labels equally well."""


class InconsistentLabelWarning(UserWarning):
    """The data contain labels that the transition rules out."""
