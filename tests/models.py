"""ONNX models of few nodes, from the nodes and what is given to them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper


class Nodes(list[NodeProto]):
    """Nodes that calls append, each of which gives the name of its result: calls that nest as operators do."""

    def __call__(self, op: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"result_{len(self)}"
        self.append(helper.make_node(op, inputs, [name], **attributes))
        return name


def onnx_model(
    nodes: NodeProto | Sequence[NodeProto],
    inputs: Mapping[str, Any],
    outputs: Iterable[str] = "y",
    weights: Mapping[str, np.ndarray[Any, Any]] = {},
    opset: int = 21,
    **opsets: int,
) -> onnx.ModelProto:
    """A model whose outputs have no types.

    Args:
        inputs: by name an array like what is given, or a shape of floats, or an element type, or that and a shape;
            None: floats of any rank.
        opsets: of further domains, with underscores in place of dots.
    """
    graph = helper.make_graph(
        [nodes] if isinstance(nodes, NodeProto) else nodes,
        "g",
        [helper.make_tensor_value_info(name, *_type_of(given)) for name, given in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    imports = {"": opset, **{domain.replace("_", "."): version for domain, version in opsets.items()}}
    return helper.make_model(graph, opset_imports=[*map(helper.make_opsetid, imports, imports.values())], ir_version=10)


def _type_of(given: Any) -> tuple[int, Any]:
    if isinstance(given, np.ndarray):
        return helper.np_dtype_to_tensor_dtype(given.dtype), given.shape
    if given is None or isinstance(given, list):
        return TensorProto.FLOAT, given
    if isinstance(given, tuple):
        return given
    return helper.np_dtype_to_tensor_dtype(np.dtype(given)), None
