"""Operators on containers of anything: run by PyTorch from the text that irc prints, against both analyses."""

from typing import Any

import pytest
import torch

from irc.ir import Builder, Graph, Schema, Type, Value, types
from irc.ir.types import DictType, ListType, OptionalType, TupleType, TypeVar
from tests.differential.both import Both, run, share
from tests.differential.test_memory import has_variable, name
from tests.differential.test_schemas import OURS

OF_NUMBERS = ("aten::tensor", "aten::as_tensor")
"""Operators whose lists hold numbers only."""

ROWS = [
    row
    for row in OURS
    if row.name.startswith("aten::") and row.name not in OF_NUMBERS and any(has_variable(a.type) for a in row.arguments)
]


def of_tensors(type: Type) -> Type:
    """``type`` with tensors for its variables."""
    if isinstance(type, TypeVar):
        return types.TENSOR
    if isinstance(type, ListType | OptionalType):
        return type.__class__(of_tensors(type.elem))
    if isinstance(type, DictType):
        return DictType(of_tensors(type.key), of_tensors(type.value))
    return TupleType(tuple(map(of_tensors, type.elems))) if isinstance(type, TupleType) else type


CONSTANTS: dict[Type, Any] = {types.INT: 1, types.FLOAT: 1.5, types.BOOL: False, types.STR: "k", types.COMPLEX: 1j}


class Program:
    """Fresh tensors, containers of them, and one operator; all of it is returned."""

    def __init__(self, row: Schema) -> None:
        self.graph = Graph()
        self.input = self.graph.add_input(types.TENSOR, "x")
        self.builder = Builder(self.graph)
        self.tensors: list[Value] = []
        self.key: Value | None = None
        self.stranger = self.tensor()
        arguments = [self.make(of_tensors(a.type), a.name) for a in row.arguments]
        self.node = self.builder.node(row.name, arguments, [of_tensors(r.type) for r in row.returns])
        containers = [v for v in arguments if isinstance(v.type, ListType | DictType)]
        self.shown = [*self.tensors, *containers, *self.node.outputs]
        self.graph.set_outputs(self.shown)
        self.graph.verify()

    def pack(self) -> None:
        """Let the graph return one tuple: PyTorch runs no others. But its analysis gives up on what is in there."""
        shown = TupleType(tuple(v.type for v in self.shown))
        self.graph.set_outputs([self.builder.op("prim::TupleConstruct", *self.shown, type=shown)])

    def tensor(self) -> Value:
        self.tensors.append(self.builder.op("aten::relu", self.input))
        return self.tensors[-1]

    def make(self, type: Type, name: str) -> Value:
        if name in ("key", "idx") and self.key is not None:
            return self.key  # one that is there
        if type == types.TENSOR:
            return self.tensor()
        if isinstance(type, ListType):
            return self.builder.op("prim::ListConstruct", *(self.make(type.elem, "") for _ in range(2)), type=type)
        if isinstance(type, TupleType):
            return self.builder.op("prim::TupleConstruct", *(self.make(e, "") for e in type.elems), type=type)
        if isinstance(type, DictType):
            self.key = self.make(type.key, "")
            return self.builder.op("prim::DictConstruct", self.key, self.make(type.value, ""), type=type)
        if isinstance(type, OptionalType):
            return self.builder.constant()
        return self.builder.constant(CONSTANTS[type])


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_what_containers_hold(row: Schema) -> None:
    program = Program(row)
    both = Both(program.graph)
    program.pack()
    outcome = run(torch._C.parse_ir(str(program.graph)), torch.rand(()))
    now = dict(zip(program.shown, outcome, strict=True))
    for value in program.shown:
        for tensor in program.tensors:
            if value is not tensor and share(now[value], now[tensor]):
                assert both.db.may_contain_alias(value, tensor), f"%{value.name} holds %{tensor.name}"
        if value is not program.stranger:
            assert not both.db.may_contain_alias(value, program.stranger), f"%{value.name} does not hold %stranger"
