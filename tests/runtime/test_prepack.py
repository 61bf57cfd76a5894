"""Constants that runs prepare once: quantised weights as floats, halves as float32."""

import json
import re
from collections.abc import Mapping
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
from tests.runtime.helpers import interrupted

SIZE = 64
RNG = np.random.default_rng(0)
Q = RNG.integers(-128, 128, (SIZE, SIZE)).astype(np.int8)
SCALE, ZERO = RNG.uniform(0.01, 0.02, SIZE).astype(np.float32), RNG.integers(-9, 9, SIZE).astype(np.int8)
WEIGHTS = (Q.astype(np.float32) - ZERO.astype(np.float32)) * SCALE
X = RNG.standard_normal((3, SIZE)).astype(np.float32)
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
NAMES = {**dict(zip(HALVES, ("Half", "BFloat16"), strict=True)), np.dtype(np.float32): "Float"}

CONSTANTS = f"""  %q : Char({SIZE}, {SIZE}) = prim::Constant[value=@"q"]()
  %s : Float({SIZE}) = prim::Constant[value=@"s"]()
  %z : Char({SIZE}) = prim::Constant[value=@"z"]()
  %w : Float({SIZE}, {SIZE}) = onnx::DequantizeLinear(%q, %s, %z)
"""


def quantised(
    rest: str = "  %y : Float(*) = onnx::MatMul(%x, %w)\n  return (%y)",
    weights: Mapping[str, np.ndarray[Any, Any]] = {},
    **more: Any,
) -> CompiledModel:
    named = {"q": Q, "s": SCALE, "z": ZERO, **weights}
    text = f"graph(%x : Float(n, {SIZE})):\n{CONSTANTS}{rest}\n"
    tensors = {name: Tensor.of(array, name) for name, array in named.items()}
    return irc.compile(parse_graph(text, weights=tensors), **more)


def half(dtype: np.dtype[Any], rest: str, weight: np.ndarray[Any, Any], shape: str) -> CompiledModel:
    name = NAMES[dtype]
    sizes = ", ".join(map(str, weight.shape))
    text = (
        f'graph(%x : {name}({shape})):\n  %w : {name}({sizes}) = prim::Constant[value=@"w"]()\n{rest}\n  return (%y)\n'
    )
    return irc.compile(parse_graph(text.replace("Any", name), weights={"w": Tensor.of(weight.astype(dtype), "w")}))


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
    text = """graph(%x : Float(n)):
  %q : Int(2) = prim::Constant[value=tensor([3, 4])]()
  %s : Float() = prim::Constant[value=tensor([0.5])]()
  %w : Float(2) = onnx::DequantizeLinear(%q, %s)
  %y : Float(*) = onnx::Add(%x, %w)
  return (%y)
"""
    model = irc.compile(parse_graph(text))
    assert "DequantizeLinear" in str(model.graph)
    assert model.run({"x": np.zeros(2, np.float32)})["y"].tolist() == [1.5, 2]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(
    ("rest", "shape", "sizes"),
    [
        ("  %y : Any(*) = onnx::MatMul(%x, %w)", (70, 80), (3, 70)),
        ("  %p : Any(*) = onnx::MatMul(%x, %w)\n  %y : Any(*) = onnx::Relu(%p)", (70, 80), (2, 3, 70)),
        ("  %y : Any(*) = onnx::Gemm[transB=1](%x, %w)", (80, 70), (3, 70)),
        ('  %y : Any(*) = onnx::Einsum[equation="ij,jk->ik"](%x, %w)', (70, 80), (3, 70)),
        ("  %y : Any(*) = onnx::RNN[hidden_size=64](%x, %w, %w)", (1, 64, 64), (3, 2, 64)),
        ("  %y : Any(*) = onnx::Conv(%x, %w)", (8, 4, 3, 3), (1, 4, 9, 9)),
    ],
)
def test_halves_are_widened_once(
    rest: str, shape: tuple[int, ...], sizes: tuple[int, ...], dtype: np.dtype[Any], made: list[int]
) -> None:
    weight, x = RNG.standard_normal(shape).astype(dtype), RNG.standard_normal(sizes).astype(dtype)
    model = half(dtype, rest, weight, ", ".join("abcd"[: len(sizes)]))
    found = [model.run({"x": x})["y"] for _ in range(4)]
    assert made == [weight.size]
    limited = model.run({"x": x}, limits=irc.Limits(bytes=1 << 20))["y"]
    fresh = half(dtype, rest, weight, ", ".join("abcd"[: len(sizes)]))
    expected = fresh.run({"x": x}, limits=irc.Limits(bytes=1 << 20))["y"]
    for array in (*found, limited):
        assert array.dtype == dtype
        np.testing.assert_array_equal(array.view(np.int16), expected.view(np.int16))


@pytest.mark.parametrize("dtype", [*HALVES, np.dtype(np.float32)], ids=str)
def test_filters_of_transposed_convolutions_are_cut_once(dtype: np.dtype[Any], spy: Spy) -> None:
    cut = spy(convolution, "_filters_by_phase")
    weight, x = RNG.standard_normal((4, 8, 3, 3)).astype(dtype), RNG.standard_normal((1, 4, 9, 9)).astype(dtype)
    rest = "  %y : Any(*) = onnx::ConvTranspose[strides=[2, 2]](%x, %w)"
    model = half(dtype, rest, weight, "a, b, c, d")
    found = [model.run({"x": x})["y"] for _ in range(4)]
    assert cut.call_count == 1
    for array in found:
        np.testing.assert_array_equal(array.view(f"i{dtype.itemsize}"), found[0].view(f"i{dtype.itemsize}"))


ATEN = [
    ("aten::mm(%x, %w)", (70, 80), (3, 70)),
    ("aten::matmul(%x, %w)", (70, 80), (2, 3, 70)),
    ("aten::matmul(%w, %x)", (80, 70), (70, 3)),
    ("aten::linear(%x, %w, %none)", (80, 70), (3, 70)),
    ("aten::linear(%x, %w, %bias)", (9, 70), (4, 70)),
    ("aten::addmm(%bias, %x, %w, %one, %two)", (70, 9), (3, 70)),
    ("aten::bmm(%x, %w)", (4, 70, 9), (4, 3, 70)),
    ("aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %one)", (8, 4, 3, 3), (1, 4, 9, 9)),
    ("aten::conv1d(%x, %w, %bias, %ones, %ones, %ones, %one)", (9, 4, 3), (1, 4, 9)),
    ("aten::conv_transpose1d(%x, %w, %bias, %ones, %ones, %zeros, %one, %ones)", (4, 9, 3), (1, 4, 9)),
]


def torch_half(dtype: np.dtype[Any], call: str, weight: np.ndarray[Any, Any]) -> CompiledModel:
    rank = 2 if "2d" in call else 1
    constants = {"none": ("NoneType", None), "one": ("int", 1), "two": ("int", 2)}
    constants |= {"ones": ("int[]", [1] * rank), "zeros": ("int[]", [0] * rank)}
    lines = [
        f"  %{name} : {kind} = prim::Constant[value={value}]()\n"
        for name, (kind, value) in constants.items()
        if f"%{name}" in call
    ]
    bias = f'  %bias : {NAMES[dtype]}(9) = prim::Constant[value=@"bias"]()\n'
    rest = "".join(lines) + (bias if "%bias" in call else "") + f"  %y : Tensor = {call}\n  return (%y)\n"
    sizes = ", ".join(map(str, weight.shape))
    text = f'graph(%x : Tensor):\n  %w : {NAMES[dtype]}({sizes}) = prim::Constant[value=@"w"]()\n{rest}'
    weights = {"w": weight, "bias": np.linspace(-1, 1, 9).astype(dtype)}
    return irc.compile(parse_graph(text, weights={name: Tensor.of(array, name) for name, array in weights.items()}))


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


def test_one_weight_of_two_products_is_widened_once(made: list[int]) -> None:
    weight = RNG.standard_normal((SIZE, SIZE)).astype(np.float16)
    rest = "  %p : Half(*) = onnx::MatMul(%x, %w)\n  %y : Half(*) = onnx::MatMul(%p, %w)"
    model = half(np.dtype(np.float16), rest, weight, "n, m")
    model.run({"x": X.astype(np.float16)})
    assert made == [weight.size]


def test_runs_of_limited_memory_keep_no_more_than_they_may_use(made: list[int]) -> None:
    model, needed = quantised(), WEIGHTS.nbytes
    for _ in range(2):
        with pytest.raises(Error, match="IRC442"):
            model.run({"x": X}, limits=irc.Limits(bytes=needed - 1))
    assert len(made) == 2
    for most in (needed + X.nbytes, needed // 2):  # which are the model's, and count no more
        model.run({"x": X}, limits=irc.Limits(bytes=most))
    assert len(made) == 3


def test_all_that_is_kept_counts_for_a_limit(made: list[int]) -> None:
    other = (
        '  %t : Float() = prim::Constant[value=tensor([0.5])]()\n  %u : Char(64, 64) = prim::Constant[value=@"u"]()\n'
    )
    sum_of = (
        "  %v : Float(*) = onnx::DequantizeLinear(%u, %t)\n  %p : Float(*) = onnx::MatMul(%x, %w)\n"
        "  %y : Float(*) = onnx::MatMul(%p, %v)\n  return (%y)"
    )
    model = quantised(other + sum_of, weights={"u": -Q})
    for times in (3, 4):  # the second of them anew, for so much may be used, but not kept
        model.run({"x": X}, limits=irc.Limits(bytes=2 * WEIGHTS.nbytes - 1))
        assert len(made) == times - 1
    model.run({"x": X}, limits=irc.Limits(bytes=2 * WEIGHTS.nbytes))
    model.run({"x": X}, limits=irc.Limits(bytes=2 * X.nbytes))
    assert len(made) == 4


PACKED = RNG.integers(0, 256, (SIZE, 2, 16, 1)).astype(np.uint8)
SCALES = RNG.uniform(0.01, 0.02, (SIZE, 2, 1, 1)).astype(np.float32)
UNPACKED = """graph(%x : Float(n, 64)):
  %q : Byte(64, 2, 16, 1) = prim::Constant[value=@"q"]()
  %by : Byte(2) = prim::Constant[value=tensor([0, 4])]()
  %low : Byte() = prim::Constant[value=tensor([15])]()
  %s : Float(64, 2, 1, 1) = prim::Constant[value=@"s"]()
  %square : Long(2) = prim::Constant[value=tensor([64, 64])]()
  %a : Byte(*) = onnx::BitShift[direction="RIGHT"](%q, %by)
  %b : Byte(*) = onnx::BitwiseAnd(%a, %low)
  %c : Float(*) = onnx::Cast[to=1](%b)
  %d : Float(64, 2, 16, 2) = onnx::Mul(%c, %s)
  %e : Float(64, 64) = onnx::Reshape(%d, %square)
"""


def unpacked(rest: str) -> CompiledModel:
    weights = {name: Tensor.of(array, name) for name, array in {"q": PACKED, "s": SCALES}.items()}
    return irc.compile(parse_graph(UNPACKED + rest, weights=weights), passes="fuse")


NUMBERS = (np.concatenate([PACKED & 15, PACKED >> 4], -1) * SCALES).reshape(SIZE, SIZE)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("  %y : Float(*) = onnx::MatMul(%x, %e)\n  return (%y)", X @ NUMBERS),
        ("  %f : Float(*) = onnx::Transpose(%e)\n  %y : Float(*) = onnx::MatMul(%x, %f)\n  return (%y)", X @ NUMBERS.T),
        ("  return (%e)", NUMBERS),
        ("  %y : Float(*) = onnx::MatMul(%x, %e)\n  %z : Float(*) = onnx::Neg_(%e)\n  return (%y)", X @ NUMBERS),
    ],
)
def test_packed_weights_are_unpacked_once(rest: str, expected: np.ndarray[Any, Any]) -> None:
    model = unpacked(rest)
    assert "BitShift" in str(model.graph)
    for _ in range(4):
        (found,) = model.run({"x": X}).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert found.flags.writeable
        found[:] = 7
    kernels = [model.profile({"x": X}).counters.kernels for _ in range(2)]
    assert kernels[0] == kernels[1] < (4 if "MatMul" in rest and "Neg_" not in rest else 9)


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("int", 2),
        ("float", 2.0),
        ("bool", True),
        ("str", "a"),
        ("NoneType", None),
    ],
)
@pytest.mark.parametrize("limits", [None, irc.Limits(bytes=1000)])
def test_of_what_a_group_gives_only_tensors_are_kept(type: str, value: object, limits: irc.Limits | None) -> None:
    text = f"""
    graph(%x : Float(2)):
      %k : {type}, %c : Float(2), %d : Float(2), %e : Float(2) = prim::FusionGroup_0()
      %y : Float(2) = onnx::Sum(%x, %c, %d, %e)
      return (%y, %k)
    with prim::FusionGroup_0 = graph():
      %k : {type} = prim::Constant[value={json.dumps(value) if isinstance(value, str) else value}]()
      %c : Float(2) = prim::Constant[value=tensor([1., 2.])]()
      %d : Float(2) = onnx::Neg(%c)
      return (%k, %c, %d, %d)
    """
    model = irc.compile(parse_graph(text), passes="none")
    for _ in range(3):
        y, k = model.run({"x": np.zeros(2, np.float32)}, limits=limits).values()
        assert (y.tolist(), k) == ([-1, -2], value)
    kernels = [model.profile({"x": np.zeros(2, np.float32)}).counters.kernels for _ in range(2)]
    assert kernels == [1, 1]


def test_packed_weights_and_limits() -> None:
    model = unpacked("  %y : Float(*) = onnx::MatMul(%x, %e)\n  return (%y)")
    few = irc.Limits(bytes=NUMBERS.nbytes // 2)
    with pytest.raises(Error, match="IRC442"):
        model.run({"x": X}, limits=few)
    first = model.run({"x": X}, limits=irc.Limits(bytes=3 * NUMBERS.nbytes))["y"]
    np.testing.assert_array_equal(model.run({"x": X}, limits=few)["y"], first)


def test_what_a_later_run_keeps_is_not_in_memory_that_runs_use_again() -> None:
    """Runs of little memory do not keep what a group makes, and plan where it lies; one that may use more keeps it."""
    own = [line for line in UNPACKED.splitlines()[1:] if line.split()[0] in ("%q", "%a", "%b", "%c", "%d", "%e")]
    second = re.sub(r"%([qabcde])\b", r"%\g<1>2", "\n".join(own)).replace('@"q"', '@"r"')
    rest = f"""  %m : Float(*) = onnx::MatMul(%x, %e)
{second}
  %n : Float(*) = onnx::MatMul(%m, %e2)
  %t : Float(*) = onnx::Transpose(%n)
  %square_of : Float(*) = onnx::MatMul(%t, %n)
  %h : Float(*) = onnx::Tanh(%square_of)
  %y : Float(*) = onnx::MatMul(%n, %h)
  return (%y)
"""
    arrays = {"q": PACKED, "r": PACKED[::-1].copy(), "s": SCALES}
    weights = {name: Tensor.of(array, name) for name, array in arrays.items()}
    model = irc.compile(parse_graph(UNPACKED + rest, weights=weights), passes="fuse")
    few = irc.Limits(bytes=2 * NUMBERS.nbytes - 1)
    first = model.run({"x": X}, limits=few)["y"]
    for limits in (few, few, None, None, None):
        np.testing.assert_array_equal(model.run({"x": X}, limits=limits)["y"], first)
    assert model.profile({"x": X}).counters.kernels < 9, "both are kept"


INTEGER = [
    ("onnx::MatMulInteger(%x, %w, %one, %z)", (64, 64), (3, 64)),
    ("onnx::MatMulInteger(%x, %w)", (64, 64), (3, 64)),
    ("onnx::ConvInteger(%x, %w, %one)", (4, 2, 3, 3), (1, 2, 9, 9)),
    ("onnx::QLinearMatMul(%x, %f, %one, %w, %f, %z, %f, %one)", (64, 64), (3, 64)),
    ("onnx::QLinearConv(%x, %f, %one, %w, %f, %zero, %f, %one)", (4, 2, 3, 3), (1, 2, 9, 9)),
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
    names = {"int8": "Char", "uint8": "Byte", "float32": "Float"}
    used = {name: array for name, array in constants.items() if f"%{name}," in call or f"%{name})" in call}
    types = {name: f"{names[x.dtype.name]}({', '.join(map(str, x.shape))})" for name, x in used.items()}
    lines = [f'  %{name} : {type} = prim::Constant[value=@"{name}"]()\n' for name, type in types.items()]
    text = (
        f"graph(%x : Byte({', '.join('abcd'[: len(sizes)])})):\n{''.join(lines)}  %y : Tensor = {call}\n  return (%y)\n"
    )

    def compiled() -> CompiledModel:
        return irc.compile(parse_graph(text, weights={name: Tensor.of(array, name) for name, array in used.items()}))

    model, x = compiled(), RNG.integers(0, 256, sizes).astype(np.uint8)
    results = [model.run({"x": x})["y"] for _ in range(3)]
    assert [call.args[0].size for call in made.call_args_list] == [constants["w"].size]
    few = irc.Limits(bytes=1 << 13)
    other = compiled()
    for _ in range(2):
        np.testing.assert_array_equal(other.run({"x": x}, limits=few)["y"], results[0])
    assert made.call_count == (3 if constants["w"].size > 1000 else 2)
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("most", [0, WEIGHTS.nbytes - 1, WEIGHTS.nbytes, 2 * WEIGHTS.nbytes])
def test_what_is_kept_is_bounded(most: int, made: list[int], tune: Tune) -> None:
    tune("irc.runtime.prepack.MOST_BYTES", most)
    other = "  %t : Float() = prim::Constant[value=tensor([0.5])]()\n  %v : Float(*) = onnx::DequantizeLinear(%q, %t)\n"
    sum_of = "  %p : Float(*) = onnx::MatMul(%x, %w)\n  %y : Float(*) = onnx::MatMul(%p, %v)\n  return (%y)"
    model = quantised(other + sum_of)
    results = [model.run({"x": X})["y"] for _ in range(3)]
    assert len(made) == (6 if most < WEIGHTS.nbytes else 4)  # of one constant, one thing
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize(
    "rest",
    [
        "  %y : Float(*) = onnx::Relu_(%w)\n  return (%y)",
        "  %v : Float(*) = onnx::Relu_(%w)\n  %y : Float(*) = onnx::Add(%w, %v)\n  return (%y)",
        "  %v : Float(*) = onnx::Transpose(%w)\n  %y : Float(*) = onnx::Neg_(%v)\n  return (%w)",
        "  %y : Float(*) = onnx::Neg(%w)\n  return (%y)",
        "  return (%w)",
        "  %y : Float(*) = onnx::Transpose(%w)\n  return (%y, %w)",
        "  %v : Float(*) = onnx::Neg(%w)\n  %y : Float(*) = onnx::Neg_(%v)\n  return (%y)",
    ],
)
def test_nobody_writes_what_is_kept(rest: str) -> None:
    model, inplace_variant = quantised(rest, passes="none"), quantised(rest, passes="none")
    for _ in range(4):
        expected = inplace_variant.run({"x": X}, limits=irc.Limits(bytes=1 << 20))
        for found, right in zip(model.run({"x": X}).values(), expected.values(), strict=True):
            np.testing.assert_array_equal(found, right)
            assert found.flags.writeable
            found[:] = 7


def test_nor_does_who_calls_the_function_that_makes_it(made: list[int]) -> None:
    rest = "  %y : Float(*) = onnx::MatMul(%x, %w)\n  return (%y, %w)"
    functions = f"\ngraph weights(%x : Float(n, {SIZE})):\n{CONSTANTS}{rest}\n"
    text = f"""graph(%x : Float(n, {SIZE})):
  %f : Function = prim::Constant[name="weights"]()
  %p : Float(*), %w : Float({SIZE}, {SIZE}) = prim::CallFunction(%f, %x)
  %v : Float(*) = onnx::Neg_(%w)
  %y : Float(*) = onnx::MatMul(%p, %v)
  return (%y)
"""
    weights = {name: Tensor.of(array, name) for name, array in {"q": Q, "s": SCALE, "z": ZERO}.items()}
    model = irc.compile(parse_module(text + functions, weights=weights), passes="none")
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
    text = """graph(%x : Float(n, 160)):
  %q : Char(2, 96, 160) = prim::Constant[value=@"q"]()
  %s : Float() = prim::Constant[value=tensor([0.5])]()
  %n : Long(2) = prim::Constant[value=tensor([192, 160])]()
  %w : Float(2, 96, 160) = onnx::DequantizeLinear(%q, %s)
  %v : Float(192, 160) = onnx::Reshape(%w, %n)
  %t : Float(160, 192) = onnx::Transpose[perm=[1, 0]](%v)
  %y : Float(n, 192) = onnx::MatMul(%x, %t)
  return (%y)
"""
    q, x = RNG.integers(-99, 99, (2, 96, 160)).astype(np.int8), RNG.standard_normal((rows, 160)).astype(np.float32)
    model = irc.compile(parse_graph(text, weights={"q": Tensor.of(q, "q")}), backend=backend)
    wanted = x @ (q.reshape(192, 160).T * np.float32(0.5))
    for limits in (None, None, irc.Limits(bytes=1 << 22), None):
        np.testing.assert_allclose(model.run({"x": x}, limits=limits)["y"], wanted, rtol=1e-4, atol=1e-2)
    assert made == [q.size]
