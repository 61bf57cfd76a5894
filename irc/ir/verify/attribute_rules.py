"""What attributes may hold, and how constants agree with their types."""

from __future__ import annotations

from typing import Any, cast

from irc.ir import types
from irc.ir.graph import Graph
from irc.ir.limits import MAX_INTEGER, MAX_LITERAL_DEPTH, MAX_TYPE_DEPTH, MIN_INTEGER
from irc.ir.node import Node
from irc.ir.objects import EnumMember
from irc.ir.tensor import Tensor
from irc.ir.text.printer import Opaque, literal_text
from irc.ir.types import TensorType, Type
from irc.ir.verify.diagnostics import node_error
from irc.ir.verify.type_relation import accepts

# What types may be made of: they are not checked when they are made.


def type_fault(type: Type, depth: int = 1) -> str | None:
    """What is wrong with ``type`` at nesting ``depth``; None if nothing is."""
    if not isinstance(type, Type):  # type: ignore[reportUnnecessaryIsInstance]
        return f"a type is one of irc.ir.types, not {type!r}"
    if isinstance(type, TensorType):
        return types.tensor_fault(type)
    if depth > MAX_TYPE_DEPTH:
        return f"types nest at most {MAX_TYPE_DEPTH} levels deep"
    faults = (type_fault(part, depth + 1) for part in type.inner)
    return next((fault for fault in faults if fault is not None), None)


# -- attribute rules -----------------------------------------------------------


_PLAIN: frozenset[type] = frozenset({float, str, bool, complex, type(None), Opaque, EnumMember})


def check_attributes(node: Node) -> list[Graph]:
    """Check the attributes of ``node`` (IRC215, IRC214 for constants); the graphs among them."""
    graphs: list[Graph] = []
    for key, value in node.attributes.items():
        if not isinstance(key, str):  # type: ignore[reportUnnecessaryIsInstance]  # passes are not typed
            raise node_error("IRC215", f"the name of an attribute must be a string, not {key!r}", node)
        if value.__class__ in _PLAIN:
            continue
        if isinstance(value, Graph):
            graphs.append(value)
            continue
        fault = _fault(value, node.graph, 1)
        if fault is not None:
            raise node_error("IRC215", f"attribute {key} {fault}", node)
    return graphs


def _fault(value: Any, graph: Graph, depth: int) -> str | None:
    """What is wrong with the attribute ``value``, an integer or not a plain scalar; None if nothing is."""
    if isinstance(value, Tensor):
        if value.name and graph.weights.get(value.name) is not value:
            return f"holds weight {value.name!r}, which is not in the graph's weight table: enter it with weights.add"
        return content_fault(value) or _of_type(value.type)
    if isinstance(value, Type):
        return _of_type(value)
    if value.__class__ is int:
        return None if MIN_INTEGER <= value <= MAX_INTEGER else "holds an integer that does not fit into 64 bits"
    if depth > MAX_LITERAL_DEPTH:
        return f"nests deeper than {MAX_LITERAL_DEPTH} levels"
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
    elif isinstance(value, dict):
        items = [item for pair in cast("dict[Any, Any]", value).items() for item in pair]
    else:
        kind = value.__class__
        return f"holds a {kind.__module__}.{kind.__name__}, which the IR does not know"
    for item in items:
        if item.__class__ is int and MIN_INTEGER <= item <= MAX_INTEGER:  # of which there may be very many
            continue
        if item.__class__ not in _PLAIN:
            fault = _fault(item, graph, depth + 1)
            if fault is not None:
                return fault
    return None


def content_fault(tensor: Tensor) -> str | None:
    """What is wrong with the contents of ``tensor``, as far as they are in memory; None if nothing is."""
    return None if tensor.fits else f"holds a tensor {tensor.name!r} whose contents are not those of a {tensor.type}"


def _of_type(type: Type) -> str | None:
    fault = type_fault(type)
    return None if fault is None else f"holds a wrong type: {fault}"


def check_constant(node: Node) -> None:
    """Check a ``prim::Constant``: its value has its type (IRC214), no graph, a function's name (IRC215)."""
    declared = node.outputs[0].type
    if isinstance(node.attributes.get("Subgraph"), Graph):
        raise node_error("IRC215", "a constant holds no Subgraph", node)
    if declared == types.FUNCTION and not isinstance(node.attributes.get("name"), str):
        raise node_error("IRC215", "a constant Function needs an attribute name, the function's, as a string", node)
    value = node.attributes.get("value")
    fits = _may_be_none(declared) if value is None else constant_fits(value, declared)
    if not fits:
        what = f"tensor {value.type}" if isinstance(value, Tensor) else f"value {_short(literal_text(value))}"
        raise node_error("IRC214", f"a constant of {what} cannot have type {declared}", node, output=0)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "..."


def _may_be_none(declared: Type) -> bool:
    # A tensor without a value is TorchScript's undefined tensor; functions and objects have other attributes.
    return isinstance(declared, types.OptionalType | types.UnionType | TensorType | types.ClassType) or declared in (
        types.NONE,
        types.ANY,
        types.FUNCTION,
    )


def constant_fits(value: Any, declared: Type) -> bool:
    """Whether a constant ``value`` may be declared as ``declared``."""
    if isinstance(value, Opaque) or declared == types.ANY:
        return True
    if value is None:
        return _may_be_none(declared)
    if isinstance(declared, types.OptionalType):
        return constant_fits(value, declared.elem)
    if isinstance(declared, types.UnionType):
        return any(constant_fits(value, member) for member in declared.members)
    if isinstance(value, Tensor):
        return isinstance(declared, TensorType) and accepts(declared, value.type)
    if isinstance(value, list):
        return isinstance(declared, types.ListType) and all(
            constant_fits(item, declared.elem) for item in cast("list[Any]", value)
        )
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return (
            isinstance(declared, types.TupleType)
            and len(items) == len(declared.elems)
            and all(map(constant_fits, items, declared.elems))
        )
    if isinstance(value, dict):
        return isinstance(declared, types.DictType) and all(
            constant_fits(k, declared.key) and constant_fits(v, declared.value)
            for k, v in cast("dict[Any, Any]", value).items()
        )
    if isinstance(value, EnumMember):
        return value.type == declared
    if not isinstance(declared, types.PrimType):
        return False
    # TorchScript writes enumerations (layouts...) as numbers: types that irc does not know hold any scalar.
    return declared in _TYPES_OF.get(value.__class__, ()) or declared not in _KNOWN


_TYPES_OF: dict[type, tuple[Type, ...]] = {
    bool: (types.BOOL, types.SCALAR),
    int: (types.INT, types.SCALAR),
    float: (types.FLOAT, types.SCALAR),
    complex: (types.COMPLEX, types.SCALAR),
    str: (types.STR, types.DEVICE),
}
_KNOWN = frozenset(t for known in _TYPES_OF.values() for t in known) | {types.NONE, types.FUNCTION}
