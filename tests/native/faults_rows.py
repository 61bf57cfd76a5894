"""Operators and groups that reduce rows, over arrays next to pages that may not be touched."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.ir import parse_graph
from irc.native.groups import Group
from irc.runtime.backends import ArrayType
from tests.effort import examples
from tests.native.guarded import ENDS, End, guarded, guarded_empty
from tests.native.rows import CASES, CHANNELS, Case, compiled, reduction
from tests.native.test_row_groups import GROUPS, feeds

Array = np.ndarray[Any, Any]
ONE_RESULT = {name: case for name, case in {**CASES, **CHANNELS}.items() if case.outputs == 1}


def apart(x: Array, steps: list[int]) -> Array:
    """A copy of ``x`` in which elements lie so many elements apart along each axis, backwards if that is below 0."""
    base = np.zeros([size * abs(step) for size, step in zip(x.shape, steps)], x.dtype)
    found = base[tuple(slice(None, None, step) for step in steps)]
    found[...] = x
    return found


def check(case: Case, shape: tuple[int, ...], dtype: Any, end: End, steps: list[int]) -> None:
    rng = np.random.default_rng(0)
    operands = [rng.uniform(0.5, 2, s).astype(dtype) for s in (shape, *case.parameters(shape))]
    kernel = compiled(case.proto(shape, dtype), operands)
    plain = kernel(*operands)
    taken = [apart(x, steps[: x.ndim]) for x in operands]
    out = guarded_empty(plain.shape, plain.dtype, end)
    found = kernel(*[guarded(x, end, is_read_only=True) for x in taken], out=out)
    assert found is out
    wide = [x.astype(np.float64) for x in (found, plain)]
    tolerance = 2e-2 if np.dtype(dtype).itemsize == 2 else 1e-5
    np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)


sizes = st.sampled_from([1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 65, 130])
dtypes = st.sampled_from([np.float32, np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
steps = st.lists(st.sampled_from([1, 1, 1, 2, -1, -2]), min_size=4, max_size=4)


@examples(100)
@given(st.sampled_from(sorted(CASES)), sizes, sizes, dtypes, steps, st.sampled_from(ENDS))
def test_rows(name: str, rows: int, length: int, dtype: Any, moves: list[int], end: End) -> None:
    if name in ONE_RESULT:
        check(ONE_RESULT[name], (rows, length), dtype, end, moves)


@examples(60)
@given(
    st.sampled_from(["L1", "Max", "L2"]),
    st.tuples(sizes, st.sampled_from([1, 2, 3]), sizes),
    st.sampled_from([[0], [1], [2], [0, 1], [1, 2], [0, 2], []]),
    dtypes,
    steps,
    st.sampled_from(ENDS),
)
def test_reductions(name: str, shape: tuple[int, ...], axes: list[int], dtype: Any, moves: list[int], end: End) -> None:
    check(reduction(name, axes), shape, dtype, end, moves)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", CHANNELS)
def test_images(name: str, end: End) -> None:
    for shape in ((2, 4, 7, 5), (1, 2, 33), (2, 8, 1, 1)):
        for moves in ([1, 1, 1, 1], [1, 2, -1, 2]):
            check(CHANNELS[name], shape, np.float32, end, moves)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str, end: End) -> None:
    graph = parse_graph(GROUPS[name])
    given = list(feeds(graph).values())
    kernel = Group(list(graph.nodes), list(graph.inputs), list(graph.outputs)).kernel(
        [ArrayType(x.dtype, x.shape) for x in given]
    )
    plain = kernel(*given)
    found = kernel(*[guarded(x, end, is_read_only=True) for x in given])
    for x, y in zip(plain, found) if isinstance(plain, tuple) else [(plain, found)]:
        np.testing.assert_array_equal(x, y)
