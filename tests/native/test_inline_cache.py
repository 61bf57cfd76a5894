"""Convolutions and products of one model, whose inputs change from run to run."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.effort import examples

pytest.importorskip("llvmlite")

import irc
from irc.runtime.limits import Limits
from tests.models import onnx_model

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(1)


def model(weights: dict[str, Array], given: dict[str, Array], group: int = 1, **attributes: Any) -> onnx.ModelProto:
    """A Conv of ``x``, whose weights ``w`` and bias ``b`` are constants or given."""
    names = ["x", *[name for name in ("w", "b") if name in (*weights, *given)]]
    node = helper.make_node("Conv", names, ["y"], group=group, **attributes)
    return onnx_model(node, dict.fromkeys(["x", *given]), "y", weights, 17)


def random(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype("f4")


def check(made: onnx.ModelProto, runs: list[dict[str, Array]]) -> None:
    native, plain = (irc.compile(made, backend=backend) for backend in ("native", "numpy"))
    for feeds in runs:
        np.testing.assert_allclose(native.run(feeds)["y"], plain.run(feeds)["y"], rtol=1e-4, atol=1e-4)


@examples(25)
@given(
    st.sampled_from([(8, 16, 1), (16, 16, 16), (12, 24, 2)]),
    st.sampled_from([1, 3]),
    st.integers(1, 3),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 2), st.integers(3, 9), st.booleans()), min_size=1, max_size=6),
)
def test_inputs_of_any_shape_and_order(channels, kernel, stride, biased, inputs):
    before, after, group = channels
    weights = {"w": random(after, before // group, kernel, kernel)} | ({"b": random(after)} if biased else {})
    made = model(weights, {}, group, strides=[stride, stride], pads=[kernel // 2] * 4)
    runs: list[dict[str, Array]] = []
    for batch, size, is_turned in inputs:
        x = random(batch, before, size, size)
        runs += [{"x": x.swapaxes(2, 3) if is_turned else x}, {"x": x}, {"x": 2 * x}]
    check(made, runs)


@pytest.mark.parametrize("names", ["w", "b", "wb"])
def test_weights_that_change(names):
    constants = {"w": random(8, 4, 3, 3), "b": random(8)}
    given = {name: constants.pop(name) for name in names}
    x = random(1, 4, 9, 9)
    check(model(constants, given), [{"x": x, **{k: factor * v for k, v in given.items()}} for factor in (1, 2, 3)])


@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38])
def test_numbers_that_tiles_would_spread(value):
    x = random(1, 16, 12, 12)
    odd = x.copy()
    odd[0, 3, 5, 5] = value
    check(model({"w": random(16, 16, 3, 3)}, {}, pads=[1] * 4), [{"x": x}, {"x": x}, {"x": odd}, {"x": x}])


def product(kind: str, weights: dict[str, Array], version: int = 17, **attributes: Any) -> onnx.ModelProto:
    return onnx_model(helper.make_node(kind, ["x", *weights], ["y"], **attributes), {"x": None}, "y", weights, version)


@pytest.mark.usefixtures("slow_blas")
@pytest.mark.parametrize(("kind", "attributes"), [("MatMul", {}), ("Gemm", {}), ("Gemm", {"transB": 1})])
def test_every_run_makes_the_same_bits(kind, attributes):
    weights = {"w": random(200, 200)} | ({"b": random(200)} if kind == "Gemm" else {})
    model, x = irc.compile(product(kind, weights, **attributes), backend="native"), random(8, 200)
    first, *others = (model.run({"x": x}, limits=limits)["y"] for limits in (None, None, Limits(bytes=1 << 24), None))
    assert all(first.tobytes() == other.tobytes() for other in others)


@pytest.mark.usefixtures("slow_blas")
def test_products_of_limited_runs_look_at_the_limits():
    model, x = irc.compile(product("Gemm", {"w": random(200, 200)}), backend="native"), random(8, 200)
    for _ in range(2):
        model.run({"x": x})
        with pytest.raises(irc.Error, match="IRC442"):
            model.run({"x": x}, limits=Limits(bytes=1000))


@pytest.mark.usefixtures("slow_blas")
def test_old_versions_of_gemm_broadcast_if_told():
    weights = {"w": random(200, 140), "b": random(140)}
    check(product("Gemm", weights, 6, broadcast=1), [{"x": random(8, 200)}] * 2)
    model = irc.compile(product("Gemm", weights, 6), backend="native")
    with pytest.raises(irc.Error, match="IRC421"):
        model.run({"x": random(8, 200)})


@examples(25)
@given(
    st.sampled_from(["u1", "i1"]),
    st.sampled_from(["u1", "i1"]),
    st.sampled_from([None, 0, 3, "columns"]),
    st.sampled_from([130, 132]),
    st.booleans(),
    st.lists(st.sampled_from([(8,), (1,), (2, 8), (40,)]), min_size=1, max_size=4),
)
def test_products_of_integers(first, second, zero, depth, has_zero, shapes):
    rng = np.random.default_rng(1)
    limits = np.iinfo(second)
    b = rng.integers(limits.min, limits.max, (depth, 140), second, endpoint=True)
    zeros = None if zero is None else rng.integers(0, 9, 140, second) if zero == "columns" else np.array(zero, second)
    weights = {"b": b} | ({} if zeros is None else {"bz": zeros})
    names = ["a", "b", "az" if has_zero else "", *(["bz"] if zeros is not None else [])]
    inputs = dict.fromkeys(["a", *["az"] * has_zero], first)
    made = onnx_model(helper.make_node("MatMulInteger", names, ["y"]), inputs, "y", weights, 17)
    native, plain = (irc.compile(made, backend=backend) for backend in ("native", "numpy"))
    limits = np.iinfo(first)
    for shape in shapes:
        for _ in range(2):
            a = rng.integers(limits.min, limits.max, (*shape, depth), first, endpoint=True)
            feeds = {"a": a}
            if has_zero:
                feeds["az"] = rng.integers(limits.min, limits.max, (1,) * (len(shape) - 1), first, endpoint=True)
            found, expected = native.run(feeds)["y"], plain.run(feeds)["y"]
            np.testing.assert_array_equal(found, expected, strict=True)


def padding(mode: str, pads: list[int], axes: list[int] | None, version: int, value: float | None) -> onnx.ModelProto:
    """A Pad of ``x`` by constants."""
    operands = {"pads": np.array(pads)}
    operands |= {"value": np.array(value, "f4")} if value is not None else {}
    operands |= {"axes": np.array(axes)} if axes is not None else {}
    names = ["x", *[name if name in operands else "" for name in ("pads", "value", "axes")]]
    node = helper.make_node("Pad", names[: 4 if axes is not None else 3], ["y"], mode=mode)
    return onnx_model(node, {"x": None}, "y", operands, version)


@examples(40)
@given(
    st.sampled_from(["constant", "reflect", "edge", "wrap"]),
    st.lists(st.integers(-1, 3), min_size=4, max_size=4),
    st.booleans(),
    st.sampled_from([None, 2.5, np.nan]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(3, 9), st.booleans()), min_size=1, max_size=5),
)
def test_padded_inputs_of_any_shape_and_order(mode, pads, has_axes, value, inputs):
    made = padding(mode, pads, [1, 2], 19, value) if has_axes else padding(mode, pads, None, 19, value)
    native, plain = (irc.compile(made, backend=backend) for backend in ("native", "numpy"))
    for rows, size, is_turned in inputs:
        shape = (rows, size, 4) if has_axes else (rows + 3, size)
        x = random(*shape)
        for given_ in (x, x.swapaxes(-1, -2) if is_turned else 2 * x, x, x[:1]):
            expected = outcome(plain, given_)
            for limits in (None, None, Limits(bytes=1 << 20)):
                np.testing.assert_array_equal(outcome(native, given_, limits), expected, strict=True)


def outcome(compiled: irc.CompiledModel, x: Array, limits: Limits | None = None) -> Array:
    """The result, or the code of an error."""
    try:
        return compiled.run({"x": x}, limits=limits)["y"]
    except irc.Error as error:
        return np.array(error.code)


@examples(25)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40), st.booleans()), min_size=1, max_size=5))
def test_quantized_inputs_of_any_shape_and_order(inputs):
    made = onnx_model(helper.make_node("DynamicQuantizeLinear", ["x"], list("yzs")), {"x": None}, "yzs")
    native, plain = (irc.compile(made, backend=backend) for backend in ("native", "numpy"))
    for rows, size, is_turned in inputs:
        x = random(rows, size)
        for given_ in (x, -x, x[:, ::-1], x.T if is_turned else x[0:1], x):
            expected = plain.run({"x": given_})
            for limits in (None, None, Limits(bytes=1 << 20)):
                found = native.run({"x": given_}, limits=limits)
                for name in "yzs":
                    np.testing.assert_array_equal(found[name], expected[name], strict=True)
