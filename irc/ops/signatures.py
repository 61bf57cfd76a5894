"""The schema rows of operators, parsed when they are first asked for."""

from __future__ import annotations

from dataclasses import replace

from irc.ir.schema import Schema, parse_schema
from irc.ir.types import OptionalType
from irc.ops.opaque import is_opaque
from irc.ops.record import Effects
from irc.ops.registry import is_own, on_change, record, records

_PARSED: dict[str, tuple[Schema, ...]] = {}


def schemas(kind: str) -> tuple[Schema, ...]:
    """All overloads of ``kind``; empty if irc has no row for it.

    An ONNX operator with a trailing underscore is the in-place variant of the one without: it writes its result into
    its first input.
    """
    found = _PARSED.get(kind)
    if found is None:
        rows = tuple(map(parse_schema, record(kind).rows))
        found = _PARSED[kind] = rows if is_own(kind) else tuple(map(_with_defaults, rows))
    return found


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


def _forget(kind: str) -> None:
    _PARSED.pop(kind, None)


on_change.append(_forget)
