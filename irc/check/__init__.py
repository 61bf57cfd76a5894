"""Is a compiled model right? ONNX Runtime, onnx.reference or irc without passes say what is."""

from irc.check.models import CheckResult, check_model
from irc.check.tolerance import Tolerance, difference

__all__ = ["CheckResult", "Tolerance", "check_model", "difference"]
