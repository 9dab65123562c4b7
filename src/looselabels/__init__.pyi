from looselabels.auditing.audit import audit as audit
from looselabels.auditing.diagnose import diagnose as diagnose
from looselabels.estimation.class_prior import estimate_class_prior as estimate_class_prior
from looselabels.estimation.transition import estimate_transition as estimate_transition
from looselabels.inference import infer as infer
from looselabels.learning.classifier import DecoupledClassifier as DecoupledClassifier
from looselabels.learning.density import KernelDensityClassifier as KernelDensityClassifier
from looselabels.learning.forest import BalancedForestClassifier as BalancedForestClassifier
from looselabels.learning.persistence import load as load
from looselabels.learning.persistence import save as save
from looselabels.transition import Transition as Transition

__version__: str
__all__: list[str]
