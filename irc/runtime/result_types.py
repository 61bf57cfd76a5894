"""Element types and shapes of results, derived from those of inputs by the operators' shape rules.

What a graph states of types is not asked: nobody may have checked it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress

from irc.errors import Error
from irc.ir import Block, Graph, Node, Value
from irc.ir.constants import constant_tensor
from irc.ir.kinds import CONSTANT, IF
from irc.ir.types import TENSOR, DType, TensorType, Type, join, with_plain_sizes, without_facts
from irc.ops.inference import Known, NodeTypes
from irc.ops.record import Operator
from irc.ops.registry import record
from irc.ops.shape_rules import tell_contents, types_told
from irc.runtime.array_memory import ANY, ArrayType


class _Derived(Known):
    """Types that have been derived; of all other values, no more is known than of what kind they are."""

    def __init__(self, given: Mapping[Value, TensorType], written: Container[Value]) -> None:
        super().__init__(is_fixed=lambda value: value not in written)
        self.types: dict[Value, Type] = {**given}

    def plain_type(self, value: Value) -> Type:
        found = self.types.get(value)
        if found is not None:
            return found
        tensor = constant_tensor(value)
        return without_facts(value.type) if tensor is None else tensor.type

    def tell_derived(self, value: Value, type: Type) -> None:
        """Note that ``value`` is of ``type``, which may have polynomials as sizes."""
        self.types[value] = with_plain_sizes(type)
        if isinstance(type, TensorType) and type.shape is not None:
            self.symbolic[value] = type if None not in type.shape else self._keep(value, type.shape)


def derived_forms(
    graph: Graph, groups: Mapping[Node, Graph], given: Mapping[Value, ArrayType], written: Container[Value]
) -> dict[Value, ArrayType]:
    """The forms of values that run at most once, and are no results of TorchScript's operators.

    Args:
        graph: the graph.
        groups: its fusion groups, with their subgraphs.
        given: the forms of inputs; sizes may be `ANY` in these, and then in the result.
        written: values whose elements something may change.
    """
    types = {value: _type_of(form) for value, form in given.items() if not form.dtype.hasobject}
    known = _Derived(types, written)

    def follow(block: Block) -> None:
        for node in block.nodes:
            if node in groups:
                inner = groups[node]
                for inside, value in zip(inner.inputs, node.inputs):
                    known.tell_derived(inside, known.type_of(value))
                follow(inner.block)
                for value, inside in zip(node.outputs, inner.outputs):
                    known.tell_derived(value, known.type_of(inside))
            elif node.kind == IF:
                for branch in node.blocks:
                    follow(branch)
                for value, *inside in zip(node.outputs, *(branch.returns for branch in node.blocks)):
                    known.tell_derived(value, join(*map(known.plain_type, inside)) or TENSOR)
            elif node.kind != CONSTANT and not node.kind.startswith("aten::"):
                with suppress(Error):  # of what may never run; else the run says so
                    _derive(node, record(node.kind), known)

    follow(graph.block)
    return {value: form for value, type in known.types.items() if (form := _form_of(type)) is not None}


def _derive(node: Node, operator: Operator, known: _Derived) -> None:
    if operator.shape is None:
        return
    context = NodeTypes(node, known)
    for value, type in zip(node.outputs, types_told(operator.shape, context)):
        known.tell_derived(value, type)
    tell_contents(operator, context, known.plain_type)


def _type_of(form: ArrayType) -> TensorType:
    return TensorType(DType.from_numpy(form.dtype), tuple([None if size == ANY else size for size in form.shape]))


def _form_of(type: Type) -> ArrayType | None:
    """The form of tensors of ``type``, in which unknown sizes are `ANY`; None if the rank is unknown."""
    if not isinstance(type, TensorType) or type.dtype is None or type.shape is None:
        return None
    return ArrayType(type.dtype.numpy, tuple([size if isinstance(size, int) else ANY for size in type.shape]))
