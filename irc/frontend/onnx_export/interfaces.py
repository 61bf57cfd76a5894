"""Types that inputs and outputs of graphs are declared with."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.frontend.onnx.types import contradiction, settle, to_proto
from irc.ir.declarations import completed, declared_type
from irc.ir.kinds import IF, ONNX_LOOP, SCAN
from irc.ir.metadata import DECLARED_TYPE
from irc.ir.region_flow import DECLARED_INPUTS, carried, declared_types, scanned_rows
from irc.ir.text.type_parser import parse_type
from irc.ir.types import DictType, ListType, OptionalType, TensorType, Type, join, without_names, without_shapes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import ValueInfoProto

    from irc.ir import Block, Graph, Value
    from irc.passes.shapes import Inference


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
    iteration; and what a Scan carries and scans has the same rank in all iterations, which ONNX Runtime must know for
    states.
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
    """The declarable part of ``type`` if its rank is the same in all iterations, which only ``declared`` may tell."""
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


def intermediate_type(value: Value) -> Type | None:
    """The type of a value that a graph computes, as far as is known; None if no element type is.

    It is completed by the type that the model declares, if nothing contradicts it (`settle_declared`). Nothing is said
    of optional values, which other tools may take to be there.
    """
    if value.metadata and DECLARED_TYPE in value.metadata:
        found = completed(value.type, parse_type(value.metadata[DECLARED_TYPE]))
    else:
        found = value.type
    return found if isinstance(found, TensorType | ListType | DictType) and is_complete(found) else None


def settle_declared(graph: Graph, inference: Inference) -> None:
    """Let values of ``graph`` keep of the types that the model declares only what nothing contradicts.

    Contradicted are declarations of another element type, rank or size, and names of dimensions that inputs give, where
    another size is known; a new name, which the model gives two different sizes, names none.
    """
    declared = [value for value in graph.values() if DECLARED_TYPE in value.metadata] if graph.has_metadata else []
    named = {size for value in graph.inputs for size in value.type.shape or () if isinstance(size, str)}
    found: dict[Value, Type] = {}
    meanings: dict[str, Any] = {}
    ambiguous: set[str] = set()
    for value in declared:
        type, proved = parse_type(value.metadata[DECLARED_TYPE]), inference.type_of(value)
        if contradiction(value.type, type) is not None:
            continue
        found[value] = type
        for said, size in zip(type.shape or (), proved.shape or ()):
            if isinstance(said, str) and size is not None:
                known = meanings.setdefault(said, said if said in named else size)
                if known != size:
                    ambiguous.add(said)
    for value in declared:
        metadata = dict(value.metadata)
        del metadata[DECLARED_TYPE]
        if value in found:
            metadata[DECLARED_TYPE] = str(_agreeing(found[value], inference.type_of(value), ambiguous))
        value.metadata = metadata


def _agreeing(declared: Type, proved: Type, ambiguous: set[str]) -> Type:
    """``declared`` without names that are ambiguous, where ``proved`` knows a size."""
    if not isinstance(declared, TensorType) or declared.shape is None or proved.shape is None:
        return declared
    sizes = zip(declared.shape, proved.shape, strict=True)
    return TensorType(declared.dtype, tuple([None if a in ambiguous and b is not None else a for a, b in sizes]))


def _ranked(type: Type) -> Type:
    """``type``, as a scalar if the rank is unknown."""
    return TensorType(type.dtype, ()) if isinstance(type, TensorType) and type.shape is None else type


def is_complete(type: Type) -> bool:
    """Whether ``type`` says all that ONNX needs: which kind of value, and its element type."""
    if isinstance(type, ListType | OptionalType):
        return is_complete(type.elem)
    if isinstance(type, DictType):
        return is_complete(type.value)
    return type.dtype is not None if isinstance(type, TensorType) else not type.is_any
