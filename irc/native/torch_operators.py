"""TorchScript's pointwise operators in groups: operands, types, and what their kernels compute.

The rules are those of `irc.runtime.kernels.aten.pointwise`: an operator's kernel and its setup are called on operands
of one element that stand for the real ones. As they may look at elements, that is done twice, with zeros and with ones:
if the setup says something else then, or one of both is refused, there is no code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.ir import CONSTANT, Array, Tensor
from irc.native.lanes import computed
from irc.native.primitives import Rounded
from irc.native.programs import SIMPLE_POWERS, Operation, Reader, checked, compound_of
from irc.ops.algebra import POWER, Constant, Expression, Operand, cast, divide
from irc.runtime.backends import Unsupported
from irc.runtime.binding import bind
from irc.runtime.kernels import elementwise
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import tensor, wide
from irc.runtime.kernels.aten.pointwise import SETUPS, Computation
from irc.runtime.kernels.expressions import SEMANTICS
from irc.runtime.kernels.primitives import IMPLEMENTATIONS, UNCHECKED
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.runtime.kernels.registry import Kernel

Semantics = Callable[..., Expression]


def torch_operation(reader: Reader, node: Node) -> Operation:
    """The operation of ``node``. Raises `Unsupported`."""
    setup = SETUPS.get(node.kind.partition("::")[2])
    if setup is None:
        raise Unsupported(f"there is no code for {node.kind}")
    kernel = bind(node)
    found, other = [_Reading(reader, node, kernel, setup, make) for make in (np.zeros, np.ones)]
    if found.says != other.says:
        raise Unsupported(f"{node.kind} depends on the elements of an operand")
    expression, compound = found.expression(reader)
    dtype = found.computation.result or found.computation.dtype
    return checked(Operation(node.output, tuple(found.operands), (expression,), compound, dtype, keeps_layout=True))


class _Reading:
    """What a setup says of operands with elements that ``make`` makes.

    Attributes:
        computation: as it was given.
        operands: the arrays among its operands that are the node's.
        says: what has to be the same for all elements.
    """

    def __init__(self, reader: Reader, node: Node, kernel: Kernel, setup: Any, make: Callable[..., Array]) -> None:
        given = [_standing_for(reader, value, make) for value in node.inputs]
        arrays = {id(x): value for x, value in zip(given, node.inputs) if value in reader.dtypes}
        try:
            with np.errstate(all="ignore"):
                kernel(*given)
                self.computation: Computation = setup(*given)
        except Exception as error:  # zeros may be what it does not take; it says so itself if a run has them
            raise Unsupported(f"{node.kind} refuses some operands: {error}") from None
        self.operands: list[Value] = []
        self._arguments: list[Any] = []
        for x in self.computation.operands:
            value = arrays.pop(id(x), None)
            if value is not None:
                self.operands.append(value)
            elif np.ndim(x):
                raise Unsupported(f"{node.kind} computes on what it makes of an operand before")
            self._arguments.append(x if value is None else _Place(len(self.operands) - 1))
        if arrays:
            raise Unsupported(f"{node.kind} reads an operand before it computes")
        compute, _, dtype, result, exact = self.computation
        numbers = [_text(x) for x in self._arguments]
        self.says = compute, dtype, result, exact, tuple(self.operands), tuple(numbers)

    def expression(self, reader: Reader) -> tuple[Expression, str]:
        """What is computed of the operands, and what of the library does that whole."""
        compute, _, dtype, result, exact = self.computation
        within = wide(dtype)
        rounds = within != dtype and not exact
        arguments: list[Expression] = []
        for x in self._arguments:
            if isinstance(x, _Place):
                own = reader.dtypes[self.operands[x.index]]
                found = cast(Operand(x.index, computed(own)), within)
                arguments.append(Rounded(found, dtype) if rounds and own != dtype else found)
            else:
                number = tensor(tensor(x, dtype) if rounds else x, within)
                arguments.append(Constant(number.item(), within))
        semantics = _semantics_of(compute)
        if semantics is POWER:
            semantics = _power(arguments)
        made = semantics(*arguments)
        if made.dtype != (within if result is None else result):
            raise Unsupported(f"there is no code for what is computed in {within.name}")
        is_plain = within.kind == "f" and all(isinstance(x, Operand) for x in arguments)
        return made, compound_of(semantics) if is_plain else ""


class _Place:
    """An operand of the operation."""

    def __init__(self, index: int) -> None:
        self.index = index

    @property
    def name(self) -> str:
        return f"x{self.index}"


def _text(x: Any) -> str:
    """What tells an operand apart, if its elements are known."""
    return repr(x.item()) if is_array(x) else x.name if isinstance(x, _Place) else repr(x)


def _standing_for(reader: Reader, value: Value, make: Callable[..., Array]) -> Any:
    """An array of the type of ``value``, or the constant that it is."""
    if value in reader.dtypes:
        return make((1,) if reader.shape(value) else (), reader.dtypes[value])
    node = value.node
    constant = None if node is None or node.kind != CONSTANT else node.attributes.get("value")
    if node is None or isinstance(constant, Tensor):
        raise Unsupported("an operand is not an array")
    return constant


class Layouts(NamedTuple):
    """How torch lays out the results of a group.

    Attributes:
        operations: for each pointwise operator, which of the group's values it takes (its operands, arrays among its
            constants, then results), and whether its result lies as they do.
        outputs: which of these values the group's results are.
    """

    operations: list[tuple[list[int], bool]]
    outputs: list[int]


def layouts_of(operations: Sequence[Operation], inputs: Sequence[Value], outputs: Sequence[Value]) -> Layouts:
    """How torch lays out ``outputs`` of a group with these operators."""
    numbers = {value: i for i, value in enumerate([*inputs, *(each.result for each in operations)])}
    taken = [[numbers[x] for x in each.operands if x in numbers] for each in operations]
    return Layouts([(x, each.keeps_layout) for x, each in zip(taken, operations)], [numbers[x] for x in outputs])


def laid_out(layouts: Layouts, constants: Sequence[Array], kernel: Kernel) -> Kernel:
    """``kernel``, which makes results in C order, with results that lie as torch lays them out."""
    known: dict[tuple[tuple[int, ...], ...], list[tuple[int, ...]]] = {}

    def run(*operands: Array, out: Any = None) -> Any:
        made = kernel(*operands, out=out)
        if made is NotImplemented or (out is not None and len(layouts.outputs) == 1):
            return made
        if all(x.flags.c_contiguous for x in operands):
            return made
        key = tuple([x.strides for x in operands])
        strides = known.get(key)
        if strides is None:
            if len(known) >= _MOST_LAYOUTS:
                known.clear()
            strides = known[key] = _strides(layouts, [*operands, *constants])
        if len(layouts.outputs) == 1:
            return _moved(made, strides[0])
        given = out or [None] * len(layouts.outputs)
        return tuple([_moved(x, steps) if y is None else x for x, steps, y in zip(made, strides, given)])

    return run


_MOST_LAYOUTS = 64


def _strides(layouts: Layouts, found: list[Array]) -> list[tuple[int, ...]]:
    """The strides of results, in elements, if operands and constants lie as those that were ``found``."""
    for numbers, keeps_layout in layouts.operations:
        taken = [found[i] for i in numbers]
        shape = np.broadcast_shapes(*(x.shape for x in taken))
        found.append(layout.empty(shape, _BYTE, taken if keeps_layout else []))
    return [found[i].strides for i in layouts.outputs]


_BYTE = np.dtype(np.uint8)


def _moved(x: Array, strides: tuple[int, ...]) -> Array:
    """``x``, in C order, with these strides in elements."""
    steps = tuple([step * x.itemsize for step in strides])
    if steps == x.strides:
        return x
    made = np.ndarray(x.shape, x.dtype, np.empty(x.size, x.dtype), 0, steps)
    np.copyto(made, x)
    return made


@cache
def _known() -> dict[Any, Semantics]:
    found: dict[Any, Semantics] = {compute: primitive for primitive, compute in IMPLEMENTATIONS.items()}
    found.update((ufunc, primitive) for primitive, ufunc in UNCHECKED.items())
    return {**found, np.divide: divide, elementwise.power: POWER}  # ufuncs that divide only divide floats


def _semantics_of(compute: Any) -> Semantics:
    found = getattr(compute, SEMANTICS, None) or _known().get(compute)
    if found is None:
        raise Unsupported("there is no code for what an operator computes")
    return found


def _power(arguments: list[Expression]) -> Semantics:
    exponent = arguments[1]
    if not all(x.is_float for x in arguments):
        raise Unsupported("there is no code for powers of integers")
    return SIMPLE_POWERS.get(exponent.value, POWER) if isinstance(exponent, Constant) else POWER
