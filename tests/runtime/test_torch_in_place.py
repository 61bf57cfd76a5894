"""Results of TorchScript's pointwise operators are written over dead operands, and nobody can tell."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from irc.ir import Graph, parse_graph
from irc.ops import record
from irc.ops.signatures import resolve
from irc.runtime.plan import lower
from tests.effort import Tune
from tests.graphs import typed_ir
from tests.kernels.test_shortcuts import DTYPES, as_taken, elements, kernel_of, operand_counts
from tests.operators import TORCH_POINTWISE
from tests.runtime.helpers import run_plan

NAMES = sorted(kind.removeprefix("aten::") for kind in TORCH_POINTWISE)
SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((4,), (3, 4)), ((3, 4), ()), ((), (3, 4)), ((3, 1), (1, 4)), ((), ())]
SOME = {"add", "sub", "mul", "div", "relu", "silu", "tanh", "sigmoid", "exp", "neg", "maximum", "lerp"}


@pytest.fixture(autouse=True)
def small_arrays(tune: Tune) -> None:
    """Even the smallest array is worth it."""
    tune("irc.runtime.execution.MIN_ELEMENTS", 0)


def of_copies(name: str, count: int) -> Graph:
    """The operator on copies of the inputs, which nothing else needs."""
    inputs = ", ".join(f"%x{i} : Tensor" for i in range(count))
    copied = "\n".join(f"  %c{i} : Tensor = aten::clone(%x{i})" for i in range(count))
    names = ", ".join(f"%c{i}" for i in range(count))
    return parse_graph(f"graph({inputs}):\n{copied}\n  %y : Tensor = aten::{name}({names})\n  return (%y)")


def seen(result: Any) -> Any:
    return result.dtype, result.shape, result.strides, result.tobytes()


def fits(x: np.ndarray, wanted: np.ndarray, operands: list[np.ndarray]) -> bool:
    """Whether the result ``wanted`` may be made over ``x``: it looks like it, and so do all operands."""
    return (
        x.dtype.kind == "f"
        and x.ndim > 0
        and (x.shape, x.strides, x.dtype) == (wanted.shape, wanted.strides, wanted.dtype)
        and all(y.dtype == x.dtype and y.flags.c_contiguous for y in operands)
    )


@pytest.mark.parametrize("name", NAMES)
def test_operators_write_over_what_fits_and_only_that(name: str) -> None:
    over = 0
    for count in operand_counts(name):
        graph = of_copies(name, count)
        if resolve(graph.nodes[-1]) is None:
            continue  # its further arguments are not tensors
        plan, kernel = lower(graph), kernel_of(name, count)
        for number, ((first, second), a, b) in enumerate(product(SHAPES, DTYPES, DTYPES)):
            shapes, dtypes = [first, second, second], [a, b, b]
            operands = as_taken(name, [elements(shapes[i], dtypes[i], number + i) for i in range(count)])
            try:
                with np.errstate(all="ignore"):
                    wanted = kernel(*[x.copy() for x in operands])
            except Exception:  # of some overloads these are no operands
                continue
            (found,), counters = run_plan(plan, *operands)
            assert seen(found) == seen(wanted), operands
            may = record(f"aten::{name}").result_type != "wider" and any(fits(x, wanted, operands) for x in operands)
            assert counters.in_place == may, operands
            over += may
    assert over or name not in SOME


CHAIN = typed_ir(
    "x: Tensor; k: float", "a = aten.mul(x, k); b = aten.tanh(a); c = aten.add(b, b, 1); d = aten.mul(c, x)", "d"
)


@pytest.mark.parametrize(
    ("x", "in_place"),
    [
        (np.ones((2, 3), np.float32), 3),
        (np.ones((2, 3), np.float64), 3),
        (np.ones((2, 3), np.int64), 2),
        (np.asfortranarray(np.ones((2, 3), np.float32)), 0),
        (np.ones((), np.float32), 0),
    ],
    ids=["floats", "doubles", "integers", "another layout", "no axes"],
)
def test_what_a_chain_makes_is_written_over(x: np.ndarray, in_place: int) -> None:
    """Not the caller's array; nor where types or layouts decide about the result."""
    given = x.copy(order="K")
    (d,), counters = run_plan(lower(parse_graph(CHAIN)), x, 0.5)
    assert counters.in_place == in_place
    np.testing.assert_array_equal(x, given)
    np.testing.assert_allclose(d, 2 * np.tanh(x * 0.5) * x, rtol=1e-6)
