"""Concatenations that take the result of an earlier one; which do not, and that results stay the same."""

import numpy as np
import pytest

from irc.ir import Graph
from irc.ops.axes import CONCAT
from irc.runtime.plan import lower
from tests.graphs import ir_graph
from tests.passes.helpers import run_passes
from tests.programs.interpreter import interpret
from tests.programs.running import copied

JOINS = "aten::cat", CONCAT
LIST = "'Tensor[]' = prim.ListConstruct"
TWO = f"m: {LIST}(a, b); c = cat(m, 1)"
THREE = f"l: {LIST}(a, b, d); e = cat(l, 1)"
AB, D = "a = relu(x); b = exp(y)", "d = neg(c)"
GROWS = (
    f"l: {LIST}(x); c = cat(l, 1); k: 'Tensor[]' = append(l, neg(c)); d = cat(l, 1); m: 'Tensor[]' = append(l, exp(d))"
)
CASES: dict[str, tuple[str, str, list[int]]] = {  # statements, outputs, and how many tensors are joined
    "a part more": (f"{AB}; {TWO}; {D}; {THREE}", "e", [2, 2]),
    "several, of which each has more": (
        f"{AB}; {TWO}; {D}; {THREE}; n: {LIST}(a, b, d, d); f = cat(n, 1)",
        "f",
        [2, 2, 2],
    ),
    "results that are needed": (f"{AB}; {TWO}; {D}; {THREE}", "a, c, e", [2, 2]),
    "a result that is written later": (f"{AB}; {TWO}; {D}; {THREE}; i = neg_(c)", "e, c", [2, 2]),
    "a part that is written later": (f"{AB}; {TWO}; {D}; {THREE}; i = neg_(a)", "e, c, a", [2, 2]),
    "a part that is written before": (f"{AB}; i = neg_(a); {TWO}; {D}; {THREE}", "e, c, a", [2, 2]),
    "a result that is written between": (f"{AB}; {TWO}; i = neg_(c); {D}; {THREE}", "e, c", [2, 3]),
    "a part that is written between": (f"{AB}; {TWO}; i = neg_(a); {D}; {THREE}", "e, c, a", [2, 3]),
    "a view of a part that is written between": (
        f"{AB}; {TWO}; i = neg_(select(b, 1, 0)); {D}; {THREE}",
        "e, c, b",
        [2, 3],
    ),
    "a part that is written between, in a branch": (
        f"{AB}; {TWO}; g: bool = gt(size(x, 1), 1)\nr = prim.If(g)\nwith block(): i = neg_(a); yield i\n"
        f"with block(): yield x\n{D}; {THREE}",
        "e, c, a",
        [2, 3],
    ),
    "a part that is transposed in place between": (
        f"a = relu(s); b = exp(s); {TWO}; i = transpose_(a, 1, 2); d = neg(c); {THREE}",
        "e, c",
        [2, 3],
    ),
    "other parts": (f"{AB}; {TWO}; {D}; l: {LIST}(a, d, b); e = cat(l, 1)", "e, c", [2, 3]),
    "another axis": (f"{AB}; {TWO}; l: {LIST}(a, b, x); e = cat(l, 2)", "e, c", [2, 3]),
    "in a branch": (
        f"{AB}; {TWO}; {D}; g: bool = gt(size(x, 1), 1)\nr = prim.If(g)\nwith block(): {THREE}; yield e\n"
        "with block(): yield c",
        "r",
        [2, 3],
    ),
    "strides are seen": (f"{AB}; {TWO}; {D}; {THREE}; t: 'int[]' = stride(e)", "e, t", [2, 3]),
    "vectors": (
        f"a = relu(w); b = exp(w); m: {LIST}(a, b); c = cat(m, 0); d = neg(c); l: {LIST}(a, b, d); e = cat(l, 0)",
        "e",
        [2, 2],
    ),
    "empty vectors": (
        f"a = relu(z); b = exp(y); m: {LIST}(a); c = cat(m, 0); l: {LIST}(a, b); e = cat(l, 1)",
        "e, c",
        [1, 2],
    ),
    "two element types": (
        f"a = relu(x); b = to(y, 3, False, False); d = to(y, 7, False, False); {TWO}; {THREE}",
        "e, c",
        [2, 2],
    ),
    "a list that grows": (f"{GROWS}; e = cat(l, 1)", "e", [1, 2, 2]),
    "a list that grows, in a loop": (
        f"r = prim.Loop(3, True, y)\nwith block(i=int, p=Tensor): {GROWS}; e = cat(l, 1); "
        "f = mul(p, slice(e, 1, 4, 8)); yield True, f",
        "r",
        [1, 2, 2],
    ),
    "a list that grows by what is written between": (
        f"l: {LIST}(relu(x)); c = cat(l, 1); d = neg(c); k: 'Tensor[]' = append(l, d); e = cat(l, 1); i = exp_(d); "
        "m: 'Tensor[]' = append(l, neg(e)); f = cat(l, 1)",
        "e, f",
        [1, 2, 3],
    ),
    "a list that grows, and is an output": (f"{GROWS}; e = cat(l, 1)", "e, l", [1, 1, 1]),
    "a list that grows, and is counted": (f"{GROWS}; e = cat(l, 1); n: int = len(l)", "e, n", [1, 1, 1]),
    "a list that grows, whose other name is used": (f"{GROWS}; e = cat(m, 1)", "e", [1, 1, 0]),
    "a list that grows in a branch": (
        f"{AB}; l: {LIST}(a); c = cat(l, 1); g: bool = gt(size(x, 1), 1)\nprim.If(g)\n"
        "with block(): k: 'Tensor[]' = append(l, b); yield\nwith block(): yield\ne = cat(l, 1)",
        "e, c",
        [1, 1],
    ),
}


def sizes(graph: Graph) -> list[int]:
    """How many tensors each concatenation joins, as far as is known; of lists, those that they are made with."""
    found = [node for node in graph.walk() if node.kind in JOINS]
    lists = [node if node.kind == CONCAT else node.inputs[0].made_by("prim::ListConstruct") for node in found]
    return [0 if made is None else len(made.inputs) for made in lists]


def graph_of(statements: str, outputs: str) -> Graph:
    return ir_graph("x, y: Float(1, 4, 8); s: Float(1, 4, 4); w: Float(4); z: Float(0)", statements, outputs)


@pytest.mark.parametrize("case", CASES)
def test_which_are_nested(case: str) -> None:
    statements, outputs, count = CASES[case]
    before, after = graph_of(statements, outputs), graph_of(statements, outputs)
    run_passes(after, "nest-concats")
    shapes = (1, 4, 8), (1, 4, 8), (1, 4, 4), (4,), (0,)
    feeds = [np.random.default_rng(1).standard_normal(shape).astype(np.float32) for shape in shapes]
    for wanted, found in zip(interpret(before, copied(feeds)), lower(after).run(copied(feeds)), strict=True):
        np.testing.assert_equal(found, wanted)
    assert sizes(after) == count
