"""Switches: arguments whose constant values decide what a node does."""

from __future__ import annotations

from typing import NamedTuple

from irc import ops
from irc.alias.rules import tensors
from irc.ir.functions import function_name
from irc.ir.kinds import CALL, CONSTANT
from irc.ir.node import Node
from irc.ir.tensor import Tensor
from irc.ir.value import Value
from irc.ops.registry import record

_NO_CONSTANT = object()
_PLAIN: tuple[type[object], ...] = (bool, int, float, str, list, tuple)
_CHOOSING = {"prim::TupleIndex": 1, CALL: 0}
"""Kinds with an argument that chooses among many, and its position: which element, which function."""

_POSITIONS: dict[str, frozenset[int]] = {}


class _Function(NamedTuple):
    """The setting of a constant that names a function."""

    name: str


def forget(kind: str) -> None:
    """The rows of ``kind`` have changed."""
    _POSITIONS.pop(kind, None)


def _positions(kind: str) -> frozenset[int]:
    """The positions of the switches of ``kind``, in any of its overloads."""
    found = _POSITIONS.get(kind)
    if found is None:
        if kind in tensors.STATISTICS:
            found = frozenset([tensors.TRAINING])
        elif kind in _CHOOSING:
            found = frozenset([_CHOOSING[kind]])
        else:
            rows, name = ops.schemas(kind), record(kind).random_switch
            found = frozenset(i for row in rows for i, a in enumerate(row.arguments) if a.name == name)
        _POSITIONS[kind] = found
    return found


def say_the_same(a: Value, b: Value) -> bool:
    """Whether ``a`` and ``b`` certainly mean the same to every switch; mostly because neither is a constant."""
    x, y = _setting(a), _setting(b)
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return x is y or x.same_contents(y)
    if isinstance(x, int | float | _Function):
        return type(x) is type(y) and x == y  # what it chooses, if anything
    return x is y or _are_equally_true(x, y)


def is_resettled(node: Node, old: Value, new: Value) -> bool:
    """Whether ``node``, which uses ``new``, may behave differently from when it used ``old`` there."""
    switches = _positions(node.kind)
    if not switches:
        return False  # most nodes, which may have very many inputs
    inputs = node.inputs
    if not any(i < len(inputs) and inputs[i] is new for i in switches):
        return False
    return node.kind in _CHOOSING or not _are_equally_true(_setting(old), _setting(new))


def _setting(value: Value) -> object:
    """The constant that ``value`` is. A tensor of several elements decides nothing, as if it were no constant."""
    source = value.made_by(CONSTANT)
    if source is None:
        return _NO_CONSTANT
    name = function_name(source)
    if name is not None:
        return _Function(name)
    constant = source.attributes.get("value")
    return _NO_CONSTANT if isinstance(constant, Tensor) and constant.numel != 1 else constant


def _are_equally_true(x: object, y: object) -> bool:
    """Whether ``x`` and ``y`` are of one type, which may select the overload, and have the same truth value."""
    return type(x) is type(y) and isinstance(x, _PLAIN) and bool(x) == bool(y)
