"""Whether a compiled model is right, compared with ONNX Runtime, onnx.reference or irc without passes."""

from irc.check.models import CheckResult, check_model
from irc.check.tolerance import Tolerance, difference

__all__ = ["CheckResult", "Tolerance", "check_model", "difference"]
