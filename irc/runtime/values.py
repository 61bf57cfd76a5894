"""What values are at run time, and their types.

Tensors are NumPy arrays, sequences and lists are lists (constant ones
`ConstantList`, which nothing can change), optionals the value or None, maps
dicts, TorchScript's numbers and strings Python's, and its objects `Object`.
Lists, maps and objects have identity: one that is held at several places is one object.

In TorchScript a list has exactly one type: a list of tensors is not a list of optional tensors, and an empty list of
numbers is not a list of tensors. `irc.alias.memory_types` relies on that. Contents do not determine the type, so in
modules where it matters (`asks_for_types`) all lists and dictionaries are `TypedList`, `TypedDict` and `ConstantList`
with a type: that of the first input, attribute, constant or result that declares one for them. ``prim::isinstance``
asks this type, and declaring a value as another type ends the run. A container that is only declared as Any has no type
yet: its contents tell it, as in PyTorch. Other modules have plain lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import index
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from irc.errors import Error
from irc.ir import Graph, Node, types
from irc.ir.objects import EnumMember, Object
from irc.ir.region_flow import with_subgraphs
from irc.ir.tensor import Array
from irc.ir.types import DictType, ListType, OptionalType, TupleType, Type, UnionType, is_definite, parts, union_of

if TYPE_CHECKING:
    from irc.runtime.kernels.registry import Kernel


class ConstantList(tuple[Any, ...]):
    """A list that nothing can change, inside a run. Callers get it as a list."""

    type: Type | None = None


class TypedList(list[Any]):
    """A list that knows its type, one of the parts of a declared type."""

    __slots__ = ("type",)

    def __init__(self, type: Type | None, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.type = type


class TypedDict(dict[Any, Any]):
    """A dictionary that knows its type, likewise."""

    __slots__ = ("type",)

    def __init__(self, type: Type | None, items: Iterable[tuple[Any, Any]] = ()) -> None:
        super().__init__(items)
        self.type = type


def integer(value: Any) -> int | None:
    """``value`` as an int if it is a Python or NumPy integer; bools are none here."""
    try:
        return None if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:
        return None


def is_array(value: Any) -> TypeGuard[Array]:
    """Whether ``value`` is a tensor."""
    return isinstance(value, np.ndarray)


def read_only(array: Array) -> Array:
    """``array``, or a view of it that cannot be written to; nor can views of that view."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)  # in half the time of `flags`
    return view


def owner(array: Array) -> Array:
    """The array that the memory of ``array`` belongs to."""
    while is_array(array.base):
        array = array.base
    return array


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether ``value`` is a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Whether ``value`` is a tuple, not a `ConstantList`."""
    return isinstance(value, tuple) and not isinstance(value, ConstantList)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether ``value`` is a map."""
    return isinstance(value, (dict, Mapping))  # dicts, which most are, are seen at once


def describe(value: Any, levels: int = 3) -> str:
    """Element type and shape, for messages: ``float32[1, 3, 224, 224]``; of lists, ``levels`` levels."""
    if is_array(value):
        dtype = "string" if value.dtype.hasobject else value.dtype.name
        kind = "" if value.__class__ is np.ndarray else f"{value.__class__.__name__} "
        return f"{kind}{dtype}{list(value.shape)}"
    if is_sequence(value):
        first = f" ({describe(value[0], levels - 1)}, ...)" if value and levels else ""
        return f"{'tuple' if is_tuple(value) else 'list'} of {len(value)}{first}"
    if isinstance(value, str):
        value = value[:40]  # of a long one, Python would write all
    return "absent" if value is None else f"{type(value).__name__} {value!r:.40}"


Inside = Callable[[Object], Iterable[Any]]
"""Gives those attributes of an object that are to be looked at."""


def attributes(object: Object) -> Iterable[Any]:
    """The attributes of an object."""
    return object.attributes.values()


def containers(value: Any, inside: Inside | None = None) -> Iterator[tuple[Any, Iterable[Any]]]:
    """Yield (container, items) for each list, tuple, map and object in ``value``, itself included.

    Each comes once, before the containers inside it: lists may hold each other many times, and themselves.

    Args:
        value: any value.
        inside: what to look at of an object; None: objects hold nothing.
    """
    pending, seen = [value], set[int]()
    while pending:
        holder = pending.pop()
        if id(holder) in seen:
            continue
        if is_sequence(holder):
            items: Iterable[Any] = holder
        elif is_mapping(holder):
            items = holder.values()
        elif inside is not None and isinstance(holder, Object):
            items = inside(holder)
        else:
            continue
        seen.add(id(holder))
        yield holder, items
        if not _LEAVES.issuperset(map(type, items)):  # at once for very many numbers
            pending.extend([item for item in items if type(item) not in _LEAVES])


_PLAIN = frozenset({bool, int, float, complex, str, bytes, NoneType, EnumMember})

_LEAVES = _PLAIN | {np.ndarray}


def arrays_once(values: Iterable[Any], inside: Inside | None = None) -> Iterator[Array]:
    """All arrays in ``values``, each container looked at once."""
    for _, items in containers(list(values), inside):
        if not _PLAIN.issuperset(map(type, items)):
            yield from filter(is_array, items)


def rebuild(value: Any, change: Callable[[Array], Array], *, objects: bool = True, typed: bool = True) -> Any:
    """``value`` with ``change`` applied to every array, in new lists, tuples, dicts and objects.

    What is one of these stays one. Constant lists become lists.

    Args:
        value: any value.
        change: gives an array for an array.
        objects: whether objects are new, too; else they stay what they are.
        typed: whether new lists and dictionaries can know their types; those of callers do not.
    """
    if type(value) is np.ndarray:  # most are
        return change(value)
    made: dict[int, Any] = {}  # by identity of what it stands for
    empty: list[Any] = []  # what stands for these has been begun: they may hold themselves

    def new(items: Iterable[Any]) -> list[Any]:
        return [change(v) if type(v) is np.ndarray else v if type(v) in _PLAIN else begun(v) for v in items]

    def begun(holder: Any) -> Any:
        found: Any = made.get(id(holder))
        if found is not None:
            return found
        if is_array(holder):
            return change(holder)
        if is_tuple(holder):
            found = made[id(holder)] = tuple(new(holder))  # it can only be made of what is there
            return found
        if is_mapping(holder):
            found = TypedDict(getattr(holder, "type", None)) if typed else {}
        elif is_sequence(holder):
            found = TypedList(getattr(holder, "type", None)) if typed else []
        elif objects and isinstance(holder, Object):
            found = Object(holder.type)
        else:
            return holder
        # Filled later, from a list instead of by recursion: holders may be nested deeply, or hold themselves.
        made[id(holder)] = found
        empty.append(holder)
        return found

    try:
        result = begun(value)
        for holder in empty:  # and what is in them, which is added meanwhile
            found = made[id(holder)]
            if isinstance(holder, Object):
                found.attributes.update(zip(holder.attributes, new(holder.attributes.values())))
            elif is_mapping(holder):  # scores of a row: there may be very many
                is_plain = _PLAIN.issuperset(map(type, holder.values()))
                found.update(holder if is_plain else zip(holder, new(holder.values())))
            else:
                found.extend(holder if _PLAIN.issuperset(map(type, holder)) else new(holder))
    except RecursionError:
        raise Error("IRC402", "tuples are nested too deeply") from None
    return result


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
    """Whether a list or dictionary in ``type`` may have elements of several types."""
    if is_inside and len(parts(type)) > 1:
        return True
    is_inside = is_inside or isinstance(type, ListType | DictType)
    return any(_is_ambiguous(t, is_inside) for t in type.inner)


def typed(value: Any, type: Type) -> Any:
    """``value``, declared as ``type``, with its lists and dictionaries typed unless they are already.

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
    """The part of ``type`` that declares the container ``value``; None if that is Any."""
    wanted = TupleType if is_tuple(value) else ListType if is_sequence(value) else DictType
    found = [part for part in parts(type) if isinstance(part, wanted)]
    if len(found) > 1:
        found = [part for part in found if is_of(value, part)]
    return found[0] if found else None


_ANY_LIST, _ANY_TUPLE = types.PrimType("list"), types.PrimType("tuple")


def is_of(value: Any, type: Type) -> bool:
    """Whether a run-time value is of a type; an empty untyped container is of each it could have."""
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
    if type in (types.SCALAR, types.DEVICE):  # a truth value is not a number, and the name of a device a string
        return own in ((types.STR,) if type == types.DEVICE else (types.INT, types.FLOAT, types.COMPLEX))
    return type == types.ANY or own in parts(type)


def type_of(value: Any) -> Type | None:
    """A value's type: its own, or what its contents tell, as in PyTorch; None if they tell none."""
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
    return OF_PYTHON.get(value.__class__)


OF_PYTHON: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    float: types.FLOAT,
    complex: types.COMPLEX,
    str: types.STR,
    type(None): types.NONE,
}
"""The types of Python's numbers, strings and None, by their classes."""


def _common(values: Iterable[Any]) -> Type | None:
    """The type of elements that ``values`` can be; None if some have no type, or there are none."""
    found = set(map(type_of, values))
    known = [t for t in found if t is not None]
    return union_of(tuple(sorted(known, key=str))) if known and None not in found else None


def with_types(node: Node, kernel: Kernel) -> Kernel:
    """``kernel`` with results typed as ``node`` declares; Error IRC424 if one has another type."""
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
