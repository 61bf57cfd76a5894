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

TRIES, CALLS, THINNED = 400, 25, 5
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


UNTHINNED = {
    **{
        f"aten::{name}.{overload}": "PyTorch dies of operands that do not fit"
        for name in ("gru", "lstm", "rnn_tanh", "rnn_relu")
        for overload in ("data", "input")
    },
    "aten::addbmm_": "PyTorch gives its tensor another shape, which irc refuses",
}


def is_possible(row: Schema, arguments: list[Any]) -> bool:
    """Whether PyTorch computes this; if it does, what is said of the results' types must be so."""
    mine = said(row, arguments)
    try:
        results = call(row, arguments)
    except IMPOSSIBLE:
        return False
    for type, result in zip(mine, [results] if len(row.returns) == 1 else results):
        if isinstance(result, torch.Tensor):
            if type.dtype is not None:
                assert type.dtype is dtype_of(result.dtype), (row, mine, arguments)
            if type.shape is not None:
                shape = tuple(result.shape)
                assert len(type.shape) == len(shape), (row, mine, shape, arguments)
                assert all(a is None or a == b for a, b in zip(type.shape, shape)), (row, mine, shape, arguments)
    return True


@pytest.mark.parametrize("row", ROWS, ids=called)
def test_types_that_are_said_are_so(row: Schema) -> None:
    torch.manual_seed(0)
    tried = islice(calls(row, random.Random(str(row))), TRIES)
    for _ in islice((a for a in tried if is_possible(row, a)), CALLS):
        pass


@pytest.mark.parametrize("row", [row for row in ROWS if called(row) not in UNTHINNED], ids=called)
def test_types_are_so_of_operands_that_are_broadcast(row: Schema) -> None:
    """Of calls that are possible, with axes of some operands thinned to 1 or left out."""
    torch.manual_seed(0)
    rng = random.Random(called(row))
    tried = islice(calls(row, rng), TRIES // 2)
    for arguments in islice((a for a in tried if is_possible(row, a)), CALLS // 2):
        for _ in range(THINNED):
            is_possible(row, thinned(arguments, rng))


def thinned(value: Any, rng: random.Random) -> Any:
    """Arguments of which tensors are copies with some axes of 1, and leading ones of these left out."""
    if isinstance(value, list):
        return [thinned(v, rng) for v in value]
    if not isinstance(value, torch.Tensor):
        return value
    for axis in range(value.dim()):
        if value.shape[axis] > 1 and rng.random() < 0.4:
            value = value.narrow(axis, 0, 1)
    while value.dim() and value.shape[0] == 1 and rng.random() < 0.3:
        value = value[0]
    return value.clone()
