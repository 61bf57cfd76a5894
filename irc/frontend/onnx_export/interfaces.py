"""Types that inputs and outputs of graphs are declared with."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx.types import settle, to_proto
from irc.ir.declared_outputs import completed, declared_type
from irc.ir.kinds import IF, ONNX_LOOP, SCAN
from irc.ir.ops.loops import DECLARED_INPUTS, carried, declared_types, scanned_rows
from irc.ir.types import ListType, OptionalType, TensorType, Type, join, without_names, without_shapes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import ValueInfoProto

    from irc.ir import Block, Value


def declare(proto: ValueInfoProto, name: str, type: Type) -> None:
    """Give ``proto`` the name and the type. Raises IRC350 if ONNX has no such type, or it is not known."""
    proto.name = name
    if not is_complete(type):
        raise Error("IRC350", f"ONNX needs its element type, but all that is known is {type}", f"%{name}")
    try:
        proto.type.CopyFrom(to_proto(type))
    except TypeError as error:
        raise Error("IRC350", str(error), f"%{name}") from None


def declare_nested(proto: ValueInfoProto, name: str, type: Type) -> None:
    """As `declare`, for a nested graph, where an unknown type may be left out."""
    if is_complete(type):
        declare(proto, name, type)
    proto.name = name


def parameter_types(block: Block) -> list[Type]:
    """The types of the parameters of a nested block.

    ONNX Runtime needs the ranks of the parameters that a loop itself provides: the iteration and the condition, both
    scalars. Other values in a nested graph are declared without a shape, as it may differ each time the graph runs.
    There are two exceptions: all rows of a scan output have the same shape, which ONNX Runtime needs if there is no
    trip; and what a Scan carries and scans has the same rank in all trips, which ONNX Runtime must know for states.
    """
    types, node = [param.type for param in block.params], block.node
    if node is not None and node.kind == SCAN:
        return list(map(_of_one_rank, types, chain(declared_types(node, DECLARED_INPUTS), repeat(None))))
    made = carried(node).param if node is not None and node.kind == ONNX_LOOP else 0
    return [_ranked(type) for type in types[:made]] + [without_shapes(type) for type in types[made:]]


def returned_types(block: Block) -> list[Type]:
    """The types of what a nested block returns."""
    types, node = [without_shapes(result_type(value)) for value in block.returns], block.node
    if node is None:
        return types
    rows = scanned_rows(node)
    states = carried(node).many if node.kind == SCAN else 0
    types[:states] = map(_of_one_rank, [value.type for value in block.returns], parameter_types(block)[:states])
    return [*types[: len(types) - len(rows)], *map(without_names, rows)]


def _of_one_rank(type: Type, declared: Type | None) -> Type:
    """The declarable part of ``type`` if its rank is the same in all trips, which perhaps only ``declared`` tells."""
    found = settle(type, declared)
    if found.shape is None:
        return without_shapes(found)
    return TensorType(found.dtype, (None,) * len(found.shape))


def result_type(value: Value) -> Type:
    """The type of a result of a graph.

    A value that a loop carries is optional in the IR if its initial value is, as no iteration may replace it. In ONNX
    it has the type that the body returns; so has a result of an If whose branches both return such values.
    """
    found: Type | None = None
    for source in _sources(value):
        if isinstance(source.type, OptionalType):
            return value.type
        found = source.type if found is None else join(found, source.type)
        if found is None:
            return value.type
    return found or value.type


def _sources(value: Value) -> Iterator[Value]:
    """Where ``value`` comes from, through loops and branches, as long as that is an optional."""
    seen, pending = {value}, [value]
    while pending:
        source = pending.pop()
        node = source.node
        through = isinstance(source.type, OptionalType) and node is not None and node.kind in (ONNX_LOOP, IF)
        if not through or node is None:
            yield source
            continue
        first = carried(node).returned if node.kind == ONNX_LOOP else 0
        for block in node.blocks:
            returned = block.returns[first + source.index]
            if returned not in seen:
                seen.add(returned)
                pending.append(returned)


def output_type(value: Value, metadata: Mapping[str, str]) -> Type:
    """The type of an output of the main graph: that of `result_type`, completed by what the model declared."""
    return completed(result_type(value), declared_type(value, metadata))


def has_no_shape(type: Type) -> bool:
    """Whether ``type`` is a tensor of unknown rank, which outputs and rows of scan outputs must not be."""
    return isinstance(type, TensorType) and type.shape is None


def _ranked(type: Type) -> Type:
    """``type``, as a scalar if the rank is unknown."""
    return TensorType(type.dtype, ()) if isinstance(type, TensorType) and type.shape is None else type


def is_complete(type: Type) -> bool:
    """Whether ``type`` says all that ONNX needs: which kind of value, and its element type."""
    if isinstance(type, ListType | OptionalType):
        return is_complete(type.elem)
    return type.dtype is not None if isinstance(type, TensorType) else not type.is_any
