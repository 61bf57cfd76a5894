"""Concats whose operands are made in their places copy nothing; what they compute is the same."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.ir import Graph, parse_graph
from irc.ops.axes import CONCAT
from irc.runtime import execution, memory_plan
from irc.runtime.backends import Backend, Declined, Unsupported
from irc.runtime.plan import lower
from tests.effort import Tune, examples
from tests.graphs import ir, typed_ir

RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.integers(-4, 4, shape).astype(np.float32)


def joined(model: irc.CompiledModel) -> list[str]:
    """The results of Concats that copy nothing in the latest kind of run."""
    return sorted(v.name for v in model.runs.plans()[-1].over if v.node is not None and v.node.kind == CONCAT)


def compiled(text: str, backend: str | Backend = "numpy", passes: str = "none") -> irc.CompiledModel:
    return irc.compile(parse_graph(text), passes, backend=backend)


def poison(model: irc.CompiledModel) -> None:
    """Fill the memory between runs with NaNs: nobody may read what an earlier run left there."""
    for memory in model.runs._arenas:
        memory.memory[:] = 0xFF


def check(graph: Graph, model: irc.CompiledModel, donate: Any = (), rounds: int = 4) -> None:
    """Runs compute, from other inputs each time, what the graph does outside of planned memory, to the bit."""
    plain = lower(graph)
    kept: list[tuple[Any, Any]] = []
    for _ in range(rounds):
        feeds = {each.name: f32(*each.shape) for each in model.inputs}
        wanted = plain.run([x.copy() for x in feeds.values()], execution.Run())
        found = list(model.run({name: x.copy() for name, x in feeds.items()}, donate=donate).values())
        poison(model)
        kept += zip(wanted, found, strict=True)
        for a, b in kept:  # results of earlier runs stay what they were
            np.testing.assert_array_equal(a, b)


BLOCK = typed_ir(
    "x: Float(1, 4, 8)",
    "a = Neg(x); b = Ceil(a); c = Concat(a, b, axis=1); d = Relu(c); e = MatMul(d, d); f = Concat(c, e, axis=-2); "
    "g = Abs(f); h = MatMul(c, e); i = Concat(g, h, axis=1); j = ReduceSum(i, [2], keepdims=1)",
    "j",
)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_dense_block_lies_in_one_place(backend: str, tune: Tune) -> None:
    tune("irc.runtime.memory_plan.PEAK", 2)
    model = compiled(BLOCK, backend)
    check(parse_graph(BLOCK), model)
    assert joined(model) == ["c", "f", "i"]
    (plan,) = model.runs.plans()
    at = {v.name: place.offset for v, place in plan.place_of.items()}
    a, b, c, e, f = (at[name] for name in "abcef")
    assert (b, c, e, f) == (a + 128, a, a + 256, a)
    profile = model.profile({"x": f32(1, 4, 8)})
    (row,) = (row for row in profile.by_operator() if row.kind == CONCAT)
    assert (row.calls, row.in_place, row.fresh) == (3, 3, 0)


def alone(statements: str, returned: str) -> str:
    """A graph whose only Concat is ``c``."""
    return ir("x, y: Float(2, 4)", f"a = Neg(x); b = Exp(y); {statements}; z = Cast(c, to=11)", returned)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_parts_and_wholes_are_not_written_over_while_the_other_is_read(backend: str) -> None:
    """Neither by what broadcasts a part over the whole."""
    text = typed_ir(
        "x: Float(1, 4); y: Float(3, 4)",
        "a = Neg(x); b = Neg(y); c = Concat(a, b, axis=0); d = Neg(b); e = Mul(c, a); "
        "f = Concat(e, d, axis=0); g = Relu(f); h = Neg(e); s = Transpose(g); m = MatMul(g, s); "
        "n = MatMul(h, h)",
        "m, n",
    )
    model = compiled(text, backend)
    check(parse_graph(text), model)
    assert joined(model) == ["c", "f"]


def test_what_is_written_over_a_part_keeps_the_memory_of_the_whole(tune: Tune) -> None:
    tune("irc.runtime.memory_plan.PEAK", 2)
    text = typed_ir(
        "x: Float(8, 8); w: Float(16, 8)",
        "a = Neg(x); b = MatMul(x, a); c = Concat(a, b, axis=0); d = Einsum(c, w, equation='ik,jk->ij'); "
        "e = Relu(b); f = MatMul(d, w); g = MatMul(f, e); h = MatMul(g, e)",
        "h",
    )
    model = compiled(text)
    check(parse_graph(text), model)
    assert joined(model) == ["c"]
    assert any(v.name == "e" for v in model.runs.plans()[-1].over)


def test_donated_memory_is_no_part() -> None:
    text = alone("c = Concat(a, b, axis=0)", "z")
    model = compiled(text)
    check(parse_graph(text), model, donate=["x"])
    assert joined(model) == []


BEHIND_A_GROUP = typed_ir(
    "x, y: Float(2, 4)",
    "a = Cos(x); b = FusionGroup_0(y); c = Concat(a, b, axis=0); z = Cos(c)",
    "z",
    FusionGroup_0=("y: Float(2, 4)", "p = Neg(y); q = Relu(p)", "q"),
)


class Moody(Backend):
    """Computes groups of one operand in two of three runs."""

    def __init__(self) -> None:
        self.runs = 0

    def refuses(self, group: Graph) -> Declined | None:
        return None

    def compile_group(self, group: Graph, operands: Any) -> Any:
        plan = lower(group)

        def kernel(x: Any, out: Any = None) -> Any:
            self.runs += 1
            if self.runs % 3 == 0:
                raise Unsupported("it is the third")
            (made,) = plan.run([x])
            if out is None:
                return made.copy()
            out[...] = made
            return out

        return kernel


def test_what_members_compute_in_place_of_a_kernel_lies_where_it_is_read() -> None:
    model = compiled(BEHIND_A_GROUP, Moody())
    check(parse_graph(BEHIND_A_GROUP), model, rounds=8)
    assert joined(model) == ["c"]
    assert model.report.declined == {"it is the third": 1}


@st.composite
def concatenating(draw: st.DrawFn) -> str:
    """A graph of pointwise operators, products, views, writes and Concats of rows, all of which outputs depend on."""
    rows = {"x": 1, "y": 2, "w": 3}
    unread = dict.fromkeys("xyw")
    lines = [f"%n{i} : Long(1) = prim::Constant[value=tensor([{i}])]()" for i in range(4)]

    def value(size: int | None = None) -> str:
        names = [name for name, n in rows.items() if size in (None, n)]
        return names[-1 - draw(st.integers(0, min(7, len(names) - 1)))]

    def add(kind: str, size: int, *inputs: str) -> None:
        for each in inputs:
            unread.pop(each, None)
        name = f"v{len(lines)}"
        lines.append(f"%{name} : Float({size}, 3) = onnx::{kind}({', '.join('%' + each for each in inputs)})")
        rows[name], unread[name] = size, None

    for _ in range(draw(st.integers(4, 16))):
        step, x = draw(st.sampled_from(["unary", "unary", "binary", "concat", "concat", "view", "product"])), value()
        if step == "unary":
            add(draw(st.sampled_from(["Neg", "Relu", "Abs", "Neg", "Relu", "Neg_", "Relu_", "Identity"])), rows[x], x)
        elif step == "binary":
            add(draw(st.sampled_from(["Sub", "Max"])), rows[x], x, value(draw(st.sampled_from([rows[x], 1]))))
        elif step == "view":
            begin = draw(st.integers(0, min(3, rows[x] - 1)))
            add("Slice", rows[x] - begin, x, f"n{begin}", "end")
        elif step == "product":
            add("MatMul", rows[x], x, "w")
            add("Sign", rows[x], f"v{len(lines) - 1}")
        else:
            parts = [x, *(value() for _ in range(draw(st.integers(0, 2))))]
            if (size := sum(rows[part] for part in parts)) <= 24:
                add("Concat[axis=0]", size, *parts)
    results = [f"%r{i} : Float({rows[name]}, 3) = onnx::Neg(%{name})" for i, name in enumerate(unread)]
    returned = [f"%r{i}" if draw(st.integers(0, 3)) else f"%{name}" for i, name in enumerate(unread)]
    body = "\n  ".join(["%end : Long(1) = prim::Constant[value=tensor([99])]()", *lines, *results])
    head = "graph(%x : Float(1, 3), %y : Float(2, 3), %w : Float(3, 3)):"
    return f"{head}\n  {body}\n  return ({', '.join(returned)})\n"


@examples(300)
@given(
    concatenating(),
    st.sampled_from(["none", "default"]),
    st.sampled_from(["numpy", "native"]),
    st.sets(st.sampled_from("xyw")),
    st.sampled_from([1, memory_plan.PEAK, 100]),
)
def test_random_graphs_compute_the_same(text: str, passes: str, backend: str, donate: set[str], peak: float) -> None:
    before, memory_plan.PEAK = memory_plan.PEAK, peak  # type: ignore[misc]
    try:
        check(parse_graph(text), compiled(text, backend, passes), sorted(donate))
    finally:
        memory_plan.PEAK = before  # type: ignore[misc]
