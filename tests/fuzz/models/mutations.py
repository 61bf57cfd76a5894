"""Mutations: what each does to a model, so that it still parses, and what is done to its bytes."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

Structured = Callable[[ModelProto, random.Random], None]
"""Changes a model; leaves it as it is where there is nothing to change."""

STRUCTURED: dict[str, Structured] = {}
BYTES: dict[str, Callable[[bytes, random.Random], bytes]] = {}

NUMBERS = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    5,
    7,
    16,
    64,
    255,
    1000,
    2**16,
    2**20,
    2**31 - 1,
    -(2**31),
    2**33,
    2**62,
    2**63 - 1,
    -(2**63),
]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, 3.4e38, float("inf"), float("-inf"), float("nan"), 0.5, 1e9]
WORDS = [
    "",
    "x",
    "NOTSET",
    "linear",
    "nearest",
    "cubic",
    "constant",
    "reflect",
    "wrap",
    "ij,jk->ik",
    "i->",
    "none",
    "\0",
    "Relu",
]
TYPES = [t for name, t in TensorProto.DataType.items() if name != "UNDEFINED"]


def structured(mutate: Structured) -> Structured:
    STRUCTURED[mutate.__name__.replace("_", " ")] = mutate
    return mutate


def raw(mutate: Callable[[bytes, random.Random], bytes]) -> Callable[[bytes, random.Random], bytes]:
    BYTES[mutate.__name__.replace("_", " ")] = mutate
    return mutate


# -- finding one's way ------------------------------------------------------------


def graphs(model: ModelProto) -> list[GraphProto]:
    """All graphs: of the model, and in attributes."""
    found = [model.graph]
    for graph in found:  # grows while it is walked
        found.extend(a.g for node in graph.node for a in node.attribute if a.type == AttributeProto.GRAPH)
    return found


def nodes(model: ModelProto) -> list[NodeProto]:
    inside = [node for graph in graphs(model) for node in graph.node]
    return inside + [node for function in model.functions for node in function.node]


def any_node(model: ModelProto, rng: random.Random) -> NodeProto | None:
    found = nodes(model)
    return rng.choice(found) if found else None


def names(model: ModelProto) -> list[str]:
    """All names of values, those that are not visible everywhere, too."""
    found = [name for node in nodes(model) for name in (*node.input, *node.output)]
    found += [i.name for graph in graphs(model) for i in (*graph.input, *graph.initializer)]
    return [*dict.fromkeys(name for name in found if name)] or [""]


def infos(model: ModelProto) -> Iterator[onnx.ValueInfoProto]:
    for graph in graphs(model):
        yield from graph.input
        yield from graph.output
        yield from graph.value_info


def tensors(model: ModelProto) -> list[TensorProto]:
    found = [t for graph in graphs(model) for t in graph.initializer]
    return found + [a.t for node in nodes(model) for a in node.attribute if a.type == AttributeProto.TENSOR]


# -- mutations ---------------------------------------------------------------------


@structured
def attribute_out_of_range(model: ModelProto, rng: random.Random) -> None:
    attributes = [a for node in nodes(model) for a in node.attribute if a.type != AttributeProto.GRAPH]
    if not attributes:
        return
    a = rng.choice(attributes)
    if a.type == AttributeProto.INT:
        a.i = rng.choice(NUMBERS)
    elif a.type == AttributeProto.FLOAT:
        a.f = rng.choice(FLOATS)
    elif a.type == AttributeProto.STRING:
        a.s = rng.choice(WORDS).encode()
    elif a.type == AttributeProto.INTS:
        _change_list(a.ints, rng, NUMBERS)
    elif a.type == AttributeProto.FLOATS:
        _change_list(a.floats, rng, FLOATS)
    elif a.type == AttributeProto.STRINGS:
        _change_list(a.strings, rng, [w.encode() for w in WORDS])


def _change_list(values: Any, rng: random.Random, choices: list[Any]) -> None:
    how = rng.random()
    if not values or how < 0.2:
        values.append(rng.choice(choices))
    elif how < 0.3:
        del values[rng.randrange(len(values))]
    else:
        values[rng.randrange(len(values))] = rng.choice(choices)


@structured
def attribute_of_the_schema(model: ModelProto, rng: random.Random) -> None:
    """Set an attribute that the operator has, or drop one."""
    node = any_node(model, rng)
    if node is None:
        return
    if node.attribute and rng.random() < 0.3:
        del node.attribute[rng.randrange(len(node.attribute))]
        return
    if not onnx.defs.has(node.op_type):
        return
    schema = onnx.defs.get_schema(node.op_type)
    free = [a for a in schema.attributes.values() if a.name not in {b.name for b in node.attribute}]
    choices: dict[str, Callable[[], Any]] = {
        "INT": lambda: rng.choice(NUMBERS),
        "FLOAT": lambda: rng.choice(FLOATS),
        "STRING": lambda: rng.choice(WORDS),
        "INTS": lambda: [rng.choice(NUMBERS) for _ in range(rng.randrange(1, 5))],
        "FLOATS": lambda: [rng.choice(FLOATS) for _ in range(rng.randrange(1, 5))],
    }
    fitting = [a for a in free if a.type.name in choices]
    if fitting:
        a = rng.choice(fitting)
        node.attribute.append(helper.make_attribute(a.name, choices[a.type.name]()))


@structured
def type_changed(model: ModelProto, rng: random.Random) -> None:
    found = [info for info in infos(model) if info.type.HasField("tensor_type")]
    if found:
        rng.choice(found).type.tensor_type.elem_type = rng.choice(TYPES)


@structured
def shape_changed(model: ModelProto, rng: random.Random) -> None:
    found = [info for info in infos(model) if info.type.tensor_type.HasField("shape")]
    if not found:
        return
    dims = rng.choice(found).type.tensor_type.shape.dim
    how = rng.random()
    if not dims or how < 0.2:
        dims.add().dim_value = rng.choice([1, 2, 3, 64])
    elif how < 0.35:
        del dims[rng.randrange(len(dims))]
    elif how < 0.5:
        dims[rng.randrange(len(dims))].dim_param = rng.choice(["n", "k", "other", ""])
    else:
        dims[rng.randrange(len(dims))].dim_value = rng.choice([0, 1, 2, 3, 4, 5, *NUMBERS])


@structured
def rewired(model: ModelProto, rng: random.Random) -> None:
    found = [node for node in nodes(model) if node.input]
    if not found:
        return
    node = rng.choice(found)
    at = rng.randrange(len(node.input))
    how = rng.random()
    if how < 0.1:
        node.input[at] = ""
    elif how < 0.2:
        del node.input[at]
    elif how < 0.3:
        node.input.append(rng.choice(names(model)))
    elif how < 0.4:
        other = rng.randrange(len(node.input))
        node.input[at], node.input[other] = node.input[other], node.input[at]
    else:
        node.input[at] = rng.choice(names(model))


@structured
def values_changed(model: ModelProto, rng: random.Random) -> None:
    """Elements of weights and constants."""
    found = tensors(model)
    if not found:
        return
    tensor = rng.choice(found)
    try:
        array = numpy_helper.to_array(tensor).copy()
    except (TypeError, ValueError):  # mutated before
        return
    if not array.size:
        return
    flat = array.reshape(-1)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(flat.size)
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            flat[at] = min(max(rng.choice(NUMBERS), limits.min), limits.max)
        elif array.dtype.kind == "f":
            flat[at] = rng.choice(FLOATS)
        elif array.dtype.kind == "b":
            flat[at] = not flat[at]
        else:
            flat[at] = rng.choice(WORDS)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


@structured
def weight_reshaped(model: ModelProto, rng: random.Random) -> None:
    """Another shape of as many elements, another size, or another type."""
    found = tensors(model)
    if not found:
        return
    tensor = rng.choice(found)
    try:
        array = numpy_helper.to_array(tensor)
    except (TypeError, ValueError):
        return
    how = rng.random()
    if how < 0.3:
        array = array.reshape(-1, *[1] * rng.randrange(3))
    elif how < 0.6:
        axis = rng.randrange(array.ndim) if array.ndim else None
        count = rng.choice([0, 1, 2, 3])
        array = np.repeat(array, count, axis) if array.ndim else np.repeat(array.reshape(1), count)
    elif how < 0.8 and array.ndim:
        array = np.asarray(array[:1].reshape(array.shape[1:])) if array.shape[0] else array
    elif array.dtype != object:
        array = array.astype(rng.choice([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16]))
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


@structured
def operator_swapped(model: ModelProto, rng: random.Random) -> None:
    found = nodes(model)
    if len(found) > 1:
        node = rng.choice(found)
        others = [o.op_type for o in found if len(o.input) == len(node.input)] + EXTRA[min(len(node.input), 3)]
        node.op_type = rng.choice(others)


EXTRA: list[list[str]] = [
    ["SequenceEmpty"],
    "Abs Neg Exp Log Sqrt Floor Sign Relu Identity Transpose Flatten Squeeze Shape Size NonZero Not Softplus Det "
    "GlobalMaxPool SequenceLength Cast IsNaN ReduceSum ReduceMin ArgMin Trilu Unique Softmax Reciprocal "
    "ConstantOfShape SequenceConstruct Optional DynamicQuantizeLinear".split(),
    "Add Sub Mul Div Pow Mod And Or Xor Equal Less Greater MatMul Gather GatherElements GatherND Expand Tile Reshape "
    "Unsqueeze Squeeze Concat Max Min Compress CumSum BitwiseAnd BitShift TopK ReduceMax SequenceAt SplitToSequence "
    "Split MatMulInteger PRelu CastLike MaxRoiPool Einsum DequantizeLinear".split(),
    "Where Clip Range OneHot ScatterElements ScatterND Pad Gemm Conv ConvTranspose QuantizeLinear SequenceInsert "
    "MaxUnpool ConvInteger Slice Resize Attention Sum Mean Concat".split(),
]


@structured
def node_added(model: ModelProto, rng: random.Random) -> None:
    """A node between a value and one of its users; or a copy of one, or one less."""
    graph = rng.choice(graphs(model))
    if not graph.node:
        return
    how = rng.random()
    at = rng.randrange(len(graph.node))
    if how < 0.2:
        del graph.node[at]
        return
    if how < 0.35:
        copy = graph.node.add()
        copy.CopyFrom(graph.node[at])
        for i, name in enumerate(copy.output):
            copy.output[i] = f"{name}.copy"
        return
    user = graph.node[at]
    if not user.input:
        return
    which = rng.randrange(len(user.input))
    arity = rng.choice([1, 1, 2, 3])
    inputs = [user.input[which], *(rng.choice(names(model)) for _ in range(arity - 1))]
    added = helper.make_node(rng.choice(EXTRA[arity]), inputs, [f"added{rng.randrange(10**6)}"])
    user.input[which] = added.output[0]
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*rest[:at], added, *rest[at:]])


@structured
def opset_changed(model: ModelProto, rng: random.Random) -> None:
    if model.opset_import and rng.random() < 0.9:
        rng.choice(model.opset_import).version = rng.choice([1, 5, *range(6, 27), 2**40])
    elif rng.random() < 0.5:
        del model.opset_import[:]
    else:
        model.ir_version = rng.choice([0, 1, 3, 4, 10, 13, 99])


@structured
def outputs_changed(model: ModelProto, rng: random.Random) -> None:
    graph = rng.choice(graphs(model))
    how = rng.random()
    if how < 0.4:
        graph.output.add().name = rng.choice(names(model))
    elif graph.output and how < 0.7:
        rng.choice(graph.output).name = rng.choice(names(model))
    elif graph.output and how < 0.8:
        del graph.output[rng.randrange(len(graph.output))]
    elif graph.output:
        graph.output.add().CopyFrom(rng.choice(graph.output))


@structured
def renamed(model: ModelProto, rng: random.Random) -> None:
    """A value gets another's name: two definitions of one, or a cycle, or something that is not there."""
    found = [node for node in nodes(model) if node.output]
    if found:
        node = rng.choice(found)
        node.output[rng.randrange(len(node.output))] = rng.choice([*names(model), "new", ""])


# -- bytes -------------------------------------------------------------------------


@raw
def bits_flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


@raw
def bytes_replaced(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 2, 4])):
        changed[rng.randrange(len(changed))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(changed)


@raw
def cut_off(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


@raw
def bytes_moved(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(data)) for _ in range(2))
    at = rng.randrange(len(data))
    piece = data[start : min(end, start + 64)]
    return data[:at] + piece + data[at + (len(piece) if rng.random() < 0.5 else 0) :]
