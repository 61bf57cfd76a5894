"""``irc::append_``: Concat of two tensors that may leave the first where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array
from irc.runtime.memory.room import append

if TYPE_CHECKING:
    from irc.ir import Node


@kernel("irc::append_")
def append_(node: Node) -> Kernel:
    """The first input, then the second, along ``axis``; see `irc.runtime.memory.room.append` for where."""
    axis: int = node.attributes["axis"]

    def run(old: Array, new: Array) -> Array:
        return append(old, new, axis)[0]

    return run
