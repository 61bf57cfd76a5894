"""Whether a compiled model is right, compared with ONNX Runtime, onnx.reference or irc without passes."""

from irc.tools.check.models import CheckResult, check_model
from irc.tools.check.oracles import Tolerance, difference

__all__ = ["CheckResult", "Tolerance", "check_model", "difference"]
