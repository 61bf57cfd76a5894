"""`diff`: what two models have in common, and what they do not, matched by structure.

Nodes of both are paired in steps, surest first:

1. those that compute the same from the same inputs and weights;
2. those that are computed, or used, in the same way whatever the weights are; then those of the same attributes; as far
   as there are as many on either side;
3. after each of these, neighbours of pairs along the same edge;
4. nodes with a result of the same name, and then the same operators before paired users, past what only one model has;
5. neighbours of pairs that are different operators.

Functions are inlined and fusion groups dissolved before. Names of values inside, and the order of nodes, make no
difference. Pairs are compared: operator, attributes, version, operands, contents of weights.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from onnx.helper import get_attribute_value

from irc.errors import Error
from irc.frontend.onnx_export.decompositions import schema
from irc.ir import CONSTANT, NONE, Graph, Module, Node, Tensor, Value, dissolve_groups
from irc.ir.declarations import declared_type
from irc.ir.region_flow import function_name
from irc.passes import PassManager
from irc.support.formatting import count, one_line
from irc.tools.inspection import module_in

MOST_SKIPPED = 8
"""Nodes in a row that only one model has, past which pairs are looked for."""

_PIECE = 1 << 20
"""Elements of weights that are compared at one time."""

FEW = 8
"""Elements of tensors that are shown one by one."""


@dataclass
class NodeText:
    """A node that only one model has: its results, its operator, and itself as text."""

    results: list[str]
    operator: str
    text: str


@dataclass
class ChangedNode:
    """A node of both models: its first result in either ("" if none), its operators, differences.

    Or an output of the model that something else computes, whose operator is ``output``.
    """

    before: str
    after: str
    operator: str
    changes: list[str]


@dataclass
class ChangedWeight:
    """A constant operand that differs.

    Attributes:
        before, after: its name in either model.
        node: the first result of a node that reads it, in the second model, and ``input`` which of its inputs.
        types: its types, if these differ, else the one type, as IR text.
        max_error: the largest difference of elements; None if types differ, or there are no numbers to compare.
        relative_error: that, relative to the largest magnitude in the first model; None if all elements there are 0.
        mean_error: the mean of the differences.
        differing: how many elements differ.
    """

    before: str
    after: str
    node: str
    input: int
    types: list[str]
    max_error: float | None = None
    relative_error: float | None = None
    mean_error: float | None = None
    differing: int | None = None


@dataclass
class Diff:
    """What differs between two models. It is true if anything does.

    Attributes:
        before, after: the models.
        interface: what differs in inputs and outputs, in words.
        opsets: domain -> version in either; None where it has none.
        removed, added: nodes that only the first, or the second, model has.
        changed: nodes that both have, with what differs besides weights.
        versions: operators whose nodes are of other versions, though the same otherwise: kind, and the versions.
        weights: operands of these whose contents differ.
        same: nodes that both have, unchanged.
    """

    before: str = ""
    after: str = ""
    interface: list[str] = field(default_factory=list[str])
    opsets: dict[str, list[int | None]] = field(default_factory=dict[str, list[int | None]])
    removed: list[NodeText] = field(default_factory=list[NodeText])
    added: list[NodeText] = field(default_factory=list[NodeText])
    changed: list[ChangedNode] = field(default_factory=list[ChangedNode])
    versions: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    weights: list[ChangedWeight] = field(default_factory=list[ChangedWeight])
    same: int = 0

    def __bool__(self) -> bool:
        parts = (self.interface, self.opsets, self.removed, self.added, self.changed, self.versions, self.weights)
        return any(parts)

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(map(one_line, self._lines())) if self else ""

    def _lines(self) -> Iterator[str]:
        yield f"--- {self.before}"
        yield f"+++ {self.after}"
        numbers = [(len(self.removed), "removed"), (len(self.added), "added"), (len(self.changed), "changed")]
        nodes = ", ".join(f"{n:,} {what}" for n, what in numbers)
        yield f"nodes: {nodes}, {self.same:,} the same; {count(len(self.weights), 'weight')} changed"
        yield from self.interface
        for domain, (before, after) in self.opsets.items():
            yield f"operator set {domain}: {before or 'none'} -> {after or 'none'}"
        for kind, versions in self.versions.items():
            yield f"version of {kind}: {' -> '.join(versions)}"
        yield from (f"- {node.text}" for node in self.removed)
        yield from (f"+ {node.text}" for node in self.added)
        for node in self.changed:
            names = f"%{node.after}" if node.before == node.after else f"%{node.before} -> %{node.after}"
            yield f"~ {names} = {node.operator}: {'; '.join(node.changes)}"
        for weight in self.weights:
            names = f"%{weight.after}" if weight.before == weight.after else f"%{weight.before} -> %{weight.after}"
            yield f"~ {names}, input {weight.input} of %{weight.node}: {_weight_text(weight)}"


def _weight_text(weight: ChangedWeight) -> str:
    if len(weight.types) > 1:
        return " -> ".join(weight.types)
    if weight.max_error is None:
        return f"{weight.types[0]}, other contents"
    relative = "" if weight.relative_error is None else f" ({weight.relative_error:.2g} of max|a|)"
    errors = f"max error {weight.max_error:.3g}{relative}, mean {weight.mean_error:.3g}"
    return f"{weight.types[0]}, {count(weight.differing or 0, 'element')} differ, {errors}"


def diff(before: Any, after: Any) -> Diff:
    """What differs between two models; neither is changed.

    Args:
        before: what `irc.compile` takes, what it gives, or the path of a ``.irc`` file.
        after: likewise.

    Raises:
        Error: IRC1xx a model cannot be imported, IRC5xx a file cannot be read, IRC308 its functions are too large.
    """
    (a, name_a), (b, name_b) = module_in(before), module_in(after)
    return _Comparison(_Side(a), _Side(b)).result(name_a, name_b)


Source = tuple[Hashable, ...]
"""Where an operand comes from: ``("node", i, output)``, ``("param", i, block, param)``, ``("input", i)`` or
``("constant",)``. The i-th node is that of `_Side.nodes`."""


class _Side:
    """A model as lists of nodes, each a number, nested ones after those around them."""

    def __init__(self, module: Module) -> None:
        self.metadata = module.metadata
        self.module = module.copy()
        PassManager("inline").run(self.module)
        self.graph: Graph = self.module.main
        dissolve_groups(self.graph)
        self.nodes = [node for node in self.graph.walk() if node.kind != CONSTANT]
        self.index = {node: i for i, node in enumerate(self.nodes)}
        self.sources = [[self.source_of(value) for value in _operands(node)] for node in self.nodes]
        self.attributes = [_attributes(node) for node in self.nodes]
        self.users: list[list[tuple[int, int, int]]] = [[] for _ in self.nodes]
        """For each node, (output, user, input) of each use of its results."""
        for user, sources in enumerate(self.sources):
            for at, source in enumerate(sources):
                if source[0] == "node":
                    self.users[cast("int", source[1])].append((cast("int", source[2]), user, at))
        self.outputs = [self.source_of(value) for value in self.graph.outputs]
        self._digests: dict[int, Hashable] = {}

    def source_of(self, value: Value) -> Source:
        if value.node is not None:
            if value.node.kind == CONSTANT:
                return ("constant",)
            return ("node", self.index[value.node], value.index)
        block = value.block
        assert block is not None
        owner = block.node
        if owner is None:
            return ("input", value.index)
        return ("param", self.index[owner], owner.blocks.index(block), value.index)

    def constant(self, value: Value) -> Hashable:
        """The contents of a constant, as something to compare."""
        node = value.node
        assert node is not None
        found = node.attributes.get("value")
        if not isinstance(found, Tensor):
            return str(value.type), function_name(node), repr(found)
        if id(found) not in self._digests:
            self._digests[id(found)] = _digest(found)
        return self._digests[id(found)]

    def name(self, i: int) -> str:
        """The name of the first result of a node; "" if it has none."""
        return next((value.name for value in self.nodes[i].outputs), "")


def _operands(node: Node) -> list[Value]:
    """The inputs of ``node``, and what its blocks return."""
    return [*node.inputs, *(value for block in node.blocks for value in block.returns)]


def _digest(tensor: Tensor) -> Hashable:
    """Element type, shape and contents of a tensor, in few bytes; splats as tensors of equal elements."""
    if tensor.is_absent:
        return tensor.dtype.name, tensor.shape, tensor.name
    array = tensor.scalar if tensor.is_splat else tensor.peek()
    if not array.size:
        return tensor.dtype.name, tensor.shape
    if array.dtype.kind == "O":
        strings = tuple(map(str, array.reshape(-1)))
        return tensor.dtype.name, tensor.shape, strings[:1] if len(set(strings)) == 1 else strings
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    if all((flat[start : start + _PIECE] == flat[0]).all() for start in range(0, len(flat), _PIECE)):
        flat = flat[:1]
    return tensor.dtype.name, tensor.shape, blake2b(flat.tobytes() if len(flat) < 2 else flat.data).digest()


@cache
def _defaults(kind: str, version: int | None) -> dict[str, Any]:
    """The defaults of an operator's attributes."""
    try:
        found = schema(kind, version)
    except Error:
        return {}
    given = {} if found is None else {name: a.default_value for name, a in found.attributes.items()}
    return {name: get_attribute_value(proto) for name, proto in given.items() if proto.type}


def _attributes(node: Node) -> dict[str, Hashable]:
    """The attributes of ``node``, and the defaults of others, as something to compare."""
    found: dict[str, Hashable] = {}
    for name, value in (_defaults(node.kind, node.version) | node.attributes).items():
        given = value.decode() if isinstance(value, bytes) else value
        is_graph = isinstance(given, Graph)
        found[name] = str(given) if is_graph else _digest(given) if isinstance(given, Tensor) else repr(given)
    return found


class _Comparison:
    def __init__(self, a: _Side, b: _Side) -> None:
        self.a, self.b = a, b
        self._numbers: dict[Hashable, int] = {}
        self.to_b: dict[int, int] = {}
        self.to_a: dict[int, int] = {}
        self.inputs = self._paired_inputs()

    # -- labels: equal numbers mean equal things, on either side -----------------

    def _number(self, label: Hashable) -> int:
        return self._numbers.setdefault(label, len(self._numbers))

    def _forward(self, side: _Side, exact: bool) -> list[int]:
        """What each node computes, from inputs on; ``exact``: with the contents of weights."""
        labels: list[int] = []
        before: dict[int, int] = {}
        """Of nodes with blocks, the labels without what these return: their parameters have those."""
        around: list[int] = []

        def label(value: Value, source: Source) -> Hashable:
            made = labels if source[0] == "node" else before
            leaf = self._leaf(side, value, source, exact)
            return leaf or (source[0], made[cast("int", source[1])], *source[2:])

        def leave() -> None:
            i = around.pop()
            node, sources = side.nodes[i], side.sources[i]
            found = [label(*each) for each in list(zip(_operands(node), sources))[len(node.inputs) :]]
            labels[i] = self._number(("with blocks", before[i], tuple(found)))

        for i, node in enumerate(side.nodes):  # nested nodes follow those around them
            owner = None if node.block is None else node.block.node
            while around and side.nodes[around[-1]] is not owner:
                leave()
            operands = [label(*each) for each in zip(node.inputs, side.sources[i])]
            labels.append(self._number((node.kind, _frozen(side.attributes[i]), tuple(operands))))
            if node.blocks:
                before[i] = labels[i]
                around.append(i)
        while around:
            leave()
        return labels

    def _leaf(self, side: _Side, value: Value, source: Source, exact: bool) -> Hashable:
        """The label of an operand that no node makes; None if one does."""
        if source[0] == "constant":
            return ("constant", side.constant(value) if exact or value.type == NONE else "")
        if source[0] == "input":
            return ("input", self.inputs[side is self.b].get(cast("int", source[1]), value.name))
        return None

    def _backward(self, side: _Side) -> list[int]:
        """How the results of each node are used, up to the outputs."""
        labels = [0] * len(side.nodes)
        ends: dict[int, list[Hashable]] = defaultdict(list)
        for i, source in enumerate(side.outputs):
            if source[0] == "node":
                ends[cast("int", source[1])].append(("output", side.graph.outputs[i].name, source[2]))
        for i in reversed(range(len(side.nodes))):
            uses = sorted((out, labels[user], at) for out, user, at in side.users[i])
            own = (side.nodes[i].kind, _frozen(side.attributes[i]))
            labels[i] = self._number(("used", own, tuple(uses), tuple(ends[i])))
        return labels

    def _own(self, side: _Side) -> list[int]:
        """The operator and the attributes of each node."""
        return [self._number(("own", n.kind, _frozen(side.attributes[i]))) for i, n in enumerate(side.nodes)]

    def _named(self, side: _Side) -> list[int]:
        """The operator and the first result of each node."""
        return [self._number(("named", node.kind, side.name(i))) for i, node in enumerate(side.nodes)]

    # -- pairs -------------------------------------------------------------------

    def _paired_inputs(self) -> tuple[dict[int, int], dict[int, int]]:
        """Position of an input -> number of its pair, on each side: by name, then by type, in order."""
        a, b = self.a.graph.inputs, self.b.graph.inputs
        by_name = {value.name: j for j, value in enumerate(b)}
        pairs = {i: by_name[value.name] for i, value in enumerate(a) if value.name in by_name}
        rest = [j for j in range(len(b)) if j not in pairs.values()]
        for i in range(len(a)):
            if i not in pairs and (j := next((j for j in rest if str(b[j].type) == str(a[i].type)), None)) is not None:
                pairs[i] = j
                rest.remove(j)
        return {i: i for i in pairs}, {j: i for i, j in pairs.items()}

    def _match(self) -> None:
        self._exact = self._forward(self.a, True), self._forward(self.b, True)
        self._by_label(self._exact, in_order=True)
        self._spread()
        # Surest first: what one label pairs is settled, and its neighbours are, before a looser one is asked.
        for label in (partial(self._forward, exact=False), self._backward, self._own, self._named):
            self._by_label((label(self.a), label(self.b)))
            self._spread()
        self._pair_past_others()
        self._spread()
        self._spread(same_kind=False)

    def _by_label(self, labels: tuple[Sequence[int], Sequence[int]], in_order: bool = False) -> None:
        """Pair nodes of one label, as many on both sides or any ``in_order``: by names, then in order."""
        groups: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for side, known in enumerate((self.to_b, self.to_a)):
            for i, label in enumerate(labels[side]):
                if i not in known:
                    groups[label][side].append(i)
        for left, right in groups.values():
            if left and right and (in_order or len(left) == len(right)):
                by_name = {self.b.name(j): j for j in right}
                named = {i: by_name[self.a.name(i)] for i in left if self.a.name(i) in by_name}
                taken = set(named.values())
                rest = [i for i in left if i not in named], [j for j in right if j not in taken]
                for i, j in [*named.items(), *zip(*rest)]:
                    self._pair(i, j)

    def _pair(self, i: int, j: int) -> None:
        self.to_b[i], self.to_a[j] = j, i

    def _spread(self, same_kind: bool = True) -> None:
        """Pair producers of the same operands, and only users of the same results, of paired nodes."""
        pending = list(self.to_b.items())
        while pending:
            i, j = pending.pop()
            made = zip(self.a.sources[i], self.b.sources[j])
            found = [(cast("int", s[1]), cast("int", t[1])) for s, t in made if s[0] == t[0] == "node" and s[2] == t[2]]
            found += self._only_users(i, j)
            for p, q in found:
                if p in self.to_b or q in self.to_a:
                    continue
                x, y = self.a.nodes[p], self.b.nodes[q]
                if (x.kind == y.kind) if same_kind else self._are_between_pairs(p, q):
                    self._pair(p, q)
                    pending.append((p, q))

    def _pair_past_others(self) -> None:
        """Pair the nearest nodes of one operator along the first operands of what paired nodes read."""
        for i, j in list(self.to_b.items()):
            for s, t in zip(self.a.sources[i], self.b.sources[j]):
                left, right = self._unpaired_from(s, self.a, self.to_b), self._unpaired_from(t, self.b, self.to_a)
                kinds = {self.b.nodes[q].kind: q for q in reversed(right)}
                for p in left:
                    if (q := kinds.get(self.a.nodes[p].kind)) is not None:
                        self._pair(p, q)
                        break

    def _unpaired_from(self, source: Source, side: _Side, known: dict[int, int]) -> list[int]:
        """The node of ``source`` and those before it along first operands, up to one that has a pair."""
        found: list[int] = []
        while source[0] == "node" and len(found) < MOST_SKIPPED:
            at = cast("int", source[1])
            if at in known or not side.sources[at]:
                break
            found.append(at)
            source = side.sources[at][0]
        return found

    def _only_users(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        uses: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for side, found, known in ((self.a, i, self.to_b), (self.b, j, self.to_a)):
            for out, user, at in side.users[found]:
                if user not in known:
                    uses[out, at, side.nodes[user].kind][side is self.b].append(user)
        yield from ((left[0], right[0]) for left, right in uses.values() if len(left) == len(right) == 1)

    def _are_between_pairs(self, i: int, j: int) -> bool:
        """Whether what two nodes read and what reads them is paired: then one operator stands for the other."""
        reads = [{self._place(side, s) for s in side.sources[n]} for side, n in ((self.a, i), (self.b, j))]
        read_by = [
            {self.to_b.get(user, -1) for _, user, _ in self.a.users[i]},
            {user if user in self.to_a else -1 for _, user, _ in self.b.users[j]},
        ]
        return reads[0] == reads[1] and read_by[0] == read_by[1] and bool(read_by[0]) and -1 not in read_by[0]

    def _place(self, side: _Side, source: Source) -> Hashable:
        """Where an operand comes from, in the second model's numbers."""
        if source[0] == "input":
            return ("input", self.inputs[side is self.b].get(cast("int", source[1]), (side is self.b, source[1])))
        if source[0] == "constant" or side is self.b:
            return source
        return (source[0], self.to_b.get(cast("int", source[1]), (cast("int", source[1]),)), *source[2:])

    # -- what differs ------------------------------------------------------------

    def result(self, before: str, after: str) -> Diff:
        """Pair the nodes, and compare pairs."""
        self._match()
        found = Diff(before, after, list(self._interface()), self._opsets())
        for side, known, into in ((self.a, self.to_b, found.removed), (self.b, self.to_a, found.added)):
            into += [_text(node) for i, node in enumerate(side.nodes) if i not in known]
        versions: dict[str, dict[str, None]] = defaultdict(dict)
        seen: set[Hashable] = set()
        for i, j in sorted(self.to_b.items(), key=lambda pair: pair[1]):
            x, y = self.a.nodes[i], self.b.nodes[j]
            changes = list(self._changes(i, j))
            weights = [each for each in self._weights(i, j) if (each.before, each.after) not in seen]
            seen.update((each.before, each.after) for each in weights)
            found.weights += weights
            if changes:
                operator = x.kind if x.kind == y.kind else f"{x.kind} -> {y.kind}"
                found.changed.append(ChangedNode(self.a.name(i), self.b.name(j), operator, changes))
            elif x.version != y.version:
                versions[x.kind][f"{x.version} -> {y.version}"] = None
            found.same += not changes and x.version == y.version
        found.changed += self._changed_outputs()
        found.versions = {kind: list(each) for kind, each in versions.items()}
        return found

    def _changes(self, i: int, j: int) -> Iterator[str]:
        x, y = self.a.nodes[i], self.b.nodes[j]
        if x.kind != y.kind:
            yield f"operator {x.kind} -> {y.kind}"
        left, right = self.a.attributes[i], self.b.attributes[j]
        for name in dict.fromkeys([*left, *right]):
            if left.get(name) != right.get(name):
                yield f"{name} {_shown(x, name)} -> {_shown(y, name)}"
        if len(x.outputs) != len(y.outputs):
            yield f"results {len(x.outputs)} -> {len(y.outputs)}"
        values = _operands(x), _operands(y)
        for at in range(max(map(len, values))):
            p, q = (side[at] if at < len(side) else None for side in values)
            if not self._corresponds(p, q):
                what = f"input {at}" if at < max(len(x.inputs), len(y.inputs)) else "what a block returns"
                yield f"{what} {self._operand(p, self.a)} -> {self._operand(q, self.b)}"

    def _operand(self, value: Value | None, side: _Side) -> str:
        """An operand, and where it comes from if that is not in both models."""
        if value is None or value.node is None:
            return _value(value)
        if value.node.kind == CONSTANT:
            return f"{_value(value)} (constant)" if value.type != NONE else _value(value)
        known, what = (self.to_b, "removed") if side is self.a else (self.to_a, "added")
        return _value(value) if side.index[value.node] in known else f"{_value(value)} ({what})"

    def _corresponds(self, p: Value | None, q: Value | None) -> bool:
        """Whether two operands are the same, or both are constants, which are compared as weights."""
        if p is None or q is None:
            given = p if q is None else q
            return given is None or given.type == NONE
        s, t = self.a.source_of(p), self.b.source_of(q)
        if s[0] != t[0]:
            return False
        if s[0] == "constant":
            return (p.type == NONE) == (q.type == NONE)
        if self._place(self.a, s) == self._place(self.b, t):
            return True
        same = s[0] == "node" and s[2] == t[2]
        return same and self._exact[0][cast("int", s[1])] == self._exact[1][cast("int", t[1])]

    def _weights(self, i: int, j: int) -> Iterator[ChangedWeight]:
        for at, (p, q) in enumerate(zip(_operands(self.a.nodes[i]), _operands(self.b.nodes[j]))):
            if p.made_by(CONSTANT) and q.made_by(CONSTANT) and self.a.constant(p) != self.b.constant(q):
                yield _compared(p, q, self.b.name(j), at)

    def _interface(self) -> Iterator[str]:
        """What differs in inputs and outputs."""
        a, b = self.a.graph, self.b.graph
        pairs = [(a.inputs[i], b.inputs[j]) for j, i in self.inputs[1].items()]
        yield from _ends("input", a.inputs, b.inputs, sorted(pairs, key=lambda pair: pair[1].index), self.a, self.b)
        names = {value.name: value for value in b.outputs}
        both = [(value, names[value.name]) for value in a.outputs if value.name in names]
        rest = [v for v in a.outputs if v.name not in names], [v for v in b.outputs if v not in dict(both).values()]
        renamed = [(v, w) for v, w in zip(*rest) if self._corresponds(v, w)]
        yield from _ends("output", a.outputs, b.outputs, [*both, *renamed], self.a, self.b)

    def _changed_outputs(self) -> Iterator[ChangedNode]:
        """The outputs of the graph that something else computes."""
        names = {value.name: value for value in self.b.graph.outputs}
        for v in self.a.graph.outputs:
            if (w := names.get(v.name)) is None:
                continue
            if not self._corresponds(v, w):
                change = f"computed by {_maker(v)} -> {_maker(w)}"
            elif v.made_by(CONSTANT) and self.a.constant(v) != self.b.constant(w):
                change = "another constant"
            else:
                continue
            yield ChangedNode(v.name, w.name, "output", [change])

    def _opsets(self) -> dict[str, list[int | None]]:
        sets = [
            {key.removeprefix("opset_import."): int(n) for key, n in m.items() if key.startswith("opset_import.")}
            for m in (self.a.metadata, self.b.metadata)
        ]
        used = Counter(node.kind.partition("::")[0] for side in (self.a, self.b) for node in side.nodes)
        domains = [domain for domain in dict.fromkeys([*sets[0], *sets[1]]) if domain == "ai.onnx" or domain in used]
        return {d: [s.get(d) for s in sets] for d in domains if sets[0].get(d) != sets[1].get(d) and all(sets)}


def _frozen(attributes: dict[str, Hashable]) -> Hashable:
    return tuple(sorted(attributes.items(), key=lambda item: item[0]))


def _text(node: Node) -> NodeText:
    results = [value.name for value in node.outputs]
    attributes = [f"{name}={_shown(node, name)}" for name in node.attributes]
    operands = ", ".join(map(_value, node.inputs))
    shown = f"[{', '.join(attributes)}]" if attributes else ""
    return NodeText(results, node.kind, f"{', '.join(f'%{name}' for name in results)} = {node.kind}{shown}({operands})")


def _shown(node: Node, name: str) -> str:
    """An attribute as text, cut short."""
    value = (_defaults(node.kind, node.version) | node.attributes).get(name, "none")
    if isinstance(value, bytes) or value == "none":
        return value.decode() if isinstance(value, bytes) else value
    if isinstance(value, Tensor) and value.numel <= FEW and not value.is_absent:
        return f"tensor({value.numpy().tolist()})"
    text = f"a graph of {count(len(list(value.walk())), 'node')}" if isinstance(value, Graph) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _value(value: Value | None) -> str:
    return "nothing" if value is None or value.type == NONE else f"%{value.name}"


def _maker(value: Value) -> str:
    return value.node.kind if value.node is not None else f"input %{value.name}"


def _ends(
    what: str,
    before: Iterable[Value],
    after: Iterable[Value],
    pairs: list[tuple[Value, Value]],
    a: _Side,
    b: _Side,
) -> Iterator[str]:
    """What differs in the inputs, or in the outputs, of which ``pairs`` belong together."""
    left, right = dict(pairs), {w: v for v, w in pairs}

    def type_of(value: Value, side: _Side) -> str:
        declared = declared_type(value, side.metadata) if what == "output" else None
        return str(value.type if declared is None else declared)

    yield from (f"- {what} %{v.name} : {type_of(v, a)}" for v in before if v not in left)
    yield from (f"+ {what} %{w.name} : {type_of(w, b)}" for w in after if w not in right)
    for v, w in pairs:
        if v.name != w.name:
            yield f"~ {what} %{v.name} is called %{w.name}"
        if (old := type_of(v, a)) != (new := type_of(w, b)):
            yield f"~ {what} %{w.name} : {old} -> {new}"
        if what == "input" and (v.name in a.module.defaults) != (w.name in b.module.defaults):
            yield f"~ {what} %{w.name} {'must now be given' if v.name in a.module.defaults else 'may now be left out'}"
    if [left[v] for v in before if v in left] != [w for w in after if w in right]:
        yield f"~ the order of {what}s: {', '.join(f'%{w.name}' for w in after)}"


def _compared(p: Value, q: Value, node: str, at: int) -> ChangedWeight:
    """How far two constants are apart."""
    assert p.node is not None and q.node is not None
    x, y = p.node.attributes.get("value"), q.node.attributes.get("value")
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        return ChangedWeight(p.name, q.name, node, at, [f"{p.type} {x!r:.40}", f"{q.type} {y!r:.40}"])
    if x.type != y.type:
        return ChangedWeight(p.name, q.name, node, at, [str(x.type), str(y.type)])
    found = ChangedWeight(p.name, q.name, node, at, [str(x.type)])
    if x.is_absent or y.is_absent or x.dtype.numpy.kind == "O":
        return found
    if x.numel <= FEW:
        found.types = [f"{x.type} {x.numpy().tolist()} -> {y.numpy().tolist()}"]
    wide = np.complex128 if x.dtype.numpy.kind == "c" else np.float64
    left, right = ((t.scalar if t.is_splat else t.peek()).reshape(-1) for t in (x, y))
    repeated = x.numel if left.size == right.size == 1 else 1
    largest = scale = total = 0.0
    found.differing = 0
    with np.errstate(all="ignore"):
        for start in range(0, max(left.size, right.size), _PIECE):
            p_part, q_part = (t if t.size == 1 else t[start : start + _PIECE] for t in (left, right))
            error = np.abs(p_part.astype(wide) - q_part.astype(wide))
            largest, total = max(largest, float(error.max())), total + float(error.sum()) * repeated
            scale = max(scale, float(np.abs(p_part.astype(wide)).max()))
            found.differing += int(np.count_nonzero(p_part != q_part)) * repeated
        numbers = total / x.numel if np.isfinite([largest, scale, total]).all() else None
    if numbers is not None:
        found.max_error, found.mean_error = largest, numbers
        found.relative_error = largest / scale if scale else None
    return found
