"""Pointwise loops and groups over arrays of any layout: they touch nothing else."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.ir import parse_graph
from irc.runtime.backends import ArrayType
from tests.effort import examples
from tests.graphs import typed_ir
from tests.native.guarded import fresh, placed

pytest.importorskip("llvmlite")

from irc.native.groups import Group
from irc.native.lanes import Lanes, select, to_integer
from irc.native.loops import space_of
from irc.native.primitives import cast
from tests.native.helpers import Function, compiled, run_loop

Array = np.ndarray[Any, Any]

DTYPES = [np.dtype(t) for t in ("?", "i1", "u2", "f2", ml_dtypes.bfloat16, "i4", "f4", "u8", "f8")]
SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 200)


def numbers(shape: Sequence[int], dtype: np.dtype[Any], seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2 if dtype.kind == "b" else 10, shape).astype(dtype)


def view(shape: Sequence[int], steps: Sequence[int], dtype: np.dtype[Any], seed: int) -> Array:
    """An array of ``shape``, of which each axis goes so many elements on: 0 repeats one, what is below 0 goes back."""
    base = numbers([max(size * abs(step), 1) for size, step in zip(shape, steps)], dtype, seed)
    for axis, (size, step) in enumerate(zip(shape, steps)):
        index: list[Any] = [slice(None)] * len(shape)
        index[axis] = slice(None, None, step) if step else slice(0, min(size, 1))
        base = base[tuple(index)]
    return np.broadcast_to(base, tuple(shape))


def body(*operands: Lanes) -> tuple[Lanes, Lanes]:
    """A result of the first operand's type, and its double in int16, or the like."""
    found = operands[0]
    for x in operands[1:]:
        found = select(cast(x, np.dtype(bool)), found, select(cast(found, np.dtype(bool)), found, 1))
    return found, to_integer(cast(found, np.dtype(np.int32)), np.dtype(np.int16)) * 2


def reference(*operands: Array) -> tuple[Array, Array]:
    found = np.broadcast_arrays(*operands)[0]
    for x in operands[1:]:
        found = np.where(x.astype(bool), found, np.where(found.astype(bool), found, np.ones((), found.dtype)))
    return found, found.astype(np.int32).astype(np.int16) * np.int16(2)


BODY = Function(body)


def check(operands: Sequence[Array]) -> None:
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    kinds = [operands[0].dtype, np.dtype(np.int16)]
    taken = [placed(x) for x in operands]
    made = [fresh(shape, dtype) for dtype in kinds]
    arrays = [*taken, *made]
    if 0 not in shape:
        space = space_of(shape, [(x.shape, x.strides) for x in arrays])
        run_loop(compiled(BODY, space, arrays, 2), space, arrays)
    for found, wanted in zip(made, reference(*operands), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("step", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows(dtype: np.dtype[Any], step: int) -> None:
    for size in SIZES:
        check([numbers([size], dtype), view([size], [step], dtype, 1)])


shapes = st.lists(st.sampled_from([2, 3, 5, 33, 4, 17, 1, 0]), min_size=1, max_size=3)
steps = st.sampled_from([0, 1, 1, 1, 2, -1, -2])


@examples(200)
@given(
    shapes,
    st.lists(st.tuples(st.lists(steps, min_size=3, max_size=3), st.sampled_from(DTYPES)), min_size=1, max_size=3),
    st.data(),
)
def test_any_layouts(shape: list[int], others: list[tuple[list[int], Any]], data: st.DataObject) -> None:
    operands = [numbers(shape, data.draw(st.sampled_from(DTYPES)))]
    for seed, (moves, dtype) in enumerate(others):
        missing = data.draw(st.integers(0, len(shape)))
        sizes = [data.draw(st.sampled_from([size, 1])) for size in shape[missing:]]
        operands.append(view(sizes, moves[: len(sizes)], dtype, seed))
    check(operands)


GROUP = typed_ir("x, y: Float(*)", "b = Exp(Mul(x, y)); c = Sqrt(b)", "c")


@pytest.mark.parametrize("size", SIZES)
def test_groups_write_into_an_array_that_is_given(size: int) -> None:
    graph = parse_graph(GROUP)
    x, y = np.linspace(-2, 2, size, dtype=np.float32), np.linspace(3, -1, 2 * size + 1, dtype=np.float32)[::-2]
    y = y[:size]
    kernel = Group(list(graph.nodes), list(graph.inputs), list(graph.outputs)).kernel(
        [ArrayType(v.dtype, v.shape) for v in (x, y)]
    )
    out = fresh((size,), x.dtype)
    found = kernel(placed(x), placed(y), out=out)
    assert found is out
    np.testing.assert_allclose(out, np.sqrt(np.exp(x * y)), rtol=1e-5)
