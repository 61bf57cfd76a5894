"""Random updates of random programs: afterwards every query answers as after a rebuild."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given

from irc.alias import AliasDb, analyze
from irc.alias.check import compare
from irc.alias.rules import is_functional
from irc.fuser.subgraph import dissolve, is_group, make_group
from irc.ir import Builder, Graph, Node, Value, parse_module, types
from tests.alias.programs import LIST, NESTED, TENSOR, choices, program, random_choices
from tests.alias.test_condense import linked, module
from tests.effort import examples


class Mutator:
    """Changes a graph at random and tells its database."""

    def __init__(self, graph: Graph, db: AliasDb, choices: Sequence[int]) -> None:
        self.graph = graph
        self.db = db
        self._choices = list(choices)
        self.done: Counter[str] = Counter()
        """How often each step changed which nodes there are, or their order."""
        self._last = self._order()

    def steps(self) -> Sequence[Callable[[], None]]:
        return (
            self.insert,
            self.replace,
            self.replace_many,
            self.erase,
            self.move,
            self.declare_unknown,
            self.own_inputs,
            self.copy,
            self.tighten,
            self.rename,
            self.fuse,
            self.fuse,
            self.fuse,
            self.dissolve,
            self.take_branch,
            self.take_branch,
        )

    def run(self) -> None:
        steps = self.steps()
        while self._choices:
            several = 1 if self._pick(3) else 4
            with self.db.rewrite():
                for i in range(several):
                    if i:
                        compare(self.db, self._rebuilt(), exact=False)
                    self._do(steps[self._pick(len(steps))])
                postponed = self.db._solution._is_postponed
            assert self.db.is_tight or not postponed
            self.done["postponed"] += postponed
            if not self._pick(4):
                self.ask()

    def _do(self, step: Callable[[], None]) -> None:
        step()
        self.done[step.__name__] += self._order() != self._last
        self._last = self._order()

    def _rebuilt(self) -> AliasDb:
        fresh = analyze(self.graph, noalias=self.db.noalias)
        for value in self.db._solution.declared_unknown:
            fresh.set_wildcard(value)
        return fresh

    def _pick(self, n: int) -> int:
        return self._choices.pop(0) % n if self._choices else 0

    def _nodes(self) -> list[Node]:
        return [n for n in self.graph.walk() if n.kind != "prim::Constant"]

    def _visible(self, point: Node) -> list[Value]:
        """The values that ``point`` can use."""
        found: list[Value] = []
        block, before = point.block, point
        while block is not None:
            found += block.params
            for node in block.nodes:
                if node is before:
                    break
                found += node.outputs
            if block.node is None:
                break
            before, block = block.node, block.node.block
        return found

    def insert(self) -> None:
        """A new node somewhere, whose result a later node may use instead of one of its inputs."""
        nodes = self._nodes()
        if not nodes:
            return
        point = nodes[self._pick(len(nodes))]
        visible = self._visible(point)
        tensors = [v for v in visible if v.type == TENSOR]
        lists = [v for v in visible if v.type == LIST]
        b = Builder.before(point)
        which = self._pick(7)
        if which < 3 and tensors:
            kind = ("aten::relu", "aten::t", "aten::relu_")[which]
            node = b.node(kind, [tensors[self._pick(len(tensors))]], [TENSOR])
        elif which == 3 and tensors:
            node = b.node("prim::ListConstruct", [tensors[self._pick(len(tensors))]], [LIST])
        elif which == 4 and lists:
            node = b.node("aten::__getitem__", [lists[self._pick(len(lists))], self.graph.value("zero")], [TENSOR])
        elif which == 5 and lists and tensors:
            stored = tensors[self._pick(len(tensors))]
            node = b.node("aten::append", [lists[self._pick(len(lists))], stored], [LIST])
        elif which == 6 and lists:
            node = b.node("prim::ListConstruct", [lists[self._pick(len(lists))]], [NESTED])
        else:
            return
        self.db.add_node(node)
        new = node.output
        for index, old in enumerate(point.inputs):
            if old.type == new.type and self._pick(2):
                users = [u for u in old.users if u is not point]
                point.replace_input(index, new)
                if not users and not old.has_uses:
                    self.db.replace_value(old, new)
                else:  # only some of its uses changed: the node that uses it now is another one to the database
                    self._again(point)
                return

    def _again(self, node: Node) -> None:
        """Nodes whose inputs changed one by one are told as erased and added: here that means a rebuild."""
        self.db.refresh()

    def replace(self) -> None:
        """All uses of a value become uses of another of its type."""
        nodes = [n for n in self._nodes() if n.outputs]
        if not nodes:
            return
        node = nodes[self._pick(len(nodes))]
        old = node.outputs[self._pick(len(node.outputs))]
        others = [v for v in self._visible(node) if v.type == old.type]
        if others:
            new = others[self._pick(len(others))]
            old.replace_all_uses_with(new)
            self.db.replace_value(old, new)

    def replace_many(self) -> None:
        """As `replace`, of several at once."""
        pairs: dict[Value, Value] = {}
        for _ in range(2 + self._pick(4)):
            nodes = [n for n in self._nodes() if n.outputs]
            if nodes:
                node = nodes[self._pick(len(nodes))]
                old = node.outputs[self._pick(len(node.outputs))]
                others = [v for v in self._visible(node) if v.type == old.type and v not in pairs]
                if others and old not in pairs and old not in pairs.values():
                    pairs[old] = others[self._pick(len(others))]
        for old, new in pairs.items():
            old.replace_all_uses_with(new)
        self.db.replace_values(pairs.items())
        self.done["replaced together"] += len(pairs) > 1

    def erase(self) -> None:
        dead = [n for n in self._nodes() if not any(v.has_uses for v in n.outputs)]
        if dead:
            node = dead[self._pick(len(dead))]
            self.db.erase_node(node)
            node.erase()

    def take_branch(self) -> None:
        """An If becomes one of its blocks, as where a constant decides it; it may stay for a while."""
        branches = [n for n in self._nodes() if n.kind == "prim::If"]
        if not branches:
            return
        node = branches[self._pick(len(branches))]
        block = node.blocks[self._pick(2)]
        moved, returns = list(block.nodes), block.returns
        for inner in moved:
            inner.move_before(node)
        self.db.unnest_nodes(node, moved)
        for old, new in zip(node.outputs, returns, strict=True):
            old.replace_all_uses_with(new)
            self.db.replace_value(old, new)
        if self._pick(3):
            self.db.erase_node(node)
            node.erase()

    def tighten(self) -> None:
        self.db.tighten()
        assert self.db.is_tight

    def rename(self) -> None:
        """A value takes the name of another, which gets a new one: names say nothing of memory."""
        values = [*self.graph.inputs, *(v for n in self._nodes() for v in n.outputs)]
        value, other = (values[self._pick(len(values))] for _ in range(2))
        self.done["inputs renamed"] += value is not other and value.is_param
        value.name = other.name

    def move(self) -> None:
        nodes = self._nodes()
        if nodes:
            node, point = (nodes[self._pick(len(nodes))] for _ in range(2))
            before = self._order()
            move = (self.db.move_before, self.db.move_after)[self._pick(2)]
            if not move(node, point):
                assert self._order() == before

    def fuse(self) -> None:
        """A producer moves next to its consumer, and both, or what is in them, become one group."""
        fusable = {n: None for n in self._nodes() if is_group(n) or (is_functional(n) and n.outputs)}
        pairs = [(v.node, n) for n in fusable for v in n.inputs if v.node in fusable and v.node.block is n.block]
        if pairs:
            producer, consumer = pairs[self._pick(len(pairs))]
            if self.db.move_before(producer, consumer):
                nodes: list[Node] = []
                for node in (producer, consumer):
                    nodes += dissolve(node, self.db) if is_group(node) else [node]
                make_group(nodes, self.db)

    def dissolve(self) -> None:
        """A group gives its nodes back."""
        groups = [n for n in self._nodes() if is_group(n)]
        if groups:
            dissolve(groups[self._pick(len(groups))], self.db)

    def ask(self) -> None:
        """``writes_between``, of a value and two nodes, as a rebuild answers it."""
        nodes = self._nodes()
        values = [v for v in self.graph.values() if v.type != types.INT]
        if nodes and values:
            fresh = self._rebuilt()
            rng = random.Random(self._pick(1 << 12))
            for _ in range(16):
                value, first, last = rng.choice(values), rng.choice(nodes), rng.choice(nodes)
                kept, wanted = (db.writes_between(value, first, last) for db in (self.db, fresh))
                assert kept == wanted or (kept and not self.db.is_tight)
                self.done[f"writes between: {wanted}"] += 1

    def _order(self) -> list[Node]:
        return list(self.graph.walk())

    def declare_unknown(self) -> None:
        if self._pick(4) == 0:
            values = [v for n in self._nodes() for v in n.outputs if v.type != types.INT]
            if values:
                self.db.set_wildcard(values[self._pick(len(values))])

    def own_inputs(self) -> None:
        """The inputs are given up by the caller."""
        if self._pick(4) == 0:
            self.done["owned by region"] -= self.db.regions
            self.db.own_inputs()
            self.done["owned by region"] += self.db.regions

    def copy(self) -> None:
        """What the fuser does: a node's result becomes another node's, which denotes the same."""
        nodes = [n for n in self._nodes() if n.kind == "aten::relu"]
        if nodes:
            old = nodes[self._pick(len(nodes))]
            new = self.graph.create("aten::relu", old.inputs, [TENSOR]).insert_before(old)
            self.db.copy_value(old.output, new.output)
            old.output.replace_all_uses_with(new.output)
            self.db.replace_value(old.output, new.output)
            self.db.erase_node(old)
            old.erase()


def fusable_program(numbers: Sequence[int]) -> Graph:
    """A program in which most tensors go through a few more operators, of which some results are outputs."""
    graph = program(numbers)
    outputs = list(graph.outputs)
    for i, node in enumerate([n for n in graph.walk() if is_functional(n) and n.kind != "prim::Constant"]):
        if node.output.type == TENSOR and node.output.has_uses:
            last, users = node.output, list(node.output.users)
            for kind in ("aten::relu", "aten::neg", "aten::sigmoid")[: 3 - i % 4]:
                made = graph.create(kind, [last], [TENSOR])
                assert last.node is not None
                made.insert_after(last.node)
                last = made.output
            for user in users:
                user.set_inputs([last if v is node.output else v for v in user.inputs])
            if node.block is graph.block and i % 5 == 0:
                outputs.append(node.output)
    graph.set_outputs(outputs)
    return graph


def run(numbers: Sequence[int], changes: Sequence[int]) -> Counter[str]:
    """Change a program at random, and compare after every change; what was done."""
    graph = fusable_program(numbers)
    db = analyze(graph, noalias=[v for i, v in enumerate(graph.inputs) if sum(numbers[:2]) >> i & 1])
    db.check_rewrites = True
    db.may_contain_alias(graph.inputs, graph.outputs)
    mutator = Mutator(graph, db, changes)
    mutator.run()
    graph.verify()
    db.tighten()
    assert db.is_tight
    db.check()
    return mutator.done


@given(choices, choices)
@examples(120)
def test_updates_equal_a_rebuild(numbers: list[int], changes: list[int]) -> None:
    run(numbers, changes)


def test_all_updates_are_made() -> None:
    done = sum((run(random_choices(seed), random_choices(-seed)) for seed in range(1, 25)), Counter[str]())
    for step in ("insert", "erase", "copy", "move", "fuse", "dissolve", "replaced together"):
        assert done[step] >= 5, f"hardly any {step}"
    assert done["inputs renamed"] >= 5
    assert done["postponed"] >= 5
    assert done["owned by region"] >= 5
    assert done["writes between: True"] >= 20
    assert done["writes between: False"] >= 20


def few_and_many(few: int, all_of_them: int) -> Any:
    """The first seeds, and the others too where there is time."""
    rest = range(few, all_of_them)
    return pytest.mark.parametrize(
        "seeds", [pytest.param(range(few), id="few"), pytest.param(rest, id="many", marks=pytest.mark.slow)]
    )


@few_and_many(60, 1000)
@pytest.mark.parametrize("make", [module, linked])
def test_updates_of_linked_lists_lose_nothing(make: Callable[[random.Random], str], seeds: range) -> None:
    """Functions that store where they load from; what updates add to the truth, `check` judges elsewhere."""
    for seed in seeds:
        rng = random.Random(seed)
        graph = parse_module(make(rng)).main
        db = analyze(graph)
        mutator = Mutator(graph, db, [rng.randrange(1 << 12) for _ in range(60)])
        for _ in range(6):
            with db.rewrite():
                rng.choice((mutator.replace, mutator.replace_many, mutator.erase, mutator.declare_unknown))()
        fresh = analyze(graph)
        for value in db._solution.declared_unknown:
            fresh.set_wildcard(value)
        compare(db, fresh, exact=False)


@given(choices)
@examples(120)
def test_inputs_that_are_given_up(numbers: list[int]) -> None:
    """Queries before, of inputs that may be anything, leave nothing behind."""
    graph = program(numbers)
    db = analyze(graph)
    db.may_contain_alias(graph.inputs, graph.outputs)
    db.own_inputs()
    db.check()
    compare(db, analyze(graph, noalias=graph.inputs), exact=True)


@few_and_many(20, 200)
@pytest.mark.parametrize("make", [module, linked])
def test_inputs_of_linked_lists_that_are_given_up(make: Callable[[random.Random], str], seeds: range) -> None:
    for seed in seeds:
        graph = parse_module(make(random.Random(seed))).main
        db = analyze(graph)
        db.may_contain_alias(graph.inputs, graph.outputs)
        db.own_inputs()
        compare(db, analyze(graph, noalias=graph.inputs), exact=False)
