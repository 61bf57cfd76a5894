"""Kernels: what an operator computes, in NumPy.

There is one module for each family, imported when its first operator is bound
(`registry.module_of`). `bind` turns a node into the function that computes it, `means`
tells what computes it.

Kernels are called with NumPy's floating-point warnings switched off: infinities
and NaNs are results like any other, and the caller of kernels wraps the whole
run in one ``np.errstate(all="ignore")``.
"""

from __future__ import annotations

from typing import Literal

from irc.errors import Error
from irc.ir import Node
from irc.runtime.kernels import fallback
from irc.runtime.kernels.registry import Kernel, find_binder


def means(node: Node) -> Literal["own", "reference"] | None:
    """How ``node`` can be computed: by a kernel of irc's own, by ``onnx.reference``, or not at all."""
    if find_binder(node.kind, node.version) is not None:
        return "own"
    return "reference" if fallback.serves(node) else None


def bind(node: Node) -> Kernel:
    """The function that computes ``node``: irc's own kernel, else the adapter over ``onnx.reference``.

    Raises:
        Error: IRC321 if there is neither; others if an attribute has a value that the kernel refuses.
    """
    binder = find_binder(node.kind, node.version)
    if binder is not None:
        return binder(node)
    why = fallback.refusal(node)
    if why is not None:
        version = "" if node.version is None else f", version {node.version}"
        raise Error("IRC321", f"irc cannot compute {node.kind}{version}: {why}")
    return fallback.bind(node)
