"""Lists and dictionaries that know their types at run time.

In TorchScript a list is of exactly one type: a list of tensors is no list of optional tensors, and an empty list of
numbers is no list of tensors. `irc.alias.memory_types` relies on that. What a list holds does not tell its type. So in
modules where it matters (`asks_for_types`) the nodes, inputs, constants and attributes that make lists and
dictionaries make `TypedList` and `TypedDict`; ``prim::isinstance`` answers by these, and a value that is declared as
another type than it has ends the run. Other modules have plain lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.ir import types
from irc.ir.enumerations import EnumMember
from irc.ir.functions import with_subgraphs
from irc.ir.ops.registry import schemas
from irc.ir.ops.resolution import resolve
from irc.ir.type_parts import is_definite, parts
from irc.ir.types import (
    ClassType,
    DictType,
    EnumType,
    ListType,
    OptionalType,
    PrimType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from irc.runtime.values import (
    ConstantList,
    Instance,
    TypedConstantList,
    TypedDict,
    TypedList,
    is_array,
    is_mapping,
    is_sequence,
    is_tuple,
)

if TYPE_CHECKING:
    from irc.ir import Graph, Node
    from irc.ir.schema import Schema
    from irc.runtime.kernels.registry import Kernel


TYPED = (TypedList, TypedDict, TypedConstantList)


def asks_for_types(graph: Graph) -> bool:
    """Whether runs of ``graph`` must know the types of lists and dictionaries, not only what these hold.

    So it is where operators ask, and where one list could otherwise be taken for one of two types.
    """
    graphs = [graph] if graph.module is None else [graph, *graph.module.graphs.values()]
    seen: set[Type] = set()
    for node in with_subgraphs(*graphs):
        if node.kind == "prim::isinstance":
            return True
        for value in (*node.outputs, *(p for block in node.blocks for p in block.params)):
            seen.add(value.type)
    seen.update(value.type for each in graphs for value in each.inputs)
    return any(map(_is_ambiguous, seen))


def _is_ambiguous(type: Type) -> bool:
    """Whether there is a list or dictionary in ``type`` whose elements may be one of several things, as it says."""
    pending = [type]
    while pending:
        t = pending.pop()
        if isinstance(t, ListType | DictType) and any(_has_choice(part) for part in t.inner):
            return True
        pending += t.inner
    return False


def _has_choice(type: Type) -> bool:
    return len(parts(type)) > 1 or (isinstance(type, TupleType) and any(map(_has_choice, type.inner)))


# -- giving types ----------------------------------------------------------------


def typed(value: Any, type: Type) -> Any:
    """``value``, of declared type ``type``, with all lists and dictionaries in it typed; what is one of them stays one.

    What is declared as Any has the type that its contents tell, as in PyTorch.

    Raises:
        Error: IRC402 lists hold themselves or are nested too deeply.
    """
    try:
        return _typed(value, type, {})
    except RecursionError:
        raise Error("IRC402", "lists are nested too deeply, or hold themselves") from None


def _typed(value: Any, type: Type, made: dict[tuple[int, Type], Any]) -> Any:
    if isinstance(value, TYPED) or not (is_sequence(value) or is_mapping(value)):
        return value
    own = _type_of(value, type)
    if isinstance(own, TupleType):
        elems = own.elems if len(own.elems) == len(value) else (types.ANY,) * len(value)
        return tuple([_typed(v, t, made) for v, t in zip(value, elems)])
    if own is None:
        return value
    found = made.get((id(value), own))
    if found is None:
        if is_mapping(value):
            items = {k: _typed(v, own.inner[1], made) for k, v in value.items()}
        else:
            items = [_typed(v, own.inner[0], made) for v in value]
        found = made[id(value), own] = container(value, own, items)
    return found


def container(value: Any, type: Type, items: Any) -> Any:
    """A list or dictionary like ``value``, of ``type``, of ``items``."""
    if isinstance(value, ConstantList):
        constant = TypedConstantList(items)
        constant.type = type
        return constant
    return TypedDict(type, items) if is_mapping(value) else TypedList(type, items)


def _type_of(value: Any, type: Type) -> Type | None:
    """The part of ``type`` that a list, tuple or dictionary is; of Any, what its contents tell, None if nothing."""
    wanted = TupleType if is_tuple(value) else ListType if is_sequence(value) else DictType
    candidates = [part for part in parts(type) if isinstance(part, wanted)]
    if len(candidates) == 1:
        return candidates[0]
    fitting = [part for part in candidates if is_of(value, part)]
    if fitting:
        return fitting[0]
    found = inferred(value)
    return None if found is None else parts(found)[0]


def inferred(value: Any) -> Type | None:
    """The type that PyTorch finds for ``value``; None if it finds none, as for an empty list."""
    if is_array(value):
        return types.TENSOR
    if isinstance(value, (*TYPED, Instance, EnumMember)):
        return value.type
    if is_tuple(value):
        elems = [inferred(v) for v in value]
        return TupleType(tuple([types.ANY if t is None else t for t in elems]))
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
    found = dict.fromkeys(map(inferred, values))
    is_optional = found.pop(types.NONE, types) is None
    if not found:
        return types.NONE if is_optional else None
    if None in found:
        return None
    members = [t for t in found if t is not None]
    elem = members[0] if len(members) == 1 else UnionType(tuple(sorted(members, key=str)))
    return OptionalType(elem) if is_optional else elem


# -- asking ----------------------------------------------------------------------

PYTHON_CLASSES: dict[Type, type | tuple[type, ...]] = {
    types.INT: int,
    types.FLOAT: float,
    types.BOOL: bool,
    types.STR: str,
    types.COMPLEX: complex,
    types.DEVICE: str,
    types.SCALAR: (int, float, complex),
    types.NONE: type(None),
}
"""The types without memory whose values are of a class of Python's."""

_ANY_LIST, _ANY_TUPLE = PrimType("list"), PrimType("tuple")


def is_of(value: Any, type: Type) -> bool:
    """Whether a run-time value is of a type. A list without a type of its own is of each that its elements fit."""
    if isinstance(type, TensorType):
        return is_array(value)
    if isinstance(type, OptionalType):
        return value is None or is_of(value, type.elem)
    if isinstance(type, UnionType):
        return any(is_of(value, member) for member in type.members)
    if isinstance(type, ListType | DictType) and isinstance(value, TYPED):
        return value.type in parts(type)
    if isinstance(type, ListType):
        return is_sequence(value) and not is_tuple(value) and all(is_of(v, type.elem) for v in value)
    if isinstance(type, TupleType):
        return is_tuple(value) and len(value) == len(type.elems) and all(map(is_of, value, type.elems))
    if isinstance(type, DictType):
        return is_mapping(value) and all(is_of(k, type.key) and is_of(v, type.value) for k, v in value.items())
    if isinstance(type, EnumType):
        return isinstance(value, EnumMember) and value.type == type
    if isinstance(type, ClassType):
        return isinstance(value, Instance) and value.type == type
    if type in (_ANY_LIST, _ANY_TUPLE):
        return is_sequence(value) and is_tuple(value) == (type == _ANY_TUPLE)
    python = PYTHON_CLASSES.get(type)
    if python is None:
        return type == types.ANY
    return isinstance(value, python) and not (isinstance(value, bool) and type in (types.INT, types.SCALAR))


# -- what nodes make ---------------------------------------------------------------

_MAKING = frozenset({"prim::ListConstruct", "prim::DictConstruct", "prim::tolist"})


def with_types(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, its results typed as ``node`` declares them if it makes them, else checked."""
    if not any(_may_be_container(output.type) for output in node.outputs):
        return kernel
    chosen = resolve(node)
    rows = schemas(node.kind) if chosen is None else [chosen]
    makes = [node.kind in _MAKING or _is_new(rows, i) for i in range(len(node.outputs))]
    declared = [output.type for output in node.outputs]
    where = f"{node.kind} %{', %'.join(output.name for output in node.outputs)}"

    def settled(value: Any, type: Type, is_made: bool, inputs: Sequence[Any]) -> Any:
        if isinstance(value, TYPED):
            if is_definite(type) and not is_of(value, type):
                raise Error("IRC424", f"a value of type {value.type} is declared as {type}", where)
            return value
        if not is_made or is_tuple(value) or not (is_sequence(value) or is_mapping(value)):
            return value
        own = _type_of(value, type)
        if own is not None and type.is_any:
            own = next((x.type for x in inputs if isinstance(x, TYPED)), own)
        return value if own is None else container(value, own, value)

    if len(declared) == 1:
        (type,), (is_made,) = declared, makes
        return lambda *inputs: settled(kernel(*inputs), type, is_made, inputs)

    def run(*inputs: Any) -> Any:
        return tuple([settled(v, t, made, inputs) for v, t, made in zip(kernel(*inputs), declared, makes)])

    return run


def _is_new(rows: Sequence[Schema], output: int) -> bool:
    """Whether a list or dictionary that is this result is a new one; what it holds need not be."""
    results = [row.result(output) for row in rows]
    return bool(rows) and not any(r is None or (r.alias is not None and r.alias.before) for r in results)


def _may_be_container(type: Type) -> bool:
    return any(part.is_any or isinstance(part, ListType | DictType) for part in parts(type))


# -- attributes of objects -----------------------------------------------------------


def attribute_types(graph: Graph) -> dict[str, Type]:
    """The types of attributes, by name, as far as the operators that get and set them agree."""
    graphs = [graph] if graph.module is None else [graph, *graph.module.graphs.values()]
    found: dict[str, Type | None] = {}
    for node in with_subgraphs(*graphs):
        if node.kind in ("prim::GetAttr", "prim::SetAttr"):
            name = str(node.attributes.get("name", ""))
            type = (node.outputs[0] if node.kind == "prim::GetAttr" else node.inputs[1]).type
            if found.setdefault(name, type) != type:
                found[name] = None
    return {name: type for name, type in found.items() if type is not None}
