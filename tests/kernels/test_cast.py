"""Casts between all element types."""

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irc.errors import Error
from irc.ir.types import DType
from irc.runtime.kernels.numerics import narrowed, widened
from tests.kernels.helpers import check_against_ort, run_kernel

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

CASTABLE = [d for d in DType if d not in (DType.COMPLEX64, DType.COMPLEX128)]
NATIVE = "FLOAT DOUBLE FLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL".split()


def cast(x: np.ndarray, to: DType, **attrs: object) -> np.ndarray:
    return run_kernel("Cast", [x], {"to": to.onnx, **attrs}, 28)[0]


@pytest.mark.parametrize("to", [d for d in NATIVE if "INT" in d] + ["INT4", "UINT4"])
@pytest.mark.parametrize("source", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"])
def test_equal_floats_become_equal_integers_even_out_of_range(source, to):
    """Wherever they lie: NumPy's loops do vectors of elements, and what is left over one by one."""
    odd = np.array([np.nan, np.inf, -np.inf, -1.5, 5e9, -3e9, 1e10, -1e19, 2.0**63, 1e30, 300]).astype(
        DType[source].numpy
    )
    whole = cast(np.repeat(odd[:, None], 33, axis=1), DType[to])
    apart = cast(np.repeat(odd[:, None], 66, axis=1)[:, ::2], DType[to])
    alone = np.stack([cast(odd[i : i + 1], DType[to]) for i in range(len(odd))])
    np.testing.assert_array_equal(whole.astype(object), np.broadcast_to(alone, whole.shape).astype(object))
    np.testing.assert_array_equal(apart.astype(object), whole.astype(object))


def test_every_pair_keeps_what_both_can_hold():
    """0 and 1 are numbers of every type (float8e8m0 has no 0); a shape and C order are kept."""
    for source, to in itertools.product(CASTABLE, repeat=2):
        ones = [1, 1, 1, 1] if DType.FLOAT8E8M0 in (source, to) else [0, 1, 1, 0]
        x = np.array(ones, np.int8).reshape(2, 2).T
        given = x.astype(str).astype(object) if source is DType.STRING else x.astype(source.numpy)
        found = cast(given, to)
        assert found.dtype == to.numpy, (source, to)
        if to is DType.STRING:
            found = np.array([[float(v) for v in row] for row in found])
        np.testing.assert_array_equal(found.astype(np.float32), x.astype(np.float32), err_msg=f"{source} to {to}")


# -- strings -----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_floats_to_strings(dtype):
    x = np.array([0.1, 1.5, 3, 1e4, 1e-7, 1234.567, -0.0, np.nan, np.inf, -np.inf, 0.3]).astype(dtype)
    check_against_ort("Cast", [x], {"to": DType.STRING.onnx}, 13)


def test_strings_to_numbers():
    x = np.array(["1", "2.5", "1e3", "INF", "+inf", "-INF", "NaN", "-0.25"], object)
    check_against_ort("Cast", [x], {"to": DType.FLOAT.onnx}, 13)
    check_against_ort("Cast", [np.array([["100.5", "-7"]], object)], {"to": DType.INT32.onnx}, 13)
    big = np.array([str(2**64 - 1), str(2**53 + 1)], object)
    assert cast(big, DType.UINT64).tolist() == [2**64 - 1, 2**53 + 1]
    assert cast(np.array(["0", "2"], object), DType.BOOL).tolist() == [False, True]


@pytest.mark.parametrize("text", ["Hello World!", "", "0x10"])
@pytest.mark.parametrize("to", [DType.FLOAT, DType.INT64])
def test_strings_that_are_no_numbers(text, to):
    with pytest.raises(Error, match=r"^IRC424: .*cannot be cast"):
        cast(np.array([text], object), to)


# -- small floats ---------------------------------------------------------------

EIGHT_BITS = [DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ]


@pytest.mark.parametrize("to", EIGHT_BITS, ids=lambda d: d.name)
@pytest.mark.parametrize("source", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_saturation(to, source):
    """The tables of the specification."""
    largest = float(ml_dtypes.finfo(to.numpy).max)
    x = np.array([np.inf, -np.inf, np.nan, 1e6, -1e6, 0.3]).astype(source)
    saturated = cast(x, to).astype(np.float32)
    np.testing.assert_array_equal(saturated[:5], [largest, -largest, np.nan, largest, -largest])
    other = cast(x, to, saturate=0).astype(np.float32)
    beyond = np.inf if to is DType.FLOAT8E5M2 else np.nan
    np.testing.assert_array_equal(other[:5], [beyond, -beyond, np.nan, beyond, -beyond])
    assert saturated[5] == other[5] == np.array(0.3).astype(source).astype(to.numpy)


def test_powers_of_two():
    x = np.array([0.0, 0.124, 0.25, 0.5, 1.1, 1.5, 3.0, 2.0**127 * 1.5, np.inf, np.nan, 2.0**-140], np.float32)
    smallest = 2.0**-127
    expected = {
        "up": [smallest, 0.125, 0.25, 0.5, 2, 2, 4, 2.0**127, 2.0**127, np.nan, 2.0**-126],
        "down": [smallest, 0.0625, 0.25, 0.5, 1, 1, 2, 2.0**127, 2.0**127, np.nan, smallest],
        "nearest": [smallest, 0.125, 0.25, 0.5, 1, 2, 4, 2.0**127, 2.0**127, np.nan, smallest],
    }
    for mode, values in expected.items():
        found = cast(x, DType.FLOAT8E8M0, round_mode=mode)
        np.testing.assert_array_equal(found.astype(np.float64), values, err_msg=mode)
    loose = cast(x, DType.FLOAT8E8M0, round_mode="nearest", saturate=0).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(loose), np.isin(np.arange(11), [0, 7, 8, 9]))
    with pytest.raises(Error, match="round_mode"):
        cast(x, DType.FLOAT8E8M0, round_mode="away")


# -- CastLike, BitCast -------------------------------------------------------------


def test_bit_cast():
    x = np.array([[1.0, -2.0]], np.float32)
    np.testing.assert_array_equal(run_kernel("BitCast", [x], {"to": DType.INT32.onnx}, 26)[0], x.view(np.int32))
    for to in (DType.INT64, DType.STRING):
        with pytest.raises(Error, match="size"):
            run_kernel("BitCast", [x], {"to": to.onnx}, 26)


@pytest.mark.parametrize("order", ["C", "F", "reversed"])
def test_every_float16_is_widened_to_itself(order: str) -> None:
    """By bits, where there is no infinity and no NaN among many."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for x in (every, every[np.isfinite(every)], every[every > 0], every[:4096], every[-4096:], every[:9]):
        x = np.asarray(x[: x.size // 2 * 2].reshape(2, -1), order="F") if order == "F" else x
        x = x[::-1] if order == "reversed" else x
        np.testing.assert_array_equal(widened(x).view(np.uint32), x.astype(np.float32).view(np.uint32))


def _laid_out() -> Iterator[np.ndarray[Any, Any]]:
    """Float16 of three axes in every order, with steps, repetitions and windows."""
    rng = np.random.default_rng(0)
    for axes in itertools.permutations(range(3)):
        for steps in itertools.product((1, -1, 2), repeat=3):
            x = rng.standard_normal((34, 36, 38), np.float32).astype(np.float16)
            yield x[tuple(slice(None, None, step) for step in steps)].transpose(axes)
        for repeated in itertools.product((False, True), repeat=3):
            shape = [1 if r else n for r, n in zip(repeated, (20, 18, 34))]
            x = rng.standard_normal(shape, np.float32).astype(np.float16)
            yield np.broadcast_to(x, (20, 18, 34)).transpose(axes)
    yield np.lib.stride_tricks.sliding_window_view(np.arange(300, dtype=np.float16), 64)


def test_halves_are_widened_and_narrowed_however_they_lie() -> None:
    for x in _laid_out():
        np.testing.assert_array_equal(widened(x), x.astype(np.float32))
        for y in (widened(x), np.broadcast_to(np.float32(x.flat[0]), x.shape), x.astype(np.float32).T):
            np.testing.assert_array_equal(narrowed(y, np.dtype(np.float16)), y.astype(np.float16))


def test_only_halves_are_widened() -> None:
    for dtype in (np.float32, np.float64, np.int8):
        x = np.ones(3, dtype)
        assert widened(x) is x
    for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        assert widened(np.ones(3, dtype)).dtype == np.float32


def _floats() -> np.ndarray[Any, Any]:
    """About every number of float16, all that lie on and next to where rounding changes, and all of a kind apart."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16).astype(np.float32)
    between = (
        (halves.view(np.uint32) & ~np.uint32(0xFFF))[:, None] + np.arange(-2, 0x2000, 0x3FF).astype(np.uint32)
    ).ravel()
    everything = np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, dtype=np.uint32)
    units = np.ldexp(np.arange(4096, dtype=np.float32), -26)
    return np.concatenate([x.view(np.float32) for x in (halves, between, everything, units, -units)])


@pytest.mark.parametrize("order", ["C", "F"])
def test_narrowing_rounds_as_numpy_does(order: str) -> None:
    found = _floats()
    finite = found[np.isfinite(found)]
    for values in (finite, found):
        x = np.array(values[: values.size // 64 * 64].reshape(-1, 64), order=order)
        with np.errstate(all="ignore"):
            expected = x.astype(np.float16)
            for y in (
                narrowed(x, np.dtype(np.float16)),
                narrowed(x, np.dtype(np.float16), np.empty(x.shape, np.float16)),
            ):
                np.testing.assert_array_equal(y.view(np.uint16), expected.view(np.uint16))
            parts = narrowed(x[::2, ::-3], np.dtype(np.float16))
        np.testing.assert_array_equal(parts.view(np.uint16), expected[::2, ::-3].view(np.uint16))


def test_only_float32_is_narrowed_by_bits() -> None:
    for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
        x = np.linspace(-9, 9, 9999).astype(dtype)
        assert narrowed(x, x.dtype) is x
        np.testing.assert_array_equal(narrowed(x, np.dtype(np.float16)), x.astype(np.float16))
