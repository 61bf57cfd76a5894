"""The schema rows of operators, parsed when they are first asked for, and the one that a node means.

Which overload that is, the types of its arguments tell.
"""

from __future__ import annotations

from dataclasses import replace

from irc.ir import CONSTANT, Node, Tensor, types
from irc.ir.schema import Argument, Schema, parse_schema
from irc.ir.types import ClassType, EnumType, ListType, OptionalType, PrimType, TensorType, Type, TypeVar, UnionType
from irc.ops.opaque import is_opaque
from irc.ops.record import Effects
from irc.ops.registry import functional_by_default, is_own, of_kind, record, records


@of_kind
def schemas(kind: str) -> tuple[Schema, ...]:
    """All overloads of ``kind``; empty if irc has no row for it.

    An ONNX operator with a trailing underscore is the in-place variant of the one without: it writes its result into
    its first input.
    """
    rows = tuple(map(parse_schema, record(kind).rows))
    return rows if is_own(kind) else tuple(map(_with_defaults, rows))


def _with_defaults(schema: Schema) -> Schema:
    """``schema`` as in ONNX: optional inputs at the end may be left out, with or without a default."""
    arguments = tuple(
        replace(a, has_default=True) if isinstance(a.type, OptionalType) and not a.has_default else a
        for a in schema.arguments
    )
    return replace(schema, arguments=arguments)


def kinds() -> list[str]:
    """All kinds that have rows."""
    return [each.kind for each in records() if each.rows]


def effects(kind: str) -> Effects:
    """The effects that nodes of ``kind`` may have."""
    return Effects.SIDE_EFFECT if is_opaque(kind) else record(kind).effects


# -- overloads -----------------------------------------------------------------


_INTEGRAL = (types.INT, types.BOOL)

_ANY_OF: dict[str, type[Type]] = {"AnyClassType": ClassType, "AnyEnumType": EnumType}


def resolve(node: Node) -> Schema | None:
    """The overload that fits the node's arguments best; None if none does, or a run must decide.

    The first row that fits without any conversion wins, else the first that
    fits at all. An argument that may be anything fits every row and so decides
    nothing: then only one row may fit.
    """
    actual = [v.type for v in node.inputs]
    is_open = any(type.is_open for type in actual)
    loose: Schema | None = None
    for schema in schemas(node.kind):
        exact = _fits(schema, actual)
        if exact is None:
            continue
        if is_open and loose is not None:
            return None
        if exact and not is_open:
            return schema
        loose = loose or schema
    return loose


def takes(kind: str, actual: list[Type]) -> bool:
    """Whether an overload of the operator ``kind`` takes arguments of these types."""
    return any(_fits(schema, actual) is not None for schema in schemas(kind))


def effects_of(node: Node) -> Effects:
    """The effects of this node: its kind's, without random numbers if a constant argument disables them."""
    found = effects(node.kind)
    switch = record(node.kind).random_switch
    if found and switch is not None and _is_off(node, switch):
        found &= ~Effects.RANDOM
    return found


def _is_off(node: Node, name: str) -> bool:
    schema = resolve(node)
    position = next((i for i, a in enumerate(schema.arguments) if a.name == name), None) if schema else None
    if schema is None or position is None:
        return False
    argument = schema.arguments[position]
    by_default = argument.has_default and not argument.default
    if position >= len(node.inputs):
        return by_default
    source = node.inputs[position].made_by(CONSTANT)
    if source is None:
        return False
    value = source.attributes.get("value")
    if value is None:
        return by_default
    if isinstance(value, Tensor):
        return value.numel == 1 and not value.numpy().any()
    return not value


def schema_of(node: Node) -> Schema | None:
    """The signature of a node: a row of irc's tables, or that of ``onnx.defs``; else None.

    ONNX's are looked up in the onnx package, which is imported when first needed.
    """
    if functional_by_default(node.kind):
        from irc.ops.onnx_signatures import signature

        return signature(node.kind, node.version)
    return resolve(node)


def _fits(schema: Schema, actual: list[Type]) -> bool | None:
    """Whether ``actual`` fits ``schema``: True as it is, False with conversions, None not at all."""
    if len(actual) > len(schema.arguments) and not schema.is_vararg:
        return None
    if any(not a.has_default for a in schema.arguments[len(actual) :]) and not schema.is_vararg:
        return None
    bound: dict[str, Type] = {}
    exact = True
    for i, type in enumerate(actual):
        formal = schema.argument(i)
        if formal is None:
            continue  # a vararg operator without formals takes anything
        fit = _argument_fits(formal, type, bound)
        if fit is None:
            return None
        exact = exact and fit
    return exact


def _argument_fits(formal: Argument, actual: Type, bound: dict[str, Type]) -> bool | None:
    inner = formal.type.elem if isinstance(formal.type, OptionalType) else formal.type
    if matches(formal.type, actual, bound):
        return inner != types.SCALAR or actual == types.SCALAR  # a row for just this type of number is better
    if formal.size is not None and isinstance(inner, ListType) and matches(inner.elem, actual, bound):
        return False  # int[2] takes a single int
    return False if inner == types.FLOAT and actual in _INTEGRAL else None


def matches(formal: Type, actual: Type, bound: dict[str, Type]) -> bool:
    """Whether every value of type ``actual`` may be given for ``formal``; binds type variables.

    (The verifier checks less: that types do not contradict each other, `irc.ir.types.accepts`.)
    """
    if isinstance(formal, TypeVar):
        have = bound.setdefault(formal.name, actual)
        return (
            have is actual or have == actual or matches(have, actual, bound) or isinstance(have, TensorType | UnionType)
        )
    if formal == types.ANY or actual.is_any:
        return True
    if isinstance(formal, OptionalType):
        if actual == types.NONE:
            return True
        return matches(formal.elem, actual.elem if isinstance(actual, OptionalType) else actual, bound)
    if isinstance(formal, TensorType):
        return isinstance(actual, TensorType)
    if isinstance(formal, UnionType):
        given = actual.members if isinstance(actual, UnionType) else (actual,)
        return all(any(matches(f, a, bound) for f in formal.members) for a in given)
    if formal.inner:
        fits = formal.__class__ is actual.__class__ and len(formal.inner) == len(actual.inner)
        return fits and all(matches(f, a, bound) for f, a in zip(formal.inner, actual.inner))
    if formal == types.SCALAR:
        return actual in types.NUMBERS
    if isinstance(formal, PrimType) and formal.name in _ANY_OF:
        return isinstance(actual, _ANY_OF[formal.name])
    return formal == actual or (isinstance(formal, ClassType) and formal.is_interface and isinstance(actual, ClassType))
