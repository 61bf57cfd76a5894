"""Values that take no new memory, and what they come from: views, results of writes, what branches and loops pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from irc.ir.kinds import IF, ONNX_LOOP, PRIM_LOOP
from irc.ir.region_flow import slots
from irc.passes.remove_mutation.forms import functional_kind
from irc.passes.remove_mutation.views import ELEMENT, View, element_index, view_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from irc.ir import Node, Value

CARRIERS = frozenset({IF, PRIM_LOOP, ONNX_LOOP})
"""Nodes that can be given one more value to carry through."""


class Origin(NamedTuple):
    """What a value comes from.

    Attributes:
        given: the values of which it is one, or a view.
        back: the value that each trip of a loop passes on in place of that.
        view: the node that makes it, if it is a view.
        how: what that node does.
    """

    given: tuple[Value, ...]
    back: Value | None = None
    view: Node | None = None
    how: View | None = None


class Origins:
    """The origins of values in a graph, as they are when first asked for.

    Each node is examined once, however many values it is given: a branch or loop may pass on thousands.
    """

    def __init__(self) -> None:
        self._found: dict[Node, dict[Value, list[tuple[Value, Origin]]]] = {}

    def made_of(self, value: Value) -> Iterator[tuple[Value, Origin]]:
        """The values that users of ``value`` make of it, or pass it on as."""
        for user in value.iter_users():
            node = user.outer if user.is_return else user
            if node is not None:
                yield from self._of(node).get(value, ())

    def _of(self, node: Node) -> dict[Value, list[tuple[Value, Origin]]]:
        found = self._found.get(node)
        if found is None:
            found = self._found[node] = {}
            for made, origin in _results(node):
                for value in dict.fromkeys(origin.given):
                    found.setdefault(value, []).append((made, origin))
        return found


def _results(node: Node) -> Iterable[tuple[Value, Origin]]:
    if node.kind == IF:
        return zip(node.outputs, map(Origin, zip(*[block.returns for block in node.blocks])))
    if node.blocks:
        return _carried(node) if node.kind in CARRIERS else ()
    how = view_of(node)
    if how is not None and how.is_literal:
        return [(node.output, Origin((value,), None, node, how)) for value in dict.fromkeys(node.inputs)]
    if how is None and (node.kind == "prim::ListUnpack" or element_index(node) is not None):
        how = ELEMENT
    if how is not None:
        return [(made, Origin((node.inputs[0],), None, node, how)) for made in node.outputs]
    if len(node.outputs) != 1 or functional_kind(node) is None:
        return ()
    return [(node.output, Origin((node.inputs[0],)))]


def _carried(loop: Node) -> Iterator[tuple[Value, Origin]]:
    (block,) = loop.blocks
    inputs, returns = loop.inputs, block.returns
    for slot in slots(loop) or ():
        if slot.input is None or slot.returned is None or slot.returned >= len(returns):
            continue  # what a family is carried by is returned when all are done
        origin = Origin((inputs[slot.input],), returns[slot.returned])
        if slot.param is not None:
            yield block.params[slot.param], origin
        if slot.output is not None:
            yield loop.outputs[slot.output], origin
