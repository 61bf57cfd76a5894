"""What is far apart: the work that it takes is counted, as in `test_growth`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial

import pytest

from benchmarks import families
from irc.ir import parse_module
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
