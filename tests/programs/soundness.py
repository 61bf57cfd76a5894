"""Watches a program run and compares what happens to memory with what the alias analysis says may."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irc.alias import AliasDb, analyze
from irc.ir import Block, Graph, Module, Node, Value
from tests.programs.interpreter import Env, Observer, has_memory, items, share, share_inside, state


@dataclass
class _Change:
    """``value``, which was ``what`` then, was written at ``time``."""

    time: int
    value: Value
    what: Any
    befores: tuple[Node, ...]


class Frame:
    """One run of one graph: the program's, a function's, or that of a group of nodes.

    Attributes:
        active: the nodes that are running, outermost first.
        ended: when each node ran to its end last.
        snapshot: all visible values before the running node, with their contents.
        metadata: the shapes and strides of the tensors among them.
    """

    def __init__(self, db: AliasDb) -> None:
        self.db = db
        self.active: list[Node] = []
        self.env: Env = {}
        self.ended: dict[Node, int] = {}
        self.changes: list[_Change] = []
        self.snapshot: dict[Value, tuple[Any, Any]] = {}
        self.metadata: dict[Value, Any] = {}


class Soundness(Observer):
    """Raises AssertionError where the analysis denies what happens.

    Args:
        module: what is run.
        dbs: the analyses of some of its graphs; others are made when they are needed.

    Attributes:
        seen: how often what was checked: shared memory, writes...
    """

    def __init__(self, module: Module, dbs: Mapping[Graph, AliasDb] | None = None) -> None:
        self.seen: Counter[str] = Counter()
        self._module = module
        self._dbs: dict[Graph, AliasDb] = dict(dbs or {})
        self._frames: list[Frame] = []
        self._time = 0
        self._must: dict[tuple[Value, Value], tuple[bool, bool]] = {}  # whether two must alias, and be one tensor
        self._between: set[tuple[Value, Node, Node]] = set()  # what is said to be written between two nodes
        self._kept: list[Env] = []  # memory must not be used twice while we compare addresses

    # -- what the interpreter tells --------------------------------------

    def entered(self, block: Block, env: Env) -> None:
        if block.node is None:
            self._frames.append(Frame(self._db(block.graph)))
        self._frames[-1].env = env
        for value in block.params:
            self._compare(value, env)

    def left(self, block: Block, env: Env) -> None:
        frame = self._frames[-1]
        self._kept.append(env)
        self._certain(env)
        if block.node is None:
            self._frames.pop()
        else:
            frame.env = {}  # the node around it goes on with its own

    def before(self, node: Node, env: Env) -> None:
        self._time += 1
        frame = self._frames[-1]
        frame.active.append(node)
        frame.env = env
        self._writes_before(frame, node)
        if self._is_leaf(node):
            for f in self._frames:
                before, f.snapshot = f.snapshot, {}
                for value, x in f.env.items():
                    if _changeable(x):  # of what was there, the last node has left the contents
                        known = before.get(value)
                        f.snapshot[value] = known if known is not None and known[0] is x else (x, state(x))
                f.metadata = {v: _metadata_of(x) for v, x in f.env.items() if isinstance(x, np.ndarray)}

    def after(self, node: Node, env: Env) -> None:
        self._time += 1
        frame = self._frames[-1]
        frame.env = env
        if self._is_leaf(node):
            for f in self._frames:
                self._changes(f)
                self._metadata(f)
        frame.active.pop()
        frame.ended[node] = self._time
        for value in node.outputs:
            self._compare(value, env)
        if self._is_leaf(node) and any(isinstance(env[v], list | dict) for v in node.inputs):
            for value in [v for v, x in env.items() if isinstance(x, list | dict | tuple)]:
                self._compare(value, env)  # it may hold more now

    # -- checks ----------------------------------------------------------

    def _compare(self, value: Value, env: Env) -> None:
        """Whatever shares memory with ``value`` now may alias it."""
        db, x = self._frames[-1].db, env[value]
        if not has_memory(x):
            return
        for other, y in env.items():
            if other is value or not has_memory(y) or not share_inside(x, y):
                continue
            self.seen["shared"] += 1
            where = f"%{value.name} and %{other.name}"
            if share(x, y):
                assert db.may_alias(value, other) and db.may_alias(other, value), f"{where} share memory"
            else:
                self.seen["shared inside"] += 1
            assert db.may_contain_alias(value, other), f"{where} hold the same memory"
            assert db.may_contain_alias(other, value), f"{where} hold the same memory"

    def _certain(self, env: Env) -> None:
        """Whatever must alias does if either has elements, and what certainly is one tensor is one array."""
        db = self._frames[-1].db
        values = [(v, x) for v, x in env.items() if isinstance(x, np.ndarray)]
        for i, (a, x) in enumerate(values):
            for b, y in values[:i]:
                told = self._must.get((a, b))
                if told is None:  # not asked again after each iteration
                    told = self._must[a, b] = db.must_alias(a, b), db.same_tensor(a, b)
                if not told[0]:
                    assert not told[1]
                    continue
                self.seen["must"] += 1
                where = f"%{a.name} and %{b.name}"
                assert share(x, y) or x.size == y.size == 0, f"{where} do not share memory, though they must"
                if told[1]:
                    self.seen["same"] += 1
                    assert x is y, f"{where} are two tensors, though they must be one"

    def _changes(self, frame: Frame) -> None:
        """Whatever has changed has writers, and the node that has run is among them."""
        node = frame.active[-1]
        for value, (x, before) in frame.snapshot.items():
            now = state(x)
            if now == before:
                continue
            frame.snapshot[value] = x, now
            self.seen["writes"] += 1
            where = f"{node!r} changes %{value.name}"
            assert frame.db.has_writers(value), where
            if now[0] != before[0]:  # of the value itself
                assert frame.db.has_writers(value, contained=False), where
            else:
                self.seen["writes inside"] += 1
            for n in frame.active:
                assert frame.db.writes_to_alias(n, value), f"{where}, inside {n!r}"
            ended = sorted((n for n in frame.ended if n not in frame.active), key=frame.ended.__getitem__)
            if ended:
                befores = (ended[0], ended[len(ended) // 2], ended[-1])
                frame.changes.append(_Change(self._time, value, x, befores))

    def _metadata(self, frame: Frame) -> None:
        """Whatever has another shape or other strides has writers that change metadata."""
        for value, before in frame.metadata.items():
            if _metadata_of(frame.env[value]) != before:
                self.seen["metadata"] += 1
                assert frame.db.has_metadata_writers(value), f"{frame.active[-1]!r} changes the shape of %{value.name}"
        frame.metadata = {}

    def _writes_before(self, frame: Frame, node: Node) -> None:
        """Writes since an earlier node, to values still visible, lie between that node and this one."""
        for change in frame.changes[-24:]:
            if frame.env.get(change.value) is not change.what:
                continue
            for first in dict.fromkeys(change.befores):
                if frame.ended[first] < change.time and first not in frame.active:
                    self.seen["writes between"] += 1
                    question = change.value, first, node
                    assert question in self._between or frame.db.writes_between(*question), (
                        f"%{change.value.name} is written between {first!r} and {node!r}"
                    )
                    self._between.add(question)

    # -- graphs ----------------------------------------------------------

    def _db(self, graph: Graph) -> AliasDb:
        if graph not in self._dbs:
            self._dbs[graph] = analyze(graph, self._module)
        return self._dbs[graph]

    @staticmethod
    def _is_leaf(node: Node) -> bool:
        return not node.blocks and node.kind not in ("prim::CallFunction", "prim::FusionGroup")


def _metadata_of(x: np.ndarray[Any, Any]) -> Any:
    return x.shape, x.strides


def _changeable(x: Any) -> bool:
    return isinstance(x, np.ndarray | list | dict) or bool(items(x))
