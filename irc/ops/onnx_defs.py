"""What the onnx package states about operators; signatures are combined with the alias table.

The package is imported when first needed: that takes 0.2 s, and graphs without ONNX operators need none of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from irc.ir import types
from irc.ir.kinds import DOMAINS
from irc.ir.node import Node
from irc.ir.schema import Argument, Schema
from irc.ir.types import Type, TypeVar
from irc.ops.signatures import schemas

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


def newest_opset(domain: str, unknown: int = 1) -> int:
    """The newest version of a domain's operator set that the onnx package knows; ``unknown`` if it knows none."""
    from onnx import defs

    known: dict[str, tuple[int, int]] = defs.C.schema_version_map()
    return known[domain][1] if domain in known else unknown


def onnx_schema(node: Node) -> Schema | None:
    """The signature of an ONNX node at its version; None if the onnx package does not know the operator.

    Types are ``Tensor``, lists, optionals and maps of type variables: ONNX's
    constraints on element types are not expressed.
    """
    return signature(node.kind, node.version)


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
    """The irc type of a formal with the given ONNX types, such as ``tensor(float)`` or ``seq(tensor(float))``."""
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
