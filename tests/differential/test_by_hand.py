"""Arguments that `tests.differential.sweep_arguments` hardly ever makes: several that must fit, in all their forms."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.arrays import ramp
from tests.differential.helpers import Array, Typed, compare

NAN = np.nan


def make(*shape: int, dtype: str = "float32", seed: int = 0, low: float = -3, high: float = 4) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


X, TURNED, GAPS = make(3, 4), make(4, 3).T, make(3, 8)[:, ::2]


INTS, BYTES = make(3, 4, dtype="int64", low=-9, high=9), make(3, 4, dtype="uint8", low=0)


COMPLEX = (X + 1j * make(3, 4, seed=1)).astype(np.complex64)


def square(*shape: int, dtype: str = "float64") -> Array:
    x = make(*shape, dtype=dtype)
    return (x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])).astype(dtype)


SQUARES = [square(3, 3), square(2, 4, 4), square(1, 1), np.swapaxes(square(2, 3, 3) + make(3, 3), -1, -2)]


# -- linear algebra ---------------------------------------------------------------


def test_norms() -> None:
    for x in (X, TURNED, make(2, 3, 4, dtype="float64"), COMPLEX, INTS, X[0]):
        for ord in ("fro", "nuc", 1, -1, 2, -2, float("inf"), 3, "odd"):
            for dim in ([-2, -1], [1, 0]):
                compare("aten::linalg_matrix_norm", x, ord, dim, x.ndim == 3, None, tolerance=1e-5)
            for dim in (None, [0, 1], [0]):
                compare("aten::linalg_norm", x, ord, dim, False, None, tolerance=1e-5)
        for dim in (None, [0], [-1]):
            compare("aten::linalg_norm", x, None, dim, True, None, tolerance=1e-5)


@pytest.mark.parametrize("upper", [False, True])
def test_triangular_equations(upper: bool) -> None:
    def check(a: Array, b: Array) -> None:
        for left in (True, False):
            for ones in (True, False):
                compare("aten::linalg_solve_triangular", a, b, upper, left, ones, tolerance=1e-4)
        for turned in (True, False):
            for ones in (True, False):
                compare("aten::triangular_solve", b, a, upper, turned, ones, outputs=2, tolerance=1e-4)

    for a in [*SQUARES, SQUARES[0].T, SQUARES[1][0].astype(np.complex128) * (1 + 1j)]:
        n = a.shape[-1]
        for shape in ((n, 2), (n, n), (2, n), (n,), (2, n, 3), (n, 0)):
            check(a, make(*shape, dtype="float64").astype(a.dtype))
    check(np.zeros((2, 2)), np.ones((2, 2)))
    check(np.zeros((0, 0)), np.ones((0, 2)))
    check(SQUARES[0], X[:, :3])
    check(INTS[:3, :3], INTS[:3, :3])
    check(X, X)


def test_what_tells_whether_it_succeeded() -> None:
    for a in SQUARES:
        symmetric = a @ np.swapaxes(a, -1, -2)
        for check in (True, False):
            compare("aten::linalg_inv_ex", a, check, outputs=2, tolerance=1e-7)
            for flag in (True, False):
                compare("aten::linalg_cholesky_ex", symmetric, flag, check, outputs=2, tolerance=1e-7)
                compare("aten::linalg_solve_ex", a, symmetric, flag, check, outputs=2, tolerance=1e-7)


def test_products_along_a_dimension() -> None:
    threes, bits = make(4, 3), (make(4, 3) + 1j * make(4, 3, seed=1)).astype(np.complex64)
    for x, y in ((threes, threes[::-1].copy()), (threes, threes[:1].copy()), (bits, threes), (INTS[:, :3], threes[:3])):
        compare("aten::linalg_cross", x, y, -1)
        compare("aten::linalg_vecdot", x, y, -1, strides=False)
        compare("aten::linalg_vecdot", x, y, 0, strides=False)
    for x, y in ((X, X[:, ::-1].copy()), (threes, threes[0].copy()), (threes.T, threes[::-1].copy().T)):
        for dim in (0, -1):
            compare("aten::linalg_cross", x, y, dim, strides=False)
    for dims in ((0, -2, -1), (1, 0, 1), (-1, -1, -2)):
        compare("aten::linalg_diagonal", X, *dims)


@pytest.mark.parametrize("suffix", ["", "_"])
def test_renorm(suffix: str) -> None:
    for x in (X, TURNED, GAPS, COMPLEX, make(3, 4, dtype="float16"), INTS, X[0], make(0, 3), np.array(2, np.float32)):
        for p in (1, 2, 0.5, float("inf"), 0, -1):
            for dim in (0, -1, 5):
                for maxnorm in (1.5, 0, -1):
                    compare(f"aten::renorm{suffix}", x, p, dim, maxnorm)


def test_diagonals() -> None:
    for x in (X, TURNED, INTS, X[0], make(2, 3, 4), np.array(1.0, np.float32)):
        for offset, dims in ((0, (-2, -1)), (2, (0, -1)), (-1, (1, 0)), (0, (0, 0))):
            compare("aten::diag_embed", x, offset, *dims)


def noise(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def test_summation() -> None:
    a, b = noise(3, 4), noise(4, 5)
    for equation, operands in (
        ("ij,jk->ik", [a, b]),
        ("ij,jk", [a, b]),
        ("ij->ji", [a]),
        ("ij->i", [a]),
        ("ii->i", [noise(4, 4)]),
        ("ii", [noise(4, 4)]),
        ("bij,bjk->bik", [noise(2, 3, 4), noise(2, 4, 5)]),
        ("...ij,...jk->...ik", [noise(2, 3, 4), noise(4, 5)]),
        ("i,j->ij", [noise(3), noise(4)]),
        ("bhqd,bhkd->bhqk", [noise(2, 2, 3, 4), noise(2, 2, 5, 4)]),
        ("ij,jk,kl->il", [a, b, noise(5, 2)]),
        ("bchw,cd->bdhw", [noise(2, 3, 4, 5), noise(3, 2)]),
        ("bcxd,bcyd->bcyx", [noise(2, 3, 4, 5), noise(2, 3, 2, 5)]),
        ("ij,jk->ki", [a, b]),
        ("bij,bjk->kbi", [noise(2, 3, 4), noise(2, 4, 5)]),
        ("i,j->ji", [noise(3), noise(4)]),
        ("ij,ij->ji", [a, a]),
        ("ij,ij->", [a, a]),
        ("ij,kj->ik", [a, noise(1, 4)]),
        ("ij,kj->ik", [noise(1, 4), a]),
        ("ij,jk->ik", [noise(1, 1), noise(1, 5)]),
        ("ii,ij->j", [noise(4, 4), a.T]),
        ("aij,bi,c->cb", [noise(2, 3, 4), noise(5, 3), noise(2)]),
        ("ijk->kj", [noise(2, 3, 4)]),
        ("i...j->j...", [noise(2, 3, 4, 5)]),
        ("i...j->...", [noise(2, 3, 4, 5)]),
        ("b...i,...ij->j...b", [noise(2, 3, 1, 4), noise(5, 4, 2)]),
        ("Bi,iA", [noise(2, 3), noise(3, 4)]),
        ("aB,Bc,aD->Dc", [noise(2, 3), noise(3, 4), noise(2, 5)]),
        ("ij,jk->ik", [a, noise(0, 4).T[:, :0].reshape(4, 0)]),
        ("ij,jk->ik", [noise(3, 0), noise(0, 2)]),
        (",i->i", [noise(), noise(3)]),
    ):
        compare("aten::einsum", equation, operands, None, tolerance=1e-5)
        turned = [np.ascontiguousarray(x.T).T for x in operands]
        compare("aten::einsum", equation, turned, None, tolerance=1e-5)
    compare("aten::tensordot", noise(2, 3, 4), noise(4, 3, 5), [1, 2], [1, 0], tolerance=1e-5)
    compare("aten::bilinear", noise(2, 3), noise(2, 4), noise(5, 3, 4), noise(5), tolerance=1e-5)


# -- attention, recurrence, losses ------------------------------------------------


MASKS: list[tuple[Array | None, int | None]] = [
    (None, None),
    (np.triu(np.ones((5, 5), bool), 1), 0),
    (np.array([[False] * 4 + [True], [True] + [False] * 4]), 1),
    (noise(2, 2, 5, 5) > 0.8, 2),
]


@pytest.mark.parametrize(("mask", "type"), MASKS)
def test_attention_in_one_piece(mask: Array | None, type: int | None) -> None:
    x, layers = noise(2, 5, 6), (noise(18, 6), noise(18), noise(6, 6), noise(6))
    for average in (True, False):
        given = (x, x, x, 6, 2, *layers, mask, True, average, type)
        compare("aten::_native_multi_head_attention", *given, outputs=2, strides=False, tolerance=1e-4)
    norms = (noise(6), noise(6, seed=1), noise(6, seed=2), noise(6))
    feed = (noise(8, 6), noise(8), noise(6, 8), noise(6))
    for gelu in (False, True):
        for first in (False, True):
            options = (gelu, first, 1e-5)
            arguments = (*layers, *options, *norms, *feed, mask, type)
            compare("aten::_transformer_encoder_layer_fwd", x, 6, 2, *arguments, strides=False, tolerance=1e-4)


def index(*places: int) -> Array:
    return np.array(places, np.int64)


def test_packed_sequences() -> None:
    for x in (make(4, 3), make(4, 3, 2), make(3, 4, 2).transpose(1, 0, 2), make(4, 3, dtype="int64")):
        for lengths in (index(4, 2, 1), index(3, 3, 3), index(1, 2, 2), index(2, 1, 0), index(2, 1)):
            compare("aten::_pack_padded_sequence", x, lengths, False, outputs=2, strides=False)
            compare("aten::_pack_padded_sequence", x.swapaxes(0, 1), lengths, True, outputs=2, strides=False)
    for data in (make(6), make(6, 2), make(6, 2, dtype="int64"), make(5, 1)):
        for sizes in (index(3, 2, 1), index(2, 2, 2), index(6)):
            for total in (-1, 2, 5):
                for first in (True, False):
                    if sizes.sum() == len(data):
                        compare("aten::_pad_packed_sequence", data, sizes, first, 0.5, total, outputs=2)


def test_dropout_between_layers_in_training() -> None:
    params = [make(6, 3), make(6, 3, seed=1), make(6, 3, seed=2), make(6, 3, seed=3)]
    params = [np.concatenate([p, p[:3]]) for p in params]
    state = make(2, 4, 3)
    for rate in (0.0, 1.0):  # of which chance decides nothing
        compare(
            "aten::gru", make(5, 4, 3), state, params, False, 2, rate, True, False, False, outputs=2, tolerance=1e-4
        )
    compare("aten::gru", make(5, 4, 3), state, params, False, 2, 0.5, True, False, False, outputs=2, values=False)


@pytest.mark.parametrize("reduce", "sum mean max min prod odd".split())
def test_segments(reduce: str) -> None:
    rest: tuple[Any, ...]
    for x in (make(6), make(6, 2), make(6, 2, dtype="float64"), np.array([1, NAN, 2, 3, 4, 5], np.float32)):
        for lengths in (index(1, 2, 3), index(0, 6), index(2, 0, 4), index(2, 2)):
            for initial in (None, 1.5):
                rest = (lengths, None, None, 0, False, initial)
                compare("aten::segment_reduce", x, reduce, *rest, strides=False, tolerance=1e-5)
    rest = (np.array([[1, 3], [2, 2], [4, 0]]), None, None, 1, False, 0.5)
    compare("aten::segment_reduce", X, reduce, *rest, strides=False, tolerance=1e-5)
    compare("aten::segment_reduce", make(6), reduce, None, None, index(0, 2, 6), 0, False, None, tolerance=1e-5)


def vector(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_margins(reduction: int) -> None:
    classes = vector(0, 3, 1)
    for x in (X, TURNED, X.astype("float64"), INTS):
        for target in (classes, vector(0, 4, 1), vector(0, -1, 1), vector(0, 1), classes.astype(np.int32)):
            for p, margin in ((1, 1), (2, 0.5), (3, 1)):
                for weight in (None, ramp(4).astype(x.dtype), ramp(3), ramp(4).astype(np.float64)):
                    compare("aten::multi_margin_loss", x, target, p, margin, weight, reduction)
    for target in (vector(1), np.array(1), vector(1, 1), vector(1)[None]):
        compare("aten::multi_margin_loss", X[0], target, 1, 1, None, reduction)
    compare("aten::multi_margin_loss", X[:, :0], vector(0, 0, 0), 1, 1, None, reduction)
    compare("aten::multi_margin_loss", make(2, 3, 4), vector(0, 0), 1, 1, None, reduction)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_sequences(reduction: int) -> None:
    logs, words = -make(6, 2, 4, dtype="float64", low=0.1), np.array([[1, 2, 2], [3, 1, 0]])
    flat = vector(1, 2, 2, 3, 1)
    for scores in (logs, logs.astype("float32"), logs[:, ::-1].copy().transpose(2, 1, 0).copy().T):
        for targets in (words, flat, words.astype(np.int32), words[:1], flat[:4], words.astype(np.float32)):
            for steps in ([6, 5], [6, 1], [0, 5], [7, 5], [6]):
                for zero in (False, True):
                    compare("aten::ctc_loss", scores, targets, steps, [3, 2], 0, reduction, zero)
                compare("aten::ctc_loss", scores, targets, vector(*steps), vector(3, 2), 0, reduction, False)
    for lengths in ([3, 0], [0, 0], [4, 2], [3, -1]):
        compare("aten::ctc_loss", logs, words, [6, 0], lengths, 0, reduction, False)
    for blank in (3, 4, -1):
        compare("aten::ctc_loss", logs, words, [6, 5], [3, 2], blank, reduction, False)
    for targets in (words[0], words[:1], words[0, :2]):
        compare("aten::ctc_loss", logs[:, 0], targets, [6], [3], 0, reduction, False)
        compare("aten::ctc_loss", logs[:, 0], targets, np.array(6), np.array(3), 0, reduction, False)
    compare("aten::ctc_loss", logs[:0], words, [0, 0], [3, 2], 0, reduction, False)


WEIGHT = make(5, 3)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_bags(mode: int) -> None:
    words = vector(3, 1, 1, 4, 0, 2)
    of_types = (WEIGHT, WEIGHT.astype("float64"), WEIGHT.astype("float16"))
    for weight in (*of_types, make(3, 5).T, make(5, 6)[:, ::2], INTS, WEIGHT[0]):
        for starts in (vector(0), vector(0, 2, 2, 5), vector(0, 6), vector(1), vector(0, 7)):
            for padding in (None, 1, -1, 9):
                compare(
                    "aten::embedding_bag", weight, words, starts, False, mode, False, None, False, padding, outputs=4
                )
            compare("aten::embedding_bag", weight, words, starts, False, mode, False, None, False, outputs=4)
    for starts in (vector(0, 6), vector(0, 2, 2, 6)):
        compare("aten::embedding_bag", WEIGHT, words, starts, False, mode, False, None, True, outputs=4)
        compare("aten::embedding_bag", WEIGHT, words, starts, False, mode, False, None, True, 1, outputs=4)
    for more in (vector(5), vector(-1), words.astype(np.int32), words.astype(np.float32)):
        compare("aten::embedding_bag", WEIGHT, more, vector(0), False, mode, False, None, False, outputs=4)
    nothing = np.zeros(0, np.int64)
    for starts in (nothing, vector(0, 0)):
        compare("aten::embedding_bag", WEIGHT, nothing, starts, False, mode, False, None, False, outputs=4)


# -- signals, numbers, elements ----------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_spectra_over_time() -> None:
    window = np.hanning(8).astype(np.float32)
    for x in (make(40), make(2, 40), make(40, dtype="float64"), make(2, 40) * 1j, make(5)):
        for hop, length, w in ((None, None, None), (3, 8, window), (5, 6, None), (2, 8, window[:6])):
            for normalized in (False, True):
                for onesided in (None, False, True):
                    for as_complex in (True, False, None):
                        rest = (normalized, onesided, as_complex, None)
                        compare("aten::stft", x, 8, hop, length, w, *rest, tolerance=1e-5)


def spectrum(*shape: int) -> Array:
    return (make(*shape) + 1j * make(*shape, seed=1)).astype(np.complex64)


def test_signals_of_spectra() -> None:
    window = np.hanning(10)[1:-1].astype(np.float32) + np.float32(0.1)
    for x in (spectrum(5, 6), spectrum(2, 5, 4), spectrum(2, 5, 4).astype(np.complex128), spectrum(8, 3)):
        for hop in (None, 2, 4):
            for center in (True, False):
                for size in (None, 7, 40):
                    for normalized in (True, False):
                        rest = (center, normalized, None, size, False)
                        compare("aten::istft", x, 8, hop, None, window, *rest, tolerance=1e-4, strides=False)
    x = spectrum(8, 5)
    compare("aten::istft", x, 8, 2, 6, window[:6].copy(), True, False, False, None, True, tolerance=1e-4)
    compare("aten::istft", x, 8, 2, None, None, True, False, False, None, False, tolerance=1e-4)
    compare("aten::istft", x, 8, 2, None, None, True, False, True, None, False)
    compare("aten::istft", x, 8, 9, None, None, True, False, None, None, False)
    compare("aten::istft", X, 8, 2, None, None, True, False, None, None, False)
    compare("aten::istft", x[:5], 8, 8, None, np.zeros(8, np.float32), True, False, None, None, False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_fake_quantization(dtype: str) -> None:
    special = np.array([0, -0.0, np.inf, -np.inf, NAN, 1e6, -1e6, 0.25, 0.75, 1.25], dtype)
    for x in (make(3, 4, dtype=dtype), make(4, 3, dtype=dtype).T, special, make(2, 3, 2, dtype=dtype)):
        for scale, zero in ((0.1, 3), (0.37, 0), (0.5, 255), (0.1, 300)):
            compare("aten::fake_quantize_per_tensor_affine", x, scale, zero, 0, 255)
            tensors = np.array([scale], np.float32), np.array([zero], np.int32)
            compare("aten::fake_quantize_per_tensor_affine", x, *tensors, 0, 255)
    x = make(2, 3, 4, dtype=dtype)
    for axis, n in ((0, 2), (1, 3), (-1, 4), (2, 4), (1, 2)):
        scales = np.random.default_rng(n).uniform(0.05, 1, n).astype(np.float32)
        for zero in (np.arange(n, dtype=np.int32), np.arange(n, dtype=np.float32)):
            compare("aten::fake_quantize_per_channel_affine", x, scales, zero, axis, -128, 127)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(name: str) -> None:
    holes = np.where(make(3, 4, seed=2) > 1, np.float32(NAN), X)
    holes[1] = NAN
    for x in (X, TURNED, holes, make(2, 3, 4), np.array(1.5, np.float32), X.astype("f8"), INTS, X[:0]):
        q = np.array([0, 0.3, 0.5, 1], x.dtype)
        for way in ("linear", "lower", "higher", "midpoint", "nearest", "odd"):
            for keep in (False, True):
                for dim in (None, 0, -1):
                    compare(f"aten::{name}", x, 0.4, dim, keep, way, strides=False)
                    compare(f"aten::{name}", x, q, dim, keep, way, strides=False)
    compare(f"aten::{name}", X, 1.5, None, False, "linear")


def test_differences() -> None:
    for n in (0, 1, 2, 9):
        compare("aten::diff", X, n, 1, None, None)
        compare("aten::diff", TURNED, n, -1, TURNED[:, :1], None)
        compare("aten::diff", INTS, n, 0, INTS[:1], INTS[:2])


def test_parts_of_storage() -> None:
    base = ramp(3, 4)
    for x in (base, base.T, base[1:], base[:, ::2], base[1:, ::2], np.broadcast_to(ramp(4), (3, 4)), INTS):
        for size, stride in (([2, 2], [4, 1]), ([2], [3]), ([2], [0]), ([0, 2], [1, 1]), ([2, 2], [40, 1])):
            for offset in (None, 0, 1):
                compare("aten::as_strided_scatter", x, np.asarray(ramp(*size) + np.float32(50)), size, stride, offset)
    compare("aten::as_strided_scatter", base, ramp(2), [2, 2], [4, 1], None)
    compare("aten::as_strided_scatter", base, np.array(9.0, np.float32), Typed([], "int[]"), Typed([], "int[]"), 5)


def test_images_from_maxima() -> None:
    places = np.array([[[0, 3], [8, 11]]])
    x = ramp(1, 2, 2) + 1
    pair = np.ascontiguousarray(ramp(1, 2, 2, 2).transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for size in ([4, 4], [3, 4], [2, 2], [12], [-3, -4]):
        compare("aten::max_unpool2d", x, places, size)
        compare("aten::max_unpool2d", x[None], places[None], size)
        compare("aten::max_unpool2d", pair, np.broadcast_to(places, (1, 2, 2, 2)).copy(), size)
    for source, index in ((x[0], places[0]), (x, places.astype(np.int32)), (x, places[:, :1]), (x, places * 0 - 1)):
        compare("aten::max_unpool2d", source, index, [3, 4])
    for shape in ((0, 1, 2, 2), (2, 0, 2, 2), (1, 1, 0, 2), (0, 2, 2)):
        compare("aten::max_unpool2d", ramp(*shape), np.zeros(shape, np.int64), [3, 4])


# -- what is at the edge, or refused -------------------------------------------------

COLUMN, SCALAR = make(4, 1), np.array(1.5, np.float32)
IMAGES = make(1, 2, 4, 4)


@pytest.mark.parametrize(
    ("name", "arguments", "outputs"),
    [
        ("max_pool2d", (IMAGES, [0, 2], [1, 1], [0, 0], [1, 1], False), 1),
        ("avg_pool2d", (IMAGES, [0, 2], [2, 2], [0, 0], False, True, None), 1),
        ("diff", (X, -1, 1, None, None), 1),
        ("diff", (SCALAR, 1, -1, None, None), 1),
        ("embedding_bag", (WEIGHT, index(3, 1), index(0), False, 1, False, make(2), False), 4),
        ("linalg_solve", (SQUARES[0], X[:, :3], True), 1),
        ("linalg_eigh", (SQUARES[0], "odd"), 2),
        ("linalg_multi_dot", ([X],), 1),
        ("linalg_multi_dot", ([X, COLUMN.astype("float64")],), 1),
        ("linalg_multi_dot", ([X, make(4, 2, 2), COLUMN],), 1),
        ("linalg_multi_dot", ([X, X, COLUMN],), 1),
        ("cross_entropy_loss", (X, index(0, 3, 1), None, 1, -100, 0.25), 1),
        ("cross_entropy_loss", (X, index(0, 3, 1), ramp(4), 1, 3, 0.25), 1),
        ("cross_entropy_loss", (X, index(0, 3, 1), None, 2, -100, 0.25), 1),
        ("instance_norm", (make(2, 3, 4), None, None, None, None, True, 0.1, 1e-5, False), 1),
        ("cummax", (SCALAR, 0), 2),
        ("cummin", (SCALAR, -1), 2),
        ("combinations", (X[0], 0, False), 1),
        ("fft_fftn", (X, None, [0, 1], "odd"), 1),
        ("fft_irfftn", (X, None, Typed([], "int[]"), None), 1),
        ("fft_rfftn", (X, None, Typed([], "int[]"), None), 1),
        ("complex", (X, X[:2]), 1),
        ("unfold", (SCALAR, 0, 1, 1), 1),
        ("unfold", (SCALAR, 0, 0, 2), 1),
        ("tensor", ([[1, 2], [3, 4]], None, None, False), 1),
        ("tensor", ([[1, 2], [3]], None, None, False), 1),
    ],
)
def test_edges(name: str, arguments: tuple[Any, ...], outputs: int) -> None:
    compare(f"aten::{name}", *arguments, outputs=outputs, tolerance=1e-5)


@pytest.mark.parametrize("name", "dtype device is_cpu is_cuda layout requires_grad is_sparse data".split())
def test_what_a_tensor_tells_of_itself(name: str) -> None:
    for x in (X, TURNED, GAPS, COMPLEX, INTS, SCALAR, make(0, 3)):
        compare(f"prim::{name}", x)


TYPES = ("bool", "uint8", "int64", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("a", TYPES)
def test_types_of_results(a: str) -> None:
    for b in TYPES:
        for x, y in product((np.ones((), a), np.ones(2, a)), (np.ones((), b), np.ones(2, b))):
            compare("aten::result_type", x, y)
