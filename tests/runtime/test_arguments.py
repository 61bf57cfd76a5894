"""What a model accepts as inputs, and how it says what is wrong."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from irc.errors import Error
from irc.ir.types import DType, TensorType
from irc.runtime.arguments import Argument, accept
from tests.runtime.helpers import f32, model_of

IDENTITY = "graph(%x : {}):\n %y : {} = onnx::Identity(%x)\n return (%y)\n"


def take(type: str, value):
    return model_of(IDENTITY.replace("{}", type)).run({"x": value})["y"]


def refusal(type: str, value) -> Error:
    with pytest.raises(Error) as caught:
        take(type, value)
    return caught.value


@pytest.mark.parametrize(
    ("type", "value", "message"),
    [
        ("Float(2)", np.array([1.0, 2.0]), "expected elements of type float32, got float64"),
        ("Float(2)", np.array([1, 2]), "expected elements of type float32, got int64"),
        ("Long(2)", np.array([1, 2], np.int32), "expected elements of type int64, got int32"),
        ("Float()", np.float64(1), "got float64"),
        ("Float(1)", [np.float64(1)], "got float64"),
        ("Bool(1)", np.array([1], np.uint8), "expected elements of type bool, got uint8"),
        ("BFloat16(1)", f32(1), "expected elements of type bfloat16, got float32"),
        ("Float(1)", np.array(["a"]), "expected elements of type float32"),
        ("String(1)", f32(1), "expected strings, got float32[1]"),
        ("String(2)", np.array(["a", 3], object), "expected strings; element [1] is 3"),
        ("String(2, 2)", np.array([["a", "b"], [None, "c"]], object), "expected strings; element [1, 0] is None"),
        ("Tensor", np.array(["2020-01-01"], "datetime64[D]"), "is not an element type"),
        ("Float(1)", np.ma.masked_array([1.0]), "masked"),
        ("Float(2, 1)", [[1.0], np.ma.masked_array(f32(1), [True])], "masked"),
        ("Float(2)", [1.0, np.ma.masked], "masked"),
        ("String(1)", np.array([b"\xff"]), "expected strings; these bytes are none"),
        ("String(1)", np.frombuffer(b"\xff\xff\xff\x7f", "<U1"), "elements that are not characters"),
        ("String(1)", np.frombuffer(b"\0\x11\0\0", ">U1"), "elements that are not characters"),
        ("Float(2)", [np.float64(1), 2], "got float64"),
        ("Float(2)", [np.int64(1), 2], "got int64"),
    ],
)
def test_wrong_element_types(type, value, message):
    error = refusal(type, value)
    assert error.code == "IRC412" and message in error.message and error.where.startswith("input 'x'")


class Without:
    """An object whose ``__array__`` raises, as that of a tensor of PyTorch that requires grad does."""

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [1.0, x]])
def test_objects_that_give_no_array(wrap):
    for error in (RuntimeError("it requires grad"), TypeError("it requires grad")):
        refused = refusal("Float(*)", wrap(Without(error)))
        assert refused.code == "IRC412" and refused.where == "input 'x'"
        assert refused.message == "Without gives no array: it requires grad"
    assert refusal("Float(*)", wrap(Without(Error("IRC436", "busy")))).code == "IRC436"
    assert refusal("Float(*)", wrap(Without(MemoryError()))).code == "IRC403"


@pytest.mark.parametrize("value", [[[2**70] * 3] * 2, [2**64, 1], [-(2**63) - 1], [1.5, 10**5000]])
@pytest.mark.parametrize("type", ["Long(*)", "Float(*)", "Tensor", "Bool(*)"])
def test_integers_beyond_64_bits(type, value):
    assert refusal(type, value).message == "an integer does not fit into 64 bits"


def holding_itself(times):
    value = []
    value += [value] * times
    return value


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("Long(1)", [1.5]),
        ("Byte(1)", [256]),
        ("Byte(1)", [-1]),
        ("Float(1)", [2**24 + 1]),
        ("Half(1)", [2049]),
        ("Bool(1)", [1]),
        ("Long(1)", [True]),
        ("Float(1)", [True]),
        ("Float(1)", [1j]),
        ("Float(1)", ["1"]),
        ("String(1)", [1]),
        ("String(2)", ["a", 1]),
        ("String(2, 1)", [["a"], [None]]),
        ("String(2)", ["a", b"b"]),
        ("Tensor", [2.5, "a"]),
        ("String(2)", [np.array(1), "a"]),
        ("Float(*, *)", [[1], [2, 3]]),
        ("Float()", None),
        ("Float()", object()),
        ("Float()", {}),
        ("Long()", 2**70),
        ("Float(1)", [1e39]),
        ("Float(2)", [float("inf"), -1e39]),
        ("Half()", 70000.0),
        ("Float8_e4m3fn()", 1e4),
        ("Float8_e4m3fn()", float("inf")),
        ("ComplexFloat(1)", [1e39j]),
        ("Tensor", holding_itself(1)),
        ("Float(1)", holding_itself(1)),
        ("Float(*, *)", holding_itself(2)),
    ],
)
def test_python_values_that_do_not_fit(type, value):
    assert refusal(type, value).code == "IRC415"


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        ("Float(2)", [1, 2.5], f32(1, 2.5)),
        ("Float()", 0.1, np.array(0.1, np.float32)),
        ("Float()", 3, np.array(3, np.float32)),
        ("Half(2, 1)", ((1,), (2048,)), np.array([[1], [2048]], np.float16)),
        ("Byte(2)", [0, 255], np.array([0, 255], np.uint8)),
        ("Bool(2)", [True, False], np.array([True, False])),
        ("Float(0)", [], np.zeros(0, np.float32)),
        ("ComplexFloat(1)", [1 + 2j], np.array([1 + 2j], np.complex64)),
        ("BFloat16(1)", [1.5], np.array([1.5], ml_dtypes.bfloat16)),
        ("Float()", np.float32(2), np.array(2, np.float32)),
        ("String(3)", ["a", np.str_("b"), np.array("c")], np.array(["a", "b", "c"], object)),
        ("Float(2)", [np.float32(1), np.float32(2)], f32(1, 2)),
        ("Float(3)", [np.float32(1), 2, 2.5], f32(1, 2, 2.5)),
        ("Int(2)", [np.int32(1), 2], np.array([1, 2], np.int32)),
        ("Float(2, 2)", [f32(1, 2), [3, 4]], f32([1, 2], [3, 4])),
        ("Float(2)", [float("inf"), -float("inf")], f32(np.inf, -np.inf)),
        ("String(2)", ["a", "bc"], np.array(["a", "bc"], object)),
        ("String(2)", np.array(["a", "bc"]), np.array(["a", "bc"], object)),
        ("String(1)", np.array([b"\xc3\xa9"]), np.array(["é"], object)),
        ("String(1)", np.array(["a"], object), np.array(["a"], object)),
        ("Float(2)", np.array([1, 2], ">f4"), f32(1, 2)),
        ("Long(2)", np.array([1, 2], ">i8"), np.array([1, 2])),
        ("Tensor", np.array([1, 2], np.int16), np.array([1, 2], np.int16)),
    ],
)
def test_values_that_are_accepted(type, value, expected):
    got = take(type, value)
    assert got.dtype == expected.dtype and got.dtype.isnative and got.shape == expected.shape
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("type", "value", "message"),
    [
        ("Float(2, 3)", np.ones(6, np.float32), "expected 2 dimensions, Float(2, 3); got shape [6]"),
        ("Float(2, 3)", np.ones((2, 4), np.float32), "expected 3 on axis 1, Float(2, 3); got shape [2, 4]"),
        ("Float(n, 3)", np.ones((5, 2), np.float32), "expected 3 on axis 1"),
        ("Float()", np.ones(1, np.float32), "expected 0 dimensions"),
    ],
)
def test_wrong_shapes(type, value, message):
    error = refusal(type, value)
    assert error.code == "IRC413" and message in error.message


def test_maps():
    text = "graph(%x : Dict(str, Float(1))):\n return (%x)\n"
    model = model_of(text)
    got = model.run({"x": {"a": f32(1)}})["x"]
    assert got["a"].tolist() == [1]
    with pytest.raises(Error, match="expected a dict"):
        model.run({"x": [1]})
    with pytest.raises(Error, match="entry 'a'"):
        model.run({"x": {"a": f32(1, 2)}})


@pytest.mark.parametrize(
    ("type", "good", "bad"),
    [
        ("int", 3, np.float64(1)),
        ("int", np.int64(3), np.timedelta64(3, "s")),
        ("float", np.float32(0.5), np.bool_(True)),
        ("bool", np.True_, np.int8(1)),
        ("str", np.str_("a"), np.bytes_(b"a")),
        ("complex", np.complex64(1j), "a"),
        ("int", 3, 1.0),
        ("int", 0, True),
        ("float", 1, "1"),
        ("bool", True, 1),
        ("str", "a", 1),
        ("Scalar", 2.5, "a"),
    ],
)
def test_python_inputs(type, good, bad):
    model = model_of(f"graph(%x : {type}):\n return (%x)\n")
    found = model.run({"x": good})["x"]
    assert found == good and not isinstance(found, np.generic)
    with pytest.raises(Error, match=f"expected a Python {type}"):
        model.run({"x": bad})


@pytest.mark.parametrize("dtype", [DType.FLOAT4E2M1, DType.FLOAT6E2M3, DType.FLOAT6E3M2])
def test_numbers_beyond_types_without_infinities_do_not_fit(dtype: DType) -> None:
    limits = ml_dtypes.finfo(dtype.numpy)
    largest = float(limits.max)
    follows = largest + float(limits.eps) * 2 ** int(np.log2(largest))  # what the type would have next
    argument = Argument("x", TensorType(dtype, (2,)))
    rounded = accept([-largest, (largest + follows) / 2 - 1e-9], argument, {})
    assert rounded.dtype == dtype.numpy and rounded.tolist() == [-largest, largest]
    for number in ((largest + follows) / 2, -follows, 1e9, float("inf"), float("nan")):
        with pytest.raises(Error, match=r"^IRC415: "):
            accept([1.0, number], argument, {})


FIRST_RUN = """
import sys
import numpy as np
import irc
from irc.ir.text.parser import parse_graph
model = irc.compile(parse_graph('''
graph(%x : Float(1, 8, 1), %text : String(1)):
  %axis : Long() = prim::Constant[value=tensor<Long()>([1])]()
  %none : NoneType = prim::Constant()
  %y : Float(1, 8, 2) = onnx::DFT(%x, %none, %axis)
  %z : Tensor = onnx::RandomNormalLike[seed=1.](%y)
  return (%z, %text)
'''))
before = set(sys.modules)
model.run({"x": np.zeros((1, 8, 1), np.float32), "text": np.array([b"a"])})
print(sorted(name for name in set(sys.modules) - before if name.startswith("numpy")))
"""


def test_runs_import_nothing_of_numpy():
    """NumPy imports some of its modules at their first use, and fails in a signal handler that comes meanwhile."""
    done = subprocess.run([sys.executable, "-c", FIRST_RUN], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
