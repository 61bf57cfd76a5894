"""Mutations that ask for too much: iterations, sizes, functions that double each other."""

import random

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.fuzz.models.mutations import graphs, structured

HUGE = [2**10, 2**16, 2**20, 2**24, 2**31, 2**40, 2**62, 2**63 - 1]


@structured
def huge_trip_counts(model: ModelProto, rng: random.Random) -> None:
    """Loops get a count that is a huge constant, or none; conditions that are always true."""
    for graph in graphs(model):
        for node in graph.node:
            if node.op_type == "Loop":
                how = rng.random()
                if how < 0.6:
                    count = numpy_helper.from_array(
                        np.array(rng.choice([*HUGE, -1, 100])), f"iterations{rng.randrange(10**6)}"
                    )
                    graph.initializer.append(count)
                    node.input[0] = count.name
                elif how < 0.8:
                    node.input[0] = ""
                elif len(node.input) > 1:
                    node.input[1] = ""
                if rng.random() < 0.5:
                    _always(node)


def _always(loop: NodeProto) -> None:
    for a in loop.attribute:
        if a.name == "body" and a.g.output:
            a.g.initializer.append(numpy_helper.from_array(np.array(True), "always"))
            a.g.output[0].name = "always"


@structured
def looped(model: ModelProto, rng: random.Random) -> None:
    """A value goes through a loop of many iterations, which makes it larger or not."""
    user = _user(model.graph, rng)
    if user is None:
        return
    op, rest = rng.choice([("Add", ["v"]), ("Concat", ["v"]), ("Neg", []), ("MatMul", ["v"]), ("Unsqueeze", ["zero"])])
    attributes = {"axis": 0} if op == "Concat" else {}
    inner = helper.make_graph(
        [helper.make_node(op, ["v", *rest], ["w"], **attributes), helper.make_node("Identity", ["on"], ["still"])],
        "many",
        [onnx.ValueInfoProto(name=name) for name in ("i", "on", "v")],
        [onnx.ValueInfoProto(name=name) for name in ("still", "w", *["v"] * (rng.random() < 0.3))],
        [numpy_helper.from_array(np.array([0]), "zero")],
    )
    inner.input[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.INT64, []))
    inner.input[1].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.BOOL, []))
    count = numpy_helper.from_array(np.array(rng.choice(HUGE)), "many_iterations")
    model.graph.initializer.append(count)
    node, which = user
    outputs = ["looped", *["stacked"] * (len(inner.output) - 2)]
    loop = helper.make_node("Loop", [count.name, "", node.input[which]], outputs, body=inner)
    _insert(model.graph, node, which, loop)


def _user(graph: GraphProto, rng: random.Random) -> tuple[NodeProto, int] | None:
    found = [node for node in graph.node if node.input and node.input[0]]
    return (rng.choice(found), 0) if found else None


def _insert(graph: GraphProto, user: NodeProto, which: int, added: NodeProto) -> None:
    """Put ``added`` before ``user``, which reads its first result."""
    user.input[which] = added.output[0]
    at = next(i for i, node in enumerate(graph.node) if node is user or node.output == user.output)
    rest = list(graph.node)
    changed = NodeProto()
    changed.CopyFrom(user)
    del graph.node[:]
    graph.node.extend([*rest[:at], added, changed, *rest[at + 1 :]])


@structured
def huge_sizes(model: ModelProto, rng: random.Random) -> None:
    """A value is made very large by what is known only when it runs, or before."""
    user = _user(model.graph, rng)
    if user is None:
        return
    node, which = user
    size, number = rng.choice(HUGE), rng.randrange(10**6)
    sizes = {
        "Expand": [rng.choice(HUGE), *[1] * rng.randrange(4)],
        "Tile": [size] * rng.randrange(1, 4),
        "Reshape": [size, -1],
        "Resize": [1, 1, size, size],
        "Pad": [size] * (2 * rng.randrange(1, 4)),
    }
    op = rng.choice([*sizes, "ConstantOfShape", "Range", "OneHot", "EyeLike"])
    given = [numpy_helper.from_array(np.array(sizes.get(op, [size] * rng.randrange(1, 3))), f"size{number}")]
    inputs = [node.input[which], given[0].name]
    if op == "Resize":
        inputs = [node.input[which], "", "", given[0].name]
    elif op == "ConstantOfShape":
        inputs = inputs[1:]
    elif op in ("Range", "OneHot"):
        given = [numpy_helper.from_array(np.array(v), f"s{number}.{i}") for i, v in enumerate((0, size, [0, 1]))]
        inputs = [given[0].name, given[1].name, given[2].name]
        if op == "Range":
            given[2].CopyFrom(numpy_helper.from_array(np.array(1), given[2].name))
        else:
            inputs[0] = node.input[which]
    elif op == "EyeLike":
        shape = helper.make_node("ConstantOfShape", [given[0].name], [f"zeros{number}"])
        _insert(model.graph, node, which, shape)
        inputs = [shape.output[0]]
    model.graph.initializer.extend(given)
    if rng.random() < 0.5:  # not known before the run
        for tensor in given:
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    _insert(model.graph, node, which, helper.make_node(op, inputs, [f"huge{number}"]))


@structured
def doubling_functions(model: ModelProto, rng: random.Random) -> None:
    """Functions that each call the one before twice, down to one that may double its operand too."""
    user = _user(model.graph, rng)
    if user is None:
        return
    node, which = user
    opset = next((o.version for o in model.opset_import if o.domain == ""), 20)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("doubling", 1)]
    op, attributes = rng.choice([("Add", {}), ("Concat", {"axis": 0}), ("Neg", {}), ("MatMul", {})])
    last = helper.make_node(op, ["a"] if op == "Neg" else ["a", "a"], ["b"], **attributes)
    made = [helper.make_function("doubling", "F0", ["a"], ["b"], [last], imports)]
    depth = rng.choice([3, 6, 9, 12, 18, 30, 64, 200])
    for i in range(1, depth):
        calls = [
            helper.make_node(f"F{i - 1}", ["a"], ["c"], domain="doubling"),
            helper.make_node(f"F{i - 1}", ["c"], ["b"], domain="doubling"),
        ]
        made.append(helper.make_function("doubling", f"F{i}", ["a"], ["b"], calls, imports))
    if rng.random() < 0.1:  # for ever
        made[0].node[0].op_type, made[0].node[0].domain = f"F{depth - 1}", "doubling"
    model.functions.extend(made)
    model.opset_import.append(imports[1])
    _insert(
        model.graph, node, which, helper.make_node(f"F{depth - 1}", [node.input[which]], ["doubled"], domain="doubling")
    )
