"""An obviously right alias analysis of the random programs: plain sets, all rules again until nothing changes.

Objects are ``("new", value)`` or ``("inside", value)`` for what a result
holds, and ``("unknown", type)``. Escaped objects may be any unknown object of
an overlapping type.
"""

from collections import defaultdict

from irc.alias import overlap
from irc.alias.memory_types import has_memory
from irc.ir import Graph, Node, Type, Value, types
from irc.ir.types import DictType, ListType, TupleType

Object = tuple[str, object]

METADATA = frozenset(f"aten::{name}_" for name in "t transpose squeeze unsqueeze as_strided resize".split())
WRITERS = METADATA | {"aten::relu_", "aten::add_"}
"""Operators that write their first operand and return it."""


class Oracle:
    """The fixed point for one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.points: dict[Value, set[Object]] = defaultdict(set)
        self.held: dict[tuple[Object, object], set[Object]] = defaultdict(set)
        self.types: dict[Object, Type] = {}
        self.escaped: set[Object] = set()
        self.written: dict[Node, set[Object]] = defaultdict(set)
        for value in graph.inputs:
            self._unknown(value)
        before = -1
        while before != (before := self._size()):
            for node in graph.walk():
                self._apply(node)
            self._escape()

    # -- answers ---------------------------------------------------------

    def same(self, a: set[Object], b: set[Object]) -> bool:
        """Whether an object of ``a`` may be one of ``b``."""
        return any(self._same(x, y) for x in a for y in b)

    def _same(self, x: Object, y: Object) -> bool:
        if x == y:
            return True
        for one, other in ((x, y), (y, x)):
            if one[0] == "unknown" and (other[0] == "unknown" or other in self.escaped):
                return overlap(self.types[one], self.types[other])
        return False

    def reach(self, value: Value) -> set[Object]:
        """What ``value`` may be, and all those hold, directly or not."""
        found = set(self.points[value])
        while True:
            more = {y for x in found for y in self._all_held(x)} - found
            if not more:
                return found
            found |= more

    def may_alias(self, a: Value, b: Value) -> bool:
        return self.same(self.points[a], self.points[b])

    def may_contain_alias(self, a: Value, b: Value) -> bool:
        return self.same(self.reach(a), self.reach(b))

    def writes_to(self, node: Node, value: Value) -> bool:
        return self.same(self.written[node], self.reach(value))

    def has_writers(self, value: Value) -> bool:
        return any(self.writes_to(node, value) for node in list(self.written))

    # -- rules -----------------------------------------------------------

    def _size(self) -> int:
        tables = (self.points, self.held, self.written)
        return sum(len(s) for t in tables for s in t.values()) + len(self.escaped)

    def _new(self, value: Value, type: Type, where: str = "new") -> Object:
        obj = (where, value)
        self.types[obj] = type
        return obj

    def _unknown_object(self, type: Type) -> set[Object]:
        if not has_memory(type):
            return set()
        obj = ("unknown", type)
        self.types[obj] = type
        return {obj}

    def _unknown(self, value: Value) -> None:
        self.points[value] |= self._unknown_object(value.type)

    def _load(self, base: Value, type: Type, field: object = "*") -> set[Object]:
        found: set[Object] = set()
        for obj in set(self.points[base]):
            found |= self._unknown_object(type) if obj[0] == "unknown" else self.held[obj, field]
        return found

    def _store(self, base: Value, stored: set[Object], field: object = "*") -> None:
        for obj in set(self.points[base]):
            if obj[0] == "unknown":
                self.escaped |= stored
            else:
                self.held[obj, field] |= stored

    def _all_held(self, obj: Object) -> set[Object]:
        if obj[0] == "unknown":
            return {o for t in held_types(self.types[obj]).values() for o in self._unknown_object(t)}
        return {o for f in held_types(self.types[obj]) for o in self.held[obj, f]}

    def _escape(self) -> None:
        for obj in list(self.escaped):
            if obj[0] == "unknown":
                continue
            for field, type in held_types(self.types[obj]).items():
                self.held[obj, field] |= self._unknown_object(type)
                self.escaped |= self.held[obj, field]

    def _apply(self, node: Node) -> None:
        inputs, outputs, points = node.inputs, node.outputs, self.points
        match node.kind:
            case "aten::relu" | "aten::cat" | "aten::zeros":
                points[outputs[0]].add(self._new(outputs[0], outputs[0].type))
            case "aten::t":
                points[outputs[0]] |= points[inputs[0]]
            case kind if kind in WRITERS:
                self.written[node] |= points[inputs[0]]
                points[outputs[0]] |= points[inputs[0]]
            case "prim::ListConstruct" | "prim::DictConstruct" | "prim::TupleConstruct":
                obj = self._new(outputs[0], outputs[0].type)
                points[outputs[0]].add(obj)
                for i, value in enumerate(inputs):
                    self.held[obj, i if node.kind == "prim::TupleConstruct" else "*"] |= points[value]
            case "prim::TupleUnpack":
                for i, value in enumerate(outputs):
                    points[value] |= self._load(inputs[0], value.type, i)
            case "aten::__getitem__":
                points[outputs[0]] |= self._load(inputs[0], outputs[0].type)
            case "aten::append" | "aten::_set_item" | "aten::extend":
                self.written[node] |= points[inputs[0]]
                stored = points[inputs[-1]]
                if node.kind == "aten::extend":
                    assert isinstance(inputs[-1].type, ListType)
                    stored = self._load(inputs[-1], inputs[-1].type.elem)
                self._store(inputs[0], stored)
                for value in outputs:
                    points[value] |= points[inputs[0]]
            case "aten::chunk":
                obj = self._new(outputs[0], outputs[0].type)
                points[outputs[0]].add(obj)
                self.held[obj, "*"] |= points[inputs[0]]
            case "aten::add":
                obj = self._new(outputs[0], outputs[0].type)
                points[outputs[0]].add(obj)
                for value in inputs:
                    assert isinstance(value.type, ListType)
                    self.held[obj, "*"] |= self._load(value, value.type.elem)
            case "prim::If":
                for block in node.blocks:
                    for value, returned in zip(outputs, block.returns):
                        points[value] |= points[returned]
            case "prim::Loop":
                (block,) = node.blocks
                for i, value in enumerate(outputs):
                    for source in (inputs[2 + i], block.returns[1 + i]):
                        points[block.params[1 + i]] |= points[source]
                        points[value] |= points[source]
            case "foreign::call" | "foreign::run" | "opaque.com.example::Call" | "opaque.com.example::Run":
                returned = [value for block in node.blocks for value in block.returns]
                for value in (*inputs, *returned):
                    self.escaped |= points[value]
                if node.kind.startswith("foreign"):  # ONNX's operators are functional
                    self.written[node] |= self.escaped | self._everything_unknown()
                for value in (*outputs, *(param for block in node.blocks for param in block.params)):
                    self._unknown(value)
            case "prim::Constant":
                pass
            case kind:
                raise AssertionError(kind)

    def _everything_unknown(self) -> set[Object]:
        return self._unknown_object(types.ANY)


def held_types(type: Type) -> dict[object, Type]:
    """Fields of an object of ``type`` and the types of what they hold."""
    if isinstance(type, ListType):
        return {"*": type.elem}
    if isinstance(type, DictType):
        return {"*": type.value}
    if isinstance(type, TupleType):
        return dict(enumerate(type.elems))
    return {}
