"""Constants that runs prepare once: quantised weights as floats, halves as float32."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import Tensor, parse_graph, parse_module
from irc.runtime import lowering, prepack
from irc.runtime.binding import bind
from irc.runtime.kernels import convolution, quantized
from irc.runtime.model import CompiledModel
from tests.effort import Spy, Tune
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import interrupted

SIZE = 64
RNG = np.random.default_rng(0)
Q = RNG.integers(-128, 128, (SIZE, SIZE)).astype(np.int8)
SCALE, ZERO = RNG.uniform(0.01, 0.02, SIZE).astype(np.float32), RNG.integers(-9, 9, SIZE).astype(np.int8)
WEIGHTS = (Q.astype(np.float32) - ZERO.astype(np.float32)) * SCALE
X = RNG.standard_normal((3, SIZE)).astype(np.float32)
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
NAMES = {**dict(zip(HALVES, ("Half", "BFloat16"), strict=True)), np.dtype(np.float32): "Float"}


def typed(name: str, array: np.ndarray[Any, Any]) -> str:
    """A weight of a graph, as `ir` reads it."""
    names = {**NAMES, np.dtype(np.int8): "Char", np.dtype(np.uint8): "Byte"}
    return f"; {name}: @{names[array.dtype]}({', '.join(map(str, array.shape))})"


def compiled(text: str, weights: dict[str, np.ndarray[Any, Any]], **more: Any) -> CompiledModel:
    return irc.compile(parse_module(text, {name: Tensor.of(x, name) for name, x in weights.items()}), **more)


DEQUANTISED = f"x: Float(n, {SIZE}); q: @Char({SIZE}, {SIZE}); s: @Float({SIZE}); z: @Char({SIZE})"


def quantised(
    body: str = "y = MatMul(x, w)", outputs: str = "y", u: np.ndarray[Any, Any] = Q, **more: Any
) -> CompiledModel:
    """A model whose weight ``w`` is quantised; ``u`` is another one."""
    text = typed_ir(DEQUANTISED + typed("u", u), f"w = DequantizeLinear(q, s, z); {body}", outputs)
    return compiled(text, {"q": Q, "s": SCALE, "z": ZERO, "u": u}, **more)


def half(dtype: np.dtype[Any], body: str, weight: np.ndarray[Any, Any], shape: str) -> CompiledModel:
    weight = weight.astype(dtype)
    return compiled(typed_ir(f"x: {NAMES[dtype]}({shape}){typed('w', weight)}", body, "y"), {"w": weight})


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the constants that are dequantised, or widened for good, from now on."""
    sizes: list[int] = []

    def counted(function: Any) -> Any:
        def run(x: Any, *more: Any) -> Any:
            sizes.append(x.size)
            return function(x, *more)

        return run

    monkeypatch.setattr(prepack, "widened", counted(prepack.widened))
    kinds = {"onnx::DequantizeLinear"}
    monkeypatch.setattr(lowering, "bind", lambda node: counted(bind(node)) if node.kind in kinds else bind(node))
    return sizes


def test_quantised_weights_stay_small_and_are_dequantised_once(made: list[int], tmp_path: Path) -> None:
    model = quantised()
    assert model.module.weights["q"].dtype.numpy == np.int8
    model.save(tmp_path / "m.irc")
    assert (tmp_path / "m.irc").stat().st_size < 2 * Q.nbytes
    results = [model.run({"x": x})["y"] for x in (X, X, X[:1], X[:1], X)]
    assert made == [Q.size]
    for found, x in zip(results, (X, X, X[:1], X[:1], X), strict=True):
        np.testing.assert_allclose(found, x @ WEIGHTS, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(irc.load(tmp_path / "m.irc").run({"x": X})["y"], results[0])


def test_small_quantised_constants_stay_quantised() -> None:
    text = typed_ir("x: Float(n)", "y = Add(x, DequantizeLinear(Cast([3, 4], to=6), 0.5))", "y")
    model = irc.compile(parse_graph(text), passes="fuse")
    assert "DequantizeLinear" in str(model.graph)
    assert model.run({"x": np.zeros(2, np.float32)})["y"].tolist() == [1.5, 2]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(
    ("body", "shape", "sizes"),
    [
        ("y = MatMul(x, w)", (70, 80), (3, 70)),
        ("y = Relu(MatMul(x, w))", (70, 80), (2, 3, 70)),
        ("y = Gemm(x, w, transB=1)", (80, 70), (3, 70)),
        ("y = Einsum(x, w, equation='ij,jk->ik')", (70, 80), (3, 70)),
        ("y = RNN(x, w, w, hidden_size=64)", (1, 64, 64), (3, 2, 64)),
        ("y = Conv(x, w)", (8, 4, 3, 3), (1, 4, 9, 9)),
    ],
)
def test_halves_are_widened_once(
    body: str, shape: tuple[int, ...], sizes: tuple[int, ...], dtype: np.dtype[Any], made: list[int]
) -> None:
    weight, x = RNG.standard_normal(shape).astype(dtype), RNG.standard_normal(sizes).astype(dtype)
    model = half(dtype, body, weight, ", ".join("abcd"[: len(sizes)]))
    found = [model.run({"x": x})["y"] for _ in range(4)]
    assert made == [weight.size]
    limited = model.run({"x": x}, limits=irc.Limits(bytes=1 << 20))["y"]
    fresh = half(dtype, body, weight, ", ".join("abcd"[: len(sizes)]))
    expected = fresh.run({"x": x}, limits=irc.Limits(bytes=1 << 20))["y"]
    for array in (*found, limited):
        assert array.dtype == dtype
        np.testing.assert_array_equal(array.view(np.int16), expected.view(np.int16))


@pytest.mark.parametrize("dtype", [*HALVES, np.dtype(np.float32)], ids=str)
def test_filters_of_transposed_convolutions_are_cut_once(dtype: np.dtype[Any], spy: Spy) -> None:
    cut = spy(convolution, "_filters_by_phase")
    weight, x = RNG.standard_normal((4, 8, 3, 3)).astype(dtype), RNG.standard_normal((1, 4, 9, 9)).astype(dtype)
    model = half(dtype, "y = ConvTranspose(x, w, strides=[2, 2])", weight, "a, b, c, d")
    found = [model.run({"x": x})["y"] for _ in range(4)]
    assert cut.call_count == 1
    for array in found:
        np.testing.assert_array_equal(array.view(f"i{dtype.itemsize}"), found[0].view(f"i{dtype.itemsize}"))


ATEN = [
    ("mm(x, w)", (70, 80), (3, 70)),
    ("matmul(x, w)", (70, 80), (2, 3, 70)),
    ("matmul(w, x)", (80, 70), (70, 3)),
    ("linear(x, w, None)", (80, 70), (3, 70)),
    ("linear(x, w, bias)", (9, 70), (4, 70)),
    ("addmm(bias, x, w, 1, 2)", (70, 9), (3, 70)),
    ("bmm(x, w)", (4, 70, 9), (4, 3, 70)),
    ("conv2d(x, w, None, [1, 1], [1, 1], [1, 1], 1)", (8, 4, 3, 3), (1, 4, 9, 9)),
    ("conv1d(x, w, bias, [1], [1], [1], 1)", (9, 4, 3), (1, 4, 9)),
    ("conv_transpose1d(x, w, bias, [1], [1], [0], 1, [1])", (4, 9, 3), (1, 4, 9)),
]


def torch_half(dtype: np.dtype[Any], call: str, weight: np.ndarray[Any, Any]) -> CompiledModel:
    weights = {"w": weight, "bias": np.linspace(-1, 1, 9).astype(dtype)}
    inputs = "x: Tensor" + "".join(typed(name, array) for name, array in weights.items() if name in call)
    return compiled(ir(inputs, f"y = aten.{call}", "y"), weights)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("call", "shape", "sizes"), ATEN)
def test_halves_of_torchscript_are_widened_once(
    call: str, shape: tuple[int, ...], sizes: tuple[int, ...], dtype: np.dtype[Any], made: list[int]
) -> None:
    weight, x = RNG.standard_normal(shape).astype(dtype), RNG.standard_normal(sizes).astype(dtype)
    model = torch_half(dtype, call, weight)
    made.clear()
    results = [model.run({"x": x})["y"] for _ in range(3)]
    assert made.count(weight.size) == 1
    expected = torch_half(np.dtype(np.float32), call, weight.astype(np.float32)).run({"x": x.astype(np.float32)})["y"]
    for found in results:
        assert found.dtype == dtype
        np.testing.assert_allclose(found.astype(np.float32), expected, rtol=1e-2, atol=5e-2)
        np.testing.assert_array_equal(found.view(np.int16), results[0].view(np.int16))
    other = HALVES[dtype == HALVES[0]]
    for wrong in (np.dtype(np.float32), other) if "addmm" not in call else ():
        with pytest.raises(Error, match="convert one"):
            model.run({"x": x.astype(wrong)})


def test_runs_of_limited_memory_keep_no_more_than_they_may_use(made: list[int]) -> None:
    model, needed = quantised(), WEIGHTS.nbytes
    for _ in range(2):
        with pytest.raises(Error, match="IRC442"):
            model.run({"x": X}, limits=irc.Limits(bytes=needed - 1))
    assert len(made) == 2
    for most in (needed + X.nbytes, needed // 2):  # which are the model's, and count no more
        model.run({"x": X}, limits=irc.Limits(bytes=most))
    assert len(made) == 3


PACKED = RNG.integers(0, 256, (SIZE, 2, 16, 1)).astype(np.uint8)
SCALES = RNG.uniform(0.01, 0.02, (SIZE, 2, 1, 1)).astype(np.float32)


def unpacking(packed: str) -> str:
    """Halves of bytes times their scales, as statements of `ir` have them."""
    return f"Reshape(Mul(Cast(BitwiseAnd(BitShift({packed}, by, direction='RIGHT'), low), to=1), s), [64, 64])"


def unpacked(body: str, outputs: str = "y") -> CompiledModel:
    bits = {"by": np.array([0, 4], np.uint8), "low": np.array(15, np.uint8)}
    weights = {"q": PACKED, "r": PACKED[::-1].copy(), "s": SCALES, **bits}
    inputs = "x: Float(n, 64)" + "".join(typed(name, array) for name, array in weights.items())
    return compiled(typed_ir(inputs, f"e = {unpacking('q')}; {body}", outputs), weights, passes="fuse")


NUMBERS = (np.concatenate([PACKED & 15, PACKED >> 4], -1) * SCALES).reshape(SIZE, SIZE)


@pytest.mark.parametrize(
    ("body", "outputs", "expected"),
    [
        ("y = MatMul(x, e)", "y", X @ NUMBERS),
        ("y = MatMul(x, Transpose(e))", "y", X @ NUMBERS.T),
        ("", "e", NUMBERS),
        ("y = MatMul(x, e); z = Neg_(e)", "y", X @ NUMBERS),
    ],
)
def test_packed_weights_are_unpacked_once(body: str, outputs: str, expected: np.ndarray[Any, Any]) -> None:
    model = unpacked(body, outputs)
    assert "BitShift" in str(model.graph)
    for _ in range(4):
        (found,) = model.run({"x": X}).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert found.flags.writeable
        found[:] = 7
    kernels = [model.profile({"x": X}).counters.kernels for _ in range(2)]
    assert kernels[0] == kernels[1] < (4 if "MatMul" in body and "Neg_" not in body else 9)


def test_packed_weights_and_limits() -> None:
    model = unpacked("y = MatMul(x, e)")
    few = irc.Limits(bytes=NUMBERS.nbytes // 2)
    with pytest.raises(Error, match="IRC442"):
        model.run({"x": X}, limits=few)
    first = model.run({"x": X}, limits=irc.Limits(bytes=3 * NUMBERS.nbytes))["y"]
    np.testing.assert_array_equal(model.run({"x": X}, limits=few)["y"], first)


def test_what_a_later_run_keeps_is_not_in_memory_that_runs_use_again() -> None:
    """Runs of little memory do not keep what a group makes, and plan where it lies; one that may use more keeps it."""
    model = unpacked(f"n = MatMul(MatMul(x, e), {unpacking('r')}); y = MatMul(n, Tanh(MatMul(Transpose(n), n)))")
    few = irc.Limits(bytes=2 * NUMBERS.nbytes - 1)
    first = model.run({"x": X}, limits=few)["y"]
    for limits in (few, few, None, None, None):
        np.testing.assert_array_equal(model.run({"x": X}, limits=limits)["y"], first)
    assert model.profile({"x": X}).counters.kernels < 9, "both are kept"


INTEGER = [
    ("MatMulInteger(x, w, one, z)", (64, 64), (3, 64)),
    ("MatMulInteger(x, w)", (64, 64), (3, 64)),
    ("ConvInteger(x, w, one)", (4, 2, 3, 3), (1, 2, 9, 9)),
    ("QLinearMatMul(x, f, one, w, f, z, f, one)", (64, 64), (3, 64)),
    ("QLinearConv(x, f, one, w, f, zero, f, one)", (4, 2, 3, 3), (1, 2, 9, 9)),
]


@pytest.mark.parametrize(("call", "shape", "sizes"), INTEGER)
def test_integer_weights_are_made_floats_once(
    call: str, shape: tuple[int, ...], sizes: tuple[int, ...], spy: Spy
) -> None:
    made = spy(quantized, "_weights")
    constants = {
        "w": RNG.integers(-128, 128, shape).astype(np.int8),
        "z": ZERO,
        "zero": np.array(3, np.int8),
        "one": np.array(7, np.uint8),
        "f": np.array(0.25, np.float32),
    }
    inputs = f"x: Byte({', '.join('abcd'[: len(sizes)])})" + "".join(typed(*each) for each in constants.items())
    text = ir(inputs, f"y = {call}", "y")
    model, x = compiled(text, constants), RNG.integers(0, 256, sizes).astype(np.uint8)
    results = [model.run({"x": x})["y"] for _ in range(3)]
    assert [call.args[0].size for call in made.call_args_list] == [constants["w"].size]
    few = irc.Limits(bytes=1 << 13)
    other = compiled(text, constants)
    for _ in range(2):
        np.testing.assert_array_equal(other.run({"x": x}, limits=few)["y"], results[0])
    assert made.call_count == (3 if constants["w"].size > 1000 else 2)
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("most", [0, WEIGHTS.nbytes - 1, WEIGHTS.nbytes, 2 * WEIGHTS.nbytes])
def test_what_is_kept_is_bounded(most: int, made: list[int], tune: Tune) -> None:
    tune("irc.runtime.prepack.MOST_BYTES", most)
    model = quantised("v = DequantizeLinear(q, 0.5); y = MatMul(MatMul(x, w), v)")
    results = [model.run({"x": X})["y"] for _ in range(3)]
    assert len(made) == (6 if most < WEIGHTS.nbytes else 4)  # of one constant, one thing
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ("y = Relu_(w)", "y"),
        ("v = Relu_(w); y = Add(w, v)", "y"),
        ("y = Neg_(Transpose(w))", "w"),
        ("y = Neg(w)", "y"),
        ("", "w"),
        ("y = Transpose(w)", "y, w"),
        ("y = Neg_(Neg(w))", "y"),
    ],
)
def test_nobody_writes_what_is_kept(body: str, outputs: str) -> None:
    model, inplace_variant = (quantised(body, outputs, passes="none") for _ in range(2))
    for _ in range(4):
        expected = inplace_variant.run({"x": X}, limits=irc.Limits(bytes=1 << 20))
        for found, right in zip(model.run({"x": X}).values(), expected.values(), strict=True):
            np.testing.assert_array_equal(found, right)
            assert found.flags.writeable
            found[:] = 7


def test_nor_does_who_calls_the_function_that_makes_it(made: list[int]) -> None:
    function = ir(DEQUANTISED, "w = DequantizeLinear(q, s, z); y = MatMul(x, w)", "y, w")
    text = f"""graph(%x : Float(n, {SIZE})):
  %f : Function = prim::Constant[name="weights"]()
  %p, %w = prim::CallFunction(%f, %x)
  %v = onnx::Neg_(%w)
  %y = onnx::MatMul(%p, %v)
  return (%y)

{function.replace("graph", "graph weights", 1)}"""
    model = compiled(text, {"q": Q, "s": SCALE, "z": ZERO}, passes="none")
    for _ in range(3):
        np.testing.assert_allclose(model.run({"x": X})["y"], X @ WEIGHTS @ -WEIGHTS, rtol=1e-3, atol=1e-2)
    assert len(made) == 3


def test_threads_may_run_it_first_at_once() -> None:
    expected = quantised().run({"x": X})["y"]
    for _ in range(5):
        model, start = quantised(), Barrier(4)

        def run(_: int, model: CompiledModel = model, start: Barrier = start) -> np.ndarray[Any, Any]:
            start.wait()
            return model.run({"x": X})["y"]

        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(run, range(4)):
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("files", ["runtime/prepack.py", "runtime/kernels"])
def test_interrupts_leave_nothing_half_made(files: str) -> None:
    expected = quantised().run({"x": X})["y"]
    for at in range(1, 1000):
        model = quantised()
        stopped = interrupted(lambda model=model: model.run({"x": X}), at, files)
        for _ in range(3):
            np.testing.assert_array_equal(model.run({"x": X})["y"], expected)
        if not stopped:
            break
    assert 1 < at < 900


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("rows", [1, 8])
def test_views_of_what_is_kept_are_constants_too(rows: int, backend: str, made: list[int]) -> None:
    body = "y = MatMul(x, Transpose(Reshape(DequantizeLinear(q, 0.5), [192, 160]), perm=[1, 0]))"
    text = typed_ir("x: Float(n, 160); q: @Char(2, 96, 160)", body, "y")
    q, x = RNG.integers(-99, 99, (2, 96, 160)).astype(np.int8), RNG.standard_normal((rows, 160)).astype(np.float32)
    model = compiled(text, {"q": q}, backend=backend)
    wanted = x @ (q.reshape(192, 160).T * np.float32(0.5))
    for limits in (None, None, irc.Limits(bytes=1 << 22), None):
        np.testing.assert_allclose(model.run({"x": x}, limits=limits)["y"], wanted, rtol=1e-4, atol=1e-2)
    assert made == [q.size]
