"""What shape inference says of an operator's results is what PyTorch's have, for random arguments."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import pytest
import torch

from irc.ir import Builder, Graph, Value, types
from irc.ir.ops import schemas
from irc.ir.schema import Schema
from irc.ir.types import SCALAR_TYPES, DType, ListType, OptionalType, TensorType
from irc.passes.shapes import Inference
from irc.passes.shapes.torch_call import TORCH_RULES
from tests.differential.torch_calls import IMPOSSIBLE, call, calls

TRIES, CALLS = 400, 25
NUMBERS = {dtype: number for number, dtype in SCALAR_TYPES.items()}

UNCALLED = {
    "aten::_weight_norm": "PyTorch dies of operands that do not fit",
    "aten::to.prim_other": "PyTorch calls another",
}


def dtype_of(dtype: torch.dtype) -> DType:
    return DType.from_numpy(torch.empty(0, dtype=dtype).numpy().dtype)


def typed(graph: Graph, tensor: torch.Tensor) -> Value:
    return graph.add_input(TensorType(dtype_of(tensor.dtype), tuple(tensor.shape)))


def said(schema: Schema, arguments: list[Any]) -> list[Any]:
    """The types of the results, where nothing but the types of tensors and what numbers are is known."""
    graph = Graph()
    builder = Builder(graph)
    inputs: list[Value] = []
    for argument, value in zip(schema.arguments, arguments):
        if isinstance(value, torch.Tensor):
            inputs.append(typed(graph, value))
        elif isinstance(value, torch.dtype):
            inputs.append(builder.constant(NUMBERS[dtype_of(value)]))
        elif isinstance(value, torch.layout | torch.memory_format):
            inputs.append(builder.constant(0))
        elif isinstance(value, torch.device):
            inputs.append(builder.constant(str(value), type=types.DEVICE))
        elif isinstance(value, list) and any(isinstance(v, torch.Tensor) for v in value):
            of_type = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
            items = [typed(graph, v) if v is not None else builder.constant(None) for v in value]
            inputs.append(builder.node("prim::ListConstruct", items, [of_type]).output)
        elif isinstance(value, list):
            elem = types.INT if all(isinstance(v, int) for v in value) else types.FLOAT
            inputs.append(builder.constant(value, type=ListType(elem)))
        else:
            inputs.append(builder.constant(value))
    node = builder.node(schema.name, inputs, [r.type for r in schema.returns])
    graph.set_outputs(node.outputs)
    Inference(graph).run()
    return [v.type for v in node.outputs]


def called(row: Schema) -> str:
    return f"{row.name}.{row.overload}".rstrip(".")


ROWS = [
    row
    for name in sorted(TORCH_RULES)
    for row in schemas(f"aten::{name}")
    if called(row) not in UNCALLED and any(isinstance(r.type, TensorType) for r in row.returns)
]


@pytest.mark.parametrize("row", ROWS, ids=called)
def test_types_that_are_said_are_so(row: Schema) -> None:
    torch.manual_seed(0)
    done = 0
    for arguments in islice(calls(row, random.Random(str(row))), TRIES):
        mine = said(row, arguments)
        try:
            results = call(row, arguments)
        except IMPOSSIBLE:
            continue
        for type, result in zip(mine, [results] if len(row.returns) == 1 else results):
            if isinstance(result, torch.Tensor):
                if type.dtype is not None:
                    assert type.dtype is dtype_of(result.dtype), (row, mine, arguments)
                if type.shape is not None:
                    shape = tuple(result.shape)
                    assert len(type.shape) == len(shape), (row, mine, shape, arguments)
                    assert all(a is None or a == b for a, b in zip(type.shape, shape)), (row, mine, shape, arguments)
        done += 1
        if done == CALLS:
            break
