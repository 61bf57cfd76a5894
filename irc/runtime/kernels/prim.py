"""TorchScript's own operators on values: containers, objects, conversions, questions about tensors.

``prim::Constant``, ``prim::If``, ``prim::Loop`` and ``prim::CallFunction`` are not kernels: lowering deals with them.
"""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.ir.objects import EnumMember, Object
from irc.ir.types import ClassType, PrimType, Type, parts
from irc.runtime.kernels.aten.arithmetic import wrapped
from irc.runtime.kernels.aten.containers import changing
from irc.runtime.kernels.aten.copies import concatenate, stack
from irc.runtime.kernels.aten.element_types import FLOAT32, number_of
from irc.runtime.kernels.aten.python import item, texts
from irc.runtime.kernels.aten.registering import one, three
from irc.runtime.kernels.aten.views import part
from irc.runtime.kernels.registry import Kernel, computes, kernel
from irc.runtime.kernels.support import Array, axis_in, broadcast_shape, check_size
from irc.runtime.values import describe, is_array, is_mapping, is_of, is_sequence, typed

# -- containers ----------------------------------------------------------------


@computes("prim::ListUnpack", "prim::TupleUnpack")
def unpack(container: Sequence[Any], *, outputs: int) -> Any:
    if len(container) != outputs:
        raise Error("IRC421", f"{len(container)} elements cannot be unpacked into {outputs}")
    return container[0] if outputs == 1 else tuple(container)


@computes("prim::TupleIndex")
def tuple_index(container: tuple[Any, ...], index: int) -> Any:
    if not -len(container) <= index < len(container):
        raise Error("IRC420", f"there is no element {index} in a tuple of {len(container)}")
    return container[index]


@computes("prim::TupleSlice")
def tuple_slice(container: Any, *, beg: int = 0, end: int | None = None) -> tuple[Any, ...]:
    return tuple(container[beg:end])


@computes("prim::ConstantChunk")
def constant_chunk(x: Array, *, chunks: Any = 1, dim: Any = 0, outputs: int) -> Any:
    """``chunk`` into as many parts as there are outputs, along a dimension that is an attribute."""
    axis = axis_in(dim, x.ndim)
    size = max(-(-x.shape[axis] // max(chunks, 1)), 1)
    parts = tuple(part(x, axis, i * size, (i + 1) * size) for i in range(outputs))
    return parts[0] if outputs == 1 else parts


# -- objects -------------------------------------------------------------------


@computes("prim::CreateObject", type=lambda node: node.outputs[0].type)
def create_object(*, type: Any) -> Object:
    return Object(type if isinstance(type, ClassType) else ClassType(str(type)))


@computes("prim::GetAttr")
def get_attr(object: Object, *, name: str = "") -> Any:
    try:
        return object.attributes[name]
    except KeyError:
        raise Error("IRC420", f"the object has no attribute {name!r}") from None


@computes("prim::SetAttr")
def set_attr(object: Object, value: Any, *, name: str = "") -> tuple[()]:
    object.attributes[name] = value
    return ()


# -- effects -------------------------------------------------------------------


@computes("prim::RaiseException")
def raise_exception(message: Any, kind: Any = None) -> None:
    raise Error("IRC435", f"the model raised an exception: {message}")


@kernel("prim::Print")
def print_(node: Node) -> Kernel:
    written = texts(node)

    def run(*values: Any) -> None:
        print(*written(values), file=sys.stderr)

    return changing(run)(node)


# -- types ---------------------------------------------------------------------


@computes("prim::isinstance", declared=lambda node: node.inputs[0].type)
def is_instance(value: Any, *, types: Sequence[Type] = (), declared: Any) -> bool:
    value = typed(value, declared)  # a constant that is folded has no type of its own
    return any(is_of(value, type) for type in types)


@kernel("prim::unchecked_cast")
@kernel("prim::unchecked_unwrap_optional")
def cast(node: Node) -> Kernel:
    type = node.outputs[0].type

    def run(value: Any) -> Any:
        if is_array(value) or is_sequence(value) or is_mapping(value):  # which must not be taken to have no memory
            raise Error("IRC424", f"{describe(value)} is not of type {type}")
        return value

    has_no_memory = all(isinstance(part, PrimType) and not part.is_any for part in parts(type))
    return run if has_no_memory else one(lambda value: value)


# -- values --------------------------------------------------------------------


def _extreme(choose: Callable[..., Any], before: Callable[[Any, Any], bool]) -> Kernel:
    """Of two numbers, in the type that both have in common, or lists, or of the elements of one list."""

    def run(x: Any, *other: Any) -> Any:
        if not other:
            if not len(x):
                raise Error("IRC420", "an empty list has no extreme element")
            return choose(x)
        (y,) = other
        if is_sequence(x):
            return x if before([*x], [*y]) else y
        chosen = x if before(x, y) else y  # of what is not a number, the second
        return float(chosen) if isinstance(x, float) or isinstance(y, float) else chosen

    return run


def _range_list(n: int) -> list[int]:
    check_size((max(n, 0),), np.dtype(np.intp))
    return list(range(n))


def _at(string: str, index: int) -> str:
    if not -len(string) <= index < len(string):
        raise Error("IRC420", f"there is no character {index} in a string of {len(string)}")
    return string[index]


def _reduction_sizes(size: Sequence[int], axes: Sequence[int], keepdim: bool = False) -> list[int]:
    dropped = {axis_in(a, len(size)) for a in axes}
    return [1 if i in dropped else n for i, n in enumerate(size) if keepdim or i not in dropped]


def _value_of(member: EnumMember) -> int | float | str:
    if member.value is None:
        raise Error("IRC424", f"IR text does not tell what {member.path} stands for: {member.path}(1), say, does")
    return member.value


def _register(name: str, run: Kernel) -> None:
    kernel(f"prim::{name}")(lambda node: run)


_PLAIN: dict[str, Kernel] = {
    "ListConstruct": lambda *elements: list(elements),
    "TupleConstruct": lambda *elements: elements,
    "DictConstruct": lambda *entries: dict(zip(entries[::2], entries[1::2])),
    "EnumName": one(lambda member: member.name),
    "EnumValue": one(_value_of),
    "NumToTensor": one(lambda x: np.array(x)),  # floats become float64
    "Uninitialized": lambda: None,
    "min": _extreme(min, operator.lt),
    "max": _extreme(max, operator.gt),
    "abs": one(lambda x: np.asarray(np.abs(x)) if is_array(x) else wrapped(abs(x))),
    "IfThenElse": three(lambda condition, x, y: x if item(condition) else y),
    "TimePoint": time.monotonic_ns,
    "StringIndex": _at,
    "rangelist": _range_list,
    "tolist": three(lambda x, dim, kind: x.tolist()),  # nested lists of numbers of the kind that the tensor has
    "data": one(lambda x: x.view()),
    "shape": one(lambda x: list(x.shape)),
    "dtype": one(lambda x: number_of(x.dtype)),
    "device": one(lambda x: "cpu"),
    "type": one(lambda device: device.partition(":")[0]),
    "layout": one(lambda x: 0),
    "is_cpu": one(lambda x: True),
    **dict.fromkeys("requires_grad is_cuda is_mkldnn is_nested is_quantized is_sparse".split(), one(lambda x: False)),
    "VarConcat": lambda *values: concatenate(values[:-1], values[-1]),
    "VarStack": lambda *values: stack(values[:-1], values[-1]),
    "BroadcastSizes": lambda *sizes: list(broadcast_shape(*map(tuple, sizes))),
    "ReductionSizes": _reduction_sizes,
    "AutogradZero": lambda: np.zeros((), FLOAT32),
}


for _name, _run in _PLAIN.items():
    _register(_name, _run)
