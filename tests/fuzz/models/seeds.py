"""The models that are mutated: small, and together most of what models consist of."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT, INT, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
Shape = Sequence[int | str | None] | None

SEEDS: dict[str, Callable[[], onnx.ModelProto]] = {}
"""By name, what builds the model."""


def seed(make: Callable[[], onnx.ModelProto]) -> Callable[[], onnx.ModelProto]:
    SEEDS[make.__name__] = make
    return make


def bundled(*names: str) -> None:
    """Models that the onnx package brings along."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "simple"
    for name in names:
        SEEDS[name] = partial(onnx.load_model, folder / f"test_{name}" / "model.onnx")


@cache
def serialized(name: str) -> bytes:
    return SEEDS[name]().SerializeToString()


def n(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node; ``_`` is an absent input."""
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=f"{op}_{outputs.replace(' ', '_')}", **attributes)


def value(name: str, type: int = FLOAT, shape: Shape = None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, type, shape)


def body(nodes: list[onnx.NodeProto], inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> onnx.GraphProto:
    return helper.make_graph(nodes, "body", inputs, outputs)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    weights: dict[str, Any] | None = None,
    opset: int = 20,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(w), name) for name, w in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    imports = [helper.make_opsetid("", opset), *[helper.make_opsetid("local", 1)] * bool(functions)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, functions=functions)


def weight(*shape: int, scale: float = 0.5) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(len(shape) + sum(shape)).normal(size=shape) * scale).astype(np.float32)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


@seed
def perceptron() -> onnx.ModelProto:
    nodes = [
        n("Gemm", "x w b", "h"),
        n("Relu", "h", "r"),
        n("MatMul", "r v", "m"),
        n("Add", "m c", "a"),
        n("Softmax", "a", "y", axis=-1),
    ]
    weights = {"w": weight(4, 8), "b": weight(8), "v": weight(8, 3), "c": weight(3)}
    return model(nodes, [value("x", FLOAT, ["batch", 4])], [value("y", FLOAT, ["batch", 3])], weights)


@seed
def convolutions() -> onnx.ModelProto:
    nodes = [
        n("Conv", "x w b", "c", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        n("BatchNormalization", "c s t m v", "d", epsilon=1e-5),
        n("Relu", "d", "e"),
        n("MaxPool", "e", "f", kernel_shape=[2, 2], strides=[2, 2]),
        n("Conv", "f u", "g", group=2, strides=[2, 2], dilations=[1, 1]),
        n("AveragePool", "g", "h", kernel_shape=[2, 2], pads=[0, 0, 1, 1], ceil_mode=1),
        n("GlobalAveragePool", "h", "i"),
        n("Flatten", "i", "y", axis=1),
    ]
    ones = {"s": np.ones(4, np.float32), "t": weight(4), "m": weight(4), "v": np.ones(4, np.float32)}
    weights = {"w": weight(4, 2, 3, 3), "b": weight(4), "u": weight(4, 2, 2, 2), **ones}
    return model(nodes, [value("x", FLOAT, [1, 2, 10, 10])], [value("y")], weights)


@seed
def upsampling() -> onnx.ModelProto:
    nodes = [
        n("ConvTranspose", "x w", "a", strides=[2, 2], output_padding=[1, 1]),
        n("Resize", "a _ scales", "b", mode="linear", coordinate_transformation_mode="half_pixel"),
        n("Resize", "b _ _ sizes", "c", mode="nearest"),
        n("DepthToSpace", "c", "y", blocksize=2),
    ]
    weights = {"w": weight(2, 4, 3, 3), "scales": np.float32([1, 1, 1.5, 2]), "sizes": ints(1, 4, 6, 8)}
    return model(nodes, [value("x", FLOAT, [1, 2, 3, 3])], [value("y")], weights)


@seed
def attention() -> onnx.ModelProto:
    nodes = [
        n("MatMul", "x wq", "q"),
        n("MatMul", "x wk", "k"),
        n("Transpose", "k", "kt", perm=[0, 2, 1]),
        n("MatMul", "q kt", "s"),
        n("Mul", "s scale", "t"),
        n("Where", "mask t low", "u"),
        n("Softmax", "u", "p"),
        n("MatMul", "p x", "o"),
        n("Add", "o x", "r"),
        n("LayerNormalization", "r g h", "z", axis=-1),
        n("Gelu", "z", "y"),
    ]
    weights = {"wq": weight(6, 4), "wk": weight(6, 4), "scale": np.float32(0.5), "low": np.float32(-1e9)}
    weights |= {"g": np.ones(6, np.float32), "h": weight(6)}
    inputs = [value("x", FLOAT, ["b", "t", 6]), value("mask", BOOL, ["t", "t"])]
    return model(nodes, inputs, [value("y")], weights)


@seed
def attention_operator() -> onnx.ModelProto:
    nodes = [n("Attention", "q k v", "a", is_causal=1), n("RMSNormalization", "a s", "y", axis=-1)]
    inputs = [value(name, FLOAT, [1, 2, "t", 4]) for name in "qkv"]
    return model(nodes, inputs, [value("y")], {"s": np.ones(4, np.float32)}, opset=23)


@seed
def counting_loop() -> onnx.ModelProto:
    inner = body(
        [
            n("Identity", "go", "on"),
            n("Add", "x x", "y"),
            n("Mul", "y half", "row"),
            n("Cast", "i", "f", to=FLOAT),
            n("Add", "row f", "sum"),
        ],
        [value("i", INT, []), value("go", BOOL, []), value("x", FLOAT, [3])],
        [value("on", BOOL, []), value("y", FLOAT, [3]), value("sum", FLOAT, [3])],
    )
    nodes = [n("Loop", "m _ x0", "last rows", body=inner)]
    weights = {"half": np.float32(0.5), "m": np.array(4)}
    return model(nodes, [value("x0", FLOAT, [3])], [value("last"), value("rows")], weights)


@seed
def while_loop() -> onnx.ModelProto:
    inner = body(
        [n("Mul", "x two", "y"), n("ReduceMax", "y", "top", keepdims=0), n("Less", "top limit", "on")],
        [value("i", INT, []), value("go", BOOL, []), value("x", FLOAT, ["k"])],
        [value("on", BOOL, []), value("y", FLOAT, ["k"])],
    )
    nodes = [n("Loop", "_ start x0", "z", body=inner)]
    weights = {"two": np.float32(2), "limit": np.float32(100), "start": np.array(True)}
    return model(nodes, [value("x0", FLOAT, ["k"])], [value("z")], weights)


@seed
def growing_loop() -> onnx.ModelProto:
    inner = body(
        [n("Identity", "go", "on"), n("Concat", "x x", "y", axis=0), n("SequenceInsert", "s y", "t")],
        [
            value("i", INT, []),
            value("go", BOOL, []),
            value("x", FLOAT, None),
            helper.make_tensor_sequence_value_info("s", FLOAT, None),
        ],
        [value("on", BOOL, []), value("y"), helper.make_tensor_sequence_value_info("t", FLOAT, None)],
    )
    nodes = [
        n("SequenceEmpty", "", "empty"),
        n("Loop", "m _ x0 empty", "last all", body=inner),
        n("ConcatFromSequence", "all", "y", axis=0),
    ]
    return model(nodes, [value("x0", FLOAT, ["k"]), value("m", INT, [])], [value("last"), value("y")])


@seed
def scans() -> onnx.ModelProto:
    inner = body(
        [n("Add", "state item", "sum"), n("Tanh", "sum", "row")],
        [value("state", FLOAT, [2]), value("item", FLOAT, [2])],
        [value("sum", FLOAT, [2]), value("row", FLOAT, [2])],
    )
    nodes = [
        n("Scan", "s0 x", "last rows", body=inner, num_scan_inputs=1, scan_input_axes=[0], scan_output_directions=[1]),
        n("CumSum", "rows axis", "y", reverse=1),
    ]
    return model(
        nodes,
        [value("s0", FLOAT, [2]), value("x", FLOAT, ["t", 2])],
        [value("last"), value("y")],
        {"axis": np.array(0)},
    )


@seed
def branches() -> onnx.ModelProto:
    then = body([n("Relu", "x", "a"), n("ReduceSum", "a axes", "s", keepdims=1)], [], [value("s")])
    other = body([n("Neg", "x", "b"), n("Slice", "b from to", "u")], [], [value("u")])
    nodes = [
        n("ReduceMean", "x", "mean", keepdims=0),
        n("Greater", "mean zero", "c"),
        n("If", "c", "r", then_branch=then, else_branch=other),
        n("Sigmoid", "r", "y"),
    ]
    weights = {"zero": np.float32(0), "axes": ints(1), "from": ints(0, 0), "to": ints(2, 1)}
    return model(nodes, [value("x", FLOAT, ["k", 3])], [value("y")], weights)


@seed
def recurrent() -> onnx.ModelProto:
    nodes = [
        n("LSTM", "x w r b", "a h c", hidden_size=3),
        n("Squeeze", "a one", "s"),
        n("GRU", "s u v", "g", hidden_size=2, linear_before_reset=1),
        n("RNN", "s p q", "t", hidden_size=2, activations=["Relu"]),
        n("Add", "g t", "y"),
    ]
    weights = {"w": weight(1, 12, 4), "r": weight(1, 12, 3), "b": weight(1, 24), "one": ints(1)}
    weights |= {"u": weight(1, 6, 3), "v": weight(1, 6, 2), "p": weight(1, 2, 3), "q": weight(1, 2, 2)}
    return model(nodes, [value("x", FLOAT, ["t", "b", 4])], [value("y"), value("h"), value("c")], weights)


@seed
def indices() -> onnx.ModelProto:
    nodes = [
        n("Gather", "table ids", "e", axis=0),
        n("GatherElements", "e picks", "p", axis=1),
        n("ScatterElements", "p places updates", "q", axis=0, reduction="add"),
        n("OneHot", "ids depth offon", "h", axis=-1),
        n("NonZero", "h", "z"),
        n("GatherND", "e points", "r"),
        n("ScatterND", "e points rows", "s"),
        n("ReduceSum", "s", "y", keepdims=0),
    ]
    weights = {"table": weight(8, 4), "picks": ints(0, 3, 2, 1, 1, 2).reshape(3, 2), "depth": np.array(8)}
    weights |= {"places": ints(0, 1, 2, 0).reshape(2, 2), "updates": weight(2, 2), "offon": np.float32([0, 1])}
    weights |= {"points": ints(2, 0).reshape(2, 1), "rows": weight(2, 4)}
    return model(nodes, [value("ids", INT, [3])], [value("q"), value("z", INT), value("r"), value("y")], weights)


@seed
def shape_arithmetic() -> onnx.ModelProto:
    nodes = [
        n("Shape", "x", "s"),
        n("Gather", "s zero", "rows"),
        n("Unsqueeze", "rows first", "r"),
        n("Concat", "r minus", "target", axis=0),
        n("Reshape", "x target", "flat"),
        n("ConstantOfShape", "s", "zeros", value=numpy_helper.from_array(np.float32([1.5]))),
        n("Range", "zero rows one", "steps"),
        n("Cast", "steps", "f", to=FLOAT),
        n("Unsqueeze", "f last", "column"),
        n("Expand", "column wide", "grid"),
        n("Size", "x", "count"),
        n("Mul", "flat column", "m"),
        n("Add", "zeros x", "z"),
    ]
    weights = {"zero": np.array(0), "one": np.array(1), "first": ints(0), "last": ints(1), "minus": ints(-1)}
    weights |= {"wide": ints(1, 5)}
    outputs = [value("m"), value("z"), value("grid"), value("count", INT)]
    return model(nodes, [value("x", FLOAT, ["a", "b", 2])], outputs, weights)


@seed
def pieces() -> onnx.ModelProto:
    nodes = [
        n("Slice", "x starts ends axes steps", "a"),
        n("Pad", "a pads fill", "b", mode="constant"),
        n("Split", "b", "c d", axis=1, num_outputs=2),
        n("Concat", "d c", "e", axis=0),
        n("Tile", "e repeats", "f"),
        n("Transpose", "f", "g", perm=[1, 0]),
        n("Reshape", "g shape", "h", allowzero=0),
        n("Trilu", "f k", "t", upper=0),
        n("ReverseSequence", "f lengths", "r", batch_axis=0, time_axis=1),
    ]
    weights = {"starts": ints(0, -1), "ends": ints(4, -7), "axes": ints(0, 1), "steps": ints(1, -2)}
    weights |= {"pads": ints(1, 0, 0, 1), "fill": np.float32(7), "repeats": ints(2, 1), "shape": ints(0, -1, 2)}
    weights |= {"k": np.array(-1), "lengths": ints(*[2] * 20)}
    return model(nodes, [value("x", FLOAT, [4, 6])], [value("h"), value("t"), value("r")], weights)


@seed
def reductions() -> onnx.ModelProto:
    nodes = [
        n("ReduceMean", "x axes", "a", keepdims=1),
        n("ReduceMax", "x axes", "b"),
        n("ReduceL2", "x axes", "c", keepdims=1),
        n("ReduceProd", "x", "d", keepdims=0),
        n("ArgMax", "x", "e", axis=1, keepdims=0, select_last_index=0),
        n("TopK", "x k", "f g", axis=-1, largest=1, sorted=1),
        n("LogSoftmax", "x", "h", axis=0),
        n("Unique", "e", "u", sorted=1),
        n("Max", "a b c", "m"),
        n("ReduceLogSumExp", "x", "l", keepdims=0),
    ]
    outputs = [value(name) for name in "mdfhl"] + [value(name, INT) for name in "egu"]
    return model(nodes, [value("x", FLOAT, ["p", 5])], outputs, {"axes": ints(1), "k": ints(2)})


@seed
def pointwise() -> onnx.ModelProto:
    nodes = [
        n("Clip", "x low high", "a"),
        n("Pow", "a two", "b"),
        n("Div", "b c", "d"),
        n("PRelu", "d slope", "e"),
        n("Mod", "i three", "j", fmod=0),
        n("BitShift", "u shift", "v", direction="LEFT"),
        n("Cast", "e", "k", to=TensorProto.INT32),
        n("Equal", "j three", "q"),
        n("Not", "q", "nq"),
        n("Where", "nq e d", "w"),
        n("Elu", "w", "z", alpha=1.5),
        n("HardSigmoid", "z", "y"),
        n("Sum", "y d e", "s"),
        n("Erf", "s", "r"),
        n("Round", "d", "o"),
        n("Shrink", "x", "h", lambd=0.3, bias=0.1),
    ]
    weights = {"low": np.float32(-1), "high": np.float32(2), "two": np.float32(2), "c": np.float32([1, 2, 4])}
    weights |= {
        "slope": np.float32([0.1, 0.2, 0.3]),
        "three": np.array(3),
        "u": np.uint8([1, 2, 3]),
        "shift": np.uint8([1]),
    }
    outputs = [value("r"), value("k", TensorProto.INT32), value("v", TensorProto.UINT8), value("o"), value("h")]
    return model(nodes, [value("x", FLOAT, [2, 3]), value("i", INT, [2, 3])], outputs, weights)


@seed
def detection() -> onnx.ModelProto:
    nodes = [
        n("NonMaxSuppression", "boxes scores most iou least", "chosen", center_point_box=0),
        n("Slice", "chosen from to last", "which"),
        n("Squeeze", "which last", "index"),
        n("Squeeze", "boxes first", "flat"),
        n("Gather", "flat index", "kept", axis=0),
        n("RoiAlign", "image kept numbers", "crops", output_height=2, output_width=2, sampling_ratio=2),
    ]
    weights = {"most": ints(1), "iou": np.float32([0.5]), "least": np.float32([-10]), "from": ints(2), "to": ints(3)}
    weights |= {"last": ints(1), "first": ints(0), "image": weight(1, 2, 6, 6), "numbers": ints(0)}
    inputs = [value("boxes", FLOAT, [1, "n", 4]), value("scores", FLOAT, [1, 1, "n"])]
    return model(nodes, inputs, [value("kept"), value("crops")], weights)


@seed
def sequences() -> onnx.ModelProto:
    nodes = [
        n("SplitToSequence", "x two", "s", axis=0, keepdims=1),
        n("SequenceAt", "s zero", "a"),
        n("SequenceInsert", "s a zero", "t"),
        n("SequenceErase", "t one", "u"),
        n("SequenceLength", "t", "count"),
        n("ConcatFromSequence", "u", "c", axis=0, new_axis=0),
        n("SequenceConstruct", "a a", "v"),
        n("ConcatFromSequence", "v", "d", axis=0, new_axis=1),
        n("Optional", "d", "o"),
        n("OptionalHasElement", "o", "has"),
        n("OptionalGetElement", "o", "g"),
    ]
    weights = {"two": np.array(2), "zero": np.array(0), "one": np.array(1)}
    outputs = [value("c"), value("g"), value("count", INT), value("has", BOOL)]
    return model(nodes, [value("x", FLOAT, [4, 3])], outputs, weights)


@seed
def strings() -> onnx.ModelProto:
    nodes = [
        n("StringConcat", "x x", "a"),
        n("StringConcat", "a tail", "b"),
        n("StringSplit", "b", "parts counts", delimiter="-", maxsplit=2),
        n("Equal", "x x", "same"),
        n("Concat", "x b", "c", axis=0),
        n("Gather", "c where", "g"),
        n("RegexFullMatch", "b", "match", pattern="[a-z]*-t"),
    ]
    weights = {"tail": np.array(["-t", "-u"], object), "where": ints(0, 3)}
    outputs = [
        value("parts", STRING),
        value("counts", INT),
        value("g", STRING),
        value("match", BOOL),
        value("same", BOOL),
    ]
    return model(nodes, [value("x", STRING, [2])], outputs, weights)


@seed
def quantized() -> onnx.ModelProto:
    nodes = [
        n("QuantizeLinear", "x xs xz", "q"),
        n("QLinearMatMul", "q xs xz w ws wz ys yz", "p"),
        n("DequantizeLinear", "p ys yz", "d"),
        n("DynamicQuantizeLinear", "d", "e es ez"),
        n("MatMulInteger", "e w2 ez", "i"),
        n("Cast", "i", "f", to=FLOAT),
        n("Mul", "f es", "y"),
    ]
    weights = {"xs": np.float32(0.1), "xz": np.uint8(128), "ws": np.float32(0.05), "wz": np.uint8(120)}
    weights |= {"ys": np.float32(0.2), "yz": np.uint8(100), "w": np.uint8([[1, 200], [30, 40], [5, 60]])}
    weights |= {"w2": np.uint8([[3, 4, 5], [6, 7, 8]])}
    return model(nodes, [value("x", FLOAT, [2, 3])], [value("y"), value("p", TensorProto.UINT8)], weights)


@seed
def functions() -> onnx.ModelProto:
    inside = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    constant = n("Constant", "", "c")
    constant.attribute.append(
        onnx.AttributeProto(name="value_float", ref_attr_name="factor", type=onnx.AttributeProto.FLOAT)
    )
    scale = helper.make_function("local", "Scale", ["a"], ["b"], [constant, n("Mul", "a c", "b")], inside, ["factor"])
    calls = [n("Scale", "a", "s", domain="local", factor=2.0), n("Scale", "s", "t", domain="local", factor=0.5)]
    twice = helper.make_function("local", "Twice", ["a"], ["b"], [*calls, n("Add", "s t", "b")], inside)
    nodes = [n("Twice", "x", "h", domain="local"), n("Softsign", "h", "k"), n("Twice", "k", "y", domain="local")]
    return model(nodes, [value("x", FLOAT, [2, "n"])], [value("y")], functions=[scale, twice])


@seed
def products() -> onnx.ModelProto:
    nodes = [
        n("Einsum", "x w", "a", equation="bij,jk->bik"),
        n("Einsum", "a a", "b", equation="...ij,...kj->...ik"),
        n("EyeLike", "v", "eye", k=1),
        n("MatMul", "b eye", "c"),
        n("Det", "c", "d"),
        n("LpNormalization", "a", "e", axis=-1, p=2),
        n("GroupNormalization", "e s t", "y", num_groups=1, epsilon=1e-3),
        n("InstanceNormalization", "a s t", "z"),
        n("LRN", "img", "l", size=3),
        n("GridSample", "img grid", "g", mode="linear", padding_mode="border", align_corners=1),
    ]
    weights = {
        "w": weight(4, 2),
        "v": weight(3, 3),
        "s": np.ones(3, np.float32),
        "t": weight(3),
        "img": weight(1, 2, 4, 4),
    }
    weights |= {"grid": weight(1, 2, 2, 2)}
    outputs = [value(name) for name in "cdyzlg"]
    return model(nodes, [value("x", FLOAT, [2, 3, 4])], outputs, weights, opset=21)


@seed
def old_operators() -> onnx.ModelProto:
    """Of opset 8, where attributes say what inputs say today."""
    nodes = [
        n("Slice", "x", "a", starts=[0, 1], ends=[3, 4], axes=[0, 1]),
        n("Pad", "a", "b", mode="reflect", pads=[1, 1, 1, 1], value=1.0),
        n("Unsqueeze", "b", "c", axes=[0, 1]),
        n("Upsample", "c", "d", mode="nearest", scales=[1.0, 1.0, 2.0, 2.0]),
        n("Squeeze", "d", "e", axes=[0]),
        n("ReduceSum", "e", "f", axes=[1], keepdims=0),
        n("Clip", "f", "g", min=-2.0, max=2.0),
        n("Softmax", "g", "h", axis=1),
        n("TopK", "h", "t i", k=2),
        n("Split", "h", "p q", axis=1, split=[4, 6]),
        n("Dropout", "q", "r", ratio=0.3),
        n("LogSoftmax", "p", "s", axis=1),
    ]
    outputs = [value("t"), value("i", INT), value("r"), value("s")]
    return model(nodes, [value("x", FLOAT, [4, 4])], outputs, opset=8)


bundled("sequence_model4", "sequence_model7", "expand_shape_model4", "strnorm_model_monday_insensintive_upper_twodim")
