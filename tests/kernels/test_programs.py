"""Expressions as calls of ufuncs: where results lie meanwhile, and what they may be written over."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from irc.ops.algebra import SINGLE, Expression, Operand, maximum, select
from irc.ops.aten import pointwise
from irc.runtime.kernels.expressions import of_expression
from tests.effort import Tune

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def _mixed(x: Expression, y: Expression, z: Expression) -> Expression:
    return select(y < z, maximum(x, y) * z, x - y / (z + 1))


@pytest.mark.parametrize("block", [1 << 20, 64])
@pytest.mark.parametrize("shapes", list(product([(4, 30), (30,), (4, 1), ()], repeat=2)))
def test_results_are_written_over_any_operand(shapes: tuple[Any, Any], block: int, tune: Tune) -> None:
    """However large operands are, and however they lie."""
    tune("irc.runtime.kernels.expressions.BLOCK_BYTES", block)
    kernel = of_expression(_mixed, 3)
    rng = np.random.default_rng(0)
    for turned in range(3):
        given = [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 30), *shapes)]
        operands = [*given[turned:], *given[:turned]]
        wide = [x.astype(np.float64) for x in operands]
        x, y, z = wide
        expected = np.where(y < z, np.maximum(x, y) * z, x - y / (z + 1))
        found = kernel(*operands)
        np.testing.assert_allclose(found, expected, 1e-3, 1e-4)
        for i, x in enumerate(operands):
            if x.shape == found.shape:
                own = [v.copy() for v in operands]
                assert kernel(*own, out=own[i]) is own[i]
                assert own[i].tobytes() == found.tobytes()
                columns = np.empty((4, 60), np.float32)[:, ::2]
                columns[...] = operands[i]
                own = [columns if j == i else v for j, v in enumerate(operands)]
                assert kernel(*own, out=columns) is columns
                np.testing.assert_array_equal(columns, found)


def test_zeros_of_both_signs_are_different_parameters() -> None:
    x = np.array([-1, -1], np.float32)
    for low in (0.0, -0.0, 0.0):
        found = of_expression(partial(pointwise.hardtanh, min_val=low, max_val=1.0), 1)(x)
        assert np.signbit(found).tolist() == [bool(np.signbit(low))] * 2


def test_constants_are_of_the_operands_type() -> None:
    x = Operand(0, SINGLE)
    with pytest.raises(TypeError, match="not a constant of type float32"):
        x * 1j
    with pytest.raises(TypeError, match="of operands of one type"):
        x + Operand(1, np.dtype(np.float64))
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        maximum(x)
