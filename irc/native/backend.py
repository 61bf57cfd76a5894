"""The backend ``native``: fusion groups as machine code.

This module imports neither llvmlite nor what emits code before a group is compiled: importing them takes as long as
many models run.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from irc import ops
from irc.ir.kinds import CONSTANT
from irc.runtime.backends import ArrayType, Backend, Declined

if TYPE_CHECKING:
    from irc.ir import Graph
    from irc.runtime.kernels.registry import Kernel


@cache
def unavailable() -> str:
    """Why there is no native code in this process; empty if there is."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return f"native code is for Linux on x86-64, not for {sys.platform} on {platform.machine()}"
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "native code is for CPython with its global lock"
    if find_spec("llvmlite") is None:
        return "llvmlite is not installed: pip install 'irc[native]'"
    return ""


class Native(Backend):
    """Compiles groups with llvmlite."""

    name: ClassVar[str] = "native"

    def __init__(self) -> None:
        self._groups: dict[Graph, Any] = {}

    def refuses(self, group: Graph) -> Declined | None:
        reason = unavailable()
        if reason:
            return Declined(reason)
        for node in group.nodes:
            if node.kind != CONSTANT and ops.find(node.kind, node.version) is None:
                return Declined(f"there is no code for {node.kind}")
        return None

    def compile_group(self, group: Graph, operands: tuple[ArrayType, ...]) -> Kernel | Declined:
        from irc.native.groups import Unsupported
        from irc.native.kernels import Pointwise

        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = Pointwise(list(group.nodes), list(group.inputs), list(group.outputs))
        try:
            return found.kernel(operands)
        except Unsupported as error:
            return Declined(str(error))
