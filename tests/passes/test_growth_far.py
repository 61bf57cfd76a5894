"""What is far apart: the work that it takes is counted, as in `test_growth`."""

import copy
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from benchmarks import families
from irc.ir import Builder, DType, Graph, Tensor, Value, parse_module, types
from irc.ir.types import INT, TENSOR, DictType, ListType, OptionalType, TensorType, TupleType, UnionType, rebuilt
from irc.ir.verify.operator_rules import type_fault
from irc.passes import PassManager
from tests.alias.test_scale import lines
from tests.passes.test_growth import join


def equal_views(n: int) -> str:
    """A chain of n views, each made twice and written."""
    return join(
        ["graph(%x : Float(2)):", "  %v0 : Float(2) = aten::neg(%x)"],
        [f"  %{s}{i + 1} : Float(2) = aten::t(%v{i})" for i in range(n) for s in "vu"],
        [f"  %w{i} : Float(2) = aten::relu_(%u{i + 1})" for i in range(n)],
        [f"  return (%v{n})"],
    )


@pytest.mark.parametrize("family", [equal_views, partial(families.text, "nests")])
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


def test_types_are_unique_and_looked_up_without_looking_at_what_they_are_made_of() -> None:
    looked_at = 0

    class Counted(ListType):
        def __hash__(self) -> int:
            nonlocal looked_at
            looked_at += 1
            return 1

    wide = TupleType((Counted(TENSOR),) * 3)
    again = TupleType((Counted(TENSOR),) * 3)
    before = looked_at
    assert again is wide and len({wide, again, TupleType((wide, wide))}) == 2
    assert looked_at == before
    known = TupleType((TENSOR, DictType(INT, OptionalType(TensorType(DType.FLOAT, ("n", 2, None))))))
    for other in (
        copy.copy(known),
        copy.deepcopy(known),
        pickle.loads(pickle.dumps(known)),
        rebuilt(known, lambda t: t),
    ):
        assert other is known
    assert UnionType((TENSOR, INT)) != TupleType((TENSOR, INT)) != UnionType((INT, TENSOR))


@pytest.mark.parametrize("size", [True, 1.0, np.int64(1)])
def test_what_equals_a_size_and_is_none_makes_no_other_type(size: Any) -> None:
    """Types are looked up by their parts, and True equals 1: a wrong type is not to become a right one."""
    for wrap in (lambda type: type, ListType):
        right = wrap(TensorType(DType.FLOAT, (1, 7)))
        wrong = wrap(TensorType(DType.FLOAT, (size, 7)))
        assert type_fault(wrong) is not None and type_fault(right) is None
        assert wrong != right and wrap(TensorType(DType.FLOAT, (1, 7))) is right


def test_types_made_by_many_threads_at_once_are_unique() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for i in range(50):
                made = list(pool.map(lambda _, i=i: ListType(TensorType(DType.FLOAT, (f"unique{i}",))), range(16)))
                assert len(set(map(id, made))) == 1
    finally:
        sys.setswitchinterval(interval)
