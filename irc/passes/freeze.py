"""Freezing: attributes that nothing changes become constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

from irc.alias import AliasDb
from irc.ir import Graph, Node, Tensor, Value
from irc.ir.builder import type_of_constant
from irc.ir.objects import Object, Strided, tensors_in
from irc.ir.types import ANY, INT, NONE, DictType, ListType, OptionalType, TupleType, Type, UnionType
from irc.passes.base import PassContext
from irc.passes.registry import register
from irc.passes.rewriter import Rewriter

GET_ATTR = "prim::GetAttr"

_UNKNOWN = object()


@register
@dataclass(frozen=True)
class Freeze:
    """Replace ``prim::GetAttr`` of an attribute that is known, and that nothing changes, by its value.

    Not replaced: attributes that are set, tensors and lists that something
    writes into (statistics in training mode), and attributes of objects that
    unknown code may hold. Tensors that share memory stay one constant.
    An object that nothing reads any more is removed from the inputs of the graph.
    """

    name: ClassVar[str] = "freeze"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Freeze what can be; ``constant-fold`` then drops dead branches, so that more can be frozen."""
        module = graph.module
        if module is None or not module.objects_of(graph):
            return False
        rewriter = ctx.rewriter(graph)
        reads = [node for node in graph.walk() if node.kind == GET_ATTR]
        known = [(node, _attribute(rewriter.db, node)) for node in reads]
        changed = False
        for tensors in (False, True):  # numbers first: they tell which tensors are written
            frozen: list[tuple[Node, list[Value]]] = []
            for node, value in known:
                is_plain = not isinstance(value, Object) and next(iter(tensors_in(value)), None) is None
                if value is _UNKNOWN or isinstance(value, Object) or is_plain is tensors:
                    continue
                if _is_constant(rewriter, node) and ctx.allow(node):
                    frozen.append((node, [_build(rewriter, node, value, node.output.type)]))
            rewriter.replace_nodes(frozen, keep_names=True)  # the analysis is told once
            rewriter.db.tighten()
            ctx.count("frozen", len(frozen))
            changed = changed or bool(frozen)
        for node in reversed(reads):
            if node.block is not None and not node.output.has_uses:
                rewriter.erase(node)
                changed = True
        return _drop_objects(graph, ctx) or changed


def _attribute(db: AliasDb, read: Node) -> Any:
    """What ``read`` reads, as it is before the first run; `_UNKNOWN` if its object is not certain."""
    owner = db.known_object(read.inputs[0])
    return _UNKNOWN if owner is None else owner.attributes.get(read.attributes.get("name", ""), _UNKNOWN)


def _is_constant(rewriter: Rewriter, node: Node) -> bool:
    db = rewriter.db
    return not db.has_writers(node.inputs[0], contained=False) and not db.has_writers(node.output)


def _build(rewriter: Rewriter, node: Node, value: Any, declared: Type) -> Value:
    """What makes the attribute's value, before ``node``: constants, and containers of them."""
    type = _actual(value, declared)
    if isinstance(value, Tensor):
        return _tensor(rewriter, node, value)
    if isinstance(value, Strided):
        parts = [list(value.shape), list(value.strides), value.offset]
        types = [ListType(INT), ListType(INT), INT]
        inputs = [rewriter.constant(p, before=node, type=t) for p, t in zip(parts, types, strict=True)]
        return rewriter.op("aten::as_strided", _tensor(rewriter, node, value.storage), *inputs, before=node)
    if isinstance(value, list) and isinstance(type, ListType):
        elem = type.elem
        items = [_build(rewriter, node, item, elem) for item in cast("list[Any]", value)]
        return rewriter.op("prim::ListConstruct", *items, before=node, type=type)
    if isinstance(value, tuple) and isinstance(type, TupleType):
        pairs = zip(cast("tuple[Any, ...]", value), type.elems, strict=True)
        return rewriter.op(
            "prim::TupleConstruct", *[_build(rewriter, node, v, t) for v, t in pairs], before=node, type=type
        )
    if isinstance(value, dict) and isinstance(type, DictType):
        key, held = type.key, type.value
        entries = cast("dict[Any, Any]", value).items()
        made = [part for k, v in entries for part in (_build(rewriter, node, k, key), _build(rewriter, node, v, held))]
        return rewriter.op("prim::DictConstruct", *made, before=node, type=type)
    return rewriter.constant(value, before=node, type=type)


def _actual(value: Any, declared: Type) -> Type:
    """The exact type of ``value``, where ``declared`` allows several."""
    if value is None:
        return NONE
    if isinstance(declared, OptionalType):
        return _actual(value, declared.elem)
    return type_of_constant(value) if isinstance(declared, UnionType) or declared == ANY else declared


def _tensor(rewriter: Rewriter, node: Node, tensor: Tensor) -> Value:
    weights = rewriter.graph.weights
    if weights.setdefault(tensor.name, tensor) is not tensor:
        tensor = weights.add(tensor.name, tensor)
    return rewriter.constant(tensor, before=node, name=tensor.name)


def _drop_objects(graph: Graph, ctx: PassContext) -> bool:
    """Drop the inputs that are objects and that nothing reads."""
    assert graph.module is not None
    unused = [v for v in graph.inputs if v.name in graph.module.objects and not v.has_uses]
    for value in unused:
        del graph.module.objects[value.name]
    ctx.rewriter(graph).erase_params(graph.block, [value.index for value in unused])
    return bool(unused)
