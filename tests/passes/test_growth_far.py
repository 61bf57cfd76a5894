"""What is far apart: the work that it takes is counted, as in `test_growth`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from benchmarks import families
from irc.ir import Builder, DType, Graph, Tensor, Value, parse_module, types
from irc.ir.types import TENSOR, ListType, TupleType
from irc.passes import PassManager
from tests.alias.test_scale import lines
from tests.passes.test_growth import join


def twin_views(n: int) -> str:
    """A chain of n views, each made twice and written."""
    return join(
        ["graph(%x : Float(2)):", "  %v0 : Float(2) = aten::neg(%x)"],
        [f"  %{s}{i + 1} : Float(2) = aten::t(%v{i})" for i in range(n) for s in "vu"],
        [f"  %w{i} : Float(2) = aten::relu_(%u{i + 1})" for i in range(n)],
        [f"  return (%v{n})"],
    )


@pytest.mark.parametrize("family", [twin_views, partial(families.text, "nests")])
def test_what_is_near_in_a_long_chain_is_found_near(family: Callable[[int], str]) -> None:
    few, many = (parse_module(family(n)) for n in (240, 960))
    before = lines(lambda: PassManager("cse").run(few))
    assert lines(lambda: PassManager("cse").run(many)) <= 4.4 * before


def test_what_all_layers_read_is_not_followed_through_all_of_them_for_each() -> None:
    few, many = (parse_module(families.text("layers", n)) for n in (400, 1600))
    before = lines(lambda: PassManager("fuse").run(few))
    assert lines(lambda: PassManager("fuse").run(many)) <= 4.6 * before


def test_uses_of_a_constant_that_many_read_are_not_counted_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    use_count = Value.use_count.fget
    assert use_count is not None

    def counting(value: Value) -> int:
        nonlocal counted
        counted += value.user_count
        return use_count(value)

    monkeypatch.setattr(Value, "use_count", property(counting))
    counts: list[int] = []
    for n in (50, 200):
        counted = 0
        graph = Graph()
        b = Builder(graph)
        x = graph.add_input(types.tensor(DType.FLOAT, (2,)), "x")
        constant = b.constant(Tensor.of(np.array([3, 1], np.float32)))
        for i in range(n):
            x = b.op(f"onnx::{('Add', 'Mul', 'Div', 'Relu')[i % 4]}", *((x, constant)[: 1 if i % 4 == 3 else 2]))
        graph.set_outputs([x])
        PassManager("canonicalize,constant-fold,conv-bn-fold").run(graph)
        counts.append(counted)
    assert counts[1] <= 4 * counts[0] + 8, counts


def test_the_types_of_wide_tuples_are_hashed_once() -> None:
    hashed = 0

    class Counted(ListType):
        def __hash__(self) -> int:
            nonlocal hashed
            hashed += 1
            return 1

    wide = TupleType((Counted(TENSOR),))
    assert len({wide: 1, TupleType((wide, wide)): 2}) == 2
    assert hashed == 1
    known = TupleType((TENSOR,))
    assert hash(known) == hash(copy.copy(known)) and vars(pickle.loads(pickle.dumps(known))).keys() == {"elems"}
