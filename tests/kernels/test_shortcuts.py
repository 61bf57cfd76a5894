"""Most calls of torch's pointwise operators take a short way: it gives what the long one does, to the last bit."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from irc.ir import Builder, Graph
from irc.ir.types import TENSOR, ListType
from irc.ops.signatures import schemas
from irc.runtime.kernels.aten import pointwise
from irc.runtime.kernels.registry import Kernel, find_binder

NAMES = sorted(pointwise.ELEMENTWISE)
DTYPES = [np.dtype(t) for t in ("f", "d", "e", "i8", "?")]
SHAPES = [
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((3, 4), (1, 4)),
    ((4,), (3, 1)),
    ((3, 4), ()),
    ((), (3, 4)),
    ((0, 4), (4,)),
    ((3,), (2,)),
]
NUMBERS = (2, -3, 0.1, 1e300, 2**24, 2**24 + 1, -(2**62) - 1, True, float("nan"), float("-inf"), 1j)


def kernel_of(name: str, count: int) -> Kernel:
    """The kernel of one of torch's operators, given as many arguments, of which no types are known."""
    graph = Graph()
    inputs = [graph.add_input(TENSOR) for _ in range(count)]
    node = Builder(graph).node(f"aten::{name}", inputs, [TENSOR])
    binder = find_binder(node.kind, None)
    assert binder is not None
    return binder(node)


def kernels(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Kernel, Kernel]:
    """The kernel of an operator, and the one that always goes the long way."""
    with monkeypatch.context() as patch:
        patch.setattr(pointwise, "takes_floats", lambda name: False)
        long = kernel_of(name, count)
    return kernel_of(name, count), long


def outcome(kernel: Kernel, arguments: list[Any]) -> Any:
    """What ``kernel`` gives, bit for bit, and how it lies; or how it refuses."""
    try:
        with np.errstate(all="ignore"):
            result = kernel(*[x.copy(order="K") if isinstance(x, np.ndarray) else x for x in arguments])
    except Exception as error:  # of some overloads these are no arguments at all
        return type(error), str(error)
    return type(result), result.dtype, result.shape, result.strides, result.tobytes()


def elements(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(0, 3, shape)
    if dtype.kind == "f" and values.size > 2:
        values.flat[:3] = np.nan, np.inf, -0.0
    return values.astype(dtype)


MASKS = {"where": 0, "masked_fill": 1}
"""Which operand has truth values, whatever the others are."""


def as_taken(name: str, operands: list[Any]) -> list[Any]:
    """``operands``, that which is a mask as truth values."""
    mask = MASKS.get(name)
    return [np.asarray(x > 0) if i == mask and isinstance(x, np.ndarray) else x for i, x in enumerate(operands)]


def operand_counts(name: str) -> set[int]:
    """How many arguments, of up to three, the overloads take that give no lists."""
    rows = [row for row in schemas(f"aten::{name}") if not isinstance(row.returns[0].type, ListType)]
    return {len([a for a in row.arguments if a.name != "out"]) for row in rows} & {1, 2, 3}


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_the_short_way_gives_what_the_long_one_does(name: str, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = 0
    for count in operand_counts(name):
        short, long = kernels(name, count, monkeypatch)
        for number, (shapes, a, b) in [*enumerate(product(SHAPES, DTYPES, DTYPES))][::every]:
            x, y = elements(shapes[0], a, number), elements(shapes[1], b, number + 1)
            laid_out = [(x, y), (np.asfortranarray(x), y), (x, np.asfortranarray(y))]
            if x.ndim and y.ndim:
                laid_out.append((x[..., ::2], y[..., ::2]))
            for given in laid_out:
                for rest in (1, 2, 0.5, None):
                    arguments = [*given, rest][:count]
                    found = outcome(short, arguments)
                    assert found == outcome(long, arguments), arguments
                    computed += len(found) > 2
        for a, y in product(DTYPES, NUMBERS):
            arguments = [elements((3, 4), a, 7), y, 1][:count]
            assert outcome(short, arguments) == outcome(long, arguments), arguments
    # Some of the cases may all be refused; the further argument of gelu is a word.
    assert computed or every > 1 or not operand_counts(name) or name == "gelu"
