"""Products by native loops: of integers, which are exact, and of floats."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.effort import examples
from tests.models import onnx_model
from tests.native.guarded import fresh, placed

pytest.importorskip("llvmlite")

import irc
from irc.native.inner_loops import LEAST_PRODUCTS, LOOPS
from irc.native.one_row import call_for_row
from irc.native.packed import PACKED
from irc.native.panels import MOST_FEATURES
from irc.native.target import current
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.quantized import columns, matmul_sums
from irc.runtime.kernels.support import as_constant, note_origin
from irc.runtime.threads import share

Array = np.ndarray[Any, Any]

FLOAT8 = ml_dtypes.float8_e4m3fn

natively = pytest.mark.skipif(current().vector_bytes not in MOST_FEATURES, reason="there is no code for this processor")


def integers(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)


def product(a: Array, zero: int, b: Array) -> Array | None:
    out = fresh((*a.shape[:-1], b.shape[1]), np.int32)
    return out if LOOPS.integers(placed(a), zero, b, out) else None


def exact(a: Array, zero: int, b: Array) -> Array:
    return (a.astype(np.int64) - zero) @ b.astype(np.int64)


@examples(100)
@given(
    st.lists(st.integers(1, 4), max_size=2),
    st.integers(1, 40),
    st.integers(1, 150),
    st.integers(1, 100),
    st.sampled_from(["u1", "i1"]),
    st.integers(0, 127),
    st.sampled_from([127, 255]),
)
def test_sums_are_exact(batch, rows, depth, columns, dtype, zero, most):
    a = integers((*batch, rows, depth), dtype, 1)
    b = as_constant(placed(np.random.default_rng(2).integers(-most, most + 1, (depth, columns)).astype(np.float32)))
    found = product(a, zero, b)
    if found is not None:
        np.testing.assert_array_equal(found, exact(a, zero, b))


@natively
@pytest.mark.parametrize("rows", [1, 15, 30])
@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("depth", [63, 64])
@pytest.mark.parametrize("columns", [289, 320])
def test_integers_with_a_zero_point(columns, depth, dtype, rows):
    a = placed(integers((rows, depth), dtype, 1))
    b = as_constant(placed(integers((depth, columns), "i1", 2)))
    zero = placed(np.array([-7 if dtype == "i1" else 200], dtype))
    multiply = LOOPS.integer_multiplier(a, b, None)
    for own in (zero, None):
        out = fresh((rows, columns), np.int32)
        assert multiply is not None and multiply(a, own, out)
        np.testing.assert_array_equal(out, exact(a, 0 if own is None else int(own.item()), b))


@natively
@pytest.mark.parametrize("value", [-255, -128, 127, 255])
@pytest.mark.parametrize(("factor", "zero"), [(255, 0), (0, 255), (-128, 127), (127, -128)])
def test_the_largest_numbers(factor, zero, value):
    a = np.full((20, 999), factor, np.int8 if min(factor, zero) < 0 else np.uint8)
    b = as_constant(np.full((999, 40), value, np.float32))
    found = product(a, zero, b)
    assert found is not None
    np.testing.assert_array_equal(found, exact(a, zero, b))


@natively
def test_what_does_not_fit_is_left():
    a = integers((40, 40_000), "u1", 1)
    assert product(a, 0, as_constant(np.full((40_000, 2), 255, np.float32))) is None
    small = as_constant(np.ones((40_000, 2), np.float32))
    assert product(a, 0, small) is not None
    assert product(a, 0, np.ones((40_000, 2), np.float32)) is None  # may change
    assert product(a.astype(np.uint16), 0, small) is None
    assert a.size * 2 > LEAST_PRODUCTS


@pytest.mark.usefixtures("slow_blas")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(4, 300, 257), (15, 130, 160), (60, 64, 128), (1200, 200, 150)])
def test_floats(rows, depth, columns, has_gaps, is_turned):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((2, rows, 2 * depth)).astype(np.float32)[..., : depth * (1 + (not has_gaps))]
    a = a[:, ::-1] if is_turned else a
    b = as_constant(rng.standard_normal((a.shape[-1], columns)).astype(np.float32))
    out = np.empty((2, rows, columns), np.float32)
    done = LOOPS.product(a, b, out)
    assert done == (current().vector_bytes in MOST_FEATURES)
    if done:
        wide = a.astype(np.float64), b.astype(np.float64)
        bound = np.abs(wide[0]) @ np.abs(wide[1])
        assert (np.abs(out - wide[0] @ wide[1]) <= 4 * 2.0**-24 * bound).all()


def in_two_threads(make: Callable[[], Array | None]) -> Array:
    before = CURRENT.scope.share
    CURRENT.scope.share = lambda pieces, piece: share(pieces, piece, 2)
    try:
        found = make()
    finally:
        CURRENT.scope.share = before
    assert found is not None
    return found


def of_codes(depth: int, columns: int, block: int, zeros: str) -> tuple[Array, list[Array]]:
    """A matrix (depth, columns) that is made of codes of 4 bits, and what it is made of."""
    rng, shape = np.random.default_rng(2), (columns, depth // block, 1)
    codes = rng.integers(0, 16, (columns, depth // block, block), np.uint8)
    scales = rng.uniform(-0.01, 0.01, shape).astype("f4")
    of_zeros = {"8": np.full(1, 8), "3": np.full(1, 3), "none": np.zeros(1), "several": rng.integers(0, 16, shape)}
    zero = of_zeros[zeros].astype("f4")
    made = ((codes - zero) * scales).reshape(columns, depth)
    return as_constant(made.T), [codes, zero, scales][:: 1 if zeros != "none" else 2]


def multiplied(x: Array, w: Array, parts: list[Array]) -> Array | None:
    """The product of a row."""
    note_origin(w, [*map(placed, parts)])
    multiply, out = LOOPS.row_multiplier(w), fresh((1, w.shape[1]), np.float32)
    if multiply is not None:
        multiply = multiply._replace(constants=tuple(map(placed, multiply.constants)))
    return out if multiply is not None and multiply(placed(x), out) else None


@natively
@pytest.mark.parametrize("zeros", ["8", "3", "none", "several"])
@pytest.mark.parametrize("block", [16, 32, 128])
@pytest.mark.parametrize("columns", [128, 257, 300])
def test_codes_of_4_bits(columns, block, zeros):
    w, parts = of_codes(256, columns, block, zeros)
    x = np.random.default_rng(3).standard_normal((1, 256)).astype("f4")
    found, wide = multiplied(x, w, parts), w.astype(np.float64)
    assert found is not None
    codes = parts[0].reshape(-1)
    of_pairs = multiplied(x, as_constant(w.copy(order="K")), [codes[::2] | codes[1::2] << 4, *parts[1:]])
    assert of_pairs is not None and of_pairs.tobytes() == found.tobytes()
    assert (np.abs(found - x @ wide) <= 4 * 2.0**-24 * (np.abs(x) @ np.abs(wide))).all()
    assert in_two_threads(lambda: multiplied(x, w, parts)).tobytes() == found.tobytes()
    for number in (1e37, -1e-40, np.inf, np.nan):  # sums of large ones are scaled before they overflow
        x[0, 7] = number
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(multiplied(x, w, parts), x @ wide, rtol=1e-4, atol=1e-4)


@natively
@pytest.mark.parametrize("has_zeros", [True, False])
@pytest.mark.parametrize("has_epilogue", [True, False])
def test_models_multiply_codes_of_4_bits(has_epilogue, has_zeros):
    rng, depth, columns = np.random.default_rng(1), 256, 130
    arrays = {
        "w": rng.integers(0, 256, (columns, depth // 32, 16), np.uint8),
        "s": rng.uniform(0.001, 0.01, (columns, depth // 32)).astype("f4"),
        "z": rng.integers(0, 256, (columns, depth // 64), np.uint8),
        "b": rng.standard_normal(columns).astype("f4"),
    }
    given_ = {"K": depth, "N": columns, "bits": 4, "block_size": 32, "domain": "com.microsoft"}
    nodes = [helper.make_node("MatMulNBits", ["x", "w", "s", *["z"] * has_zeros], ["m"], **given_)]
    nodes += [helper.make_node("Add", ["m", "b"], ["a"]), helper.make_node("Gelu", ["a"], ["g"])] * has_epilogue
    proto = onnx_model(nodes, {"x": [1, depth]}, "g" if has_epilogue else "m", arrays, com_microsoft=1)
    native, plain = (irc.compile(proto, backend=backend) for backend in ("native", "numpy"))
    feeds = {"x": rng.standard_normal((1, depth)).astype("f4")}
    before = sum(key[1] == "few bits" and kept.arrays is not None for key, kept in PACKED._kept.items())
    found = [*native.run(feeds).values(), *native.run(feeds).values(), *native.run(feeds).values()]
    after = sum(key[1] == "few bits" and kept.arrays is not None for key, kept in PACKED._kept.items())
    assert after == before + 1
    assert len({x.tobytes() for x in found}) == 1  # whether in a table or not
    np.testing.assert_allclose(found[0], *plain.run(feeds).values(), rtol=1e-4, atol=1e-4)


def is_read_as_codes(w: Array, parts: list[Array]) -> bool:
    note_origin(w, parts)
    multiply = LOOPS.row_multiplier(w)
    return multiply is not None and multiply.constants[0].dtype == np.int32


@natively
def test_what_is_not_made_of_codes_is_no_product_of_them():
    w, (codes, zero, scales) = of_codes(256, 128, 32, "several")
    assert not is_read_as_codes(as_constant(w.copy(order="K")), [codes, zero + 1, scales])
    assert not is_read_as_codes(as_constant(w.copy(order="K")), [codes + np.uint8(16), zero, scales])
    assert not is_read_as_codes(as_constant(w.copy(order="K")), [codes, scales])
    assert LOOPS.row_multiplier(w.copy(order="K")) is None  # may change
    changed = w.copy(order="K")
    changed[5, 5] += 1
    assert not is_read_as_codes(as_constant(changed), [codes, zero, scales])
    assert is_read_as_codes(w, [codes, zero, scales])


@natively
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("depth", "columns"), [(64, 256), (129, 300), (1023, 129), (3, 9000), (1, 20_000)])
def test_floats_of_one_row(depth, columns, order):
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((1, depth)).astype("f4"), rng.standard_normal((depth, columns)).astype("f4", order=order)
    found, wide = multiplied(x, as_constant(w), []), w.astype(np.float64)
    assert found is not None
    assert (np.abs(found - x @ wide) <= 4 * 2.0**-24 * (np.abs(x) @ np.abs(wide))).all()
    assert in_two_threads(lambda: multiplied(x, w, [])).tobytes() == found.tobytes()
    as_it_is = fresh((1, columns), np.float32)
    assert call_for_row(depth, columns, is_packed=False).run((placed(x), placed(np.ascontiguousarray(w)), as_it_is))
    assert as_it_is.tobytes() == found.tobytes()
    for number in (1e38, -1e-40, np.inf, np.nan):
        x[0, -1] = number
        with np.errstate(invalid="ignore", over="ignore"):
            np.testing.assert_allclose(multiplied(x, w, []), (x @ wide).astype("f4"), rtol=1e-4, atol=1e-4)


@natively
@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Gemm with given C", "Gemm with beta", "MatMul of one number"])
@pytest.mark.parametrize("has_epilogue", [True, False])
@pytest.mark.parametrize("has_room", [True, False])
def test_models_multiply_one_row(has_room, has_epilogue, kind, monkeypatch):
    """With the same bits in all runs, in tables or not, whether there is room for panels when weights are first met."""
    rng = np.random.default_rng(1)
    arrays = {"w": rng.standard_normal((200, 130)).astype("f4"), "b": rng.standard_normal(130).astype("f4")}
    arrays["shape"] = np.array([1, 200])
    feeds = {"x": rng.standard_normal((1, 200 if kind != "MatMul of one number" else 1)).astype("f4")}
    if kind == "Gemm with given C":
        feeds["c"] = arrays["b"]
    operands = {"Gemm": ["x", "w", "b"], "Gemm with given C": ["x", "w", "c"], "MatMul of one number": ["e", "w"]}
    beta = {"beta": 0.5} if "beta" in kind else {}
    nodes = [helper.make_node("Expand", ["x", "shape"], ["e"])] * ("number" in kind)
    nodes += [helper.make_node(kind.split()[0], operands.get(kind, ["x", "w"]), ["m"], **beta)]
    nodes += [helper.make_node("Add", ["m", "b"], ["a"]), helper.make_node("Gelu", ["a"], ["g"])] * has_epilogue
    proto = onnx_model(nodes, {name: list(x.shape) for name, x in feeds.items()}, "g" if has_epilogue else "m", arrays)
    native, plain = (irc.compile(proto, backend=backend) for backend in ("native", "numpy"))
    with monkeypatch.context() as patch:
        if not has_room:
            patch.setattr("irc.native.packed.MOST_BYTES", 0)
        found = [*native.run(feeds).values()]
    found += [value for _ in range(3) for value in native.run(feeds).values()]
    found += native.run(feeds, limits=irc.Limits(seconds=60)).values()
    assert len({x.tobytes() for x in found}) == 1
    np.testing.assert_allclose(found[0], *plain.run(feeds).values(), rtol=1e-4, atol=1e-4)


@natively
def test_results_do_not_depend_on_threads():
    a = integers((100, 300), "u1", 1)
    b = as_constant(integers((300, 700), "i1", 2).astype(np.float32))
    one = product(a, 3, b)
    two = in_two_threads(lambda: product(a, 3, b))
    assert one is not None and one.tobytes() == two.tobytes()


@natively
@pytest.mark.parametrize("dtypes", [("u1", FLOAT8), (FLOAT8, "u1"), (FLOAT8, FLOAT8), ("u1", "i1")])
def test_floats_of_8_bits_are_no_integers(dtypes):
    rng = np.random.default_rng(1)
    a, b = ((4 * rng.random(shape)).astype(dtype) for shape, dtype in zip(((40, 64), (64, 50)), dtypes))
    weights = columns(b)
    as_constant(weights.values)
    zero = np.zeros((), a.dtype)
    scope = CURRENT.scope
    expected = matmul_sums(a, weights, zero)
    before, scope.loops = scope.loops, LOOPS
    try:
        found = matmul_sums(a, weights, zero)
    finally:
        scope.loops = before
    np.testing.assert_array_equal(found, expected)


@natively
def test_long_calls_pause(pacing):
    """Also of one panel of columns."""
    a, b = integers((200_000, 64), "u1", 1), as_constant(integers((64, 16), "i1", 2).astype(np.float32))
    assert product(a, 3, b) is not None
    assert pacing.times > 4
