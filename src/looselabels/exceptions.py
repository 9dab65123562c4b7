"""The warnings of looselabels, to filter by.

warnings.simplefilter("ignore", looselabels.exceptions.IdentifiabilityWarning)
"""


class IdentifiabilityWarning(UserWarning):
    """The labels do not determine which class distribution is right."""


class InconsistentLabelWarning(UserWarning):
    """The data contain labels that the transition says cannot occur."""
