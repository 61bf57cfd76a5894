"""What shape inference says of an operator's results is what PyTorch's and irc's have, for random arguments."""

import random
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from irc.errors import Error
from irc.ir import Builder, Graph, Schema, Value, types
from irc.ir.types import SCALAR_TYPES, DType, ListType, OptionalType, TensorType, Type
from irc.ops import records, schemas
from irc.passes.shapes import Inference
from irc.runtime.plan import lower
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


def inferred(schema: Schema, arguments: list[Any]) -> Graph:
    """The call, where nothing but the types of tensors and what numbers are is known."""
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
    return graph


def called(row: Schema) -> str:
    return f"{row.name}.{row.overload}".rstrip(".")


ROWS = [
    row
    for kind in sorted(each.kind for each in records("aten") if each.shape is not None)
    for row in schemas(kind)
    if called(row) not in UNCALLED and any(isinstance(r.type, TensorType) for r in row.returns)
]

ELSEWHERE = {"aten::cuda", *(f"aten::{name}.dtype" for name in ("addmm", "baddbmm", "bmm", "mm"))}
"""PyTorch computes them on other devices only."""

UNTHINNED = {
    **{
        f"aten::{name}.{overload}": "PyTorch dies of operands that do not fit"
        for name in ("gru", "lstm", "rnn_tanh", "rnn_relu")
        for overload in ("data", "input")
    },
    "aten::addbmm_": "PyTorch gives its tensor another shape, which irc refuses",
}


def check(type: Type, dtype: DType, shape: tuple[int, ...], *where: Any) -> None:
    """What is said must be so of a tensor of that element type and shape."""
    assert type.dtype in (None, dtype), (type, dtype, *where)
    if type.shape is not None:
        assert len(type.shape) == len(shape), (type, shape, *where)
        assert all(a is None or a == b for a, b in zip(type.shape, shape)), (type, shape, *where)


def is_possible(row: Schema, arguments: list[Any]) -> bool:
    """Whether PyTorch computes this; if it does, the results are as said."""
    outputs = inferred(row, arguments).outputs
    try:
        results = call(row, arguments)
    except IMPOSSIBLE:
        return False
    for output, result in zip(outputs, [results] if len(row.returns) == 1 else results):
        if isinstance(result, torch.Tensor):
            check(output.type, dtype_of(result.dtype), tuple(result.shape), row, arguments)
    return True


def run_here(row: Schema, arguments: list[Any]) -> None:
    """If irc computes this, the results are as said."""
    graph = inferred(row, arguments)
    try:
        results = lower(graph).run([t.numpy() for t in tensors(arguments)])
    except Error:
        return
    for output, result in zip(graph.outputs, results):
        if isinstance(result, np.ndarray):
            check(output.type, DType.from_numpy(result.dtype), result.shape, row, arguments)


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, list):
        return [t for v in value for t in tensors(v)]
    return [value] if isinstance(value, torch.Tensor) else []


@pytest.mark.parametrize("row", ROWS, ids=called)
def test_types_that_are_said_are_so(row: Schema) -> None:
    torch.manual_seed(0)
    tried = islice(calls(row, random.Random(str(row))), TRIES)
    possible = sum(1 for _ in islice((a for a in tried if is_possible(row, a)), CALLS))
    assert possible or called(row) in ELSEWHERE, "a row of which no call is possible is not tested"


@pytest.mark.parametrize("row", ROWS, ids=called)
def test_types_are_so_of_operands_that_are_broadcast(row: Schema) -> None:
    """Of calls that are possible, with axes of some operands thinned to 1 or left out."""
    torch.manual_seed(0)
    rng = random.Random(called(row))
    tried = islice(calls(row, rng), TRIES // 2)
    for arguments in islice((a for a in tried if is_possible(row, a)), CALLS // 2):
        for _ in range(THINNED):
            given = thinned(arguments, rng)
            if called(row) in UNTHINNED or not is_possible(row, given):
                run_here(row, given)


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
