"""Prepacked constants: made of constants by the first run that needs them, kept for all others.

Weights of 8 or 16 bits stay as they are in graphs and files, and those of 4 bits are packed. Operators compute
with 32-bit floats, and converting the weights in each run takes longer than most products
with them. Kept values are read-only, like the constants themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irc.alias import AliasDb
from irc.ir import CONSTANT, Node, Tensor, Value, constant_tensor
from irc.ir.region_flow import inner_graph
from irc.ops import record, resolve
from irc.ops.pointwise import is_pointwise
from irc.runtime.binding import binder_of_others
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.numerics import narrowed, widened
from irc.runtime.kernels.registry import PREPARES, Kernel, takes_out
from irc.runtime.kernels.support import Array, as_constant, is_half
from irc.runtime.values import arrays_once, is_array, owner

MOST_BYTES = 1 << 30
"""What all that is kept for one graph may take."""


COMPUTED = frozenset({"onnx::Cast", "onnx::CastLike", "onnx::DequantizeLinear", "onnx::QuantizeLinear"})
"""Their results are kept, and so are those of groups of pointwise operators, which unpack packed numbers."""

_LAID_OUT = frozenset({"onnx::Reshape", "onnx::Unsqueeze", "onnx::Squeeze", "onnx::Slice", "onnx::Transpose"})
"""What may lie between, and takes runs no time."""


@dataclass(eq=False, slots=True)
class Kept:
    """A value that is made of constants once.

    Threads that need it for the first time at the same moment each make it, and one of them keeps its result.

    Attributes:
        preparations: all that is kept for the graph.
        made: the value, once a run has made it and it was kept.
        nbytes: the bytes it takes, without memory that another one of these shows.
        bases: that memory's arrays, by identity.
    """

    preparations: Preparations
    made: Any = None
    nbytes: int = 0
    bases: tuple[int, ...] = ()

    def keep(self, made: Any) -> bool:
        """Keep ``made``, an array, or values of which some are, if there is room; return whether it is kept."""
        arrays = list(arrays_once([made]))
        bases = {id(base): base.nbytes for base in map(owner, arrays)}
        for kept in self.preparations.kept():  # what a view shows counts once
            for base in kept.bases:
                bases.pop(base, None)
        size = sum(bases.values())
        if not self.preparations.admits(size):
            return False
        for array in arrays:
            array.flags.writeable = False
            as_constant(array)
        self.nbytes, self.bases = size, tuple(bases)
        self.made = made  # last: whole, or, after an interrupt, not at all
        return True


def _once(make: Kernel, kept: Kept) -> Kernel:
    """``make``, called until its result is kept; from then on, the kept result."""

    def run(*constants: Any) -> Any:
        made = kept.made
        if made is None:
            made = make(*constants)
            kept.keep(made)
        return made

    return run


class Preparations:
    """The values kept for one graph, shared by all of its plans: at most one for each constant.

    Like weights they count in no run; therefore their total may not exceed the byte limit of the run that makes one.

    Attributes:
        lasting: nodes whose results may be kept: see `lasting_nodes`.
    """

    def __init__(self) -> None:
        self.lasting: set[Node] = set()
        self._used: set[int] = set()  # by identity, of tensors that the graph keeps
        self._wide: dict[int, Kernel] = {}  # likewise
        self._kept: list[Kept] = []

    def admits(self, size: int) -> bool:
        """Whether ``size`` more bytes may be kept."""
        guard = CURRENT.scope.guard
        most = MOST_BYTES if guard is None else min(MOST_BYTES, guard.most_bytes)
        return size + sum(kept.nbytes for kept in self.kept()) <= most

    def kept(self) -> list[Kept]:
        """What has been made and kept."""
        return [kept for kept in self._kept if kept.made is not None]

    def group(self, node: Node) -> Kept | None:
        """Where the results of the fusion group ``node`` are kept; None if they are not."""
        return self._place() if node in self.lasting else None

    def kernel(self, node: Node, kernel: Kernel) -> Kernel:
        """``kernel`` of ``node``, or a kernel that keeps what it makes of constants."""
        if binder_of_others(node) is not None:
            return kernel
        if node in self.lasting:
            tensor = constant_tensor(node.inputs[0])
            return _once(kernel, self._place()) if tensor is None or self._take(tensor) else kernel
        operands = record(node.kind).widened
        if operands and node.kind.startswith("aten::"):
            wide = {} if _is_type_given(node) else self._wide_operands(node, operands)
            return _computed_wide(wide, kernel) if wide else kernel
        spec: tuple[Sequence[int], Kernel] | None = getattr(kernel, PREPARES, None)
        if spec is None:
            wide = self._wide_operands(node, operands)
            return _given({i: ((i,), make) for i, make in wide.items()}, kernel) if wide else kernel
        numbers = [i for i in spec[0] if i < len(node.inputs)]
        given = [node.inputs[i] for i in numbers]
        tensor = constant_tensor(given[0]) if given else None
        is_made = tensor is not None and all(x.made_by(CONSTANT) for x in given) and self._take(tensor)
        return _given({numbers[0]: (numbers, _once(spec[1], self._place()))}, kernel) if is_made else kernel

    def _wide_operands(self, node: Node, operands: Sequence[int]) -> dict[int, Kernel]:
        """Functions that widen those of ``operands`` that are constants."""
        given = [i for i in operands if i < len(node.inputs)]
        return {i: kept for i in given if (kept := self._widened(node.inputs[i])) is not None}

    def _widened(self, value: Value) -> Kernel | None:
        tensor = constant_tensor(value)
        if tensor is None or not is_half(tensor.dtype.numpy):
            return None
        if id(tensor) not in self._wide and self._take(tensor):
            self._wide[id(tensor)] = _once(widened, self._place())
        return self._wide.get(id(tensor))

    def _take(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` may be prepared: nothing has been made of it yet."""
        if tensor.is_splat or id(tensor) in self._used:
            return False
        self._used.add(id(tensor))
        return True

    def _place(self) -> Kept:
        self._kept.append(Kept(self))
        return self._kept[-1]


def _is_type_given(node: Node) -> bool:
    """Whether an argument of ``node`` names another element type of the result."""
    row = resolve(node)
    return row is None or any(argument.name == "out_dtype" for argument in row.arguments)


def lasting_nodes(db: AliasDb) -> list[Node]:
    """The nodes whose results are the same in each run, are never written, and do not escape."""
    found: list[Node] = []
    same: set[Value] = set()
    for node in db.graph.walk():
        is_view = node.kind in _LAID_OUT
        if node.kind == CONSTANT:
            same.update(node.outputs)
        elif same.issuperset(node.inputs) and (is_view or _is_computed(node)):
            may_stay = not db.has_writers(node.outputs) and not db.escapes(node.outputs)
            if is_view or may_stay:
                same.update(node.outputs)
            if may_stay and not (is_view and node.inputs[0].made_by(CONSTANT)):
                found.append(node)  # views, too, so that what is made of them may be kept
    return found


def _is_computed(node: Node) -> bool:
    group = inner_graph(node)
    if group is not None:
        return all(n.kind == CONSTANT or is_pointwise(n) for n in group.walk())
    return node.kind in COMPUTED


def _given(made: Mapping[int, tuple[Sequence[int], Kernel]], kernel: Kernel) -> Kernel:
    """``kernel`` with operands in ``made`` replaced by a function's result for the operands there."""

    def operands(inputs: Sequence[Any]) -> list[Any]:
        found = list(inputs)
        for i, (numbers, make) in made.items():
            found[i] = make(*[inputs[number] for number in numbers])
        return found

    def run(*inputs: Any) -> Any:
        return kernel(*operands(inputs))

    def run_into(*inputs: Any, out: Array | None = None) -> Any:
        return kernel(*operands(inputs), out=out)

    return run_into if takes_out(kernel) else run


def _computed_wide(wide: Mapping[int, Kernel], kernel: Kernel) -> Kernel:
    """``kernel`` computed in float32, with some operands widened once."""
    some = next(iter(wide))

    def run(*inputs: Any) -> Any:
        dtype = inputs[some].dtype
        if any(is_array(x) and x.dtype != dtype for x in inputs):
            return kernel(*inputs)  # which says what does not fit
        operands = [wide[i](x) if i in wide else widened(x) if is_array(x) else x for i, x in enumerate(inputs)]
        return narrowed(kernel(*operands), dtype)

    return run
