"""Plans: graphs made ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.binding import may_stay_out, missing, unsupported
from irc.runtime.calls import lower_call
from irc.runtime.control_flow import lower_if, lower_onnx_loop, lower_prim_loop
from irc.runtime.execution import Code, Counters, Frame, Run, Watch, execute
from irc.runtime.groups import lower_group
from irc.runtime.growable import lower_append
from irc.runtime.lowering import Lowering, Special, runtime_constant
from irc.runtime.scan import lower_scan
from irc.runtime.storage import Storage

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Tensor

SPECIAL: dict[str, Special] = {
    "prim::If": lower_if,
    "prim::Loop": lower_prim_loop,
    "onnx::Loop": lower_onnx_loop,
    "onnx::Scan": lower_scan,
    "prim::CallFunction": lower_call,
    "prim::FusionGroup": lower_group,
    "irc::append_": lower_append,
}
"""How nodes that are no kernel calls are lowered."""

_PROVIDED = frozenset(SPECIAL) | {"prim::Constant"}


class Plan:
    """One graph, lowered. Plans hold no state of a run: several threads may run one at once.

    Attributes:
        name: the graph's name.
        code: the steps of the graph's top block.
    """

    __slots__ = ("_lock", "_template", "_unread", "code", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.code = Code()
        self._template: Frame = [None]
        self._unread: list[tuple[int, Tensor]] = []
        self._lock = Lock()

    def fill(self, lowering: Lowering, code: Code) -> None:
        """Take over what lowering made. (A plan exists earlier than its code: functions may call themselves.)"""
        self.code, self._template, self._unread = code, lowering.template, lowering.unread

    def _read_weights(self) -> None:
        """Put the weights that are not in memory yet into the template; after an error, the next run tries again."""
        with self._lock:
            for slot, tensor in self._unread:
                self._template[slot] = runtime_constant(tensor)
            self._unread = []  # last: a thread that sees none needs no lock

    def run(self, inputs: Sequence[Any], counters: Counters | None = None, watch: Watch | None = None) -> list[Any]:
        """The graph's outputs, in order; they may share memory with the inputs, constants and each other.

        Args:
            inputs: one value for each input of the graph, in order; arrays in it are written to only if the graph
                has in-place operators on them.
            counters: where to count what was done.
            watch: who follows the run, step by step.
        """
        with np.errstate(all="ignore"):  # infinities and NaNs are results like any other
            return self.call(inputs, Run(counters or Counters(), watch))

    def call(self, inputs: Sequence[Any], run: Run) -> list[Any]:
        """As `run`, for callers that have silenced NumPy's floating-point warnings."""
        code = self.code
        if len(inputs) != len(code.params):
            raise Error("IRC434", f"{self.name} takes {len(code.params)} values, not {len(inputs)}")
        if self._unread:
            self._read_weights()
        frame = self._template.copy()
        frame[0] = run
        frame[1 : 1 + len(inputs)] = inputs
        execute(code, frame)
        return [frame[s] for s in code.returns]


def without_kernels(graph: Graph) -> list[Node]:
    """The nodes of ``graph`` and of what it calls that nothing can compute."""
    return missing(graph, _PROVIDED)


def lower(graph: Graph, guarded: bool = False) -> Plan:
    """Lower ``graph`` and the functions of its module that it calls.

    Args:
        graph: it must not change afterwards.
        guarded: whether the arrays that the plan will be given are read-only or may be overwritten: those that may
            share no memory with another input.

    Raises:
        Error: IRC323 lists all operators that have no kernel, unless a run need not come to them; others if the graph
            is not well-formed or an attribute has a value that a kernel refuses.
    """
    absent = without_kernels(graph)
    deferred = frozenset(node for node in absent if may_stay_out(node))
    if len(deferred) < len(absent):
        raise unsupported(absent)
    plans: dict[tuple[Graph, bool], Plan] = {}
    pending: list[tuple[Graph, bool]] = []

    def plan_of(wanted: Graph, guarded: bool = False) -> Plan:
        key = wanted, guarded
        if key not in plans:
            plans[key] = Plan(wanted.name)
            pending.append(key)
        return plans[key]

    def function(name: str) -> Plan:
        if graph.module is None or name not in graph.module.graphs:
            raise Error("IRC325", f"the module has no function {name!r}")
        return plan_of(graph.module.graphs[name])

    plan = plan_of(graph, guarded)
    while pending:
        key = current, guards = pending.pop()
        lowering = Lowering(Storage(current, guards), SPECIAL, function, deferred)
        try:
            plans[key].fill(lowering, lowering.region(current.block))
        except RecursionError:
            raise Error("IRC216", "blocks are nested too deeply", current.name) from None
    return plan
