"""Constants in the form that operators compute with, made by the first run that needs it and kept for all others.

Weights of 8 or 16 bits stay what they are in graphs and files. Operators compute
with floats of 32 bits, and to make these anew takes longer than most products
with them. What is kept is read-only, like the constants themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irc.ir.tensor import Tensor
from irc.runtime.binding import binder_of_others, takes_out
from irc.runtime.guards.bounds import CURRENT
from irc.runtime.kernels.support import Array, is_half, widened

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.ir import Node, Value
    from irc.runtime.kernels.registry import Kernel

MOST_BYTES = 1 << 30
"""What all that is kept for one graph may take."""

_ITEM = 4
"""Bytes of an element that is kept, of a constant whose elements have less: at most so many times its size."""

_COMPUTED = "onnx::DequantizeLinear"
"""Its results are kept."""

_WIDENED = {
    "onnx::MatMul": (1,),
    "onnx::Einsum": (1, 2),
    **dict.fromkeys(("onnx::Gemm", "onnx::Conv", "onnx::ConvTranspose"), (1, 2)),
    **dict.fromkeys(("onnx::RNN", "onnx::GRU", "onnx::LSTM"), (1, 2, 3)),
}
"""Operators that sum products of halves in float32, and which operands they take as float32, too."""


class Kept:
    """A function of constants that is called once.

    Runs whose memory is limited keep nothing: what they make is theirs, and counts. Threads that call it at the same
    time for the first time each make it, and one of them keeps it.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: Kernel) -> None:
        self._make = make
        self._made: Any = None

    def __call__(self, *constants: Any) -> Any:
        made = self._made
        if made is None:
            made = self._make(*constants)
            if CURRENT.guard is None or not CURRENT.guard.counts_bytes:
                made.flags.writeable = False
                self._made = made  # last: whole, or, after an interrupt, not at all
        return made


class Preparations:
    """What is kept for one graph, shared by all of its plans: of each constant no more than one thing.

    Attributes:
        lasting: nodes whose results may be kept: see `lasting_nodes`.
    """

    def __init__(self) -> None:
        self.lasting: set[Node] = set()
        self._used: set[int] = set()  # by identity, of tensors that the graph keeps
        self._wide: dict[int, Kept] = {}  # likewise
        self._left = MOST_BYTES

    def kernel(self, node: Node, kernel: Kernel) -> Kernel:
        """``kernel`` of ``node``, or one that keeps what it makes of constants."""
        if binder_of_others(node) is not None:
            return kernel
        if node in self.lasting:
            tensor = _constant(node.inputs[0])
            return Kept(kernel) if tensor is not None and self._take(tensor) else kernel
        operands = [i for i in _WIDENED.get(node.kind, ()) if i < len(node.inputs)]
        wide = {i: kept for i in operands if (kept := self._widened(node.inputs[i])) is not None}
        return _with(wide, kernel) if wide else kernel

    def _widened(self, value: Value) -> Kept | None:
        tensor = _constant(value)
        if tensor is None or not is_half(tensor.dtype.numpy):
            return None
        if id(tensor) not in self._wide and self._take(tensor):
            self._wide[id(tensor)] = Kept(widened)
        return self._wide.get(id(tensor))

    def _take(self, tensor: Tensor) -> bool:
        """Whether something may be made of ``tensor``: nothing has been yet, and there is room."""
        size = tensor.numel * _ITEM
        if tensor.is_splat or id(tensor) in self._used or size > self._left:
            return False
        self._used.add(id(tensor))
        self._left -= size
        return True


def lasting_nodes(db: AliasDb) -> list[Node]:
    """The nodes whose results are the same in each run, and known to nobody who writes them."""
    return [
        node
        for node in db.graph.walk()
        if node.kind == _COMPUTED
        and all(value.node is not None and value.node.kind == "prim::Constant" for value in node.inputs)
        and not db.has_writers(node.outputs)
        and not db.escapes(node.outputs)
    ]


def _constant(value: Value) -> Tensor | None:
    content = value.node.attributes.get("value") if value.node and value.node.kind == "prim::Constant" else None
    return content if isinstance(content, Tensor) else None


def _with(wide: Mapping[int, Kept], kernel: Kernel) -> Kernel:
    """``kernel`` on operands of which some are made wide once."""

    def operands(inputs: Sequence[Any]) -> list[Any]:
        return [wide[i](x) if i in wide else x for i, x in enumerate(inputs)]

    def run(*inputs: Any) -> Any:
        return kernel(*operands(inputs))

    def run_into(*inputs: Any, out: Array | None = None) -> Any:
        return kernel(*operands(inputs), out=out)

    return run_into if takes_out(kernel) else run
