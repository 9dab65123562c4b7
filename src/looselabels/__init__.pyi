from looselabels._validation import (
    IdentifiabilityWarning as IdentifiabilityWarning,
)
from looselabels._validation import (
    InconsistentLabelWarning as InconsistentLabelWarning,
)
from looselabels.auditing import Audit as Audit
from looselabels.auditing import audit as audit
from looselabels.class_prior import estimate_class_prior as estimate_class_prior
from looselabels.classifier import DecoupledClassifier as DecoupledClassifier
from looselabels.classifier import neg_label_log_loss as neg_label_log_loss
from looselabels.density import KernelDensityClassifier as KernelDensityClassifier
from looselabels.diagnostics import diagnose as diagnose
from looselabels.estimate import estimate_transition as estimate_transition
from looselabels.forest import BalancedForestClassifier as BalancedForestClassifier
from looselabels.inference import Decoupling as Decoupling
from looselabels.inference import infer as infer
from looselabels.out_of_sample import LabelStratifiedKFold as LabelStratifiedKFold
from looselabels.persistence import load as load
from looselabels.persistence import save as save
from looselabels.transition import Transition as Transition

__version__: str
__all__: list[str]
