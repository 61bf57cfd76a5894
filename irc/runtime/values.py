"""What values are at run time.

Tensors are NumPy arrays, sequences and lists are lists (constant ones
`ConstantList`, which nothing can change), optionals the value or None, maps
dicts, TorchScript's numbers and strings Python's, and its objects `Object`.
Lists, maps and objects have identities: what is at several places is one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import index
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from irc.errors import Error
from irc.ir.enumerations import EnumMember
from irc.ir.objects import Object
from irc.ir.tensor import Array

if TYPE_CHECKING:
    from irc.ir.types import Type


class ConstantList(tuple[Any, ...]):
    """A list that nothing can change, inside a run. Callers get it as a list."""

    type: Type | None = None


class TypedList(list[Any]):
    """A list that knows its type, one of the parts of a declared type (see `irc.runtime.typed_containers`)."""

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
    """``value`` as Python's int if it is an integer of Python or NumPy; truth values are not integers here."""
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
    """Element type and shape, for messages: ``float32[1, 3, 224, 224]``; of lists, so many levels."""
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


def attributes(object: Object) -> Iterable[Any]:
    """The attributes of an object."""
    return object.attributes.values()


def nothing(object: Object) -> Iterable[Any]:
    """No attributes: for callers that do not look into objects."""
    return ()


def holders(value: Any, inside: Callable[[Object], Iterable[Any]] = nothing) -> Iterator[tuple[Any, Iterable[Any]]]:
    """All lists, tuples, maps and objects in ``value``, itself included, and what they hold.

    Each comes once, an outer one before what is only in it: lists may hold each other many times, and themselves.

    Args:
        value: any value.
        inside: what to look at of an object.
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
        elif isinstance(holder, Object):
            items = inside(holder)
        else:
            continue
        seen.add(id(holder))
        yield holder, items
        if not _LEAVES.issuperset(map(type, items)):  # at once for very many numbers
            pending.extend([item for item in items if type(item) not in _LEAVES])


_PLAIN = frozenset({bool, int, float, complex, str, bytes, NoneType, EnumMember})

_LEAVES = _PLAIN | {np.ndarray}


def arrays_once(values: Iterable[Any], inside: Callable[[Object], Iterable[Any]] = nothing) -> Iterator[Array]:
    """All arrays in ``values``, each container looked at once."""
    for _, items in holders(list(values), inside):
        if not _PLAIN.issuperset(map(type, items)):
            yield from filter(is_array, items)


def rebuild(value: Any, change: Callable[[Array], Array], *, objects: bool = True, typed: bool = True) -> Any:
    """``value`` with ``change`` applied to every array in it, in lists, tuples, dicts and objects that are new.

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
