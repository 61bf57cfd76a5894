"""Plans: graphs made ready to run, parts of graphs, and single nodes, which constant folding computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import RLock
from typing import Any

from irc.alias import Analyses, analyze
from irc.alias.motion import backward_slice
from irc.errors import Error
from irc.ir import Graph, Node, Value
from irc.ir.clone import ValueMap, clone_node, copy_graph
from irc.ir.kinds import CALL, CONSTANT, GROUP, IF, LOOPS, ONNX_LOOP, PRIM_LOOP, SCAN
from irc.ir.tensor import Tensor, load_together
from irc.ir.types import FUNCTION, NONE
from irc.ops.opaque import is_opaque
from irc.runtime.backends import Backend
from irc.runtime.binding import functional, may_stay_out, reachable_nodes, unsupported
from irc.runtime.bounds import CURRENT, in_own_scope, in_turn
from irc.runtime.control_flow import Iterate, lower_call, lower_if, lower_onnx_loop, lower_prim_loop, lower_scan
from irc.runtime.execution import Code, Frame, Run, Step, execute, fail
from irc.runtime.growable import lower_append
from irc.runtime.kernels import means
from irc.runtime.lowering import Bound, Lowering, Members, Special, runtime_constant
from irc.runtime.storage import Storage, Writes
from irc.runtime.values import asks_for_types

SPECIAL: dict[str, Special] = {
    IF: lower_if,
    PRIM_LOOP: lower_prim_loop,
    ONNX_LOOP: lower_onnx_loop,
    SCAN: lower_scan,
    CALL: lower_call,
    "irc::append_": lower_append,
}
"""How nodes that are not kernel calls are lowered."""

_PROVIDED = frozenset(SPECIAL) | {CONSTANT, GROUP}


class Plan:
    """One graph, lowered. Plans hold no state of a run: several threads may run one at once.

    Attributes:
        name: the graph's name.
        code: the steps of the graph's top block.
        graph_inputs: the graph's inputs.
        slot_of: the slots of results of the top block that may be made in arrays that lie there.
        groups: the members of fusion groups that a backend may compile, where steps run at most once.
        branches: the codes of the blocks of an If there, and what makes its step of them.
        loops: the slots of what the body of a loop there captures, its code, and what makes the loop's step.
        frame: what runs start from, but for weights that are not in memory yet.
        unread: the slots of those, which the first run fills.
        bound: the kernels and constants.
        written: the names of inputs that runs write to.
    """

    def __init__(self, name: str, graph_inputs: Sequence[Value], bound: Bound, written: Collection[str] = ()) -> None:
        self.name = name
        self.code = Code()  # until it is lowered: functions may call themselves
        self.graph_inputs = graph_inputs
        self.groups: dict[Node, Members] = {}
        self.branches: dict[Node, tuple[Sequence[Code], Callable[[Code, Code], Step]]] = {}
        self.loops: dict[Node, tuple[Mapping[Value, int], Code, Callable[[Iterate | None], Step]]] = {}
        self.slot_of: dict[Value, int] = {}
        self.frame: Frame = [None]
        self.unread: list[tuple[int, Node]] = []
        self.bound = bound
        self.written = written
        self._lock = RLock()

    def __repr__(self) -> str:  # in messages: the value that a function is
        return f"<plan of {self.name!r}>"

    @property
    def template(self) -> Frame:
        """The frame that runs start from: it has the constants; weights are read when it is first used."""
        if self.unread:
            self._read()
        return self.frame

    def _read(self) -> None:
        with self._lock:
            for slot, node in self.unread:
                constants = self.bound.constants
                if node not in constants:
                    constants[node] = runtime_constant(node.attributes["value"])
                self.frame[slot] = constants[node]
            # Last: a thread that sees none needs no lock, and after an error the next run tries again.
            self.unread = []

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
    """The nodes of ``graph``, its functions and its fusion groups that nothing can compute."""
    return [n for n in reachable_nodes(graph) if n.kind not in _PROVIDED and means(functional(n) or n) is None]


def lower(graph: Graph, guarded: bool = False) -> Plan:
    """The plan of ``graph``; the arguments and errors are those of `Lowerer`."""
    return Lowerer(graph, guarded).plan


class Lowerer:
    """Lowers a graph and the functions of its module that it calls.

    Args:
        graph: it must not change afterwards.
        guarded: whether the arrays that the plan will be given are read-only or may be overwritten: those that may
            share no memory with another input.
        backend: what may compile fusion groups and steps; None for the interpreter alone.
        analyses: of the graph and its functions; those that are needed are taken out.

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
        self, graph: Graph, guarded: bool = False, backend: Backend | None = None, analyses: Analyses | None = None
    ) -> None:
        # Before anything is analysed: one message then names all operators that have no kernel.
        absent = without_kernels(graph)
        deferred = {node: None for node in absent if may_stay_out(node)}
        if len(deferred) < len(absent):
            raise unsupported(absent)
        values = (node.attributes.get("value") for node in reachable_nodes(graph) if node.kind == CONSTANT)
        load_together(value for value in values if isinstance(value, Tensor))
        self.graph = graph
        self.bound = Bound(deferred, backend, asks_for_types(graph))
        self._analyses = analyses or Analyses(graph.module)
        self.storage, self.writes, self.known = self._analyzed(guarded)
        self.plan = Plan(graph.name, graph.inputs, self.bound, self.writes.inputs)
        self._functions: dict[str, Plan] = {}
        self._pending: list[tuple[Plan, Graph, Storage]] = [(self.plan, graph, self.storage)]
        while self._pending:
            self._fill(*self._pending.pop())

    def _analyzed(self, guarded: bool) -> tuple[Storage, Writes, list[int]]:
        """All that plans and runs need of the analysis, which is freed before lowering: it is large."""
        db, apart = self._analyses.take(self.graph, guarded), None
        if guarded and any(node.kind in LOOPS for node in self.graph.walk()):
            apart = self._analyses.another(self.graph, guarded, loops_apart=True)
        known = [i for i, output in enumerate(self.graph.outputs) if db.may_be_known(output)]
        return Storage(db, apart), Writes(db), known

    def _fill(self, plan: Plan, graph: Graph, storage: Storage) -> None:
        self.bound.prepared.lasting.update(storage.lasting)
        try:
            plan.code = Lowering(plan, graph, storage, SPECIAL, self._function).region(graph.block)
        except RecursionError:
            raise Error("IRC216", "blocks are nested too deeply", graph.name) from None

    def _function(self, name: str) -> Plan:
        module = self.graph.module
        if module is None or name not in module.graphs:
            raise Error("IRC325", f"the module has no function {name!r}")
        if name not in self._functions:
            graph = module.graphs[name]
            plan = self._functions[name] = Plan(name, graph.inputs, self.bound)
            self._pending.append((plan, graph, Storage(self._analyses.take(graph))))
        return self._functions[name]


def unknown_nodes(graph: Graph) -> list[Node]:
    """The opaque nodes of ``graph``, nested ones too, for which nobody has registered a kernel."""
    return [node for node in graph.walk() if is_unknown(node)]


def is_unknown(node: Node) -> bool:
    """Whether ``node`` is of an unknown operator; runs meet those in the top block, and may avoid others."""
    return is_opaque(node.kind) and means(node) is None


def part_for(graph: Graph, outputs: Collection[int]) -> Graph:
    """A copy of ``graph`` cut to what the outputs at these positions need; other outputs are None.

    What is left out may act on the world: nobody asked for it.

    Raises:
        Error: IRC323 if these outputs need operators that are unknown; the message lists all that the graph has.
    """
    needed, _ = backward_slice(analyze(graph, noalias=graph.inputs), [graph.outputs[i] for i in outputs])
    if any(map(is_unknown, needed)):
        raise unsupported(unknown_nodes(graph))
    copy = copy_graph(graph, graph.weights)
    nothing = copy.create(CONSTANT, (), (NONE,))
    copy.block.append(nothing)
    copy.set_outputs([value if i in outputs else nothing.output for i, value in enumerate(copy.outputs)])
    # Last first: a node can be erased once nothing uses its results. The constant, which is appended, has no original.
    for original, node in reversed(list(zip(graph.nodes, copy.nodes))):
        if original not in needed and original.kind != CONSTANT:
            node.erase()
    return copy


def evaluate(node: Node, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of ``node`` for the given inputs.

    Args:
        node: any node that irc can compute. What its blocks capture must be constants.
        arrays: one value an input: an array, None for an absent one, a list for a sequence. Not written to unless
            the node is an in-place operator.

    Returns:
        One value an output; they may share memory with ``arrays``.

    Raises:
        Error: the node cannot be computed, or not on these inputs.
    """
    if len(arrays) != len(node.inputs):
        raise Error("IRC434", f"{node.kind} has {len(node.inputs)} inputs, {len(arrays)} values were given", node.name)
    if node.kind in SPECIAL or node.kind == GROUP:
        graph, used = _alone(node)
        return lower(graph).run([arrays[i] for i in used])
    kernel = Bound().kernel(node)
    try:
        made = in_own_scope(CURRENT.scope.guard, in_turn, kernel, *arrays)
    except Exception as error:
        fail(error, node, arrays)
    return [made] if len(node.outputs) == 1 else [*made] if node.outputs else []


def _alone(node: Node) -> tuple[Graph, list[int]]:
    """A graph of a copy of ``node`` alone, and which inputs of the node are the graph's."""
    graph = Graph("evaluate", node.graph.weights, node.graph.module)
    given = [value for value in dict.fromkeys(node.inputs) if value.type != FUNCTION]
    mapping: ValueMap = {value: graph.add_input(value.type, value.name) for value in given}
    for value in (*node.inputs, *node.captures()):
        if value not in mapping:
            constant = value.made_by(CONSTANT)
            if constant is None:
                raise Error("IRC307", f"%{value.name} is needed to compute the node, and it is not a constant")
            graph.block.append(clone_node(constant, graph, mapping))
    graph.set_outputs(graph.block.append(clone_node(node, graph, mapping)).outputs)
    return graph, [node.inputs.index(value) for value in given]
