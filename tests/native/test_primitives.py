"""Each primitive computes what NumPy does, bit by bit, for all element types and on each processor."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.native.helpers import CPUS, compute

from irc.native.lanes import computed, is_small  # isort: skip
from irc.native.lanes import Lanes
from irc.native.primitives import PRIMITIVES, cast
from irc.ops import algebra
from irc.runtime.kernels.cast import conversion
from irc.runtime.kernels.numerics import narrowed, widened
from irc.runtime.kernels.primitives import IMPLEMENTATIONS
from tests.ops.test_semantics import special

Array = np.ndarray[Any, Any]

BOOL = np.dtype(bool)
SMALL = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
DTYPES = [np.dtype(t) for t in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")] + SMALL
EITHER_ZERO = {"maximum", "minimum", "fmax", "fmin"}
"""Primitives that give a zero of either sign."""

COMBINATIONS = 507
"""Of a primitive and an element type, as NumPy has them."""


def bits(count: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Elements of any bits; bools among them are 0 or 1."""
    if dtype == BOOL:
        return rng.integers(0, 2, count).astype(bool)
    return rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)


@cache
def operands(arity: int, dtype: np.dtype[Any]) -> list[Array]:
    """All numbers of a small type, or all pairs of a smaller one; of others, edges with edges, and any bits.

    Nobody may change them.
    """
    rng = np.random.default_rng(1)
    if arity == 1 and dtype.itemsize == 2:
        return [np.arange(1 << 16, dtype=np.uint16).view(dtype)]
    with np.errstate(all="ignore"):
        edges = special(dtype)
    if dtype.itemsize > 1 and arity > 1:
        edges = edges if len(edges) < 100 else edges[:: len(edges) // 100 + 1]
        if dtype.kind not in "iu":
            edges = np.concatenate(
                [edges, np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan], np.float64).astype(dtype)]
            )
    pairs = [x.reshape(-1) for x in np.meshgrid(edges, edges)]
    if arity == 1:
        pairs = [np.concatenate([edges, bits(5000, dtype, rng)])]
    elif dtype.itemsize > 1:
        near = bits(3000, dtype, rng)
        pairs = [
            np.concatenate([pairs[0], bits(3000, dtype, rng), near]),
            np.concatenate([pairs[1], bits(3000, dtype, rng), near]),
        ]
    if arity == 3:
        return [rng.integers(0, 2, len(pairs[0])).astype(bool), *pairs]
    return pairs


def expected(name: str, taken: Sequence[Array], dtype: np.dtype[Any]) -> Array | None:
    """What NumPy computes; None if it has no such thing for operands of that type."""
    primitive = algebra.PRIMITIVES[name]
    final = BOOL if primitive.gives_bool else computed(dtype)
    wide = [widened(x) for x in taken]
    if name == "reciprocal" and dtype.kind != "f" and not is_small(dtype):
        return None  # of 0, NumPy gives what the processor does
    with np.errstate(all="ignore"):
        if name.startswith("logical_"):
            wide = [x.astype(bool) for x in wide]
        try:
            found = np.asarray(IMPLEMENTATIONS[primitive](*wide))
        except TypeError:
            return None
        if found.dtype != final:
            return None
        return narrowed(found, dtype) if is_small(dtype) and final != BOOL else found


def check(name: str, found: Array, wanted: Array, taken: Sequence[Array]) -> None:
    assert found.dtype == wanted.dtype
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    same = found.view(unsigned) == wanted.view(unsigned)
    if found.dtype.kind not in "biu":
        with np.errstate(invalid="ignore"):
            are_nan = np.isnan(found) & np.isnan(wanted)
        same |= are_nan & (np.signbit(found) == np.signbit(wanted)) if name == "copysign" else are_nan
        if name in EITHER_ZERO:
            same |= (found == 0) & (wanted == 0)
    wrong = np.flatnonzero(~same)
    examples = [([x[i] for x in taken], found[i], wanted[i]) for i in wrong[:10]]
    assert not examples, f"{name} of {taken[-1].dtype}: {len(wrong)} of {len(found)} differ: {examples}"


def cases() -> list[tuple[str, np.dtype[Any]]]:
    found = []
    for name in PRIMITIVES:
        for dtype in DTYPES:
            few = [x[:2] for x in operands(algebra.PRIMITIVES[name].arity, dtype)]
            if expected(name, few, dtype) is not None:
                found.append((name, dtype))
    return found


CASES = cases()


def test_numpy_has_all_of_them() -> None:
    own = {name for name in PRIMITIVES if not name.startswith("test.")}  # those of other tests stay
    assert {name for name, _ in CASES} == own
    assert len(CASES) == COMBINATIONS


@pytest.mark.covering(1)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitive(name: str, cpu: str) -> None:
    for dtype in [dtype for other, dtype in CASES if other == name]:
        taken = operands(algebra.PRIMITIVES[name].arity, dtype)
        wanted = expected(name, taken, dtype)
        assert wanted is not None
        (found,) = compute(lambda *x: [PRIMITIVES[name](*x)], taken, [wanted.dtype], cpu)
        check(name, found, wanted, taken)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_casts(dtype: np.dtype[Any], cpu: str) -> None:
    (x,) = operands(1, dtype)

    def body(x: Lanes) -> list[Lanes]:
        return [cast(x, computed(final)) for final in DTYPES]

    found = compute(body, [x], DTYPES, cpu)
    for final, each in zip(DTYPES, found, strict=True):
        with np.errstate(all="ignore"):
            wanted = conversion(final)(x)
        check("cast", each, wanted, [x])


@pytest.mark.parametrize("cpu", CPUS)
def test_any_byte_but_0_is_true(cpu: str) -> None:
    x = np.arange(256, dtype=np.uint8).view(bool)
    found = compute(lambda x: [x, ~x, cast(x, np.dtype(np.int32))], [x], [BOOL, BOOL, np.dtype(np.int32)], cpu)
    for each, wanted in zip(found, (1, 0, 1), strict=True):
        np.testing.assert_array_equal(each.view(np.uint8 if each.dtype == BOOL else np.int32)[1:], wanted)
