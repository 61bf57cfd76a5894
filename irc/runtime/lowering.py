"""Lowering: from the nodes of a graph to steps over the slots of a frame.

Values get slots, constants go into the frame's template, kernels are bound.
Blocks are lowered last node first, so that each step knows which slots nothing
needs after it and empties them: memory is freed as soon as possible. All blocks
of a graph (If, loops, fusion groups) share one frame, so captured values cost
nothing; only function calls have frames of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.tensor import Tensor
from irc.ir.types import FUNCTION
from irc.runtime.binding import bind, unsupported
from irc.runtime.execution import Code, Frame, Slots, Step, kernel_step, label
from irc.runtime.reuse import reusing_step
from irc.runtime.values import is_sequence

if TYPE_CHECKING:
    from irc.ir import Block, Node, Value
    from irc.runtime.kernels.registry import Kernel

FillIn = Callable[[Slots], Step]
"""Makes a step, given the slots to empty at its end."""

Special = Callable[["Lowering", "Node", Slots, Slots], FillIn]
"""Lowers a node that is no kernel call, given the slots of its inputs and outputs."""

_NOWHERE = 0
"""The region of constants, which are never emptied."""

_WRITE_OUT = 1 << 20
"""Splats of up to so many bytes are written out, so that kernels get plain arrays; larger ones stay broadcast."""


class Lowering:
    """Lowers one graph; made for one use.

    Slots belong to *regions*: a loop body and a fusion group are regions of
    their own, other blocks are part of the one around them. A step may empty
    only slots of its own region: the next trip needs a loop's captures again.

    Args:
        specials: how to lower the kinds that are no kernel calls.
        function: what a constant of type Function is at run time, by the function's name.
        deferred: nodes without kernels; a run that comes to one of them fails.

    Attributes:
        template: the frame a run starts from.
        unread: slots of weights that are not in memory yet, which the first run puts into the template.
    """

    def __init__(
        self, specials: dict[str, Special], function: Callable[[str], Any], deferred: Collection[Node] = ()
    ) -> None:
        self.template: Frame = [None]
        self.unread: list[tuple[int, Tensor]] = []
        self._deferred = deferred
        self._specials = specials
        self._function = function
        self._slots: dict[Value, int] = {}
        self._regions: list[int] = [_NOWHERE]  # by slot
        self._region = _NOWHERE
        self._regions_made = 0
        self._reuse = False
        # Of the blocks being lowered, outermost first: the slots that are read later.
        self._live: list[set[int]] = []
        # Of the nodes being lowered, outermost first: the slots that their blocks capture.
        self._captured: list[set[int]] = []

    def region(self, block: Block, *, reuse: bool = False) -> Code:
        """Lower a block as a region of its own.

        With ``reuse``, pointwise kernels in it write into inputs of the same
        region that nothing needs any more.
        """
        outer = self._region, self._reuse
        self._regions_made += 1
        self._region, self._reuse = self._regions_made, reuse
        code = self.block(block)
        self._region, self._reuse = outer
        return code

    def block(self, block: Block) -> Code:
        """Lower a block that runs at most once for each run of the block around it."""
        code = Code()
        code.params = self._define(block.params)
        own = set(code.params)
        for node in block.nodes:
            if node.kind == "prim::Constant":
                self._place(node)
            else:
                own.update(self._define(node.outputs))
        code.returns = self.slots(block.returns)
        code.owned = tuple(own.intersection(code.returns))
        live = set(code.returns)
        self._live.append(live)
        for node in reversed(block.nodes):
            if node.kind != "prim::Constant":
                self._lower(node, code)
        unused = tuple(set(code.params) - live)
        code.units = len(code.steps)
        if unused and len(self._live) > 1:
            code.steps.append(_drop(unused))
            code.nodes.append((block.return_node, (), ()))
        code.steps.reverse()
        code.nodes.reverse()
        self._live.pop()
        code.captured = frozenset(live - own)
        if self._captured:
            self._captured[-1] |= code.captured
        return code

    def slots(self, values: Iterable[Value]) -> Slots:
        """The slots of ``values``; Error IRC212 if one is not defined where it is used."""
        try:
            return tuple([self._slots[v] for v in values])
        except KeyError as error:
            raise Error("IRC212", f"%{error.args[0].name} is used where it is not defined") from None

    def _define(self, values: Iterable[Value], region: int | None = None) -> Slots:
        slots: list[int] = []
        for value in values:
            self._slots[value] = len(self.template)
            slots.append(len(self.template))
            self.template.append(None)
            self._regions.append(self._region if region is None else region)
        return tuple(slots)

    def _place(self, node: Node) -> None:
        (slot,) = self._define(node.outputs, _NOWHERE)
        if node.outputs[0].type == FUNCTION:
            if node.outputs[0].uses:  # inlining leaves functions behind that nothing calls
                self.template[slot] = self._function(node.attributes.get("name", ""))
            return
        value = node.attributes.get("value")
        if isinstance(value, Tensor) and value.can_wait:
            self.unread.append((slot, value))
        else:
            self.template[slot] = runtime_constant(value)

    def _lower(self, node: Node, code: Code) -> None:
        live = self._live[-1]
        ins, outs = self.slots(node.inputs), self.slots(node.outputs)
        dead = [s for s in outs if s not in live]
        live.difference_update(outs)
        self._captured.append(set())
        special = self._specials.get(node.kind)
        fill_in = self._kernel(node, ins, outs) if special is None else special(self, node, ins, outs)
        for slot in self._captured.pop().union(ins):
            if slot not in live:
                if self._regions[slot] == self._region and not any(slot in outer for outer in self._live):
                    dead.append(slot)
                if self._regions[slot] != _NOWHERE:
                    live.add(slot)
        code.steps.append(fill_in(tuple(dead)))
        code.nodes.append((node, ins, outs))
        code.kernels += special is None

    def _kernel(self, node: Node, ins: Slots, outs: Slots) -> FillIn:
        try:
            kernel = _refusing(node) if node in self._deferred else bind(node)
        except Error as error:
            raise Error(error.code, error.message, error.where or label(node)) from error
        except Exception as error:  # an attribute of a type or value that the kernel did not expect
            raise Error("IRC324", f"its attributes make no sense ({error!r})", label(node)) from error
        if self._reuse:
            step = reusing_step(node, kernel, ins, outs)
            if step is not None:
                return step
        return lambda dead: kernel_step(kernel, ins, outs, dead)


def runtime_constant(value: Any) -> Any:
    """A constant's value at run time: read-only arrays for tensors, tuples for lists, which no one can change."""
    if isinstance(value, Tensor):
        array = value.numpy()
        if value.is_splat and value.nbytes <= _WRITE_OUT:
            array = np.ascontiguousarray(array).reshape(array.shape)
            array.flags.writeable = False
        return array
    if is_sequence(value):
        return tuple(runtime_constant(v) for v in value)
    return value


def _refusing(node: Node) -> Kernel:
    def run(*inputs: Any) -> Any:
        raise unsupported([node])

    return run


def _drop(slots: Slots) -> Step:
    def step(frame: Frame) -> None:
        for s in slots:
            frame[s] = None

    return step
