"""Ensembles of trees by native loops, against the interpreter's, to the bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples

pytest.importorskip("llvmlite")

from irc.errors import Error
from irc.native.inner_loops import LOOPS
from irc.runtime.bounds import CURRENT, NONE
from irc.runtime.kernels.ml_trees import LEAF, Forest, TreeTables, Votes
from irc.runtime.threads import share
from tests.native.guarded import fresh, placed

Array = np.ndarray[Any, Any]


def forest(seed: int, trees: int, depth: int, columns: int, targets: int, modes: list[int], dtype: str) -> Forest:
    """Random trees: a leaf has any number of votes, also none."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, float, int, int, bool]] = []  # mode, feature, split, yes, no, whether NaN is yes

    def grow(left: int) -> int:
        number = len(rows)
        rows.append((LEAF, 0, 0.0, 0, 0, False))
        if left and rng.random() < 0.8:
            yes, no = grow(left - 1), grow(left - 1)
            split = float(np.float32(rng.integers(-3, 4) / 2))
            rows[number] = int(rng.choice(modes)), int(rng.integers(columns)), split, yes, no, bool(rng.integers(2))
        return number

    roots = [grow(depth) for _ in range(trees)]
    mode, feature, split, yes, no, nan = (np.array(each) for each in zip(*rows))
    leaves = np.flatnonzero(mode == LEAF)
    voting = rng.choice(leaves, 2 * len(leaves))
    weights = rng.standard_normal(len(voting)).astype(dtype)
    votes = Votes.of(voting, rng.integers(0, targets, len(voting)), weights, len(mode))
    return Forest(mode, feature, split.astype("f4"), yes, no, nan.astype(bool), np.array(roots), votes)


def inputs(seed: int, rows: int, columns: int, dtype: str) -> Array:
    rng = np.random.default_rng(seed)
    x = (rng.integers(-4, 5, (rows, columns)) / 2).astype(dtype)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


def totals(made: Forest, x: Array, targets: int, aggregate: str, loops: Any = LOOPS) -> Array:
    scope = CURRENT.scope
    before, scope.loops = scope.loops, loops
    try:
        return made.totals(x, targets, aggregate)
    finally:
        scope.loops = before


@examples(100)
@given(
    st.integers(0, 99),
    st.integers(1, 6),
    st.integers(0, 6),
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
    st.sampled_from(["f4", "f8"]),
    st.sampled_from(["f4", "f8", "i8"]),
    st.integers(0, 9),
    st.sampled_from(["SUM", "AVERAGE", "MIN"]),
)
def test_random_forests(seed, trees, depth, columns, targets, modes, votes, dtype, rows, aggregate):
    made = forest(seed, trees, depth, columns, targets, modes, votes)
    x = inputs(seed, rows, columns + 1, "f8" if dtype == "f8" else "f4")
    x = np.nan_to_num(x).astype(dtype) if dtype == "i8" else x
    for given_ in (x, x[::-1], x[:, ::-1], np.asfortranarray(x)):
        found, expected = (totals(made, given_, targets, aggregate, loops) for loops in (LOOPS, NONE))
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("seed", range(5))
def test_there_is_code_for_floats(seed, dtype):
    made, x = forest(seed, 5, 4, 3, 2, [0, 3], dtype), placed(inputs(seed, 7, 3, dtype))
    assert made.tables is not None
    *arrays, modes, depth = made.tables
    tables = TreeTables(*map(placed, arrays), modes, depth)
    found = fresh((7, 2), dtype)
    found[...] = 0
    vote = LOOPS.voter(x, tables, found)
    assert vote is not None and vote(x, found)
    np.testing.assert_array_equal(found, totals(made, x, 2, "SUM", NONE))
    assert LOOPS.voter(x.astype(np.int64), made.tables, found) is None


def test_totals_like_earlier_ones():
    """A forest remembers what added the votes for its latest input: whatever comes next, results are the same."""
    made = forest(3, 5, 4, 3, 2, [0, 3], "f4")
    x = inputs(3, 6, 4, "f4")
    given_ = [x, -x, x[:4], x[::2], x[:, :3], x[:, ::-1], np.asfortranarray(x), x.astype("f8"), x[:0]]
    for each in [*given_, *given_[::-1], *[each for each in given_ for _ in range(2)]]:
        for targets, aggregate in ((2, "SUM"), (3, "SUM"), (2, "AVERAGE"), (2, "MAX")):
            for loops in (LOOPS, NONE, LOOPS):
                expected = totals(forest(3, 5, 4, 3, 2, [0, 3], "f4"), each, targets, aggregate, NONE)
                np.testing.assert_array_equal(totals(made, each, targets, aggregate, loops), expected, strict=True)
    for _ in range(2):
        with pytest.raises(Error, match="IRC421"):
            totals(made, x[0], 2, "SUM")
        totals(made, x, 2, "SUM")


def test_results_do_not_depend_on_threads():
    made, x = forest(2, 60, 8, 9, 3, [0], "f4"), inputs(2, 500, 9, "f4")
    one = totals(made, x, 3, "SUM")
    before = CURRENT.scope.share
    CURRENT.scope.share = lambda pieces, piece: share(pieces, piece, 2)
    try:
        two = totals(made, x, 3, "SUM")
    finally:
        CURRENT.scope.share = before
    assert one.tobytes() == two.tobytes()


def test_no_trees_have_no_votes():
    made = forest(1, 3, 2, 4, 2, [0], "f4")
    made.roots = made.roots[:0]
    x = inputs(1, 5, 4, "f4")
    assert made.tables is not None
    assert LOOPS.voter(x, made.tables, np.zeros((5, 2), "f4")) is None
    assert not totals(made, x, 2, "SUM").any()


def test_long_ways_down_pause(pacing):
    steps = 20_000
    nodes = 2 * steps + 1
    is_inner = np.arange(nodes) < steps
    mode = np.where(is_inner, 0, LEAF)
    yes, no = (np.where(is_inner, np.arange(nodes) + first, 0) for first in (1, steps + 1))
    none = np.zeros(nodes, int)
    votes = Votes.of(np.array([steps]), np.zeros(1, int), np.ones(1, "f4"), nodes)
    made = Forest(mode, none, np.full(nodes, 5, "f4"), yes, no, none.astype(bool), np.zeros(1, int), votes)
    assert (totals(made, np.zeros((400, 1), "f4"), 1, "SUM") == 1).all()
    assert pacing.times > 4
