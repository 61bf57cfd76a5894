"""What a run may use: steps, memory, time. Each limit names the node, itself and the option."""

import time
import tracemalloc
from dataclasses import astuple
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import irc
from irc.ir import parse_module
from irc.ops.sizes import ENTRY_BYTES
from irc.runtime.bounds import CURRENT, in_own_scope, in_turn
from irc.runtime.limits import LimitGuard, Limits
from tests.effort import Tune
from tests.graphs import ir, ir_module
from tests.kernels.helpers import bind
from tests.models import onnx_model

STRING = TensorProto.STRING


def compiled(inputs: str, body: str, outputs: str, passes: str = "default", **options: Any) -> irc.CompiledModel:
    """The model of a graph, whose parts `tests.graphs.ir` takes."""
    return irc.compile(ir_module(inputs, body, outputs), passes, **options)


def loop(inner: str, kind: str = "Float(*)", row: str = "") -> str:
    """A Loop of ``m`` iterations over ``x0``, which the statement ``inner`` makes of ``x``; with a scan output ``row``.

    Errors in the loop itself name ``again``, those in it ``double``.
    """
    results, also, passed = ("again, rows", f"; row = {row}", ", row") if row else (f"again: {kind!r}", "", "")
    params = f"i=Long(), go=Bool(), x={kind!r}"
    body = f"go_on = Identity(go); double: {kind!r} = {inner}{also}; yield go_on, double{passed}"
    return f"{results} = Loop(m, None, x0)\nwith block({params}): {body}"


def doubling(inner: str = "Add(x, x)", kind: str = "Float(*)") -> irc.CompiledModel:
    return compiled(f"m: Long(); x0: {kind}", loop(inner, kind), "again")


def refused(model: Any, feeds: dict[str, Any], code: str, *words: str, **limits: Any) -> None:
    with pytest.raises(irc.Error) as caught:
        model.run(feeds, limits=Limits(**limits))
    assert caught.value.code == code, caught.value
    for word in words:
        assert word in str(caught.value)
    assert CURRENT.scope.guard is None


def test_what_an_operator_was_given_is_not_called_absent() -> None:
    model = node_model("Exp", {"x": ONE})
    with pytest.raises(irc.Error, match=r"^IRC442: onnx::Exp '%?\w+': .*in use") as caught:
        model.run({"x": ONE}, limits=Limits(bytes=10))
    assert "absent" not in caught.value.message


FOREVER = np.array(2**62)
ONE = np.ones(4, np.float32)


def test_steps_are_nodes_and_iterations() -> None:
    model, feeds = doubling(), {"m": np.array(3), "x0": ONE}
    # The graph and the Loop; of each iteration the iteration itself and two nodes.
    used = 2 + 3 * 2
    with_identity = next(n for n in range(used, 30) if _runs(model, feeds, n))
    refused(model, feeds, "IRC441", "Limits.steps", "--max-steps", str(with_identity - 1), steps=with_identity - 1)
    refused(model, {"m": np.array(4), "x0": ONE}, "IRC441", steps=with_identity)
    np.testing.assert_array_equal(model.run(feeds)["again"], 8 * ONE)


def _runs(model: Any, feeds: dict[str, Any], steps: int) -> bool:
    try:
        model.run(feeds, limits=Limits(steps=steps))
    except irc.Error as error:
        return error.code != "IRC441"
    return True


@pytest.mark.parametrize(("inner", "where"), [("Add(x, x)", "double"), ("Identity(x)", "again")])
def test_a_loop_without_end_ends_and_the_model_runs_again(inner: str, where: str) -> None:
    model = doubling(inner)
    refused(model, {"m": FOREVER, "x0": ONE}, "IRC441", where, steps=1000)
    refused(model, {"m": FOREVER, "x0": ONE}, "IRC443", "Limits.seconds", "--max-seconds", "0.05", seconds=0.05)
    np.testing.assert_array_equal(model.run({"m": np.array(2), "x0": ONE})["again"], 4 * ONE if "Add" in inner else ONE)


def test_a_scan_over_very_many_elements_ends() -> None:
    model = compiled(
        "x: Float(n)", "z = onnx.Scan(x, num_scan_inputs=1)\nwith block(a=Float()): yield Identity(a)", "z"
    )
    refused(model, {"x": np.zeros(100_000, np.float32)}, "IRC441", "'%z'", steps=5000)
    assert model.run({"x": ONE}, limits=Limits(steps=5000))["z"].shape == (4,)


def test_functions_that_double_each_other_end_when_they_stay_calls() -> None:
    call = "f{0}: Function = prim.Constant(name='F{0}'); c = prim.CallFunction(f{0}, a); z = prim.CallFunction(f{0}, c)"
    parts = ["a: Tensor -> z\n" + call.format(39), "F0 | a: Tensor -> z\nz = Neg(a)"]
    parts += [f"F{i} | a: Tensor -> z\n{call.format(i - 1)}" for i in range(1, 40)]
    module = ir_module("\n\n".join(parts))
    with pytest.raises(irc.Error, match="IRC308"):
        irc.compile(module)
    model = irc.compile(module, "none")
    refused(model, {"a": ONE}, "IRC441", steps=10_000)
    refused(model, {"a": ONE}, "IRC443", seconds=0.05)


# -- memory --------------------------------------------------------------------

MIB = 1 << 20


def node_model(op: str, inputs: dict[str, np.ndarray], domain: str = "", **attributes: Any) -> irc.CompiledModel:
    """One operator whose inputs are all given at run time, so that nothing is known before."""
    node = helper.make_node(op, list(inputs), ["z"], name="it", domain=domain, **attributes)
    kinds = {name: (helper.np_dtype_to_tensor_dtype(x.dtype), [None] * x.ndim) for name, x in inputs.items()}
    return irc.compile(onnx_model(node, kinds, "z", opset=20))


def f32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def i64(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


LARGE = {
    "Expand": ({"x": f32(1), "shape": i64(1 << 20)}, {}),
    "Tile": ({"x": f32(4), "repeats": i64(1 << 18)}, {}),
    "ConstantOfShape": ({"shape": i64(1 << 10, 1 << 10)}, {}),
    "Range": ({"start": np.array(0), "end": np.array(1 << 20), "step": np.array(1)}, {}),
    "Resize": ({"x": f32(1, 1, 2, 2), "roi": f32(0), "scales": np.float32([1, 1, 512, 512])}, {}),
    "OneHot": ({"i": i64(*range(64)), "depth": np.array(1 << 14), "values": np.float32([0, 1])}, {}),
    "Pad": ({"x": f32(2), "pads": i64(1 << 19, 1 << 19)}, {}),
    "Gather": ({"x": f32(1, 1024), "i": np.zeros(1024, np.int64)}, {}),
    "GatherND": ({"x": f32(1, 1024), "i": np.zeros((1024, 1), np.int64)}, {}),
    "Add": ({"x": f32(1024, 1), "y": f32(1, 1024)}, {}),
    "Where": ({"c": np.ones((1024, 1), np.bool_), "x": f32(1, 1024), "y": f32(1)}, {}),
    "MatMul": ({"x": f32(1024, 1), "y": f32(1, 1024)}, {}),
    "Gemm": ({"x": f32(1024, 1), "y": f32(1, 1024)}, {}),
    "Einsum": ({"x": f32(1024), "y": f32(1024)}, {"equation": "i,j->ij"}),
    "Conv": ({"x": f32(1, 1, 4, 4), "w": f32(1, 1, 1, 1)}, {"pads": [512] * 4}),
    "ConvTranspose": ({"x": f32(1, 1, 4, 4), "w": f32(1, 1, 1, 1)}, {"strides": [400, 400]}),
    "MaxPool": ({"x": f32(1, 1, 4, 4)}, {"kernel_shape": [600, 600], "pads": [599] * 4}),
    "EyeLike": ({"x": np.broadcast_to(np.float32(1), (1024, 1024))}, {}),
    "Relu": ({"x": np.broadcast_to(np.float32(1), (1024, 1024))}, {}),
    "Cast": ({"x": np.broadcast_to(np.float32(1), (1024, 512))}, {"to": TensorProto.DOUBLE}),
    "CastLike": ({"x": np.ones(1 << 19, np.bool_), "like": np.ones(1)}, {}),
    "NonZero": ({"x": np.ones((2,) * 16, np.bool_)}, {}),
    "CenterCropPad": ({"x": f32(2, 2), "shape": i64(1 << 10, 1 << 10)}, {}),
    "Bernoulli": ({"x": np.ones((1 << 8, 1 << 10), np.float16)}, {"dtype": TensorProto.DOUBLE}),
    "BlackmanWindow": ({"n": np.array(1 << 20)}, {}),
    "RandomNormal": ({}, {"shape": [1 << 19], "dtype": TensorProto.FLOAT16}),
    "RandomUniform": ({}, {"shape": [1 << 10, 1 << 10]}),
    "RandomNormalLike": ({"x": np.ones(1 << 19, np.uint8)}, {"dtype": TensorProto.DOUBLE}),
    "AffineGrid": ({"theta": f32(2, 2, 3), "size": i64(2, 1, 1 << 9, 1 << 10)}, {}),
    "Col2Im": ({"x": f32(1, 1, 1), "image": i64(1 << 10, 1 << 10), "block": i64(1, 1)}, {"strides": [2000] * 2}),
    "DFT": ({"x": f32(1, 4, 1), "length": np.array(1 << 20)}, {}),
    "MelWeightMatrix": (
        {
            "bins": np.array(1 << 10),
            "n": np.array(1 << 11),
            "rate": np.array(1 << 13),
            "low": f32(),
            "high": f32() * 99,
        },
        {},
    ),
}


@pytest.mark.parametrize("type", [np.uint8, np.float32, np.bool_])
def test_strings_take_more_than_their_numbers(type: Any) -> None:
    inputs = {"x": np.ones(1 << 16, type)}
    model = node_model("Cast", inputs, to=STRING)
    tracemalloc.start()
    try:
        refused(model, inputs, "IRC442", "Cast", bytes=MIB)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    model.run(inputs, limits=Limits(bytes=16 * MIB))


@pytest.mark.parametrize("op", LARGE)
def test_what_would_be_too_large_is_refused_before_it_is_there(op: str) -> None:
    """All results have at least 4 MiB, the limit is 1 MiB; and with enough, it runs."""
    inputs, attributes = LARGE[op]
    model = node_model(op, inputs, **attributes)
    tracemalloc.start()
    try:
        refused(model, inputs, "IRC442", "Limits.bytes", "--max-bytes", f"{MIB:,} bytes", bytes=MIB)
        assert tracemalloc.get_traced_memory()[1] < 3 * MIB
    finally:
        tracemalloc.stop()
    model.run(inputs, limits=Limits(bytes=256 * MIB))


def test_einsum_asks_for_the_steps_of_its_contraction() -> None:
    inputs = {"x": f32(1024, 1), "y": f32(1, 1024), "w": f32(1024, 1)}
    chain = node_model("Einsum", inputs, equation="ij,jk,kl->il")  # y with w first, and never 1024 x 1024
    assert chain.run(inputs, limits=Limits(bytes=MIB))["z"].shape == (1024, 1)
    outer = node_model("Einsum", inputs, equation="...j,jk,l...->...kl")
    refused(outer, inputs, "IRC442", "Einsum", bytes=MIB)


def test_rows_of_a_loop() -> None:
    model = compiled("m: Long(); x0: Float(4)", loop("Identity(x)", "Float(4)", "Neg(x)"), "again, rows")
    refused(model, {"m": FOREVER, "x0": ONE}, "IRC442", "again", bytes=MIB)
    assert model.run({"m": np.array(9), "x0": ONE}, limits=Limits(bytes=MIB))["rows"].shape == (9, 4)


def test_what_doubles() -> None:
    text = doubling("StringConcat(x, x)", "String(*)")
    refused(text, {"m": np.array(62), "x0": np.array(["ab"])}, "IRC442", "double", bytes=MIB)
    assert text.run({"m": np.array(2), "x0": np.array(["ab"])}, limits=Limits(bytes=MIB))["again"] == ["ab" * 4]
    refused(doubling("Concat(x, x, axis=0)"), {"m": np.array(62), "x0": ONE}, "IRC442", "double", bytes=MIB)


def test_sequences_of_very_many_pieces() -> None:
    body = "pieces: 'Tensor[]' = SplitToSequence(Expand(x, shape)); z = SequenceLength(pieces)"
    model = compiled("x: Float(1); shape: Long(1)", body, "z")
    refused(model, {"x": ONE[:1], "shape": i64(100_000)}, "IRC442", "pieces", bytes=MIB)
    assert model.run({"x": ONE[:1], "shape": i64(100)}, limits=Limits(bytes=MIB))["z"] == 100


def test_what_is_alive_at_one_time_counts() -> None:
    """A chain needs two arrays at a time, values that are all kept need all."""
    chain, x = "; ".join(f"x{i + 1} = Neg(x{i})" for i in range(8)), f32(1 << 16)
    limits = Limits(bytes=3 * x.nbytes)
    short = compiled("x0: Float(*)", chain, "x8", "none")
    assert short.run({"x0": x}, limits=limits)["x8"].shape == x.shape
    kept = compiled("x0: Float(*)", chain, ", ".join(f"x{i}" for i in range(1, 9)), "none")
    refused(kept, {"x0": x}, "IRC442", "Neg", bytes=3 * x.nbytes)
    kept.run({"x0": x}, limits=Limits(bytes=9 * x.nbytes))


def test_inputs_weights_and_views_do_not_count() -> None:
    text = ir(f"x: Float(*); a, b: Long(1); w: @Float({1 << 16})", "z = Add(Slice(w, a, b), Slice(x, a, b))", "z")
    model = irc.compile(parse_module(text, {"w": f32(1 << 16)}))
    feeds = {"x": f32(1 << 16), "a": i64(0), "b": i64(4)}
    assert model.run(feeds, limits=Limits(bytes=64))["z"].tolist() == [2] * 4
    assert model.run(feeds, donate=["x"], limits=Limits(bytes=64))["z"].tolist() == [2] * 4


def test_a_result_that_repeats_an_element_is_copied_within_the_limit() -> None:
    model = compiled("x: Float(1); shape: Long(1)", "z = Expand(x, shape)", "z")
    refused(model, {"x": ONE[:1], "shape": i64(1 << 20)}, "IRC442", bytes=MIB)


# -- time ----------------------------------------------------------------------


def test_work_that_cannot_be_in_time_is_refused_before_it_starts() -> None:
    """Each would take minutes to hours; none can be interrupted."""
    x = np.broadcast_to(np.float32(1), (1 << 14, 1 << 14))
    products = [
        (node_model("MatMul", {"x": x, "y": x}), {"x": x, "y": x}),
        (
            node_model("Conv", {"x": f32(1, 1, 1, 1), "w": f32(1, 1, 1, 1)}, pads=[3000] * 4),
            {"x": f32(1, 1, 1, 1), "w": np.broadcast_to(np.float32(1), (1, 1, 3000, 3000))},
        ),
    ]
    for model, feeds in products:
        start = time.monotonic()
        refused(model, feeds, "IRC443", "it", "multiplications", seconds=0.5)
        assert time.monotonic() - start < 60


class Clock:
    """A guard that lets kernels do as they like, and counts how often they look at the clock."""

    def __init__(self) -> None:
        self.looks = 0

    def allocate(self, size: int) -> None: ...

    def work(self, products: int) -> None: ...

    def pace(self) -> None:
        self.looks += 1


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)


LONG: dict[str, tuple[list[np.ndarray], dict[str, Any], int]] = {
    "RNN": ([numbers(12, 3, 2), numbers(1, 4, 2), numbers(1, 4, 4)], {"hidden_size": 4}, 12),
    "GRU": ([numbers(12, 3, 2), numbers(1, 12, 2), numbers(1, 12, 4)], {"hidden_size": 4}, 12),
    "LSTM": ([numbers(12, 3, 2), numbers(1, 16, 2), numbers(1, 16, 4)], {"hidden_size": 4}, 12),
    "Conv": ([numbers(1, 6, 40), numbers(12, 2, 5)], {"group": 3}, 3),
    "MatMul": ([numbers(2, 1, 9, 5, dtype=np.int32), numbers(3, 5, 7, dtype=np.int32)], {}, 2 * 3 * 9 * 7 // 2),
    "Cast": ([numbers(3, 4)], {"to": STRING}, 12),
    "STFT": ([numbers(2, 64, 1), np.array(4), np.ones(8, np.float32)], {}, 15),
}
"""Operands, attributes, and how often a kernel looks at least if all its blocks are as small as they can be."""


@pytest.mark.parametrize("op", LONG)
def test_long_kernels_look_at_the_clock_meanwhile(op: str, tune: Tune) -> None:
    inputs, attributes, least = LONG[op]
    kernel = bind(op, attributes, None, len(inputs))
    with np.errstate(all="ignore"):
        wanted = kernel(*inputs)
    tune("irc.runtime.kernels.recurrent.PACE_ELEMENTS", 0)
    tune("irc.runtime.kernels.convolution.PACE_ELEMENTS", 0)
    tune("irc.runtime.kernels.windows.PACE_ELEMENTS", 0)
    tune("irc.runtime.kernels.matmul.PIECE", 10)
    tune("irc.runtime.kernels.cast.PACE_ELEMENTS", 1)
    tune("irc.runtime.kernels.signal.BLOCK_ELEMENTS", 0)
    clock = Clock()
    found = in_own_scope(clock, in_turn, kernel, *inputs)
    assert clock.looks >= least
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype


def test_products_of_integers_end_in_time() -> None:
    """NumPy makes them at a hundredth of the pace of others: by their number, there would be time."""
    inputs = {"x": np.ones((2000, 2000), np.int64), "y": np.ones((2000, 2000), np.int64)}
    start = time.monotonic()
    refused(node_model("MatMul", inputs), inputs, "IRC443", "it", "the time is over", seconds=0.5)
    assert time.monotonic() - start < 10
    with pytest.raises(irc.Error, match=f"IRC443.* {8 * 2000**3} multiplications"):
        node_model("Einsum", inputs, equation="ij,jk->ik").run(inputs, limits=Limits(seconds=0.5))


def test_limits_that_make_no_sense() -> None:
    for bad in (
        {"steps": 0},
        {"steps": 1.5},
        {"bytes": -1},
        {"seconds": 0},
        {"seconds": float("nan")},
        {"steps": True},
        {"steps": np.bool_(True)},
        {"bytes": 1e9},
        {"seconds": "1"},
        {"seconds": True},
        {"seconds": 1j},
        {"seconds": 10**400},
    ):
        kind = "number" if "seconds" in bad else "integer"
        with pytest.raises(irc.Error, match=f"IRC440.*must be a positive {kind}"):
            Limits(**bad)  # type: ignore[arg-type]
    assert Limits() == Limits(None, None, None)
    found = Limits(steps=np.int64(5), bytes=np.uint8(7), seconds=np.float32(1))  # type: ignore[arg-type]
    assert found == Limits(5, 7, 1.0) and [type(n) for n in astuple(found)] == [int, int, float]
    assert Limits(seconds=np.int64(2)) == Limits(seconds=Fraction(2)) == Limits(seconds=2)  # type: ignore[arg-type]
    with pytest.raises(irc.Error, match="limits are an"):
        doubling().run({}, limits={"steps": 3})  # type: ignore[arg-type]


def test_results_are_the_same_under_limits_and_nothing_stays_behind() -> None:
    model, feeds = doubling(), {"m": np.array(5), "x0": ONE}
    wide = Limits(steps=1000, bytes=MIB, seconds=60)
    np.testing.assert_array_equal(model.run(feeds, limits=wide)["again"], model.run(feeds)["again"])
    assert CURRENT.scope.guard is None


def test_memory_that_is_given_back_is_free_again() -> None:
    guard = LimitGuard(Limits(bytes=1000))
    guard.allocate(1000)
    with pytest.raises(irc.Error, match="IRC442"):
        guard.allocate(1001)
    array = np.zeros(100)
    frame: list[Any] = [None, [array[1:], array], array[::2]]
    node: Any = None
    guard.after(node, frame, (1, 2))  # the list and the view are one array
    room = 200 - 2 * ENTRY_BYTES
    guard.allocate(room)
    with pytest.raises(irc.Error, match="IRC442"):
        guard.allocate(room + 1)
    del array
    frame.clear()
    guard.allocate(1000)
