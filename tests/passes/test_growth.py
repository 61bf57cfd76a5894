"""The work of passes grows no faster than the graph, counted and not timed."""

import re
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import irc.compiler
from benchmarks import families, work
from irc.alias.facts import Facts
from irc.ir import Graph, Tensor, Value, parse_graph, parse_module
from irc.passes import PassManager
from tests.alias.test_scale import lines
from tests.effort import Spy
from tests.graphs import ir


@pytest.mark.parametrize("pipeline", ["in-place", "remove-mutation", "dce", "cse", "fuse"])
def test_values_that_may_be_at_thousands_of_places_are_not_listed_for_each_node(pipeline: str, spy: Spy) -> None:
    """In nests of loops one after the other, a carried value may be whatever any loop before it made."""
    looked_at = spy(Facts, "site")
    counts: list[int] = []
    for nests in (40, 160):
        looked_at.reset_mock()
        graph = parse_graph(repeated("nests", nests))
        PassManager(pipeline).run(graph)
        counts.append(looked_at.call_count)
    assert counts[1] <= 5 * counts[0] + 100


def test_layouts_that_nothing_sees_are_looked_for_once(spy: Spy) -> None:
    walks = spy(Graph, "walk")
    weights = {f"w{i}": Tensor.of(np.arange(6, dtype=np.float32).reshape(2, 3) + i, f"w{i}") for i in range(40)}
    nodes = [
        f'  %w{i} : Float(2, 3) = prim::Constant[value=@"w{i}"]()\n'
        f"  %t{i} : Float(3, 2) = onnx::Transpose(%w{i})\n"
        f"  %y{i} : Float(3, 2) = onnx::Add(%x, %t{i})\n"
        for i in range(40)
    ]
    results = ", ".join(f"%y{i}" for i in range(40))
    graph = parse_graph(f"graph(%x : Float(3, 2)):\n{''.join(nodes)}  return ({results})\n", weights)
    walks.reset_mock()
    assert PassManager("constant-fold").run(graph).stats["constant-fold.folded"] == 40
    assert walks.call_count < 10


READERS = {
    "one list of sizes": (
        "  %sizes : int[] = prim::ListConstruct(%one, %one, %one, %one)\n",
        "  %x{next} : Tensor = aten::reshape(%x{i}, %sizes)\n",
    ),
    "one constant": (
        "  %ones : int[] = prim::Constant[value=[1, 1]]()\n  %zeros : int[] = prim::Constant[value=[0, 0]]()\n",
        "  %x{next} : Tensor = aten::max_pool2d(%x{i}, %ones, %ones, %zeros, %ones, %no)\n",
    ),
}


@pytest.mark.parametrize("which", READERS)
def test_of_a_list_that_many_read_not_every_reader_is_looked_at_for_each(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constant pooling leaves one list for thousands of operators that take their sizes or strides from it."""
    looked_at = 0
    users, uses = Value.iter_users, Value.uses.fget
    assert uses is not None

    def counted(found: list[Any]) -> list[Any]:
        nonlocal looked_at
        looked_at += len(found)
        return found

    monkeypatch.setattr(Value, "uses", property(lambda value: counted(uses(value))))
    monkeypatch.setattr(Value, "iter_users", lambda value: iter(counted(list(users(value)))))
    counts: list[int] = []
    for size in (100, 400):
        looked_at = 0
        first, each = READERS[which]
        head = "graph(%x0 : Float(1, 1, 1, 1)):\n  %one : int = prim::Constant[value=1]()\n"
        body = "".join(each.format(i=i, next=i + 1) for i in range(size))
        graph = parse_graph(f"{head}  %no : bool = prim::Constant[value=0]()\n{first}{body}  return (%x{size})\n")
        PassManager("shape-inference").run(graph)
        assert str(graph.outputs[0].type) == "Float(1, 1, 1, 1)", "it is known by the list"
        counts.append(looked_at)
    assert counts[1] <= 5 * counts[0] + 100


FAMILIES = {
    "readers": ("x: Float(2)", "a: Float(2) = Relu(x)", "s{i}: Float(2) = Exp(a)", "s*"),
    "row": ("x: Float(2)", "v0: Float(2) = Neg(x)", "v{j}: Float(2) = Exp(v{i})", "v{n}"),
    "nests": (
        "p0, q0: Tensor; n: int",
        "true: bool = prim.Constant(value=1)",
        """p{j}, q{j} = prim.Loop(n, true, p{i}, q{i})
with block(t{i}=int, a{i}=Tensor, b{i}=Tensor): r{i} = relu(a{i}); yield true, b{i}, r{i}""",
        "p{n}, q{n}",
    ),
    # each by an If of its own
    "written in branches": (
        "x: Float(2); c: bool",
        "",
        "r{i}: Float(2) = neg(x); prim.If(c)\nwith block(): w{i}: Float(2) = relu_(r{i}); yield\nwith block(): yield",
        "r*",
    ),
    # a view of what is written before Ifs that read it
    "read in branches": (
        "x: Float(2); c: bool",
        "a: Float(2) = neg(x); v: Float(2) = t(a); w: Float(2) = relu_(a)",
        "o{i}: Float(2) = prim.If(c)\nwith block(): e{i}: Float(2) = exp(v); yield e{i}\nwith block(): yield x",
        "o*",
    ),
    # Ifs that make a tensor or hand on what the last gave, as an operator on it does that may run in place
    "replaced": (
        "x: Float(2); c: bool",
        "v0: Float(2) = neg(x)",
        """y{i}: Float(2) = abs(v{i}); v{j}: Float(2) = prim.If(c)
with block(): a{i}: Float(2) = exp(x); yield a{i}
with block(): yield y{i}""",
        "v{n}",
    ),
    # tensors that are made and written, each handed on by an If that may as well hand on what the last gave
    "removable": (
        "x: Float(2); c: bool",
        "v0: Float(2) = neg(x)",
        "a{i}: Float(2) = abs(x); w{i}: Float(2) = relu_(a{i}); v{j}: Float(2) = w{i} if c else v{i}",
        "v{n}",
    ),
    # Ifs that read one tensor, as was done before the first of them, and write it
    "branches": (
        "x: Float(2); c: bool",
        "one: int = prim.Constant(value=1); b: Float(2) = neg(x); q: Float(2) = relu(b)",
        """prim.If(c)
with block(): r{i}: Float(2) = relu(b); w{i}: Float(2) = add_(b, r{i}, one); yield
with block(): yield""",
        "b, q",
    ),
    # Ifs that make a tensor or a view of what the last gave, each written, then read by two equal operators
    "duplicates": (
        "x: Float(2); c: bool",
        "v0: Float(2) = neg(x)",
        """v{j}: Float(2) = prim.If(c)
with block(): a{i}: Float(2) = t(v{i}); yield a{i}
with block(): b{i}: Float(2) = relu(v{i}); yield b{i}
w{i}: Float(2) = relu_(v{j}); p{i}: Float(2) = mul(v{j}, x); q{i}: Float(2) = mul(v{j}, x)
s{i}: Float(2) = mul(p{i}, q{i})""",
        "s*",
    ),
}
"""Inputs, what there is once, what there is for each of n steps, and outputs: ``s*`` are those of all steps."""


def repeated(name: str, n: int) -> str:
    inputs, before, each, outputs = FAMILIES[name]
    body = [before, *(each.format(i=i, j=i + 1) for i in range(n))]
    given = ", ".join(f"{outputs[0]}{i}" for i in range(n)) if outputs.endswith("*") else outputs.format(n=n)
    return ir(inputs, "\n".join(body).strip(), given)


readers, row, written_in_branches, read_in_branches = (
    partial(repeated, name) for name in ("readers", "row", "written in branches", "read in branches")
)


def readers_in_branches(n: int) -> str:
    """The last reader is in one branch, as many as in the other do not follow it."""
    branches = (
        [
            f"    block{b}():",
            *[f"      %{s}{i} : Float(2) = onnx::Exp(%a)" for i in range(n)],
            f"      %{s} : Float(2) = onnx::Sum({names(s, n)})",
            f"      -> (%{s})",
        ]
        for b, s in enumerate("st")
    )
    return join(
        ["graph(%x : Float(2), %c : bool):", "  %a : Float(2) = onnx::Relu(%x)"],
        ["  %y : Float(2) = prim::If(%c)"],
        *branches,
        ["  return (%y)"],
    )


def results_of_a_function(n: int) -> str:
    outputs = ", ".join(f"%y{i} : Tensor" for i in range(n))
    return join(
        ["graph(%x : Tensor):", '  %f : Function = prim::Constant[name="f"]()'],
        [f"  {outputs} = prim::CallFunction(%f, %x)", f"  return ({names('y', n)})", ""],
        ["graph f(%x : Tensor):", *[f"  %a{i} : Tensor = aten::relu(%x)" for i in range(n)]],
        [f"  return ({names('a', n)})"],
    )


def chain_of_functions(n: int) -> str:
    """Each writes its argument and calls the next."""
    function = """graph f{i}(%x : Tensor):
  %a : Tensor = aten::relu_(%x)
  %f : Function = prim::Constant[name="f{next}"]()
  %y : Tensor = prim::CallFunction(%f, %a)
  return (%y)
"""
    return join(
        ["graph(%x : Tensor):", '  %f : Function = prim::Constant[name="f0"]()'],
        ["  %y : Tensor = prim::CallFunction(%f, %x)", "  return (%y)", ""],
        [function.format(i=i, next=i + 1) for i in range(n)],
        [f"graph f{n}(%x : Tensor):", "  return (%x)"],
    )


def carried(n: int, by: int = 0) -> str:
    """A loop that carries n values, which change places, ``by`` one or not at all, in each iteration."""
    return join(
        [f"graph(%m : Long(), %c : bool, {', '.join(f'%x{i} : Float(2)' for i in range(n))}):"],
        [f"  %r{i} : Float(2) = onnx::Exp(%x{i})" for i in range(n)],
        [f"  {', '.join(f'%o{i} : Float(2)' for i in range(n))} = onnx::Loop(%m, %c, {names('r', n)})"],
        [f"    block0(%i : Long(), %d : bool, {', '.join(f'%p{i} : Float(2)' for i in range(n))}):"],
        [f"      %q{i} : Float(2) = onnx::Neg(%p{i})" for i in range(n)],
        [f"      -> (%d, {', '.join(f'%q{(i + by) % n}' for i in range(n))})", f"  return ({names('o', n)})"],
    )


def identities(last: str, n: int) -> str:
    """A node of n inputs, each a copy of a value of its own that can be done without."""
    return join(
        [f"graph({', '.join(f'%x{i} : Float(2)' for i in range(n))}):"],
        [f"  %r{i} : Float(2) = onnx::Identity(%x{i})" for i in range(n)],
        [f"  %y : {last}({names('r', n)})", "  return (%y)"],
    )


copies_in_a_sum = partial(identities, "Float(2) = onnx::Sum")
copies_in_a_list = partial(identities, "Tensor[] = prim::ListConstruct")


def one_value_carried(n: int) -> str:
    """A loop that carries n equal values."""
    return re.sub(r"Exp\(%x\d+\)", "Exp(%x0)", carried(n))


def dead_slots(n: int) -> str:
    """A loop of which only the second half of n carried values is used."""
    used = ", ".join(f"%o{i}" for i in range(n // 2, n))
    return carried(n).replace(f"return ({names('o', n)})", f"return ({used})")


def rotating(n: int) -> str:
    return carried(n, by=1)


def written_and_returned(n: int) -> str:
    return join(*written(n), [f"  return ({names('r', n)})"])


def written_and_listed(n: int) -> str:
    return join(*written(n), [f"  %l : Tensor[] = prim::ListConstruct({names('r', n)})", "  return (%l)"])


def written_in_a_branch(n: int) -> str:
    """All by one If, which returns them."""
    made, writes = written(n)
    return join(
        made,
        [f"  {', '.join(f'%o{i} : Float(2)' for i in range(n))} = prim::If(%c)", "    block0():"],
        [f"    {write}" for write in writes],
        [f"      -> ({names('w', n)})", "    block1():", f"      -> ({names('r', n)})", f"  return ({names('o', n)})"],
    )


def written_in_a_loop(n: int) -> str:
    """All by one loop, which carries them."""
    made, writes = written(n)
    return join(
        made,
        [f"  {', '.join(f'%o{i} : Float(2)' for i in range(n))} = prim::Loop(%n, %c, {names('r', n)})"],
        [f"    block0(%i : int, {', '.join(f'%p{i} : Float(2)' for i in range(n))}):"],
        [f"    {write}".replace("%r", "%p") for write in writes],
        [f"      -> (%c, {names('w', n)})", f"  return ({names('o', n)})"],
    )


def written(n: int) -> tuple[list[str], list[str]]:
    """n tensors, and a write of each."""
    head = ["graph(%x : Float(2), %n : int, %c : bool):"]
    made = [f"  %r{i} : Float(2) = aten::neg(%x)" for i in range(n)]
    return [*head, *made], [f"  %w{i} : Float(2) = aten::relu_(%r{i})" for i in range(n)]


def views_of_views(n: int, write: str, read: str) -> str:
    """A chain of n views; for each a write and, perhaps, a read."""
    return join(
        ["graph(%x : Float(2)):", "  %v0 : Float(2) = aten::neg(%x)"],
        [f"  %v{i + 1} : Float(2) = aten::t(%v{i})" for i in range(n)],
        [
            f"  %w{i} : Float(2) = {write.format(i=i, n=n)}\n  %r{i} : Float(2) = {read.format(i=i, n=n)}"
            for i in range(n)
        ],
        [f"  %l : Tensor[] = prim::ListConstruct({names('r', n)})", "  return (%v0, %l)"],
    )


each_view_is_written = partial(views_of_views, write="aten::relu_(%v{i})", read="aten::exp(%x)")
the_last_view_is_written = partial(views_of_views, write="aten::relu_(%v{n})", read="aten::exp(%v0)")
the_last_view_is_read = partial(views_of_views, write="aten::relu_(%v0)", read="aten::exp(%v{n})")


def join(*parts: list[str]) -> str:
    return "\n".join([*(line for part in parts for line in part), ""])


def names(prefix: str, n: int) -> str:
    return ", ".join(f"%{prefix}{i}" for i in range(n))


@pytest.mark.parametrize(
    ("pipeline", "family"),
    [
        ("in-place", readers),
        ("in-place", row),
        ("in-place", readers_in_branches),
        ("in-place", carried),
        ("in-place", rotating),
        ("reorder", carried),
        ("reorder", rotating),
        ("reorder", chain_of_functions),
        ("cse", results_of_a_function),
        ("cse", chain_of_functions),
        ("remove-mutation", chain_of_functions),
        ("remove-mutation", written_and_returned),
        ("remove-mutation", written_and_listed),
        ("remove-mutation", written_in_branches),
        ("remove-mutation", written_in_a_branch),
        ("remove-mutation", written_in_a_loop),
        ("remove-mutation", read_in_branches),
        ("remove-mutation", each_view_is_written),
        ("remove-mutation", the_last_view_is_written),
        ("remove-mutation", the_last_view_is_read),
        ("canonicalize", copies_in_a_sum),
        ("canonicalize", copies_in_a_list),
        ("cse,canonicalize", copies_in_a_list),
        ("cse,in-place", one_value_carried),
        ("dce", dead_slots),
    ],
)
def test_work_is_linear(pipeline: str, family: Callable[[int], str]) -> None:
    few, many = (parse_module(family(n)) for n in (50, 200))
    before = lines(lambda: PassManager(pipeline).run(few))
    assert lines(lambda: PassManager(pipeline).run(many)) <= 4.4 * before


@pytest.mark.parametrize("write", ["", "  %w : Float(2) = aten::relu_(%x)"], ids=["unwritten", "written last"])
def test_what_is_written_elsewhere_moves_far_without_a_look_at_what_is_between(write: str) -> None:
    def text(n: int) -> str:
        pairs = [[f"  %{to}{i} : Float(2) = aten::neg(%{of}{i})" for i in range(n)] for of, to in ("xa", "ab")]
        head = ["graph(%x : Float(2)):"]
        return join(
            head,
            [re.sub(r"%x\d+", "%x", line) for line in pairs[0]],
            pairs[1],
            [write],
            [f"  return ({names('b', n)})"],
        )

    few, many = (parse_graph(text(n)) for n in (50, 200))
    before = lines(lambda: PassManager("fuse").run(few))
    assert lines(lambda: PassManager("fuse").run(many)) <= 4.4 * before


def rotated(n: int) -> Graph:
    """A loop that carries n / 2 tensors, writes each and hands it on in the place of the next."""
    count = range(n // 2)
    text = ["graph(%x : Float(2), %n : int, %c : bool):", *(f"  %v{i} : Float(2) = aten::neg(%x)" for i in count)]
    text += [
        f"  {', '.join(f'%o{i} : Float(2)' for i in count)} = prim::Loop(%n, %c, {', '.join(f'%v{i}' for i in count)})",
        f"    block0(%trip : int, {', '.join(f'%p{i} : Float(2)' for i in count)}):",
        *(f"      %w{i} : Float(2) = aten::relu_(%p{i})" for i in count),
        f"      -> (%c, {', '.join(f'%w{i}' for i in (*count[1:], 0))})",
        f"  return ({', '.join(f'%o{i}' for i in count)})",
    ]
    return parse_graph("\n".join([*text, ""]))


def duplicates_far_apart(n: int) -> Graph:
    """Equal operators on what nothing writes, before and behind writes of ever more places."""
    n //= 6
    text = ["graph(%x : Float(2), %c : bool):", "  %a0 : Float(2) = aten::relu(%x)"]
    text += [f"  %a{i + 1} : Float(2) = aten::sin(%a{i})" for i in range(n)]
    text += ["  %j0 : Float(2) = aten::neg(%x)"]
    for i in range(n):
        text += [
            f"  %n{i} : Float(2) = aten::neg(%x)",
            f"  %j{i + 1} : Float(2) = prim::If(%c)",
            "    block0():",
            f"      -> (%j{i})",
            "    block1():",
            f"      -> (%n{i})",
            f"  %w{i} : Float(2) = aten::relu_(%j{i + 1})",
        ]
    text += [f"  %b{i} : Float(2) = aten::sin(%a{i})" for i in range(n)]
    text += [f"  %l : Tensor[] = prim::ListConstruct({', '.join(f'%b{i}' for i in range(n))})"]
    return parse_graph("\n".join([*text, f"  return (%l, %j{n})"]))


def family(name: str, n: int) -> Graph:
    return parse_graph(families.text(name, n, "Float(2)"))


def steps(name: str, of: int, n: int) -> Graph:
    """About n nodes, of which a step has so many."""
    return parse_graph(repeated(name, n // of))


SHARED: dict[str, Callable[[int], Graph]] = {
    "in turn": partial(family, "in-turn"),
    "parts": partial(family, "parts"),
    "views": partial(family, "views"),
    "written": work.written,
    "branches": partial(steps, "branches", 3),
    "merges": work.merges,
    "replaced": partial(steps, "replaced", 3),
    "removable": partial(steps, "removable", 3),
    "rotated": rotated,
    "duplicates": partial(steps, "duplicates", 6),
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("pipeline", ["cse", "dce", "fuse", "in-place", "remove-mutation"])
@pytest.mark.parametrize("which", SHARED)
def test_of_memory_that_many_write_not_every_writer_is_looked_at_for_each(which: str, pipeline: str) -> None:
    """Nor is every place looked at for each value that may be there."""
    counts = [lines(partial(PassManager(pipeline).run, SHARED[which](n))) for n in (200, 800)]
    assert counts[1] <= 4.5 * counts[0], counts


@pytest.mark.parametrize("pipeline", ["cse", "dce", "fuse"])
def test_what_nothing_writes_is_written_between_no_two_nodes(pipeline: str) -> None:
    """However many nodes that write something else are between."""
    counts = [lines(partial(PassManager(pipeline).run, duplicates_far_apart(n))) for n in (200, 800)]
    assert counts[1] <= 4.5 * counts[0], counts


def test_what_may_be_at_ever_more_places_is_not_listed_by_each_of_them() -> None:
    """Bytes at the peak: dictionaries are copied in one line."""
    peaks: list[int] = []
    for n in (250, 1000):
        module = parse_module(rotating(n))
        tracemalloc.start()
        try:
            PassManager("in-place").run(module)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] <= 6 * peaks[0], peaks


@pytest.mark.parametrize("which", SHARED)
def test_the_report_of_a_compilation_takes_no_more_than_the_rest(which: str) -> None:
    """Where values lie, and how much is alive at once, is not found value by value."""
    counts = [lines(partial(irc.compiler.compile, SHARED[which](n))) for n in (50, 200)]
    assert counts[1] <= 4.5 * counts[0], counts
