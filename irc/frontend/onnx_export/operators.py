"""What the exporter needs to know of ONNX's operators: versions and schemas, from ``onnx.defs``."""

from __future__ import annotations

from functools import cache
from typing import Any

from irc.ir import Node
from irc.ir.region_flow import DECLARED_INPUTS, DECLARED_ROWS
from irc.ir.types import NONE, ListType, OptionalType, TensorType, Type
from irc.ops import record, schemas
from irc.ops.onnx_signatures import find, onnx_name, split_kind, versions

FOREVER = 2**31 - 1
"""In place of the opset that changes an operator which none has changed."""


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


@cache
def axes_became_input(kind: str) -> int:
    """The opset since which ``axes`` is an input, so that older versions can be rewritten as newer ones."""
    for version in versions(kind)[1:]:
        old, new = schema(kind, version - 1), schema(kind, version)
        if old.attributes.keys() - new.attributes.keys() == {"axes"} and new.inputs[-1].name == "axes":
            return version
    return FOREVER


@cache
def last_alike(kind: str, version: int | None) -> int:
    """The last opset in which ``kind`` means what it means at ``version``; newer ones may accept more."""
    _, last = opsets_of(kind, version)
    while last != FOREVER and _is_alike(kind, last + 1):
        _, last = opsets_of(kind, last + 1)
    return last


_UNIFORM_SINCE = 13
"""From this opset on, indices and axes may be negative everywhere: what takes more since takes no other values."""


def first_alike(node: Node) -> int:
    """The first opset in which ``node`` could be written: a version that later ones only extend."""
    first, _ = opsets_of(node.kind, node.version)
    while first > _UNIFORM_SINCE and _is_alike(node.kind, first) and _fits(node, first - 1):
        first = max(_UNIFORM_SINCE, *(version for version in versions(node.kind) if version < first))
    return first


def _fits(node: Node, opset: int) -> bool:
    """Whether ``opset``'s version surely accepts ``node``; False if a string attribute might be newer."""
    schema = find(node.kind, opset)
    attributes = {key: value for key, value in node.attributes.items() if key not in (DECLARED_INPUTS, DECLARED_ROWS)}
    if len(node.inputs) > schema.max_input or not attributes.keys() <= schema.attributes.keys():
        return False
    return not any(isinstance(value, str) for value in attributes.values()) and all(
        _takes(formals[min(i, len(formals) - 1)], value.type)
        for formals, values in ((schema.inputs, node.inputs), (schema.outputs, node.outputs))
        for i, value in enumerate(values)
    )


def _takes(formal: Any, type: Type) -> bool:
    if type == NONE:
        return True
    return isinstance(type, TensorType) and onnx_name(type) in formal.types


def _is_alike(kind: str, opset: int) -> bool:
    """Whether the version new in ``opset`` means the same as the one before; False if there was none."""
    return opset > versions(kind)[0] and opset not in record(kind).changes_meaning and _only_takes_more(kind, opset)


def _only_takes_more(kind: str, opset: int) -> bool:
    """Whether the version new in ``opset`` only accepts more than the one before it.

    Optional parts are attributes, and inputs after the earlier ones.
    """
    old, new = find(kind, opset - 1), find(kind, opset)
    if new.deprecated or (old.min_input, _outputs(old)) != (new.min_input, _outputs(new)):
        return False
    before, after = _attributes(old), _attributes(new)
    inputs = list(zip(old.inputs, new.inputs))
    return (
        len(inputs) == len(old.inputs)
        and [_input(a) for a, _ in inputs] == [_input(b) for _, b in inputs]
        and all(added.option.name == "Optional" for added in new.inputs[len(inputs) :])
        and all(after.get(key) == attribute for key, attribute in before.items())
        and not any(new.attributes[key].required for key in after.keys() - before.keys())
        and all(a.types <= b.types for a, b in [*inputs, *zip(old.outputs, new.outputs, strict=True)])
    )


def _attributes(schema: Any) -> dict[str, tuple[Any, ...]]:
    return {key: (a.type, a.required, a.default_value.SerializeToString()) for key, a in schema.attributes.items()}


def _input(formal: Any) -> tuple[Any, ...]:
    return formal.name, formal.option, formal.is_homogeneous


def _outputs(schema: Any) -> tuple[Any, ...]:
    return [(o.name, o.option) for o in schema.outputs], schema.min_output, schema.max_output


@cache
def schema(kind: str, opset: int) -> Any:
    """The operator's ``OpSchema`` in an opset of its domain; None if the onnx package does not know it."""
    return find(kind, opset)


def is_known(kind: str) -> bool:
    """Whether a model may hold the operator ``kind``: ONNX's, or one registered under its own domain."""
    domain, _ = split_kind(kind)
    return bool(versions(kind)) or (domain not in ("", "aten", "irc", "prim") and bool(schemas(kind)))
