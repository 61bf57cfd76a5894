"""Readers of other formats, ONNX and TorchScript, and the writer of ONNX. Each is imported when it is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irc.frontend import onnx as onnx
    from irc.frontend import onnx_export as onnx_export
    from irc.frontend import torchscript as torchscript

_LATE = ("onnx", "onnx_export", "torchscript")


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return import_module(f"irc.frontend.{name}")
    raise AttributeError(f"module 'irc.frontend' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
