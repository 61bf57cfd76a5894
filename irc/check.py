"""The public name of `irc.tools.check`: whether a compiled model is right."""

from irc.tools.check import CheckResult, Tolerance, check_model, difference
from irc.tools.layers import Layers, compare_layers

__all__ = ["CheckResult", "Layers", "Tolerance", "check_model", "compare_layers", "difference"]
