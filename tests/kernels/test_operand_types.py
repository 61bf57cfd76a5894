"""Operands of types that operators do not have: what a result is does not depend on where it is made."""

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irc
from irc import ops
from irc.ir import parse_module
from irc.ops.pointwise import result_like
from tests.graphs import ir
from tests.kernels.helpers import bind
from tests.operators import POINTWISE

DTYPES = [np.dtype(t) for t in ("?", "i1", "u1", "i4", "u4", "i8", "u8", "e", "f", "d", ml_dtypes.bfloat16, object)]

LIKE_AN_INPUT = sorted(k.removeprefix("onnx::") for k in POINTWISE if result_like(k) is not None)


def operand(op: str, dtype: np.dtype[Any], number: int) -> np.ndarray:
    if dtype.hasobject:
        values = np.array(["a", "b"], object)
    else:
        values = np.array([number, 2]).astype(dtype)
    return values[1:].reshape(()) if op == "Clip" and number else values


def outcome(kernel: Any, inputs: list[np.ndarray], **out: np.ndarray) -> Any:
    """What the kernel gives, in a form that compares NaNs; None if it refuses."""
    try:
        with np.errstate(all="ignore"):
            result = kernel(*inputs, **out)
    except Exception:  # what a run then says is for others to test
        return None
    return str(result.dtype), str(result.tolist())


@pytest.mark.parametrize("op", LIKE_AN_INPUT)
def test_a_result_in_place_is_as_a_new_one(op: str) -> None:
    record = ops.semantics(f"onnx::{op}")
    assert record is not None
    count = 2 if record.variadic else record.arity
    kernel = bind(op, {"direction": "LEFT"} if op == "BitShift" else {}, None, count)
    like = record.result
    assert like is not None
    computed = 0
    for dtypes in product(DTYPES, repeat=count):
        if op == "Where" and dtypes[0] != np.bool_:
            continue
        inputs = [operand(op, dtype, number) for number, dtype in enumerate(dtypes)]
        own = [x.copy() for x in inputs]
        fresh = outcome(kernel, inputs)
        assert fresh == outcome(kernel, own, out=own[like]), dtypes
        computed += fresh is not None
    assert computed


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("Or(t, t)", "truth values are computed of truth values, not of uint8"),
        ("And(b, t)", "truth values are computed of truth values, not of uint8"),
        ("Not(t)", "truth values are computed of truth values, not of uint8"),
        ("Atan(t)", r"input 0 .* of onnx::Atan cannot be tensor\(uint8\); it can be tensor"),
        ("Round(t)", r"input 0 .* of onnx::Round cannot be tensor\(uint8\); it can be tensor"),
        ("Add(t, w)", r"of onnx::Add must be of the same type as A: tensor\(int16\) and tensor\(uint8\)"),
        ("Where(b, t, w)", r"what to select from differs in type: uint8\[2\] and int16\[2\]"),
        ("Clip(t, low)", r"a bound of Clip has the element type of what it bounds, not int16\[\]"),
    ],
)
@pytest.mark.parametrize("outputs", ["z", "z, t"])
def test_a_run_refuses_them(operation: str, message: str, outputs: str) -> None:
    text = ir("x: Byte(2); b: Bool(2); w: Short(2); low: Short()", f"t = Add(x, x); z = {operation}", outputs)
    feeds = {
        "x": np.array([1, 2], np.uint8),
        "b": np.array([True, False]),
        "w": np.array([1, 2], np.int16),
        "low": np.array(1, np.int16),
    }
    with pytest.raises(irc.Error, match=f"IRC421: .*{message}"):
        irc.compile(parse_module(text), passes="none").run(feeds)


@pytest.mark.parametrize(("value", "name"), [(7, "int"), ("a", "str"), ([7], r"seq\(int\)"), ({"a": 7}, "map")])
@pytest.mark.parametrize("op", ["Relu", "Softmax", "Transpose"])
def test_a_run_refuses_what_is_no_tensor_where_that_may_be_anything(op: str, value: Any, name: str) -> None:
    text = ir("x: Any", f"y = {op}(x)", "y")
    with pytest.raises(irc.Error, match=f"IRC421: .*of onnx::{op} cannot be {name}"):
        irc.compile(parse_module(text)).run({"x": value})
