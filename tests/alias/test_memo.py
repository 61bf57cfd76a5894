"""What is remembered of parts of tensors: after any change, told or not, it is what a rebuild finds."""

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

import pytest

from irc.alias import AliasDb, analyze
from irc.alias.memo import MEMORY, Memo
from irc.alias.regions import MOST_READERS, apart
from irc.alias.rules import is_functional
from irc.ir import Builder, Graph, Module, Node, Type, Value, parse_graph, types
from irc.ir.region_flow import inner_graph
from irc.ir.types import ListType, OptionalType
from tests.alias.test_random_updates import Mutator, few_and_many
from tests.counting import calls
from tests.effort import Tune

VIEWS = ("aten::select", "aten::slice", "aten::t")
TENSOR, LIST = types.TENSOR, ListType(types.TENSOR)
CONSTANTS = "".join(f"  %{n} : int = prim::Constant[value={n}]()\n" for n in range(4))
PROGRAM = f"""
graph(%x : Tensor, %y : Tensor, %n : int, %m : int):
{CONSTANTS}  %one : int[] = prim::Constant[value=[1]]()
  %true : bool = prim::Constant[value=1]()
  %v : Tensor = aten::relu(%x)
  %s : int = aten::size(%v, %0)
  %k : int = aten::add(%s, %1)
  %l : Tensor[] = aten::unbind(%v, %0)
  %p : Tensor = aten::__getitem__(%l, %2)
  %a : Tensor = aten::select(%v, %0, %0)
  %b : Tensor = aten::select(%v, %0, %1)
  %ra : Tensor = aten::exp(%a)
  %wb : Tensor = aten::relu_(%b)
  %c : bool = aten::lt(%s, %n)
  %z : Tensor = prim::If(%c)
    block0():
      %d : Tensor = aten::select(%v, %0, %s)
      %e : Tensor = aten::select(%v, %0, %n)
      %rd : Tensor = aten::exp(%d)
      %we : Tensor = aten::relu_(%e)
      -> (%v)
    block1():
      %f : Tensor = aten::select(%y, %0, %m)
      -> (%v)
  %g : Tensor = aten::select(%z, %0, %3)
  prim::Loop(%m, %true)
    block0(%i : int):
      %j : int = aten::add(%i, %1)
      %h : Tensor = aten::select(%v, %0, %i)
      %q : Tensor = aten::select(%v, %0, %j)
      %rh : Tensor = aten::exp(%h)
      %wq : Tensor = aten::relu_(%q)
      -> (%true)
  %rg : Tensor = aten::exp(%g)
  return (%ra, %rg, %p)
"""


TELLING = ("add_node", "erase_node", "replace_value", "unnest_nodes", "set_wildcard")


class SliceMutator(Mutator):
    """Changes a graph of slices, of which some changes are told to nobody: those of numbers.

    Before it tells of any other change, it asks: what is remembered from then must not outlive the telling.
    """

    def __init__(self, graph: Graph, db: AliasDb, choices: Sequence[int]) -> None:
        super().__init__(graph, db, choices)
        for name in TELLING:
            setattr(db, name, self._asking(name, getattr(db, name)))

    def _asking(self, name: str, tell: Callable[..., None]) -> Callable[..., None]:
        def told(first: Any, *others: Any) -> None:
            is_part = isinstance(first, Node) and (is_functional(first) or first.kind in VIEWS)
            is_known = is_part if name == "add_node" else name != "replace_value"
            self._ask_before_telling(self._rebuilt() if is_known else None)
            tell(first, *others)

        return told

    def _ask_before_telling(self, fresh: AliasDb | None) -> None:
        """Ask anything; what lies apart does so for ``fresh``, too, which is given if no facts are to change."""
        tensors = [v for v in self.graph.values() if v.type == TENSOR]
        nodes, rng = self._nodes(), Random(self._pick(1 << 12))
        for _ in range(12):
            a, b, node, other = rng.choice(tensors), rng.choice(tensors), rng.choice(nodes), rng.choice(nodes)
            self.db.has_writers(a)
            self.db.writes_between(a, node, other)
            self.db.can_move_before(node, other)
            if apart(self.db, a, b) is not None and fresh is not None:
                assert not fresh.may_alias(a, b)
                self.done["apart before telling"] += 1

    def steps(self) -> Sequence[Callable[[], None]]:
        own = (self.cut, self.cut, self.use, self.use, self.number, self.number, self.guard, self.leave)
        return (*own, self.erase, self.erase, self.replace, self.move, self.take_branch, self.declare_unknown)

    def _point(self) -> tuple[Builder, list[Value], list[Value]] | None:
        nodes = self._nodes()
        point = nodes[self._pick(len(nodes))] if nodes else self.graph.block.return_node
        visible = self._visible(point)
        of = [[v for v in visible if v.type == type] for type in (TENSOR, types.INT)]
        return (Builder.before(point), of[0], of[1]) if all(of) else None

    def _any(self, values: Sequence[Value]) -> Value:
        return values[self._pick(len(values))]

    def cut(self) -> None:
        """A view of a part, or of all."""
        at = self._point()
        if at is None:
            return
        b, tensors, ints = at
        of, zero, one = self._any(tensors), self.graph.value("0"), self.graph.value("1")
        which = self._pick(4)
        if which == 0:
            node = b.node("aten::slice", [of, zero, self._any(ints), self._any(ints), one], [TENSOR])
        elif which == 1:
            node = b.node("aten::t", [of], [TENSOR])
        else:
            node = b.node("aten::select", [of, zero, self._any(ints)], [TENSOR])
        self.db.add_node(node)

    def use(self) -> None:
        """Something that reads, or writes, a tensor, or all of its storage."""
        at = self._point()
        if at is None:
            return
        b, tensors, _ = at
        of, zero = self._any(tensors), self.graph.value("0")
        which = self._pick(14)
        if which < 4:
            node = b.node("aten::relu_", [of], [TENSOR])
        elif which < 8:
            node = b.node("aten::exp", [of], [TENSOR])
        elif which == 8:
            node = b.node("third::unknown", [of], [TENSOR])
        elif which == 9:
            node = b.node("prim::ListConstruct", [of], [LIST])
        elif which == 10:
            node = b.node("aten::t_", [of], [TENSOR])
        elif which > 11:
            node = b.node(
                "aten::as_strided_copy", [of, self.graph.value("one"), self.graph.value("one"), zero], [TENSOR]
            )
        else:
            node = b.node("aten::size", [of, zero], [types.INT])
        self.db.add_node(node)

    def number(self) -> None:
        """A number that some node is given becomes another one."""
        users = [n for n in self._nodes() if any(v.type == types.INT for v in n.inputs) and not n.blocks]
        if users:
            user = users[self._pick(len(users))]
            ints = [v for v in self._visible(user) if v.type == types.INT]
            places = [i for i, v in enumerate(user.inputs) if v.type == types.INT]
            user.replace_input(places[self._pick(len(places))], self._any(ints))

    def guard(self) -> None:
        """A branch asks something else, or a loop runs another number of times."""
        around = [n for n in self._nodes() if n.blocks]
        if around:
            node = around[self._pick(len(around))]
            fitting = [v for v in self._visible(node) if v.type == node.inputs[0].type]
            node.replace_input(0, self._any(fitting))

    def leave(self) -> None:
        """A node leaves the blocks of the one around it, if it can."""
        inside = [n for n in self._nodes() if n.outer is not None and not any(v.block is n.block for v in n.inputs)]
        if inside:
            node = inside[self._pick(len(inside))]
            around = node.outer
            assert around is not None
            node.move_before(around)
            self.db.unnest_nodes(around, [node])

    def ask(self) -> None:
        super().ask()
        fresh = self._rebuilt()
        tensors = [v for v in self.graph.values() if v.type == TENSOR]
        nodes = self._nodes()
        rng = Random(self._pick(1 << 12))
        for _ in range(24):
            a, b, node, other = rng.choice(tensors), rng.choice(tensors), rng.choice(nodes), rng.choice(nodes)
            answers = [
                (db.may_alias(a, b), db.must_alias(a, b), db.writes_to_alias(node, a), db.can_move_before(node, other))
                for db in (self.db, fresh)
            ]
            assert answers[0] == answers[1] or not self.db.is_tight
            self.done[f"alias: {answers[1][0]}"] += 1


def run(seed: int) -> Counter[str]:
    rng = Random(seed)
    graph = parse_graph(PROGRAM)
    db = analyze(graph)
    db.check_rewrites = True
    mutator = SliceMutator(graph, db, [rng.randrange(1 << 12) for _ in range(60)])
    mutator.run()
    db.tighten()
    db.check()
    return mutator.done


@few_and_many(15, 200)
def test_what_is_remembered_is_what_a_rebuild_finds(seeds: range) -> None:
    done = Counter[str]()
    for seed in seeds:
        done += run(seed)
    for step in ("cut", "use", "erase", "take_branch", "leave"):
        assert done[step] >= len(seeds) / 5, f"hardly any {step}"
    assert min(done[f"{query}: {answer}"] for query in ("alias", "writes between") for answer in (True, False)) >= 20
    assert done["apart before telling"] >= 20


@pytest.mark.parametrize("limit", ["_MOST_DEPENDENCIES", "_MOST_LOCATIONS"])
def test_what_rests_on_much_is_forgotten_whatever_changes(limit: str, tune: Tune) -> None:
    tune(f"irc.alias.memo.{limit}", 2 * (limit == "_MOST_DEPENDENCIES"))
    for seed in range(5):
        run(seed)


# -- cases -----------------------------------------------------------------------

ROWS = f"""
graph(%x : Tensor, %y : Tensor):
{CONSTANTS}  %one : int[] = prim::Constant[value=[1]]()
  %a : Tensor = aten::select(%x, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
  %l : Tensor[] = aten::unbind(%x, %0)
  %p : Tensor = aten::__getitem__(%l, %2)
  %w : Tensor = aten::relu_(%b)
  return (%y)
"""


def add(db: AliasDb, kind: str, *names: str, type: Type = TENSOR) -> Node:
    """A node at the end of a graph, which the database is told of."""
    graph = db.graph
    node = Builder.before(graph.block.return_node).node(kind, list(map(graph.value, names)), [type])
    db.add_node(node)
    return node


def erase(db: AliasDb, *nodes: Node) -> None:
    for node in nodes:
        db.erase_node(node)
        node.erase()


def test_readers_are_known_up_to_some_number_of_them() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    readers: list[Node] = []
    for _ in range(MOST_READERS + 2):
        readers.append(add(db, "aten::exp", "a"))
        assert db.has_writers(graph.value("a")) == (len(readers) > MOST_READERS)
    db.check()
    while readers:
        erase(db, readers.pop())
        assert db.has_writers(graph.value("a")) == (len(readers) > MOST_READERS)
    db.check()


def test_what_a_guard_compares_may_change() -> None:
    graph = parse_graph(PROGRAM.replace("relu_(%b)", "exp(%b)").replace("relu_(%q)", "exp(%q)"))
    db = analyze(graph)
    condition, d = graph.value("c").node, graph.value("d")
    assert condition is not None and not db.has_writers(d)
    condition.replace_input(1, graph.value("m"))
    assert db.has_writers(d)
    condition.replace_input(1, graph.value("n"))
    assert not db.has_writers(d)


def test_writes_of_metadata_come_and_go() -> None:
    graph = parse_graph(ROWS.replace("%x, %0", "%v, %0").replace("  %a", "  %v : Tensor = aten::relu(%x)\n  %a", 1))
    db = analyze(graph)
    a, b = graph.value("a"), graph.value("b")
    assert not db.may_alias(a, b)
    change = add(db, "aten::t_", "v")
    assert db.may_alias(a, b)
    erase(db, change)
    assert not db.may_alias(a, b)


def test_a_list_of_pieces_that_is_written_is_one_that_says_nothing() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    p, b = graph.value("p"), graph.value("b")
    assert not db.may_alias(p, b)
    store = add(db, "aten::append", "l", "y", type=LIST)
    assert db.may_alias(p, b)
    erase(db, store)
    db.tighten()
    assert not db.may_alias(p, b)


def test_a_function_that_may_call_the_graph_may_give_it_anything() -> None:
    graph = parse_graph(ROWS)
    module = Module(graph)
    db = analyze(graph, module)
    assert not db.may_alias(graph.value("a"), graph.value("b"))
    module.add_graph("f")
    assert db.may_alias(graph.value("a"), graph.value("b"))


def test_a_type_that_says_more_is_another_one() -> None:
    graph = parse_graph(ROWS.replace("(%x : Tensor,", "(%z : Tensor?,").replace("%x", "%z"))
    graph.value("z").type = types.TENSOR
    assert not analyze(graph).may_alias(graph.value("a"), graph.value("b"))
    graph.value("z").type = before = OptionalType(types.TENSOR)
    db = analyze(graph)
    a, b = graph.value("a"), graph.value("b")
    assert db.may_alias(a, b)
    graph.value("z").type = types.TENSOR
    db.retype_value(graph.value("z"), before)
    assert not db.may_alias(a, b)


def test_nothing_erased_is_remembered_and_no_database_that_is_gone_is_told() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    reader, writer = add(db, "aten::exp", "a"), add(db, "aten::relu_", "a")
    cut = add(db, "aten::select", "x", "0", "3")
    assert len([value for value in graph.values() if db.has_writers(value)]) > 1
    db.has_writers(reader.output)
    db.may_alias(cut.output, writer.output)
    assert len(graph.observers) == 1
    gone = [weakref.ref(each) for node in (reader, writer, cut) for each in (node, node.output)]
    erase(db, reader, writer, cut)
    del reader, writer, cut
    gc.collect()
    assert [ref() for ref in gone] == [None] * 6
    del db
    gc.collect()
    assert graph.observers == ()


# -- costs -----------------------------------------------------------------------


class Costs:
    """Blocks of rows, or of transposed matrices, which are read and written, and questions about them."""

    def __init__(self, view: str, count: int = 20) -> None:
        text = f"graph(%x : Tensor):\n{CONSTANTS}  %one : int[] = prim::Constant[value=[1]]()\n"
        for i in range(count):
            views = (f"aten::{view}(%o{i}{f', %0, %{n}' if view == 'select' else ''})" for n in range(2))
            text += f"  %o{i} : Tensor = aten::relu(%x)\n"
            text += "".join(f"  %{name}{i} : Tensor = {made}\n" for name, made in zip("ab", views))
            text += f"  %f{i} : Tensor = aten::exp(%a{i})\n  %w{i} : Tensor = aten::relu_(%b{i})\n"
            text += f"  %s{i} : Tensor = aten::exp(%a{i})\n"
        self.graph = parse_graph(f"{text}  return (%x)\n")
        self.db = analyze(self.graph)
        self.view = (view, "0", "3") if view == "select" else (view,)

    def calls(self, change: Sequence[str], query: str) -> int:
        ask = QUERIES[query]
        a, b, first, last = map(self.graph.value, ("a0", "b0", "f0", "s0"))

        def run() -> None:
            kind, of, *more = change
            if kind == "view":
                kind, *more = self.view
            erase(self.db, add(self.db, f"aten::{kind}", of, *more))
            ask(self.db, a, b, first.node, last.node)

        run()
        return calls(run)


QUERIES: dict[str, Callable[[AliasDb, Value, Value, Any, Any], object]] = {
    "has_writers": lambda db, a, b, first, last: db.has_writers(a),
    "writes_between": lambda db, a, b, first, last: db.writes_between(a, first, last),
    "may_alias": lambda db, a, b, first, last: db.may_alias(a, b),
    "must_alias": lambda db, a, b, first, last: db.must_alias(a, b),
}
UNCONCERNED = {
    "a reader of the whole": ("exp", "o0"),
    "a reader of another part": ("exp", "b0"),
    "a view of it": ("view", "o0"),
    "a write to another tensor": ("relu_", "b1"),
}


@pytest.mark.parametrize("change", UNCONCERNED)
@pytest.mark.parametrize("query", QUERIES)
def test_a_question_after_a_change_that_does_not_concern_it_costs_as_without_parts(change: str, query: str) -> None:
    plain, parts = (Costs(view).calls(UNCONCERNED[change], query) for view in ("t", "select"))
    assert parts <= 1.5 * plain, (plain, parts)


@pytest.mark.parametrize("change", [("relu_", "b0"), ("exp", "a0"), ("as_strided_copy", "a0", "one", "one", "0")])
def test_a_question_after_a_change_that_concerns_it_costs_what_is_concerned(change: Sequence[str]) -> None:
    few, many = (Costs("select", count).calls(change, "has_writers") for count in (5, 50))
    assert many <= 1.05 * few, (few, many)


def stands_as_rebuilt(db: AliasDb, *names: str) -> None:
    fresh = analyze(db.graph)
    for name in names:
        assert db.has_writers(db.graph.value(name)) == fresh.has_writers(db.graph.value(name)), name


def test_a_write_is_known_to_the_very_next_question() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    made = add(db, "aten::exp", "y").output
    assert not db.has_writers(made)
    add(db, "aten::relu_", made.name)
    assert db.has_writers(made)


def test_a_write_that_a_question_meets_before_it_is_told_is_known_once_it_is() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    node = Builder.before(graph.block.return_node).node("aten::relu_", [graph.value("a")], [TENSOR])
    db.has_writers(graph.value("a"))
    db.add_node(node)
    assert db.has_writers(graph.value("a"))


def test_writes_to_few_and_to_many_places_concern_each_other() -> None:
    bases = "".join(f"  %v{n} : Tensor = aten::relu(%y)\n" for n in range(10))
    of = ", ".join(f"%v{n}" for n in range(10))
    some = f"{bases}  %m : Tensor[] = prim::ListConstruct({of})\n  %g : Tensor = aten::__getitem__(%m, %i)\n  return"
    graph = parse_graph(ROWS.replace("%y : Tensor)", "%y : Tensor, %i : int)").replace("  return", some))
    for written, read in (("g", "v0"), ("v0", "g")):
        db = analyze(graph)
        assert not db.has_writers(graph.value(read))
        write = add(db, "aten::relu_", written)
        assert db.has_writers(graph.value(read))
        erase(db, write)
        assert not db.has_writers(graph.value(read))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("how", ["uses", "input", "inputs"])
def test_who_reads_is_known_of_the_old_and_of_the_new_operand(how: str, wide: bool, tune: Tune) -> None:
    if wide:
        tune("irc.ir.node.WIDE", 1)
    text = ROWS.replace("  %b", "  %a2 : Tensor = aten::select(%x, %0, %0)\n  %b", 1)
    graph = parse_graph(text)
    db = analyze(graph)
    a, a2 = graph.value("a"), graph.value("a2")
    reader = add(db, "aten::as_strided_copy", "a2", "one", "one", "0")  # of all of the storage
    assert not db.has_writers(a) and db.has_writers(a2)
    if how == "uses":
        a2.replace_all_uses_with(a)
    elif how == "input":
        reader.replace_input(0, a)
    else:
        reader.set_inputs([a, *reader.inputs[1:]])
    db.replace_value(a2, a)
    assert db.has_writers(a)
    assert not db.has_writers(a2)


def test_a_list_of_pieces_in_another_order_says_nothing() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    p, b = graph.value("p"), graph.value("b")
    assert not db.may_alias(p, b)
    turned = Builder.before(graph.block.return_node).node("aten::reverse", [graph.value("l")], [])
    db.add_node(turned)
    assert db.may_alias(p, b)


def test_a_new_solution_keeps_no_answers() -> None:
    made = "  %v : Tensor = aten::relu(%x)\n  %t : Tensor = aten::t_(%v)\n  %a"
    graph = parse_graph(ROWS.replace("%x, %0", "%v, %0").replace("  %a", made, 1))
    db = analyze(graph)
    a, b, change = graph.value("a"), graph.value("b"), graph.value("t").node
    assert change is not None and db.may_alias(a, b)
    change.erase()
    version = db._dag.version
    db.refresh()
    db._dag.version = version  # as it may be by chance
    assert not db.may_alias(a, b)


class Writes:
    """A write index, and facts, of which nothing is known but what a test tells."""

    version = 0
    observer: Callable[[int, bool], None]

    def settle(self) -> None:
        pass


def test_an_answer_is_not_kept_if_what_it_was_made_of_was_forgotten_meanwhile() -> None:
    memo, writes, known = Memo(parse_graph(ROWS), lambda node, value: True), Writes(), ["old"]
    memo.follow(cast("Any", writes), cast("Any", writes))

    def part() -> str:
        memo.depend_on(MEMORY)
        return known[-1]

    def whole() -> str:
        found = memo.answer(part)
        if len(known) == 1:
            known.append("new")
            writes.observer(8, True)
        return found

    assert [memo.answer(whole) for _ in range(2)] == ["old", "new"]


def test_the_scope_of_a_question_may_leave_a_loop() -> None:
    graph = parse_graph(f"""
graph(%x : Tensor, %y : Tensor, %n : int, %c : bool):
{CONSTANTS}  %true : bool = prim::Constant[value=1]()
  %v : Tensor = aten::relu(%x)
  %b : Tensor = aten::select(%v, %0, %0)
  prim::Loop(%n, %true)
    block0(%i : int):
      %j : int = aten::add(%i, %1)
      %a : Tensor = aten::select(%v, %0, %j)
      prim::If(%c)
        block0():
          %f : Tensor = aten::exp(%y)
          %w : Tensor = aten::relu_(%b)
          %l : Tensor = aten::exp(%y)
          -> ()
        block1():
          -> ()
      -> (%true)
  return (%y)
""")
    db = analyze(graph)
    a, first, last = graph.value("a"), graph.value("f").node, graph.value("l").node
    assert first is not None and last is not None and first.outer is not None and first.outer.outer is not None
    assert not db.writes_between(a, first, last)
    branch, loop = first.outer, first.outer.outer
    branch.move_before(loop)
    db.unnest_nodes(loop, [branch])
    assert db.writes_between(a, first, last) == analyze(graph).writes_between(a, first, last)


UNKNOWN = ROWS.replace("%y : Tensor)", "%y : Tensor, %c : bool)").replace(
    "  %l",
    """  %z : Tensor = prim::If(%c)
    block0():
      %u : Tensor = prim::unchecked_cast(%x)
      -> (%u)
    block1():
      -> (%x)
  %d : Tensor = aten::select(%z, %0, %0)
  %l""",
    1,
)


@pytest.mark.parametrize(("declared", "part"), [("u", "d"), ("l", "p")])
def test_what_is_followed_through_something_declared_unknown_may_be_anywhere(declared: str, part: str) -> None:
    graph = parse_graph(UNKNOWN)
    db = analyze(graph)
    assert not db.may_alias(graph.value(part), graph.value("b"))
    db.set_wildcard(graph.value(declared))
    assert db.may_alias(graph.value(part), graph.value("b"))


def test_what_was_declared_unknown_and_is_gone_says_nothing_any_more() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    unknown = add(db, "aten::exp", "y")
    db.set_wildcard(unknown.output)
    assert db.may_alias(graph.value("a"), graph.value("b"))
    erase(db, unknown)
    db.tighten()
    assert not db.may_alias(graph.value("a"), graph.value("b"))


def test_a_node_is_in_order_even_if_who_is_told_of_it_fails() -> None:
    class Failing:
        def moved(self, node: Node) -> None:
            raise RuntimeError

        def changed(self, node: Node, values: object) -> None:
            pass

    graph = parse_graph(ROWS)
    observer, last = Failing(), graph.value("w").node
    assert last is not None
    graph.report_to(observer)
    node = graph.create("aten::exp", [graph.value("y")], [TENSOR])
    with pytest.raises(RuntimeError):
        graph.block.append(node)
    assert last.is_before(node)


def test_what_a_group_computes_decides_what_it_reads() -> None:
    text = ROWS.replace("  return", "  %g : Tensor = prim::FusionGroup_0(%a)\n  return")
    graph = parse_graph(
        f"{text}with prim::FusionGroup_0 = graph(%v : Tensor):\n  %r : Tensor = onnx::Relu(%v)\n  return (%r)\n"
    )
    db = analyze(graph)
    group = graph.value("g").node
    assert group is not None
    inner = inner_graph(group)
    assert inner is not None
    relu, a = inner.value("r").node, graph.value("a")
    assert relu is not None and not db.has_writers(a)
    other = Builder.before(relu).node("onnx::Transpose", [inner.value("v")], [TENSOR])
    assert db.has_writers(a) == analyze(graph).has_writers(a) is True
    relu.replace_input(0, other.output)
    assert db.has_writers(a) == analyze(graph).has_writers(a) is True
    relu.replace_input(0, inner.value("v"))
    other.erase()
    assert db.has_writers(a) == analyze(graph).has_writers(a) is False
