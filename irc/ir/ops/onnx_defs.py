"""Signatures of ONNX operators, from the onnx package, with the alias table laid over."""

from __future__ import annotations

from functools import cache

from irc.ir import types
from irc.ir.node import Node
from irc.ir.ops.onnx_alias import DOMAINS
from irc.ir.ops.registry import schemas
from irc.ir.schema import Argument, Schema
from irc.ir.types import Type, TypeVar


def onnx_schema(node: Node) -> Schema | None:
    """The signature of an ONNX node at its version; None if the onnx package does not know the operator.

    Types are ``Tensor``, lists, optionals and maps of type variables: ONNX's
    constraints on element types are not expressed.
    """
    return signature(node.kind, node.version)


@cache
def signature(kind: str, version: int | None = None) -> Schema | None:
    """The signature of nodes of ``kind`` at a version (None: the newest)."""
    import onnx.defs

    namespace, _, name = kind.rpartition("::")
    domain = DOMAINS.get(namespace, namespace)
    in_place = name.endswith("_")
    rows = schemas(kind)
    try:
        name = name.removesuffix("_")
        found = onnx.defs.get_schema(name, domain) if version is None else onnx.defs.get_schema(name, version, domain)
    except onnx.defs.SchemaError:
        return None
    row = rows[0] if rows else None
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    arguments: list[Argument] = []
    for i, formal in enumerate(found.inputs):
        alias = row.argument(i) if row else None
        type = _type(formal.types)
        is_optional = formal.option == optional
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
        bool(found.inputs) and found.inputs[-1].option == variadic,
        bool(found.outputs) and found.outputs[-1].option == variadic,
    )


def _formal(type: Type, name: str, row: Argument | None, is_optional: bool = False) -> Argument:
    """An argument or a result, of whose memory ``row`` tells."""
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
