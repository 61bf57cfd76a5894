"""Fourier transforms, the mel scale, Col2Im and Det."""

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import assert_same, check_against_ort, run_kernel

RNG = np.random.default_rng(0)


def values(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def by_definition(x: np.ndarray, inverse: bool) -> np.ndarray:
    """The sums of the specification, along the last axis of a complex array."""
    n = x.shape[-1]
    angles = np.outer(np.arange(n), np.arange(n)) * (2 * np.pi / n)
    return x @ np.exp((1j if inverse else -1j) * angles) / (n if inverse else 1)


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [4, 7, 12])
@pytest.mark.parametrize("components", [1, 2])
def test_dft_is_what_the_specification_defines(inverse: int, length: int, components: int) -> None:
    x = values(2, 7, 3, components)
    padded = np.zeros((2, 3, length), np.complex128)
    used = min(length, 7)
    signal = x[..., 0] + (1j * x[..., 1] if components == 2 else 0)
    padded[..., :used] = np.moveaxis(signal, 1, -1)[..., :used]
    expected = np.moveaxis(by_definition(padded, bool(inverse)), -1, 1)
    pairs = np.stack([expected.real, expected.imag], -1).astype(np.float32)
    for axis in (1, -3):
        (new,) = run_kernel("DFT", [x, number(length), number(axis)], {"inverse": inverse}, 20)
        np.testing.assert_allclose(new, pairs, rtol=1e-4, atol=1e-5)
    (old,) = run_kernel("DFT", [x, number(length)], {"inverse": inverse, "axis": 1}, 17)
    np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("onesided", [0, 1])
def test_against_onnx_runtime(onesided: int) -> None:
    x = values(2, 16, 1)
    check_against_ort("DFT", [x, None, number(1)], {"onesided": onesided}, 20, atol=1e-4)
    check_against_ort("DFT", [x.astype(np.float64)], {"onesided": onesided, "axis": 1}, 17)
    window = np.hanning(6).astype(np.float32)
    for inputs in ([window, number(6)], [None, number(5)], [window]):
        check_against_ort("STFT", [x, number(3), *inputs], {"onesided": onesided}, 17, atol=1e-4)


def test_stft_of_complex_signals_and_of_all_at_once() -> None:
    x = values(2, 9, 2)
    (found,) = run_kernel("STFT", [x, number(2), None, number(4)], {"onesided": 0}, 17)
    expected = [run_kernel("DFT", [x[:, i : i + 4].copy()], {}, 20)[0] for i in range(0, 6, 2)]
    assert_same([found], [np.stack(expected, 1)])
    (once,) = run_kernel("STFT", [x[..., :1].copy(), number(1)], {}, 17)
    assert once.shape == (2, 1, 5, 2)


@pytest.mark.parametrize("shape", [(1, 16), (3, 16)])
@pytest.mark.parametrize("onesided", [0, 1])
def test_stft_of_real_signals_without_an_axis_of_components(shape: tuple[int, ...], onesided: int) -> None:
    x, window = values(*shape), np.hanning(6).astype(np.float32)
    for rest in ([window, number(6)], [None, number(5)], [window]):
        (found,) = run_kernel("STFT", [x, number(3), *rest], {"onesided": onesided}, 17)
        assert_same([found], run_kernel("STFT", [x[..., None], number(3), *rest], {"onesided": onesided}, 17))


BAD_SIGNALS: list[tuple[str, list[Any], dict[str, Any], int, str]] = [
    ("DFT", [values(2, 3, 3)], {}, 20, "1 or 2 components"),
    ("DFT", [values(2, 3, 1), number(0)], {}, 20, "length 0"),
    ("DFT", [values(2, 3, 1), None, number(2)], {}, 20, "last one"),
    ("DFT", [values(2, 3, 1), number(1 << 45)], {}, 20, "would take more"),
    ("DFT", [values(2, 1, 2)], {"onesided": 1, "inverse": 1}, 20, "length 0"),
    ("STFT", [values(2, 9, 1), number(0)], {}, 17, "frames of 9, one every 0"),
    ("STFT", [values(2, 9, 1), number(1), None, number(10)], {}, 17, "frames of 10"),
    ("STFT", [values(2, 9, 1), number(1), values(4), number(5)], {}, 17, "window"),
    ("STFT", [values(2, 9, 1, 1), number(1)], {}, 17, "batch"),
    ("Det", [values(2, 3)], {}, 22, "one size"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "version", "words"), BAD_SIGNALS)
def test_bad_inputs(op: str, inputs: list[Any], attributes: dict[str, Any], version: int, words: str) -> None:
    with pytest.raises(Error, match=words):
        run_kernel(op, inputs, attributes, version)


@pytest.mark.parametrize(
    ("shape", "image", "block", "words"),
    [
        ((1, 4, 5), [3, 3], [2, 2], "multiple of 4, 4"),
        ((1, 5, 4), [3, 3], [2, 2], "multiple of 4"),
        ((1, 4, 4), [1, 1], [2, 2], "a number of blocks"),
        ((1, 4, 4), [3, 3], [0, 2], "no blocks"),
        ((1, 4, 4), [3, 3], [2, 2, 2], "do not fit"),
        ((1, 4, 4), [], [], "do not fit"),
    ],
)
def test_blocks_that_do_not_fit(shape: tuple[int, ...], image: list[int], block: list[int], words: str) -> None:
    with pytest.raises(Error, match=words):
        run_kernel("Col2Im", [values(*shape), np.array(image, np.int64), np.array(block, np.int64)], {}, 18)
