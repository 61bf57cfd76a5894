"""Results do not depend on how operands lie in memory, whatever quick way a kernel takes for large ones."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irc.errors import Error
from irc.ir.types import DType
from irc.ops import Effects, effects_of
from tests.effort import Tune
from tests.kernels.conftest import Cases

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def all_is_large(tune: Tune) -> None:
    """Operands of a few elements are taken as large ones are: by bits, by blocks, with filled blocks."""
    tune("irc.runtime.kernels.support._BY_BITS", 1)
    tune("irc.runtime.kernels.numerics._BY_BITS", 1)
    tune("irc.runtime.kernels.numerics.BLOCK", 61)
    tune("irc.runtime.kernels.primitives.MANY", 2)
    tune("irc.runtime.kernels.expressions.BLOCK_BYTES", 267)
    tune("irc.runtime.kernels.numerics.WORTH_FILLING", 1)


def repeated(x: Array) -> Iterator[Array]:
    """``x`` with what is at the first place of some axes at all places of them: without a stride there."""
    for axis in range(x.ndim):
        yield np.broadcast_to(x.take([0], axis), x.shape)
    if x.ndim > 2:
        yield np.broadcast_to(x[:1, ..., :1], x.shape)
        yield np.broadcast_to(x[:, :1, ..., :1].swapaxes(0, -1).copy().swapaxes(0, -1), x.shape)


def permuted(x: Array) -> Iterator[Array]:
    """``x`` with its axes in another order in memory, and with gaps between its elements."""
    for axis in range(1, x.ndim):
        yield x.swapaxes(0, axis).copy().swapaxes(0, axis)
    yield np.repeat(x, 2, axis=-1)[..., ::2]
    yield np.flip(np.flip(x, -1).copy(), -1)


@pytest.mark.parametrize("most", [1, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_operands_of_the_node_suite_however_they_lie(
    dtype: type[np.floating[Any]], most: int, single_nodes: Cases
) -> None:
    """So many cases of each operator: the suite has dozens of some."""
    seen: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    with np.errstate(all="ignore"):
        for node, kernel, given in chain(*single_nodes.values()):
            seen[node.kind] += 1
            if effects_of(node) & Effects.RANDOM or seen[node.kind] > most:
                continue
            inputs = [x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype == np.float32 else x for x in given]
            places = [
                i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype == dtype and x.ndim and x.size
            ]
            for i in places[:2]:
                for x in (*repeated(inputs[i]), *permuted(inputs[i])):
                    wanted = _result(kernel, [*inputs[:i], np.ascontiguousarray(x), *inputs[i + 1 :]])
                    found = _result(kernel, [*inputs[:i], x, *inputs[i + 1 :]])
                    if isinstance(wanted, str) or isinstance(found, str):
                        assert wanted == found, (node, i, x.strides)
                        continue
                    compared[node.kind] += 1
                    assert len(wanted) == len(found)
                    for a, b in zip(wanted, found):
                        _assert_close(a, b, f"{node}: operand {i} of strides {x.strides}")
    assert len(compared) > 100, compared


def _result(kernel: Any, inputs: list[Any]) -> list[Any] | str:
    try:
        found = kernel(*inputs)
    except Error as error:
        return error.code
    except (ValueError, IndexError, TypeError) as error:
        return type(error).__name__
    return list(found) if isinstance(found, tuple | list) else [found]


def _assert_close(a: Any, b: Any, what: str) -> None:
    """Layouts change the order of sums, and nothing else."""
    if not isinstance(a, np.ndarray) or a.dtype.hasobject or DType.from_numpy(a.dtype).is_integer or a.dtype == bool:
        assert np.array_equal(a, b), what
        return
    assert (a.shape, a.dtype) == (b.shape, b.dtype), what
    tolerance = 4 * float(ml_dtypes.finfo(a.dtype).eps)
    within = np.complex128 if a.dtype.kind == "c" else np.float64
    wide = a.astype(within)
    scale = np.abs(wide[np.isfinite(wide)]).max(initial=0)
    np.testing.assert_allclose(b.astype(within), wide, tolerance, tolerance * scale, err_msg=what)
