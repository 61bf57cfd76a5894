"""Plans: graphs made ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from irc.alias import analyze
from irc.alias.summaries import Functions
from irc.errors import Error
from irc.ir.kinds import CALL, CONSTANT, GROUP, IF, LOOPS, ONNX_LOOP, PRIM_LOOP, SCAN
from irc.runtime.binding import may_stay_out, missing, unsupported
from irc.runtime.bounds import CURRENT, in_own_scope, in_turn
from irc.runtime.control.calls import lower_call
from irc.runtime.control.control_flow import lower_if, lower_onnx_loop, lower_prim_loop
from irc.runtime.control.scan import lower_scan
from irc.runtime.execution import Code, Frame, Run, execute
from irc.runtime.groups import Members
from irc.runtime.lowering import Bound, Lowering, Special, runtime_constant
from irc.runtime.memory.room import lower_append
from irc.runtime.memory.storage import Storage
from irc.runtime.typed_containers import asks_for_types
from irc.runtime.writes import Writes

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Value
    from irc.runtime.backends import Backend

SPECIAL: dict[str, Special] = {
    IF: lower_if,
    PRIM_LOOP: lower_prim_loop,
    ONNX_LOOP: lower_onnx_loop,
    SCAN: lower_scan,
    CALL: lower_call,
    "irc::append_": lower_append,
}
"""How nodes that are no kernel calls are lowered."""

_PROVIDED = frozenset(SPECIAL) | {CONSTANT, GROUP}


class Plan:
    """One graph, lowered. Plans hold no state of a run: several threads may run one at once.

    Attributes:
        name: the graph's name.
        code: the steps of the graph's top block.
        graph_inputs: the graph's inputs.
        slot_of: the slots of results of the top block that may be made in arrays that lie there.
        groups: the members of fusion groups of the top block that a backend may compile.
    """

    def __init__(self, name: str, bound: Bound) -> None:
        self.name = name
        self.code = Code()
        self.graph_inputs: Sequence[Value] = ()
        self.groups: dict[Node, Members] = {}
        self.slot_of: dict[Value, int] = {}
        self._template: Frame = [None]
        self._unread: list[tuple[int, Node]] = []
        self._bound = bound
        self._lock = RLock()

    def __repr__(self) -> str:  # in messages: the value that a function is
        return f"<plan of {self.name!r}>"

    def fill(self, graph: Graph, lowering: Lowering, code: Code) -> None:
        """Take over what lowering made. (A plan exists before its code, as functions may call themselves.)"""
        self.code, self._template, self._unread = code, lowering.template, lowering.unread
        self.slot_of, self.groups, self.graph_inputs = lowering.slot_of, lowering.groups, graph.inputs

    @property
    def template(self) -> Frame:
        """The frame that runs start from: it has the constants; weights are read when it is first used."""
        if self._unread:
            self._read()
        return self._template

    def _read(self) -> None:
        with self._lock:
            for slot, node in self._unread:
                constants = self._bound.constants
                if node not in constants:
                    constants[node] = runtime_constant(node.attributes["value"])
                self._template[slot] = constants[node]
            # Last: a thread that sees none needs no lock, and after an error the next run tries again.
            self._unread = []

    def run(self, inputs: Sequence[Any], run: Run | None = None) -> list[Any]:
        """The graph's outputs, in order; they may share memory with the inputs, constants and each other.

        Args:
            inputs: one value for each input of the graph, in order; arrays in it are written to only if the graph
                has in-place operators on them.
            run: where to count what was done, and what follows it; None for a run that nobody asks about.
        """
        return in_own_scope(CURRENT.scope.guard, in_turn, self.call, inputs, run or Run())

    def call(self, inputs: Sequence[Any], run: Run) -> list[Any]:
        """As `run`, for callers that have silenced NumPy's floating-point warnings."""
        code = self.code
        if len(inputs) != len(code.params):
            raise Error("IRC434", f"{self.name} takes {len(code.params)} values, not {len(inputs)}")
        frame = self.template.copy()
        frame[0] = run
        frame[1 : 1 + len(inputs)] = inputs
        execute(code, frame)
        return list(map(frame.__getitem__, code.returns))


def without_kernels(graph: Graph) -> list[Node]:
    """The nodes of ``graph`` and of what it calls that nothing can compute."""
    return missing(graph, _PROVIDED)


def lower(graph: Graph, guarded: bool = False) -> Plan:
    """The plan of ``graph``; the arguments and errors are those of `Lowerer`."""
    return Lowerer(graph, guarded).plan


class Lowerer:
    """Lowers a graph and the functions of its module that it calls.

    Args:
        graph: it must not change afterwards.
        guarded: whether the arrays that the plan will be given are read-only or may be overwritten: those that may
            share no memory with another input.
        bulk: how many operators may be dispatched as one unit; None for any number.
        backend: what may compile fusion groups and steps; None for the interpreter alone.

    Attributes:
        graph: as given.
        storage: which values of the graph are one memory.
        writes: what runs of it write to.
        known: the positions of its outputs that unknown code may know, or something that they hold.
        bound: the kernels and constants.
        plan: the plan of the graph.

    Raises:
        Error: IRC323 lists all operators that have no kernel, unless a run need not come to them; others if the graph
            is not well-formed or an attribute has a value that a kernel refuses.
    """

    def __init__(
        self, graph: Graph, guarded: bool = False, bulk: int | None = None, backend: Backend | None = None
    ) -> None:
        absent = without_kernels(graph)
        deferred = {node: None for node in absent if may_stay_out(node)}
        if len(deferred) < len(absent):
            raise unsupported(absent)
        self.graph = graph
        self._bulk = bulk
        self.bound = Bound(deferred, backend, asks_for_types(graph))
        self._known = Functions(graph.module)
        self.storage, self.writes, self.known = self._analyzed(guarded)
        self.plan = Plan(graph.name, self.bound)
        self._functions: dict[str, Plan] = {}
        self._pending: list[tuple[Plan, Graph, Storage]] = [(self.plan, graph, self.storage)]
        while self._pending:
            self._fill(*self._pending.pop())

    def _analyzed(self, guarded: bool) -> tuple[Storage, Writes, list[int]]:
        """All that plans and runs need from the analysis, which is large: it is freed before the graph is lowered."""
        noalias = self.graph.inputs if guarded else ()
        db = analyze(self.graph, noalias=noalias, functions=self._known)
        apart = None
        if guarded and any(node.kind in LOOPS for node in self.graph.walk()):
            apart = analyze(self.graph, noalias=noalias, functions=self._known, loops_apart=True)
        known = [i for i, output in enumerate(self.graph.outputs) if db.may_be_known(output)]
        return Storage(db, apart), Writes(db), known

    def _fill(self, plan: Plan, graph: Graph, storage: Storage) -> None:
        self.bound.prepared.lasting.update(storage.lasting)
        lowering = Lowering(storage, SPECIAL, self._function, self.bound, self._bulk)
        try:
            plan.fill(graph, lowering, lowering.region(graph.block))
        except RecursionError:
            raise Error("IRC216", "blocks are nested too deeply", graph.name) from None

    def _function(self, name: str) -> Plan:
        module = self.graph.module
        if module is None or name not in module.graphs:
            raise Error("IRC325", f"the module has no function {name!r}")
        if name not in self._functions:
            graph = module.graphs[name]
            plan = self._functions[name] = Plan(name, self.bound)
            self._pending.append((plan, graph, Storage(analyze(graph, functions=self._known))))
        return self._functions[name]
