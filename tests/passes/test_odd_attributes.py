"""Shape rules and constant folding where attributes and operands are numbers that make no sense.

A model may hold any number. Whatever comes of it is a type that text can say, or an `irc.Error`.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import defs

import irc
from irc.errors import Error
from irc.ir import Builder, DType, Graph, Tensor, Value, parse_graph, types
from irc.ir.verify.operator_rules import type_fault
from irc.ops import Operator, records
from irc.passes import PassManager
from tests.graphs import ir
from tests.operators import records_for_a_while

NUMBERS = [-1, 0, -(2**63), 2**63 - 1]
FLOATS = [-1.0, 0.0, float("nan"), float("inf"), 1e300]
ODD: dict[str, list[Any]] = {
    "INT": NUMBERS,
    "FLOAT": FLOATS,
    "INTS": [[], *([n] * count for n in NUMBERS for count in (1, 2, 4))],
    "FLOATS": [[], *([n] * count for n in FLOATS for count in (1, 4))],
}
PLAIN: dict[str, Any] = {"INT": 1, "FLOAT": 1.0, "STRING": "a", "INTS": [1, 1], "FLOATS": [1.0, 1.0]}
SHAPES = [(), (1, 4, 2, 2)]
PREFERRED = ["tensor(float)", "tensor(int64)", "tensor(uint8)", "tensor(bool)", "tensor(string)"]

NAMES = sorted(each.name for each in records("onnx") if each.shape and defs.has(each.name))


def takes_tensors(schema: defs.OpSchema) -> bool:
    return all(any(name in PREFERRED for name in formal.types) for formal in schema.inputs)


SCHEMAS = [schema for schema in map(defs.get_schema, NAMES) if takes_tensors(schema)]


class Odd(NamedTuple):
    """What is odd about a node: an attribute, or the contents of an input."""

    attributes: dict[str, Any]
    input: int = -1
    contents: Any = None


def oddities(schema: defs.OpSchema) -> Iterator[Odd]:
    yield Odd({})
    for key, attribute in schema.attributes.items():
        for value in ODD.get(attribute.type.name, []):
            yield Odd({key: value})
    for i, formal in enumerate(schema.inputs):
        if "tensor(int64)" in formal.types:
            for number in NUMBERS:
                for contents in (number, [number], [number] * 4):
                    yield Odd({}, i, contents)


def operand(builder: Builder, formal: defs.OpSchema.FormalParameter, shape: tuple[int, ...], fixed: bool) -> Value:
    found = next(name for name in PREFERRED if name in formal.types)
    dtype = DType[found[len("tensor(") : -1].upper()]
    if fixed:
        return builder.constant(Tensor.splat(dtype, shape, "a" if dtype is DType.STRING else 1))
    return builder.graph.add_input(types.tensor(dtype, shape))


def graph_of(schema: defs.OpSchema, odd: Odd, shape: tuple[int, ...], fixed: bool) -> Graph:
    """A graph of one node, of constants (``fixed``) or of inputs."""
    graph = Graph()
    builder = Builder(graph)
    inputs: list[Value] = []
    for i in range(max(schema.min_input, odd.input + 1)):
        if i == odd.input:
            inputs.append(builder.constant(Tensor.of(np.array(odd.contents, np.int64))))
        else:
            inputs.append(operand(builder, schema.inputs[min(i, len(schema.inputs) - 1)], shape, fixed))
    needed = {key: PLAIN[a.type.name] for key, a in schema.attributes.items() if a.required and a.type.name in PLAIN}
    outputs = [types.TENSOR] * max(1, schema.min_output)
    attributes = needed | odd.attributes
    node = builder.node(f"onnx::{schema.name}", inputs, outputs, attributes=attributes, version=schema.since_version)
    graph.set_outputs(node.outputs)
    return graph


def refusal(graph: Graph) -> Error | None:
    """The Error that inference and folding end in, if they do."""
    try:
        PassManager("shape-inference,constant-fold").run(graph)
    except Error as error:
        if error.code == "IRC309":  # a mistake in a pass
            raise
        return error
    return None


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_odd_numbers_give_types_that_there_are_or_errors(schema: defs.OpSchema, every: int) -> None:
    for odd, shape, fixed in [*product(oddities(schema), SHAPES, (True, False))][::every]:
        graph = graph_of(schema, odd, shape, fixed)
        error = refusal(graph)
        assert error is None or (error.code == "IRC310" and "Error(" not in error.message), odd
        for value in graph.values():
            assert type_fault(value.type) is None, (odd, value)


@pytest.mark.parametrize("kind", ["DepthToSpace", "SpaceToDepth"])
@pytest.mark.parametrize("size", [0, -1, -(2**63)])
def test_blocks_have_a_size(kind: str, size: int) -> None:
    nodes = [
        onnx.helper.make_node("Constant", [], ["shape"], value_ints=[1, 4, 2, 2]),
        onnx.helper.make_node("ConstantOfShape", ["shape"], ["x"]),
        onnx.helper.make_node(kind, ["x"], ["y"], blocksize=size),
    ]
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(nodes, "g", [], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    with pytest.raises(Error, match=f"blocksize must be positive, is {size} ") as caught:
        irc.compile(model)
    assert caught.value.code == "IRC310"


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "code", "words"),
    [
        ("RoiAlign", [(4,), (4,), (4,)], {}, "IRC310", "an operand has fewer dimensions"),
        ("MaxUnpool", [(1, 4, 2, 2)] * 2, {"kernel_shape": [2]}, "IRC310", "kernel_shape must have 2 entries, has 1"),
        ("LayerNormalization", [(1, 4), (4,)], {"stash_type": -1}, "IRC127", "-1 is not an element type"),
        ("RandomNormal", [], {"shape": [2], "seed": float("nan")}, "IRC127", "'seed' is out of range: nan"),
        ("ai.onnx.ml::CategoryMapper", [(4,)], {"cats_int64s": [1]}, "IRC324", "attribute 'cats_strings' is missing"),
        ("ai.onnx.ml::LinearRegressor", [(1, 4)], {"targets": 2**63 - 1}, "IRC324", "a number is too large"),
    ],
)
def test_messages_are_in_words_of_irc(
    operator: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], code: str, words: str
) -> None:
    domain, _, name = operator.rpartition("::")
    schema = defs.get_schema(name, domain=domain)
    inputs = []
    for i, shape in enumerate(shapes):
        type = next(name for name in PREFERRED if name in schema.inputs[i].types)
        element = onnx.TensorProto.DataType.Value(type[len("tensor(") : -1].upper())
        inputs.append(onnx.helper.make_tensor_value_info(f"x{i}", element, shape))
    node = onnx.helper.make_node(name, [x.name for x in inputs], ["y"], domain=domain, **attributes)
    graph = onnx.helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [onnx.helper.make_opsetid("", 22), onnx.helper.make_opsetid("ai.onnx.ml", 5)]
    with pytest.raises(Error) as caught:
        irc.compile(onnx.helper.make_model(graph, opset_imports=opsets))
    assert caught.value.code == code
    assert words in caught.value.message and "Error(" not in caught.value.message


def test_sizes_of_rules_of_others_are_looked_at_where_results_are_folded() -> None:
    tile = Operator("onnx::Tile", shape=lambda c: types.TensorType(DType.FLOAT, (-2, 2**63)))
    graph = Graph()
    builder = Builder(graph)
    x = builder.constant(Tensor.splat(DType.FLOAT, (2, 2), 1))
    repeats = builder.constant(Tensor.of(np.array([1, 2])))
    graph.set_outputs([builder.op("onnx::Tile", x, repeats, version=13)])
    with records_for_a_while({"onnx::Tile": tile}):
        PassManager("constant-fold").run(graph)
    assert [node.kind for node in graph.nodes][-1] == "onnx::Tile"


def test_what_no_constant_can_hold_is_not_computed() -> None:
    """It might be a list of very many tensors."""
    text = ir("""
        -> parts
        c: Float(2) = prim.Constant(value=splat(1.)); parts = tensor_split(c, 9223372036854775807, 0)
    """)
    graph = parse_graph(text)
    report = PassManager("constant-fold").run(graph)
    assert [(r.where, r.reason) for r in report.remarks] == [
        ("%parts = aten::tensor_split", "not folded: a constant cannot hold its result")
    ]
