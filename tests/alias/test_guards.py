"""Guards of branches, and numbers of iterations, as facts about where views lie."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from textwrap import indent

import pytest

from irc.alias import analyze, guards, regions
from irc.ir import Block, Value
from irc.ir.polynomials import Size, minus
from irc.ops import regions as ops_regions
from tests.alias.view_programs import check, guarded_program, run_all
from tests.graphs import ir_graph, ir_module


def meet(condition: str, a: str, b: str, *, otherwise: bool = False) -> bool:
    """Whether `x[a]` and `x[b]` may meet in a branch of a loop."""
    views = f"a = select(x, 0, {a}); b = select(x, 0, {b}); yield"
    then, other = ("yield", views) if otherwise else (views, "yield")
    body = f"j: int = sub(i, 1)\n{condition}\nprim.If(c)\nwith block(): {then}\nwith block(): {other}\nyield True"
    graph = ir_graph("x: Tensor; n, m: int", f"prim.Loop(n, True)\nwith block(i=int):\n{indent(body, '    ')}", "x")
    return analyze(graph).may_alias(graph.value("a"), graph.value("b"))


AND = """
d: bool = ge(m, 0); c: bool = prim.If(d)
with block(): e: bool = gt(i, m); yield e
with block(): yield False"""
OR = """
d: bool = lt(m, 0); c: bool = prim.If(d)
with block(): yield True
with block(): e: bool = eq(i, m); yield e"""


@pytest.mark.parametrize(
    ("condition", "a", "b", "otherwise"),
    [
        ("c: bool = lt(i, m)", "i", "m", False),
        ("c: bool = ge(i, m)", "i", "m", True),
        ("c: bool = gt(i, 0)", "i", "j", False),
        ("c: bool = le(i, 0)", "i", "j", True),
        ("c: bool = ne(i, 0)", "i", "n", False),
        ("c: bool = eq(m, 0)", "m", "n", False),
        ("d: bool = lt(i, m); c: bool = __not__(d)", "i", "m", True),
        (AND, "i", "m", False),
    ],
)
def test_places_that_a_condition_tells_apart(condition: str, a: str, b: str, otherwise: bool) -> None:
    assert not meet(condition, a, b, otherwise=otherwise)
    assert meet(condition, a, b, otherwise=not otherwise) or "n" in (a, b)


@pytest.mark.parametrize(
    ("condition", "a", "b", "otherwise"),
    [
        ("c: bool = le(i, m)", "i", "m", False),
        ("c: bool = gt(i, m)", "i", "m", True),
        ("c: bool = lt(i, m)", "j", "m", False),
        ("c: bool = ne(i, m)", "i", "m", False),
        (OR, "i", "m", False),
        (AND, "i", "m", True),
    ],
)
def test_places_that_a_condition_does_not_tell_apart(condition: str, a: str, b: str, otherwise: bool) -> None:
    assert meet(condition, a, b, otherwise=otherwise)


def check_programs(first: int, count: int) -> None:
    for number in range(first, first + count):
        check(Random(number), guarded_program)


@pytest.mark.parametrize("block", range(2))
def test_programs_of_guarded_views_do_nothing_that_is_denied(block: int) -> None:
    check_programs(40 * block, 25)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_many_programs_of_guarded_views_do_nothing_that_is_denied(block: int) -> None:
    check_programs(80 + 60 * block, 60)


# -- wrong ideas -----------------------------------------------------------------

_facts_of, _of, _distance, _quantity = guards.facts_of, guards._of, guards._distance, guards.quantity


def behind_a_branch(block: Block) -> Iterator[Size]:
    yield from _facts_of(block)
    for node in block.nodes:
        for inner in node.blocks[:1]:
            yield from _facts_of(inner)


def operand(value: Value) -> Size:
    """Takes sums for their first operand."""
    made = value.made_by("aten::add")
    return _quantity(value if made is None else made.inputs[0])


def as_int(value: Value) -> Size:
    """Takes floats and tensors for the integers that are made of them."""
    return next((_quantity(use.output) for use in value.iter_users() if use.kind == "aten::Int"), _quantity(value))


def of_all_conditions(condition: Value, holds: bool, depth: int = 0) -> Iterator[Size]:
    node = condition.node
    if node is not None and node.blocks and depth < 4:
        for value in (node.inputs[0], *(block.returns[condition.index] for block in node.blocks)):
            yield from of_all_conditions(value, holds, depth + 1)
    else:
        yield from _of(condition, holds, depth)


WRONG = {
    "a guard behind its branch": (regions, "facts_of", behind_a_branch),
    "a guard in the other branch": (guards, "_of", lambda condition, holds, depth=0: _of(condition, True, depth)),
    "a guard that is negated twice": (guards, "_of", lambda condition, holds, depth=0: _of(condition, not holds)),
    "less, or equal": (guards, "_distance", lambda low, high, more: _distance(low, high, more or 1)),
    "more than less": (guards, "_distance", lambda low, high, more: _distance(low, high, 2 * more)),
    "a guard of another value": (guards, "quantity", operand),
    "a guard of a float": (guards, "quantity", as_int),
    "a guard of a tensor, written since": (guards, "quantity", as_int),
    "any condition of several": (guards, "_of", of_all_conditions),
    "sums that wrap around alike": (
        guards,
        "_distance",
        lambda low, high, more: (
            found if guards.is_exact(found := minus(minus(_quantity(high), _quantity(low)), more)) else None
        ),
    ),
    "sums that do not wrap around": (guards, "is_exact", lambda size: size is not None),
    "operands that are not negative, so neither is the sum": (
        ops_regions,
        "Symbol",
        lambda of, what, number=0, made=ops_regions.Symbol: made(of, "value" if what == "summand" else what, number),
    ),
    "numbers of two iterations": (regions, "values_of", lambda size: ()),
    "bounds that are never negative": (ops_regions, "is_from_0", lambda size, facts=(): True),
}


PROGRAMS = {
    "a guard of a float": """
f: float = div(n, 2); i: int = aten.Int(f); c: bool = lt(0, f); prim.If(c)
with block(): a = select(x, 0, 0); b = select(x, 0, i); yield
with block(): yield""",
    "a guard of a tensor, written since": """
t = prim.NumToTensor(n); c = gt(t, 0); w = zero_(t); i: int = aten.Int(t); prim.If(c)
with block(): a = select(x, 0, 0); b = select(x, 0, i); yield
with block(): yield""",
    "sums that do not wrap around": """
p: int = add(n, 2); q: int = add(n, 3); c: bool = ge(p, 0); prim.If(c)
with block(): a = select(x, 0, 0); b = slice(x, 0, q, None, 1); yield
with block(): yield""",
    "a guard of another value": """
p: int = add(n, 1); c: bool = ge(p, 1); prim.If(c)
with block(): a = select(x, 0, 0); b = select(x, 0, n); yield
with block(): yield""",
    "sums that wrap around alike": """
p: int = add(n, 1); s: int = size(x, 0); q: int = sub(p, s); c: bool = ge(q, p); prim.If(c)
with block(): a = slice(x, 0, None, s, 1); b = slice(x, 0, None, n, 1); yield
with block(): yield""",
    "operands that are not negative, so neither is the sum": """
p: int = add(n, 1); c: bool = ge(n, 0); prim.If(c)
with block(): a = select(x, 0, 0); b = slice(x, 0, p, None, 1); yield
with block(): yield""",
    "numbers of two iterations": """
first = exp(x); k: int = dim(x); prim.Loop(3, True)
with block(i=int):
    c: bool = le(k, i); prim.If(c)
    with block(): a = slice(x, 0, None, k, 1); r = exp(a); yield
    with block(): yield
    d: bool = gt(m, i); prim.If(d)
    with block(): b = slice(x, 0, m, None, 1); w = neg_(b); yield
    with block(): yield
    yield True""",
}
"""Programs that are wrong about ideas which random programs rarely follow."""


def check_idea(idea: str) -> None:
    if idea in PROGRAMS:
        module = ir_module("x: Tensor; n, m: int", PROGRAMS[idea], "x")
        run_all(module, [((4, 2), given) for given in product((-1, 0, 1, 2, 2**63 - 3, 2**63 - 1), repeat=2)])
    else:
        check_programs(0, 100)


@pytest.mark.parametrize("idea", WRONG)
def test_wrong_ideas_are_caught(idea: str, monkeypatch) -> None:
    if idea in PROGRAMS:
        check_idea(idea)
    monkeypatch.setattr(*WRONG[idea])
    with pytest.raises(AssertionError, match=r"overlap|changes|written|may move"):
        check_idea(idea)
