"""The public name of `irc.tools.check`: whether a compiled model is right."""

from irc.tools.check import CheckResult, Tolerance, check_model, difference

__all__ = ["CheckResult", "Tolerance", "check_model", "difference"]
