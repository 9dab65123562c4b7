from looselabels._validation import (
    IdentifiabilityWarning as IdentifiabilityWarning,
)
from looselabels._validation import (
    InconsistentLabelWarning as InconsistentLabelWarning,
)
from looselabels.inference import Decoupling as Decoupling
from looselabels.inference import infer as infer
from looselabels.transition import Transition as Transition

__version__: str
__all__: list[str]
