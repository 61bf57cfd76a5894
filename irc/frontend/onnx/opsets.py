"""Which operator a node means, by opset imports and the schemas of ``onnx.defs``.

A node binds to the version of its operator with the highest ``since_version``
that is not above the model's opset (``Versioning.md`` of the ONNX
specification). irc supports opset 6 on; at a lower opset it accepts the
operators that are still the same at opset 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import OperatorSetIdProto, defs
from onnx.defs import OpSchema

from irc.errors import Error
from irc.frontend.onnx.contrib import MICROSOFT, ROWS, Row
from irc.frontend.onnx.types import from_schema, text
from irc.ir.schema import Schema
from irc.ir.types import ANY, TENSOR, OptionalType, Type, join
from irc.ops import record, schemas
from irc.ops.onnx_signatures import find, newest_opset, versions
from irc.ops.opaque import PREFIX, opaque_kind

LOWEST_OPSET = 6
"""The lowest version of the standard operators that irc supports in full."""

UNBOUNDED = 2**31 - 1
"""The most inputs or outputs of variadic operators."""

_IRC_DOMAINS = frozenset(("aten", "irc", "onnx", "prim"))
"""Namespaces of operators in the IR that no model may name as its domains."""

STANDARD = ("", "ai.onnx")
"""Two names of one domain: the standard operators."""


def is_standard(domain: str) -> bool:
    """Whether ``domain`` is that of ONNX's standard operators."""
    return domain in STANDARD


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """What a schema says of the type of an output.

    Attributes:
        like: the inputs (positions; the last may stand for all that follow) whose type it shares, shape aside.
        fallback: its type as far as known otherwise.
    """

    like: tuple[int, ...]
    fallback: Type


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator at one version.

    Attributes:
        kind: the kind of its nodes, ``onnx::Conv`` or ``ai.onnx.ml::LabelEncoder``.
        version: its ``since_version``; None for operators that are not of the onnx package.
        attributes: name -> (``AttributeProto`` type number, required); None: any.
        inputs: for each formal input whether it may be absent; the last one repeats if variadic.
        outputs: the types of formal outputs; the last one repeats if variadic.
        arity: fewest and most inputs, fewest and most outputs.
        is_lenient: whether other attributes than those are allowed, and mean nothing, as in ONNX Runtime.
    """

    name: str
    kind: str
    version: int | None
    attributes: dict[str, tuple[int, bool]] | None
    inputs: tuple[bool, ...]
    outputs: tuple[Output, ...]
    arity: tuple[int, int, int, int]
    is_lenient: bool = False

    @property
    def is_standard(self) -> bool:
        """Whether it is one of ONNX's standard operators."""
        return self.kind.startswith("onnx::")


def read_imports(imports: Iterable[OperatorSetIdProto], where: str, missing: int | None = None) -> dict[str, int]:
    """Domain (``""`` for the standard one) -> opset version. Raises IRC122.

    As in ONNX Runtime, the last of several imports of a domain counts, and one at version 0 says nothing.

    Args:
        imports: the ``opset_import`` of a model or function.
        where: whose imports they are.
        missing: version of the standard operators if nothing is imported; None: that is an error.
    """
    found: dict[str, int] = {}
    entries = list(imports)
    if not entries:
        if missing is None:
            raise Error("IRC122", "no operator set is imported (opset_import is empty): is the model truncated?", where)
        return {"": missing}
    for entry in entries:
        domain, version = _canonical(text(entry.domain, where)), entry.version
        name = domain or "ai.onnx"
        newest = newest_opset(domain, version)
        if version < 0 or version > newest:
            message = f"opset {version} of {name} is not known: the installed onnx package knows 1 to {newest}"
            raise Error("IRC122", message, where)
        if version:
            found[domain] = version
    if not found:
        raise Error("IRC122", "no operator set is imported, as opset 0 is none", where)
    return found


def _canonical(domain: str) -> str:
    return "" if domain in STANDARD else domain


_NHWC = "com.ms.internal.nhwc"
"""ONNX Runtime's standard operators for images whose channels come last."""


def _opset(domain: str, imports: dict[str, int]) -> int | None:
    """The opset of a domain; None if not imported, unless ONNX Runtime imports the domain by itself."""
    found = imports.get(domain)
    if found is None and (domain == MICROSOFT or domain.startswith(f"{MICROSOFT}.")):
        return 1
    if found is None and domain == _NHWC:
        return imports.get("")
    return found


_BOUND: dict[tuple[str, str, int], Operator] = {}


def bind(domain: str, op_type: str, imports: dict[str, int], where: str = "") -> Operator | str:
    """The operator that ``op_type`` means under the imports of ``where`` ("": the model); or why none."""
    domain = _canonical(domain)
    opset = _opset(domain, imports)
    if opset is None:
        return f"{where or 'the model'} imports no operator set of domain {domain or 'ai.onnx'!r}"
    found = _BOUND.get((domain, op_type, opset))
    if found is None:
        schema = _schema(domain, op_type, opset)
        found = schema if isinstance(schema, (Operator, str)) else _operator(schema, domain)
        if isinstance(found, Operator):
            if (found.version or 0) > opset and record(found.kind).early == "lenient":
                found = replace(found, is_lenient=True)
            _BOUND[domain, op_type, opset] = found
    return found


def opaque(domain: str, op_type: str, imports: dict[str, int]) -> Operator | None:
    """An unknown operator, which may take and return anything; None if it cannot be named."""
    domain = _canonical(domain)
    opset = _opset(domain, imports)
    if opset is None or not op_type or "::" in domain:
        return None
    kind = opaque_kind(domain, op_type)
    name = f"{domain}::{op_type}" if domain else op_type
    arity = (0, UNBOUNDED, 0, UNBOUNDED)
    return Operator(name, kind, opset, None, (True,), (Output((), ANY),), arity)


def as_written(raw: Any, operator: Operator, imports: dict[str, int]) -> Operator:
    """``operator``, or an opaque one if irc would write that as other operators than the node ``raw``."""
    domain = _canonical(raw.domain)
    is_row = (domain, raw.op_type) in ROWS and operator.version is not None
    is_early = operator.is_standard and (operator.version or 0) > imports.get("", 0)
    return (opaque(domain, raw.op_type, imports) or operator) if is_row or is_early else operator


def _schema(domain: str, op_type: str, opset: int) -> OpSchema | Operator | str:
    row = ROWS.get((domain, op_type))
    if not newest_opset(domain, 0):
        found = _third_party(domain, op_type) or (row and _of_row(row))
        return found or "no such operator is known to onnx or registered with irc"
    kind = f"{domain or 'onnx'}::{op_type}"
    schema = find(kind, max(opset, versions(kind)[0]) if record(kind).early else opset)
    if schema is None:
        return _of_row(row) if row else "no such operator" + _other_versions(domain, op_type, opset)
    if schema.deprecated and defs.has(op_type, schema.since_version - 1, domain):  # not if it never was any other
        return f"removed from ONNX in opset {schema.since_version}: export the model with a newer operator"
    if domain == "" and opset < LOWEST_OPSET and schema.since_version <= opset:
        later = defs.get_schema(op_type, LOWEST_OPSET, domain).since_version
        if later != schema.since_version:
            return (
                f"version {schema.since_version} is too old (it changed in opset {later}): irc supports opset "
                f"{LOWEST_OPSET} on; convert the model with onnx.version_converter"
            )
    return schema


def _other_versions(domain: str, op_type: str, opset: int) -> str:
    """The opset that introduced the operator, for the message, if it is newer than ``opset``; else ""."""
    newest = newest_opset(domain)
    if newest <= opset or not defs.has(op_type, newest, domain):
        return ""
    since = next(v for v in range(opset + 1, newest + 1) if defs.has(op_type, v, domain))
    return f" before opset {since}"


def _operator(schema: Any, domain: str) -> Operator:
    formals = list(schema.inputs)
    allowed = {t.type_param_str: list(t.allowed_type_strs) for t in schema.type_constraints}
    kind = f"{domain or 'onnx'}::{schema.name}"
    return Operator(
        name=schema.name if domain == "" else kind,
        kind=kind,
        version=schema.since_version,
        attributes={name: (a.type.value, a.required) for name, a in schema.attributes.items()},
        inputs=tuple([f.option.name == "Optional" for f in formals]),
        outputs=tuple([_output(f, formals, allowed) for f in schema.outputs]),
        arity=(schema.min_input, schema.max_input, schema.min_output, schema.max_output),
    )


def _third_party(domain: str, op_type: str) -> Operator | None:
    """The operator of a schema row registered under ``domain::op_type``; None if there is none."""
    kind = f"{domain}::{op_type}"
    rows = () if domain in _IRC_DOMAINS or domain.startswith(PREFIX) else schemas(kind)
    return of_schemas(kind, rows) if rows else None


def of_schemas(kind: str, rows: Sequence[Schema]) -> Operator:
    """The operator of the first of these schema rows, which takes any attributes."""
    row = rows[0]
    optional = [a.has_default or isinstance(a.type, OptionalType) for a in row.arguments]
    fewest = max([i + 1 for i, may_be_absent in enumerate(optional) if not may_be_absent], default=0)
    most = UNBOUNDED if row.is_vararg else len(optional)
    many = UNBOUNDED if row.is_varret else len(row.returns)
    outputs = tuple([Output((), r.type) for r in row.returns])
    return Operator(kind, kind, None, None, tuple(optional), outputs, (fewest, most, min(1, len(row.returns)), many))


def _of_row(row: Row) -> Operator:
    """The operator of a row of irc's table; its body decides the types of its outputs."""
    fewest = [
        max([i + 1 for i, may_be_absent in enumerate(f.values()) if not may_be_absent], default=0)
        for f in (row.inputs, row.outputs)
    ]
    return Operator(
        name=row.kind,
        kind=row.kind,
        version=1,
        attributes={name: (type, default is None) for name, (type, default) in row.attributes.items()},
        inputs=tuple(row.inputs.values()),
        outputs=tuple([Output((), TENSOR)] * len(row.outputs)),
        arity=(fewest[0], UNBOUNDED if row.is_variadic else len(row.inputs), fewest[1], len(row.outputs)),
        is_lenient=row.is_lenient,
    )


def _output(formal: OpSchema.FormalParameter, inputs: list[Any], allowed: dict[str, list[str]]) -> Output:
    text = formal.type_str
    is_mixed = not formal.is_homogeneous  # each of a variadic list of its own type
    like = () if is_mixed else tuple([i for i, p in enumerate(inputs) if p.type_str == text and p.is_homogeneous])
    types = [from_schema(t) for t in allowed.get(text, [text])]
    common: Type | None = types[0] if types else None
    for other in types[1:]:
        common = join(common, other) if common is not None else None
    return Output(like, TENSOR if common is None else common)
