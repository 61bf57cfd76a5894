"""Lists and dictionaries that know their types at run time.

In TorchScript a list is of exactly one type: a list of tensors is no list of optional tensors, and an empty list of
numbers is no list of tensors. `irc.alias.memory_types` relies on that. What a list holds does not tell its type. So in
modules where it matters (`asks_for_types`) all lists and dictionaries are `TypedList`, `TypedDict` and `ConstantList`
with a type: that of the first input, attribute, constant or result that declares one for them. ``prim::isinstance``
answers by these, and a value that is declared as another type than it has ends the run. What is declared as Any alone
has no type yet; it is of the type that its contents tell, as in PyTorch. Other modules have plain lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.ir import types
from irc.ir.enumerations import EnumMember
from irc.ir.functions import with_subgraphs
from irc.ir.objects import Object
from irc.ir.type_parts import is_definite, parts, union_of
from irc.ir.types import DictType, ListType, OptionalType, PrimType, TupleType, Type, UnionType
from irc.runtime.values import (
    ConstantList,
    TypedDict,
    TypedList,
    is_array,
    is_mapping,
    is_sequence,
    is_tuple,
)

if TYPE_CHECKING:
    from irc.ir import Graph, Node
    from irc.runtime.kernels.registry import Kernel


def asks_for_types(graph: Graph) -> bool:
    """Whether runs of ``graph`` must know the types of lists and dictionaries, not only what these hold.

    So it is where operators ask, and where one list could otherwise be taken for one of two types.
    """
    graphs = [graph] if graph.module is None else [graph, *graph.module.graphs.values()]
    nodes = list(with_subgraphs(*graphs))
    values = [value for each in graphs for value in each.inputs]
    for node in nodes:
        values += [*node.outputs, *(param for block in node.blocks for param in block.params)]
    return any(node.kind == "prim::isinstance" for node in nodes) or any(map(_is_ambiguous, {v.type for v in values}))


def _is_ambiguous(type: Type, is_inside: bool = False) -> bool:
    """Whether there is a list or dictionary in ``type`` whose elements may be one of several things, as it says."""
    if is_inside and len(parts(type)) > 1:
        return True
    is_inside = is_inside or isinstance(type, ListType | DictType)
    return any(_is_ambiguous(t, is_inside) for t in type.inner)


def typed(value: Any, type: Type) -> Any:
    """``value``, declared as ``type``, with the lists and dictionaries in it typed; those that have a type keep it.

    Those of the classes that can know their types stay the same objects, others are replaced.

    Raises:
        Error: IRC402 lists hold themselves or are nested too deeply.
    """
    try:
        return _typed(value, type, {})
    except RecursionError:
        raise Error("IRC402", "lists are nested too deeply, or hold themselves") from None


def _typed(value: Any, type: Type, made: dict[tuple[int, Type | None], Any]) -> Any:
    if not (is_sequence(value) or is_mapping(value)):
        return value
    knows = isinstance(value, TypedList | TypedDict | ConstantList)
    if knows and value.type is not None:
        return value
    own = _part_for(value, type)
    if is_tuple(value):
        elems = own.inner if own is not None and len(own.inner) == len(value) else (types.ANY,) * len(value)
        return tuple([_typed(v, t, made) for v, t in zip(value, elems)])
    if knows and own is None:
        return value
    found = made.get((id(value), own))
    if found is None:
        held = types.ANY if own is None else own.inner[-1]
        keys, items = (list(value), value.values()) if is_mapping(value) else ((), value)
        if may_be_container(held):
            items = [_typed(v, held, made) for v in items]
        if knows:
            found, value.type = value, own
        else:
            found = TypedDict(own, zip(keys, items)) if is_mapping(value) else TypedList(own, items)
        made[id(value), own] = found
    return found


def may_be_container(type: Type) -> bool:
    """Whether a value of ``type`` may be, or hold, a list or a dictionary."""
    return any(part.is_any or isinstance(part, ListType | DictType | TupleType) for part in parts(type))


def _part_for(value: Any, type: Type) -> Type | None:
    """The part of ``type`` that ``value``, a list, tuple or dictionary, is declared as; None if that is Any."""
    wanted = TupleType if is_tuple(value) else ListType if is_sequence(value) else DictType
    found = [part for part in parts(type) if isinstance(part, wanted)]
    if len(found) > 1:
        found = [part for part in found if is_of(value, part)]
    return found[0] if found else None


_ANY_LIST, _ANY_TUPLE = PrimType("list"), PrimType("tuple")


def is_of(value: Any, type: Type) -> bool:
    """Whether a run-time value is of a type. Of what is empty and has no type of its own, each that it could have."""
    if isinstance(type, OptionalType):
        return value is None or is_of(value, type.elem)
    if isinstance(type, UnionType):
        return any(is_of(value, member) for member in type.members)
    if isinstance(type, TupleType):
        return is_tuple(value) and len(value) == len(type.elems) and all(map(is_of, value, type.elems))
    if type in (_ANY_LIST, _ANY_TUPLE):
        return is_sequence(value) and is_tuple(value) == (type == _ANY_TUPLE)
    own = type_of(value)
    if own is None and isinstance(type, ListType):
        return is_sequence(value) and all(is_of(v, type.elem) for v in value)
    if own is None and isinstance(type, DictType):
        return is_mapping(value) and all(is_of(v, type.value) for v in value.values())
    if type in (types.SCALAR, types.DEVICE):  # a truth value is no number, and the name of a device a string
        return own in ((types.STR,) if type == types.DEVICE else (types.INT, types.FLOAT, types.COMPLEX))
    return type == types.ANY or own in parts(type)


def type_of(value: Any) -> Type | None:
    """The type of ``value``: its own, or what its contents tell, as PyTorch finds it; None if they tell none."""
    if is_array(value):
        return types.TENSOR
    if isinstance(value, TypedList | TypedDict | ConstantList | Object | EnumMember) and value.type is not None:
        return value.type
    if is_tuple(value):
        return TupleType(tuple([type_of(v) or types.ANY for v in value]))
    if is_sequence(value):
        elem = _common(value)
        return None if elem is None else ListType(elem)
    if is_mapping(value):
        key, held = _common(value), _common(value.values())
        return None if key is None or held is None else DictType(key, held)
    return _OF_PYTHON.get(value.__class__)


_OF_PYTHON: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    float: types.FLOAT,
    complex: types.COMPLEX,
    str: types.STR,
    type(None): types.NONE,
}


def _common(values: Iterable[Any]) -> Type | None:
    """The type of elements that ``values`` can be; None if some have no type, or there are none."""
    found = set(map(type_of, values))
    known = [t for t in found if t is not None]
    return union_of(tuple(sorted(known, key=str))) if known and None not in found else None


def with_types(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, its results typed as ``node`` declares them; Error IRC424 for those that have another type."""
    declared = [output.type for output in node.outputs]
    if not any(map(may_be_container, declared)):
        return kernel

    def settled(value: Any, type: Type) -> Any:
        found = typed(value, type)
        own = getattr(found, "type", None)
        if own is not None and is_definite(type) and not is_of(found, type):
            where = f"{node.kind} %{', %'.join(output.name for output in node.outputs)}"
            raise Error("IRC424", f"a value of type {own} is declared as {type}", where)
        return found

    if len(declared) == 1:
        return lambda *inputs: settled(kernel(*inputs), declared[0])
    return lambda *inputs: tuple(map(settled, kernel(*inputs), declared))
