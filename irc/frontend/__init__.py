"""Readers of ONNX and TorchScript, and the writer of ONNX, each imported on first use."""

from typing import TYPE_CHECKING

from irc.support.lazy import lazy_getattr

if TYPE_CHECKING:
    from irc.frontend import onnx as onnx
    from irc.frontend import onnx_export as onnx_export
    from irc.frontend import torchscript as torchscript

__getattr__, __dir__ = lazy_getattr(__name__, dict.fromkeys(("onnx", "onnx_export", "torchscript"), ""))
