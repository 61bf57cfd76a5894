"""The signatures of ONNX's operators, combined with the alias table, and whether nodes fit them.

The onnx package, which states them, is imported when first needed: that takes 0.2 s, and graphs without ONNX operators
need none of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

from irc.errors import did_you_mean
from irc.ir import Node, Tensor, Value, types
from irc.ir.kinds import DOMAINS, IDENTITY, ONNX_LOOP, SCAN
from irc.ir.region_flow import DECLARED_INPUTS, DECLARED_ROWS
from irc.ir.schema import Argument, Schema
from irc.ir.types import DictType, DType, ListType, OptionalType, PrimType, TensorType, Type, TypeVar, UnionType
from irc.ir.verify.operator_rules import node_error
from irc.ops import functional_by_default, schemas

LAST_VERSION = 2**31 - 1
"""The highest version that the onnx package can be asked for, above all that there are."""


def split_kind(kind: str) -> tuple[str, str]:
    """Domain ("" for ONNX's standard operators) and name of an operator: ``onnx::Relu`` is ("", "Relu")."""
    namespace, _, name = kind.rpartition("::")
    return DOMAINS.get(namespace, namespace), name


def find(kind: str, version: int | None = None) -> Any:
    """The ``OpSchema`` of nodes of ``kind``; None if there is none.

    Args:
        kind: as nodes have it.
        version: theirs, or that of an operator set; None: the newest.
    """
    from onnx import defs

    if version is not None and not 0 < version <= LAST_VERSION:
        return None
    domain, name = split_kind(kind)
    try:
        return defs.get_schema(name, LAST_VERSION if version is None else version, domain)
    except defs.SchemaError:
        return None


@cache
def versions(kind: str) -> tuple[int, ...]:
    """The opsets in which the operator appeared or changed, ascending; () for other domains."""
    return _history().get(split_kind(kind), ())


def all_kinds() -> list[str]:
    """All operators of the onnx package."""
    return [f"{domain or 'onnx'}::{name}" for domain, name in _history()]


@cache
def _history() -> dict[tuple[str, str], tuple[int, ...]]:
    from onnx import defs

    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        found[schema.domain, schema.name].append(schema.since_version)
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}


def newest_opset(domain: str, unknown: int = 1) -> int:
    """The newest opset of a domain in the installed onnx package; ``unknown`` if it has none."""
    from onnx import defs

    known: dict[str, tuple[int, int]] = defs.C.schema_version_map()
    return known[domain][1] if domain in known else unknown


@cache
def signature(kind: str, version: int | None = None) -> Schema | None:
    """The signature of nodes of ``kind`` at a version (None: the newest)."""
    found = find(kind.removesuffix("_"), version)
    if found is None:
        return None
    in_place = kind.endswith("_")
    row = next(iter(schemas(kind)), None)
    arguments: list[Argument] = []
    for i, formal in enumerate(found.inputs):
        alias = row.argument(i) if row else None
        type = _type(formal.types)
        is_optional = formal.option.name == "Optional"
        type = types.OptionalType(type) if is_optional and not isinstance(type, types.OptionalType) else type
        arguments.append(_formal(type, formal.name, alias, is_optional))
    returns: list[Argument] = []
    for i, formal in enumerate(found.outputs):
        alias = row.result(i) if row and (row.is_varret or not in_place or i == 0) else None
        returns.append(_formal(_type(formal.types), formal.name, alias))
    return Schema(
        kind,
        "",
        tuple(arguments),
        tuple(returns),
        bool(found.inputs) and found.inputs[-1].option.name == "Variadic",
        bool(found.outputs) and found.outputs[-1].option.name == "Variadic",
    )


def _formal(type: Type, name: str, row: Argument | None, is_optional: bool = False) -> Argument:
    """An argument or a result; ``row`` has its alias annotation."""
    if row is None or row.alias is None:
        return Argument(type, name, has_default=is_optional, text=f"{type} {name}")
    return Argument(type, name, row.alias, is_optional, text=row.text)


def _type(allowed: set[str]) -> Type:
    """The irc type of a formal with ONNX types such as ``tensor(float)`` or ``seq(tensor(float))``."""
    shapes = {t.partition("(")[0] for t in allowed}
    if len(shapes) != 1:
        return TypeVar("t")
    inner = {t.partition("(")[2].removesuffix(")") for t in allowed}
    shape = next(iter(shapes))
    if shape == "seq":
        return types.ListType(_type(inner))
    if shape == "optional":
        return types.OptionalType(_type(inner))
    if shape == "map":
        return types.DictType(TypeVar("k"), types.TENSOR)
    return types.TENSOR


# -- nodes against signatures --------------------------------------------------


_OWN_FORMS: dict[str, dict[str, str]] = {
    ONNX_LOOP: {DECLARED_ROWS: "STRINGS"},
    SCAN: {DECLARED_ROWS: "STRINGS", DECLARED_INPUTS: "STRINGS"},
}
"""Operators of whose signature only version and attributes count, as operator_rules knows the rest -> the attributes
that they have in the IR alone."""


_MANY = 30
_ELEMENT = re.compile(r"tensor\(\w+\)")


class _Formal(NamedTuple):
    """A formal input or output.

    Attributes:
        name: as the operator's specification calls it.
        variable: its type variable, or its type if that is fixed.
        allowed: ONNX names of the types it may have.
        dtypes: the element types of those of them that are tensors.
        optional: whether it may be absent.
        alike: whether all values bound to ``variable`` have one type.
    """

    name: str
    variable: str
    allowed: frozenset[str]
    dtypes: frozenset[DType]
    optional: bool
    alike: bool


class _Signature(NamedTuple):
    since: int
    inputs: tuple[_Formal, ...]
    outputs: tuple[_Formal, ...]
    input_range: tuple[int, int]
    output_range: tuple[int, int]
    blocks: int
    attributes: dict[str, str]
    required: tuple[str, ...]


def check_onnx(node: Node) -> bool:
    """Check ``node`` against its signature (IRC213 to IRC217); False if it is not an ONNX operator."""
    if not functional_by_default(node.kind):
        return False
    signature = _inplace_or_own(node.kind, node.version)
    if signature is None:
        version = "" if node.version is None else f" at version {node.version}"
        raise node_error("IRC217", f"the onnx package knows no operator {node.kind}{version}", node)
    if node.version is not None and node.version != signature.since:
        message = f"{node.kind} has no version {node.version}; the one before it is {signature.since}"
        raise node_error("IRC217", message, node)
    if node.kind in _OWN_FORMS:
        _check_attributes(node, signature)
        return True
    _check_form(node, signature)
    given, made = tuple([v.type for v in node.inputs]), tuple([v.type for v in node.outputs])
    key = node.kind, node.version, given, made
    if key in _FITTING or (node.kind == IDENTITY and types.accepts(made[0], given[0])):
        return True
    bound: dict[str, Any] = {}
    _check_types(node, signature.inputs, node.inputs, "input", bound)
    _check_types(node, signature.outputs, node.outputs, "output", bound)
    if len(_FITTING) >= types.REMEMBERED:
        _FITTING.clear()
    _FITTING.add(key)
    return True


_FITTING: set[tuple[str, int | None, tuple[Type, ...], tuple[Type, ...]]] = set()
"""Kinds and versions of nodes with types of inputs and outputs that fit their signatures: layers are alike."""


def check_form(node: Node) -> None:
    """Check an ONNX node's numbers of inputs, outputs and blocks, and attributes (IRC213, IRC215)."""
    signature = _signature_of(node.kind, node.version)
    if signature is not None:
        _check_form(node, signature)


def _check_form(node: Node, signature: _Signature) -> None:
    _check_count(node, "input", len(node.inputs), signature.input_range)
    _check_count(node, "output", len(node.outputs), signature.output_range)
    _check_count(node, "block", len(node.blocks), (signature.blocks, signature.blocks))
    if node.attributes or signature.required:
        _check_attributes(node, signature)


@lru_cache(maxsize=4096)
def misfit(kind: str, version: int | None, found: tuple[str | None, ...]) -> str | None:
    """What is wrong with operands of types ``found`` for an operator; None if nothing, or not ONNX's.

    Args:
        kind: as nodes have it.
        version: as nodes have it.
        found: types as ONNX writes them, or how they begin (``seq(``); None where absent or not known.
    """
    signature = _signature_of(kind, version)
    if signature is None or not signature.inputs:
        return None
    bound: dict[str, tuple[str, str]] = {}
    for i, type in enumerate(found):
        formal = signature.inputs[min(i, len(signature.inputs) - 1)]
        if type is None:
            continue
        if not any(name.startswith(type) for name in formal.allowed):
            form = type.partition("(")[0]
            allowed = {name for name in formal.allowed if name.startswith(form)} or formal.allowed
            text = ", ".join(sorted(allowed))
            return f"input {i} ({formal.name}) of {kind} cannot be {type.removesuffix('(')}; it can be {text}"
        first, other = bound.setdefault(formal.variable, (formal.name, type))
        if formal.alike and not type.startswith(other) and not other.startswith(type):
            return f"input {i} ({formal.name}) of {kind} must be of the same type as {first}: {type} and {other}"
    return None


def _listed(names: frozenset[str]) -> str:
    """The types, or, of very many, what they have in common."""
    found = names if len(names) <= _MANY else {_ELEMENT.sub("tensor(...)", name) for name in names}
    return ", ".join(sorted(found))


def _check_count(node: Node, what: str, found: int, allowed: tuple[int, int]) -> None:
    low, high = allowed
    if not low <= found <= high:
        wanted = str(low) if low == high else f"{low} to {high}" if high < LAST_VERSION else f"{low} or more"
        raise node_error("IRC213", f"{node.kind} must have {wanted} {what}{'s' * (wanted != '1')}, not {found}", node)


# -- types -------------------------------------------------------------------


def _check_types(
    node: Node, formals: Sequence[_Formal], values: Sequence[Value], what: str, bound: dict[str, Any]
) -> None:
    for i, value in enumerate(values):
        formal = formals[i] if i < len(formals) else formals[-1]
        found = value.type
        key = found.dtype if isinstance(found, TensorType) else onnx_name(found)
        if not (_fits(found, formal) or (found == types.NONE and formal.optional)):
            allowed = _listed(formal.allowed)
            message = f"{what} {formal.name} of {node.kind} cannot be {found}; it can be {allowed}"
            raise node_error("IRC214", message, node, **{what: i})
        if key is not None and formal.alike and found != types.NONE:
            other = bound.setdefault(formal.variable, key)
            if other != key:
                names = " and ".join(k.label if isinstance(k, DType) else str(k) for k in (other, key))
                message = f"{what} {formal.name} of {node.kind} must be of the same type as those before it: {names}"
                raise node_error("IRC214", message, node, **{what: i})


def _fits(found: Type, formal: _Formal) -> bool:
    """Whether ``formal`` takes all values of type ``found``; a type that may be anything fits.

    So it is with schema rows.
    """
    if isinstance(found, TensorType):
        return found.dtype in formal.dtypes if found.dtype is not None else bool(formal.dtypes)
    if found.is_any:
        return True
    if isinstance(found, UnionType):
        return all(_fits(member, formal) for member in found.members)
    key = onnx_name(found)
    if key is not None:
        return key in formal.allowed
    form = _FORMS.get(type(found))
    return form is not None and _is_onnx(found) and any(name.startswith(form) for name in formal.allowed)


def _is_onnx(t: Type) -> bool:
    """Whether ONNX may have a word for ``t``: for tuples, futures, objects and enumerations it has none."""
    is_plain = t.is_any or isinstance(t, TensorType | PrimType)
    return is_plain or (type(t) in _FORMS and all(map(_is_onnx, t.inner)))


def onnx_name(t: Type) -> str | None:
    """A type as ONNX writes it, ``seq(tensor(float))``; None if something of it is not known."""
    if isinstance(t, TensorType):
        return None if t.dtype is None else _TENSORS[t.dtype]
    if isinstance(t, ListType | OptionalType):
        elem = onnx_name(t.elem)
        return None if elem is None else f"{'seq' if isinstance(t, ListType) else 'optional'}({elem})"
    return t.name if isinstance(t, PrimType) and t != types.ANY else None


_TENSORS = {dtype: f"tensor({dtype.name.lower()})" for dtype in DType}
_FORMS: dict[type[Type], str] = {ListType: "seq(", OptionalType: "optional(", DictType: "map("}


# -- attributes --------------------------------------------------------------

# By onnx.AttributeType: what a value, and each element of it, may be. Integers do where floats are asked for.
_KINDS: dict[str, tuple[type, tuple[type, ...]]] = {
    "INT": (int, ()),
    "FLOAT": (float, (int,)),
    "STRING": (str, ()),
    "TENSOR": (Tensor, ()),
    "TYPE_PROTO": (Type, ()),
}


def _check_attributes(node: Node, signature: _Signature) -> None:
    for key, value in node.attributes.items():
        kind = signature.attributes.get(key)
        if kind is None:
            hint = did_you_mean(key, signature.attributes, str)
            raise node_error("IRC215", f"{node.kind} has no attribute {key}{hint and f'; {hint}'}", node)
        if not _has_kind(value, kind):
            raise node_error("IRC215", f"attribute {key} of {node.kind} must be {kind}", node)
    for key in signature.required:
        if key not in node.attributes:
            raise node_error("IRC215", f"{node.kind} needs an attribute {key}", node)


def _has_kind(value: Any, kind: str) -> bool:
    if kind not in _KINDS and kind.endswith("S"):
        exact, others = _KINDS.get(kind[:-1], (object, ()))
        if not isinstance(value, list):
            return False
        items = cast("list[Any]", value)  # mostly of a few sizes, or of very many numbers
        return {exact, *others}.issuperset(map(type, items)) or all(_has_kind(item, kind[:-1]) for item in items)
    exact, others = _KINDS.get(kind, (object, ()))
    return isinstance(value, (exact, *others)) and not (isinstance(value, bool) and exact is not object)


# -- what onnx says ----------------------------------------------------------


def _signature_of(kind: str, version: int | None) -> _Signature | None:
    """The signature of a kind, in-place variants included; None if it has none in ONNX, or its own form."""
    if not functional_by_default(kind) or kind in _OWN_FORMS:
        return None
    return _inplace_or_own(kind, version)


def _inplace_or_own(kind: str, version: int | None) -> _Signature | None:
    return _signature(kind, version) or _signature(kind.removesuffix("_"), version)


@lru_cache(maxsize=4096)
def _signature(kind: str, version: int | None) -> _Signature | None:
    schema = find(kind, version)
    if schema is None:
        return None
    constraints = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    # Bodies are blocks in the IR.
    attributes = {key: a.type.name for key, a in schema.attributes.items() if a.type.name != "GRAPH"}
    return _Signature(
        since=schema.since_version,
        inputs=tuple(_formal_of(p, constraints) for p in schema.inputs),
        outputs=tuple(_formal_of(p, constraints) for p in schema.outputs),
        input_range=(schema.min_input, schema.max_input),
        output_range=(schema.min_output, schema.max_output),
        blocks=len(schema.attributes) - len(attributes),
        attributes=attributes | _OWN_FORMS.get(kind, {}),
        required=tuple(key for key in attributes if schema.attributes[key].required),
    )


def _formal_of(parameter: Any, constraints: dict[str, frozenset[str]]) -> _Formal:
    allowed = constraints.get(parameter.type_str, frozenset({parameter.type_str}))
    option = parameter.option.name
    return _Formal(
        name=parameter.name,
        variable=parameter.type_str,
        allowed=allowed,
        dtypes=frozenset(dtype for dtype, name in _TENSORS.items() if name in allowed),
        optional=option == "Optional",
        alike=option != "Variadic" or parameter.is_homogeneous,
    )
