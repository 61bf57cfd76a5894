"""What operators do to memory in PyTorch, against what irc's alias analysis says of a node that is one.

Each operator is called with random arguments; results that lie in the storage
of an argument share with it, and arguments whose bytes differ afterwards were
written.
"""

import random
from typing import Any

import pytest
import torch

from irc.alias import AliasDb, analyze
from irc.alias.memory_types import has_memory
from irc.ir import Builder, Graph, Node, Value, types
from irc.ir.schema import Argument, Schema
from irc.ir.types import DictType, FutureType, ListType, OptionalType, TupleType, Type, TypeVar
from tests.differential.both import share, tensors
from tests.differential.test_schemas import OURS
from tests.differential.torch_calls import IMPOSSIBLE, call, calls
from tests.schema_differences import is_missed

CALLS, TRIES = 24, 400

UNCALLED = {
    "aten::cuda": "no such device",
    "aten::values": "sparse tensors, which irc has not",
    "aten::indices": "sparse tensors, which irc has not",
    "aten::to_padded_tensor": "nested tensors, which irc has not",
    "aten::_nested_tensor_from_mask": "nested tensors, which irc has not",
    **dict.fromkeys((f"aten::{n}.dtype" for n in ("mm", "bmm", "addmm", "baddbmm")), "not implemented on CPUs"),
}


def has_variable(type: Type) -> bool:
    if isinstance(type, ListType | OptionalType | FutureType):
        return has_variable(type.elem)
    if isinstance(type, DictType):
        return has_variable(type.key) or has_variable(type.value)
    return isinstance(type, TypeVar) or (isinstance(type, TupleType) and any(map(has_variable, type.elems)))


ROWS = [
    row
    for row in OURS
    if row.name.startswith("aten::")
    and any(has_memory(a.type) for a in row.arguments)
    and not any(has_variable(a.type) for a in row.arguments)
]
"""Of numbers and strings nothing can be shared; of lists of anything see ``test_containers``."""


def parts_of(type: Type) -> list[Type]:
    """``type`` and, of a list, the type of its elements."""
    return [type, type.elem] if isinstance(type, ListType) else [type]


def name(row: Schema) -> str:
    return f"{row.name}.{row.overload}".rstrip(".")


def contents(x: Any) -> list[bytes]:
    return [bytes(t.resolve_conj().contiguous().view(-1).numpy().tobytes()) for t in tensors(x)]


class OneNode:
    """A graph that is one call."""

    def __init__(self, schema: Schema, arguments: list[Any]) -> None:
        self.graph = Graph()
        builder = Builder(self.graph)
        self.inputs = [self._input(builder, a, v) for a, v in zip(schema.arguments, arguments)]
        of_types = [r.type for r in schema.returns]
        self.node: Node = builder.node(schema.name, self.inputs, of_types)
        self.graph.set_outputs(self.node.outputs)
        self.db: AliasDb = analyze(self.graph, noalias=self.graph.inputs)

    def _input(self, builder: Builder, argument: Argument, value: Any) -> Value:
        if value is not None and any(True for _ in tensors(value)):
            of_type = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
            return self.graph.add_input(of_type)
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return builder.constant(0)
        if isinstance(value, torch.device):
            return builder.constant(str(value), type=types.DEVICE)
        if isinstance(value, list):
            assert isinstance(argument.type, ListType | OptionalType)
            elem = types.INT if all(isinstance(v, int) for v in value) else types.FLOAT
            return builder.constant(value, type=ListType(elem))
        return builder.constant(value)


def check(row: Schema, arguments: list[Any]) -> bool:
    """Call the operator and compare; whether something was shared that PyTorch's row does not tell."""
    before = [contents(v) for v in arguments]
    results = call(row, arguments)
    if len(row.returns) == 1:
        results = [results]
    one = OneNode(row, arguments)
    found = False
    for value, old, argument in zip(one.inputs, before, arguments):
        if contents(argument) != old:
            assert one.db.is_mutable(one.node) and one.db.has_writers(value), f"it writes %{value.name}"
    for output, result in zip(one.node.outputs, results or ()):
        for value, argument in zip(one.inputs, arguments):
            shared = share(result, argument) or any(x is y for x in tensors(result) for y in tensors(argument))
            found = found or shared
            if shared:
                assert one.db.may_contain_alias(output, value), f"%{output.name} shares with %{value.name}"
                if output.type == value.type == types.TENSOR:
                    assert one.db.may_alias(output, value), f"%{output.name} shares with %{value.name}"
            elif isinstance(result, torch.Tensor) and result.numel():
                assert not one.db.must_alias(output, value), f"%{output.name} does not share with %{value.name}"
    return found


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_what_operators_do(row: Schema) -> None:
    torch.manual_seed(0)
    done, shared = 0, False
    for arguments, _ in zip(calls(row, random.Random(str(row))), range(TRIES)):
        try:
            shared = check(row, arguments) or shared
        except IMPOSSIBLE:
            continue
        done += 1
        if done == CALLS:
            break
    if name(row) in UNCALLED:
        assert not done, f"it can be called: {UNCALLED[name(row)]} no longer holds"
        return
    assert done, "no arguments were found that it takes"
    if is_missed(row.name, row.overload) and any(t == types.TENSOR for a in row.arguments for t in parts_of(a.type)):
        assert shared, "the row is said to know more than PyTorch's, but nothing was ever shared"
