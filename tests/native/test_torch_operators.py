"""TorchScript's pointwise operators compute natively what their kernels do, in the same types and layouts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irc
from irc import ops
from irc.ir import Builder, Graph, Node
from irc.ir.types import TENSOR
from irc.native.backend import Native
from irc.native.groups import Group
from irc.ops.algebra import SINGLE, Apply, walk
from irc.runtime.backends import ArrayType, Unsupported
from irc.runtime.kernels.aten import pointwise
from irc.runtime.kernels.registry import find_binder
from tests.effort import slow_if
from tests.native.test_groups import elements

Array = np.ndarray[Any, Any]

NAMES = sorted(pointwise.ELEMENTWISE)
F, D, H, B, L, U, T = (np.dtype(t) for t in ("f4", "f8", "f2", ml_dtypes.bfloat16, "i8", "u1", "?"))
DTYPES = [F, D, H, B, L, U, T]
MIXED = [(F, D), (D, H), (H, F), (H, B), (L, F), (H, L), (U, L), (T, L), (F, T)]
NUMBERS = (2, -3, 0.1, 2.5, True, float("nan"))


def operand_lists(count: int) -> list[list[Any]]:
    """Arrays as (element type, shape), and numbers: what operators of so many operands may be given."""
    if count == 1:
        return [[(dtype, shape)] for shape in ((3, 7), ()) for dtype in DTYPES]
    found: list[list[Any]] = [[(dtype, (3, 7)), (dtype, (7,))] for dtype in DTYPES]
    found += [[(a, (3, 7)), (b, (3, 1))] for a, b in MIXED]
    found += [[(a, (3, 7)), (b, ())] for a, b in MIXED[1::2]]
    found += [[(b, ()), (a, (3, 7))] for a, b in MIXED[::2]]
    found += [[(dtype, (3, 7)), number] for dtype in (F, H, L) for number in NUMBERS[::2]]
    found += [[(T, (3, 7)), number] for number in NUMBERS]
    found += [[number, (dtype, (3, 7))] for dtype in (F, U) for number in NUMBERS[1::3]]
    if count == 2:
        return found
    return [[*each, third] for each in found[::3] for third in (each[1], 1, 0.5)]


def node_of(name: str, given: Sequence[Any]) -> tuple[Node, Graph]:
    graph = Graph()
    builder = Builder(graph)
    values = [graph.add_input(TENSOR) if isinstance(x, tuple) else builder.constant(x) for x in given]
    return builder.node(f"aten::{name}", values, [TENSOR]), graph


def arrays(given: Sequence[Any], transposed: bool = False) -> list[Any]:
    made: list[Any] = []
    for i, x in enumerate(given):
        if not isinstance(x, tuple):
            made.append(x)
            continue
        dtype, shape = x
        if transposed and len(shape) == 2:
            made.append(elements(shape[::-1], dtype, i).T)
        else:
            made.append(elements(shape, dtype, i))
    return made


def is_exact(name: str) -> bool:
    record = ops.semantics(f"aten::{name}")
    if record is None:
        return False
    found = record.expression([SINGLE] * record.arity)
    return all(x.primitive.ulp <= 0.5 for x in walk(found) if isinstance(x, Apply))


def check(name: str, found: Array, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if min(wanted.shape, default=1) > 1:
        assert found.strides == wanted.strides
    if found.dtype.kind in "biu" or is_exact(name):
        is_same = found == wanted
        if found.dtype.kind not in "biu":
            is_same |= np.isnan(found) & np.isnan(wanted)
        assert is_same.all(), (found[~is_same], wanted[~is_same])
        return
    wide = [x.astype(np.float64) for x in (found, wanted)]
    unit = {F: 2.0**-24, D: 2.0**-53, H: 2.0**-11, B: 2.0**-8}[found.dtype]
    record = ops.semantics(f"aten::{name}")
    scale = 1e-30 if record is None else min(max(record.scale, 1e-30), 10.0)
    least = 1e-7 if found.dtype == H else 0.0
    np.testing.assert_allclose(*wide, rtol=40 * unit, atol=40 * unit * scale + least)


def outcomes(name: str, count: int, step: int) -> Counter[str]:
    """Compare all that there is code for; how many there are, and how many not.

    Of lists that mix types or shapes only every ``step``-th, of those of one type every second, if not all: which of
    them, differs from operator to operator.
    """
    seen: Counter[str] = Counter()
    lists, number = operand_lists(count), NAMES.index(name)
    of_one_type, mixed = lists[: len(DTYPES)], lists[len(DTYPES) :]
    for given in of_one_type[number % min(step, 2) :: min(step, 2)] + mixed[number % step :: step]:
        node, graph = node_of(name, given)
        binder = find_binder(node.kind, None)
        assert binder is not None
        compiler = Group([*graph.nodes], list(graph.inputs), [node.output])
        types = [ArrayType(*x) for x in given if isinstance(x, tuple)]
        try:
            kernel = compiler.kernel(types)
        except Unsupported:
            seen["declined"] += 1
            continue
        for transposed in (False, True):
            taken = arrays(given, transposed)
            with np.errstate(all="ignore"):
                wanted = np.asarray(binder(node)(*taken))  # which has not refused, as there is code
            found = kernel(*[x for x in taken if isinstance(x, np.ndarray)])
            check(name, found, wanted)
        seen["compiled"] += 1
    return seen


WITHOUT = set(
    "acosh asinh atan2 atanh complex cosh digamma erfinv gcd glu hypot i0 isreal lcm ldexp lgamma log1p logaddexp "
    "logaddexp2 nextafter polar prelu sinh special_i0e special_i1 special_i1e tan threshold".split()
)
"""Names of operators without code: special functions, and those that compute by functions of their own."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("step", slow_if([12, 1], [1]))
def test_operators(name: str, step: int) -> None:
    record = ops.semantics(f"aten::{name}")
    seen = sum(
        (outcomes(name, count, step) for count in (1, 2, 3) if record is None or count <= record.arity), Counter()
    )
    assert (name in WITHOUT) == (not seen["compiled"])


def test_what_may_not_be_written_is_not() -> None:
    graph = Graph()
    x = graph.add_input(TENSOR)
    node = Builder(graph).node("aten::sigmoid_", [x], [TENSOR])
    binder = find_binder(node.kind, None)
    assert binder is not None
    kernel = Native().bind(node, binder(node))
    fixed = np.ones(4, np.float32)
    fixed.flags.writeable = False
    for given in (
        fixed,
        np.broadcast_to(np.ones(1, np.float32), 4),
        np.lib.stride_tricks.as_strided(np.ones(1), (4,), (0,)),
    ):
        with pytest.raises(irc.Error, match=r"^IRC431: "):
            kernel(given)
    own = np.ones(4, np.float32)
    assert kernel(own) is own
    np.testing.assert_allclose(own, 1 / (1 + np.exp(-1)), rtol=1e-6)
