"""What the exporter needs to know of ONNX's operators: versions and schemas, from ``onnx.defs``."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

from irc.ir.ops import schemas
from irc.ir.types import ListType, OptionalType, Type

FOREVER = 2**31 - 1
"""In place of the opset that changes an operator which none has changed."""


def split_kind(kind: str) -> tuple[str, str]:
    """Domain ("" for ONNX's standard operators) and name of an operator: ``onnx::Relu`` is ("", "Relu")."""
    domain, _, name = kind.rpartition("::")
    return ("" if domain == "onnx" else domain), name


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator at one version.

    Attributes:
        attributes: name -> ``AttributeProto`` type number.
        fewest_inputs: how many there must be, absent ones included.
        optional: for each formal output, whether it may be absent; a variadic one may not.
    """

    attributes: dict[str, int]
    fewest_inputs: int
    optional: tuple[bool, ...]


@cache
def versions(kind: str) -> tuple[int, ...]:
    """The opsets in which the operator came to be or changed, ascending; () for operators of other domains."""
    return _history().get(split_kind(kind), ())


@cache
def _history() -> dict[tuple[str, str], tuple[int, ...]]:
    from onnx import defs

    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        found[schema.domain, schema.name].append(schema.since_version)
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}


def newest_opset(domain: str) -> int:
    """The newest version of a domain's operator set that the onnx package knows; 1 for domains it does not know."""
    from onnx import defs

    known: dict[str, tuple[int, int]] = defs.C.schema_version_map()
    return known[domain][1] if domain in known else 1


def identity_since(type: Type) -> int:
    """The first opset whose Identity takes values of ``type``. It means the same in all of them."""
    return next((first for kind, first in _IDENTITY_SINCE.items() if isinstance(type, kind)), 1)


_IDENTITY_SINCE = {ListType: 14, OptionalType: 16}


def opsets_of(kind: str, version: int | None) -> tuple[int, int]:
    """The first and the last opset in which ``kind`` means its version ``version`` (None: the newest)."""
    known = versions(kind)
    if not known:
        return 1, FOREVER
    bound = known[-1] if version is None else version
    later = [v for v in known if v > bound]
    return bound, later[0] - 1 if later else FOREVER


_CHANGED_MEANING = {("onnx::PRelu", 7), ("onnx::OneHot", 11), ("onnx::Resize", 19)}
"""Versions that compute something else than the ones before, although their schemas differ in types alone: slopes are
broadcast otherwise, negative indices count from the end, sizes are rounded otherwise."""


@cache
def last_alike(kind: str, version: int | None) -> int:
    """The last opset in which ``kind`` means what its ``version`` does: newer versions only took more element types."""
    _, last = opsets_of(kind, version)
    while last != FOREVER and (kind, last + 1) not in _CHANGED_MEANING and _only_takes_more(kind, last + 1):
        _, last = opsets_of(kind, last + 1)
    return last


def _only_takes_more(kind: str, opset: int) -> bool:
    """Whether the operator differs in ``opset`` from before in that it takes more element types, at most."""
    from onnx import defs

    domain, name = split_kind(kind)
    old, new = (defs.get_schema(name, n, domain) for n in (opset - 1, opset))
    if new.deprecated or _interface(old) != _interface(new):
        return False
    before, after = ([*schema.inputs, *schema.outputs] for schema in (old, new))
    return all(a.types <= b.types for a, b in zip(before, after, strict=True))


def _interface(schema: Any) -> tuple[Any, ...]:
    """All that a schema says but types and prose."""
    attributes = {
        key: (a.type, a.required, a.default_value.SerializeToString()) for key, a in schema.attributes.items()
    }
    inputs = [(i.name, i.option, i.is_homogeneous) for i in schema.inputs]
    outputs = [(o.name, o.option) for o in schema.outputs]
    return inputs, outputs, attributes, schema.min_input, schema.max_input, schema.min_output, schema.max_output


@cache
def signature(kind: str, opset: int) -> Signature | None:
    """The operator's signature in an opset of its domain; None if the onnx package does not know it."""
    from onnx import defs

    domain, name = split_kind(kind)
    if not versions(kind):
        return None
    schema = defs.get_schema(name, opset, domain)
    option: Any = defs.OpSchema.FormalParameterOption
    types: dict[str, Any] = {key: attribute.type for key, attribute in schema.attributes.items()}
    return Signature(
        {key: int(type.value) for key, type in types.items()},
        schema.min_input,
        tuple([output.option == option.Optional for output in schema.outputs]),
    )


def is_known(kind: str) -> bool:
    """Whether ``kind`` is an operator that a model may hold: one of ONNX, or registered under a domain of its own."""
    domain, _ = split_kind(kind)
    return bool(versions(kind)) or (domain not in ("", "aten", "irc", "prim") and bool(schemas(kind)))
