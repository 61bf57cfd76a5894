"""Forward shape and type inference over a graph, control flow included.

Rules are in the records of operators. What is inferred must hold in every run: a rule that cannot tell leaves the type
open. Types that the model states are kept where they say more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import Any, ClassVar

from irc.alias import AliasDb, analyze
from irc.alias.memory_types import has_memory
from irc.errors import Error
from irc.ir import Block, DType, Graph, Module, Node, Schema, TensorType, Type, Value
from irc.ir.kinds import CALL, CONSTANT, GROUP, IF, ONNX_LOOP, PRIM_LOOP, SCAN
from irc.ir.polynomials import is_positive
from irc.ir.region_flow import carried, is_batched, with_subgraphs
from irc.ir.types import (
    Dim,
    ListType,
    accepts,
    join,
    refined,
    with_plain_sizes,
    without_facts,
    without_names,
    without_shapes,
)
from irc.ir.verify.operator_rules import node_error
from irc.ops import of_kind, record, resolve, schemas
from irc.ops.inference import Contents, Known, NodeTypes
from irc.ops.opaque import is_opaque
from irc.ops.record import Change
from irc.ops.shape_rules import apply, tell_contents, types_told
from irc.passes.base import PassContext, Worklist
from irc.passes.inline import Inline
from irc.passes.registry import register


class Inference:
    """Infers the types of all values of a graph and, for small integer tensors, their contents.

    After ``run``, ``contents`` maps values to what is known of their elements, and ``type_of`` says more of sizes than
    types can.

    Args:
        graph: the graph; its values get their types.
        alias_db: returns the alias analysis of the graph, which shows what is written and so has no fixed contents; by
            default one of its own. Only called if the graph may write at all.
        memory: where passes store results for as long as they run.
        built_db: returns the alias analysis that is updated with new types, if it has been built.
    """

    def __init__(
        self,
        graph: Graph,
        alias_db: Callable[[], AliasDb] | None = None,
        memory: dict[Any, Any] | None = None,
        built_db: Callable[[], AliasDb | None] = lambda: None,
    ) -> None:
        self.graph = graph
        self._alias_db = alias_db or cache(partial(analyze, graph))
        self._built_db = built_db
        self._pure = all(map(_surely_writes_nothing, {node.kind for node in with_subgraphs(graph)}))
        self._declared: dict[Value, Type] = {}  # what types said before
        self._untold: dict[Value, Type] = {}  # what the analysis takes them to be
        self._apart: DeclaredTypes | None = None if memory is None else memory.get(DeclaredTypes)
        changes = changed_in_place(graph, self._alias_db, {} if memory is None else memory)
        self.known = Known(is_fixed=self.is_fixed) if changes is None else Known(changes, self.is_fixed)
        self._surely_runs = graph.module is None or graph.is_main
        self._reached: dict[Value, Type] = {}  # while a loop is repeated: what those inside it came to carry
        self._loops = 0  # around what is being inferred

    @classmethod
    def in_pass(cls, graph: Graph, ctx: PassContext) -> Inference:
        """The inference for a pass, with the pass's alias analysis."""
        return cls(graph, partial(ctx.alias_db, graph), ctx.memory, partial(ctx.built_alias_db, graph))

    @property
    def contents(self) -> dict[Value, Contents]:
        """The elements of small integer tensors."""
        return self.known.contents

    def type_of(self, value: Value) -> Type:
        """The type of ``value``, in which sizes are polynomials where they have no name."""
        return self.known.type_of(value)

    @property
    def changed(self) -> bool:
        """Whether any type is different from what it was at first."""
        return any(value.type != type for value, type in self._declared.items())

    def run(self) -> Inference:
        """Infer everything.

        Raises:
            Error: IRC310 types contradict each other at a node that every run reaches. Branches and loop bodies may
                never run, so a contradiction there is an error only at run time.
        """
        self._block(self.graph.block)
        self._tell()
        return self

    def _tell(self) -> None:
        """Tell the alias analysis which types have become more exact, other than by what they say of tensors."""
        db = self._built_db()
        if db is not None:
            for value, before in self._untold.items():
                if value.graph is self.graph:  # not inside of a group, which has an analysis of its own
                    db.retype_value(value, before)
        self._untold.clear()

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            self.infer_node(node)

    def infer_node(self, node: Node) -> None:
        """Infer the outputs of one node from its inputs (and its blocks); Error IRC310 as `run`."""
        try:
            self._infer(node)
        except Error as error:
            if error.code != "IRC310" or self._is_reached(node):
                raise
            for value in node.outputs:
                self.contents.pop(value, None)
                self.set_type(value, self._declared.get(value, value.type))

    def _is_reached(self, node: Node) -> bool:
        """Whether every run reaches ``node``."""
        return self._surely_runs and node.block is self.graph.block

    def _infer(self, node: Node) -> None:
        control = _CONTROL.get(node.kind)
        if control is not None:
            control(self, node)
            return
        context, operator = NodeTypes(node, self.known), record(node.kind)
        for check in operator.requires:
            apply(check, context)
        if operator.shape is None:
            return
        for value, type in zip(node.outputs, types_told(operator.shape, context), strict=False):
            declared = self._declared.get(value, value.type)
            is_copied = isinstance(declared, TensorType) and not isinstance(type, TensorType)
            self.set_type(value, declared if is_copied else type)  # of an operand that may be something else as well
        tell_contents(operator, context, lambda value: value.type)

    def propagate(self, users: Iterable[Node]) -> list[Node]:
        """Infer ``users``, whose inputs have changed, and what depends on them; return all inferred nodes.

        Nodes that are no longer in a block are left out.
        """
        pending = Worklist(users)
        inferred: dict[Node, None] = {}
        while pending:
            node = pending.pop()
            if node.block is None:
                continue
            if node.is_return:
                if node.outer is not None:
                    pending.add([node.outer])
                continue
            before = [self._told(v) for v in node.outputs]
            self.infer_node(node)
            inferred[node] = None
            if before != [self._told(v) for v in node.outputs]:
                pending.add(user for v in node.outputs for user in v.iter_users())
        self._tell()
        return list(inferred)

    def _told(self, value: Value) -> tuple[object, ...]:
        """All that is known of ``value``, for comparison."""
        contents = self.contents.get(value)
        return value.type, self.known.symbolic.get(value), None if contents is None else tuple(contents.flat)

    def set_type(self, value: Value, type: Type) -> None:
        """Give ``value`` its type, if it keeps it; what ``type`` leaves open stays as it was declared."""
        if self._apart is not None and self.known.changes(value):
            self._apart.tell(value, with_plain_sizes(type))
            return
        plain, before = with_plain_sizes(type), value.type
        value.type = refined(plain, self._declared.setdefault(value, value.type))
        if before is not value.type and not (isinstance(before, TensorType) and isinstance(value.type, TensorType)):
            self._untold.setdefault(value, before)
        self.known.symbolic.pop(value, None)
        if plain is not type:
            self.known.tell(value, type)

    def is_fixed(self, value: Value) -> bool:
        """Whether nothing writes into ``value`` itself: looking at how it is made tells its contents."""
        if self._pure:
            return True
        return not self._alias_db().has_writers(value, contained=False)

    # -- control flow ----------------------------------------------------

    def _if(self, node: Node) -> None:
        for block in node.blocks:
            self._block(block)
        taken = self._known_condition(node.inputs[0])
        for out, first, second in zip(node.outputs, *(block.returns for block in node.blocks), strict=True):
            a, b = self.type_of(first), self.type_of(second)
            if taken is not None:
                known, other = (a, b) if taken else (b, a)
                # What the other block gives must still fit: only folding takes that away.
                if accepts(with_plain_sizes(known), with_plain_sizes(other)):
                    a = b = known
            self.set_type(out, self._covering(out, a, b))

    def _covering(self, value: Value, a: Type, b: Type) -> Type:
        """A type of ``value`` that covers ``a`` and ``b``; the declared type if only a union or Any does."""
        return join(a, b) or self._declared.setdefault(value, value.type)

    def _known_condition(self, condition: Value) -> bool | None:
        """The constant value of a TorchScript condition, such as that an image has four dimensions; else None."""
        contents = self.contents.get(condition)
        if contents is None or isinstance(condition.type, TensorType):
            return None
        return contents.item() if isinstance(contents.item(), bool) else None

    def _loop(self, node: Node) -> None:
        (body,) = node.blocks
        onnx = node.kind == ONNX_LOOP
        if onnx:
            for param, dtype in zip(body.params, (DType.INT64, DType.BOOL)):  # of one element, with or without an axis
                has_axis = param.type.rank == 1
                self.set_type(param, TensorType(dtype, (1,) if has_axis else ()))
        self._to_fixed_point(node)
        surely = onnx and self._surely_iterates(node)
        at = carried(node)
        for out, row in zip(node.outputs[at.many :], body.returns[at.returned + at.many :], strict=False):
            self.set_type(out, stacked(self.known.plain_type(row), None, surely=surely))

    def _surely_iterates(self, node: Node) -> bool:
        """Whether an ``onnx::Loop`` runs its body at least once, whatever its inputs."""
        types = NodeTypes(node, self.known)
        limit, condition = types.contents_of(0), types.contents_of(1)
        begins = not types.has(0) or (limit is not None and limit.size == 1 and is_positive(limit.item()))
        return begins and (
            not types.has(1) or (condition is not None and condition.size == 1 and condition.item() is True)
        )

    def _scan(self, node: Node) -> None:
        (body,) = node.blocks
        if is_batched(node):  # there is a batch axis that the body does not see
            self._block(body)
            return
        states = carried(node).many
        scanned, rows = node.inputs[states:], body.returns[states:]
        axes = node.attributes.get("scan_input_axes") or [0] * len(scanned)
        out_axes = node.attributes.get("scan_output_axes") or [0] * len(rows)
        if not node.attributes.get("num_scan_inputs") == len(axes) == len(scanned) or len(out_axes) != len(rows):
            NodeTypes(node, self.known).fail("it needs one axis for each scanned input and scan output")
        length = None
        for param, value, axis in zip(body.params[states:], scanned, axes, strict=True):
            shape, dtype = value.type.shape, value.type.dtype
            if shape is None:
                self.set_type(param, TensorType(dtype))
                continue
            at = NodeTypes(node, self.known).axis(axis, len(shape))
            length = shape[at] if length is None else length
            self.set_type(param, TensorType(dtype, (*shape[:at], *shape[at + 1 :])))
        self._to_fixed_point(node)
        for out, row, axis in zip(node.outputs[states:], rows, out_axes, strict=False):
            type = stacked(self.known.plain_type(row), length, axis, surely=isinstance(length, int) and length > 0)
            self.set_type(out, type)

    def _to_fixed_point(self, loop: Node) -> None:
        """Types of carried values: the initial types joined with those that the body returns, until stable.

        Without an iteration the results are the initial values, otherwise what the body returns: the parameters' types
        cover both.

        If an outer loop repeats this one, inference continues from the earlier types, as types only get wider: starting
        again each time would take time exponential in the depth of nesting.
        """
        if not self._pure:
            self._alias_db()  # now: of types that are too narrow, as they are in between, an analysis would be wrong
        (body,) = loop.blocks
        at = carried(loop)
        params, returns = body.params[at.param :][: at.many], body.returns[at.returned :][: at.many]
        for param, value in zip(params, loop.inputs[at.input :][: at.many], strict=True):
            self.set_type(param, self._covering(param, value.type, self._reached.get(param, value.type)))
        self._loops += 1
        for number in count():  # ends: a join only ever forgets, and there is little to forget
            self._block(body)
            before = [p.type for p in params]
            for param, value, previous in zip(params, returns, before, strict=True):
                type = self._covering(param, previous, value.type)
                self.set_type(param, type)
                if number >= (_PATIENCE if param.type != previous else _MAX_ROUNDS):
                    self.set_type(param, _forget(type, number))
            if [p.type for p in params] == before:
                break
            for node in loop.nested():
                for value in node.outputs:
                    self.contents.pop(value, None)
        self._loops -= 1
        if self._loops:
            self._reached.update((param, param.type) for param in params)
        else:
            self._reached.clear()
        for out, param in zip(loop.outputs, params, strict=False):
            self.set_type(out, param.type)

    def _group(self, node: Node) -> None:
        subgraph = node.attributes["Subgraph"]
        inside = Inference(subgraph)
        inside._declared = self._declared
        for inner, outer in zip(subgraph.inputs, node.inputs, strict=True):
            inside.set_type(inner, self.known.plain_type(outer))
        inside._surely_runs = self._is_reached(node)
        inside.run()
        for outer, inner in zip(node.outputs, subgraph.outputs, strict=True):
            self.set_type(outer, inner.type)


_CONTROL = {
    IF: Inference._if,  # type: ignore[reportPrivateUsage]
    PRIM_LOOP: Inference._loop,  # type: ignore[reportPrivateUsage]
    ONNX_LOOP: Inference._loop,  # type: ignore[reportPrivateUsage]
    SCAN: Inference._scan,  # type: ignore[reportPrivateUsage]
    GROUP: Inference._group,  # type: ignore[reportPrivateUsage]
}


def inferred_by(kind: str) -> Callable[..., object] | None:
    """The rule, or control-flow method, that infers outputs of nodes of ``kind``; None if there is none."""
    return _CONTROL.get(kind) or record(kind).shape


_OWN = frozenset({CONSTANT, IF, PRIM_LOOP, GROUP})


def _surely_writes_nothing(kind: str) -> bool:
    """Whether nodes of ``kind`` surely write nothing themselves, whatever they run."""
    return kind in _OWN or is_opaque(kind) or (kind.startswith("onnx::") and not kind.endswith("_"))


_PATIENCE = 8
"""Rounds of a loop's body after which the shape of what still changes is given up."""

_MAX_ROUNDS = 64
"""Rounds after which the shapes of all that a loop carries are given up, and after `_PATIENCE` more the element types:
where each of many values passes on the one before, every round widens one more of them."""


def _forget(type: Type, rounds: int) -> Type:
    """What is kept of ``type`` after ``rounds`` rounds: element types at first, then not even these."""
    return (without_shapes if rounds < _MAX_ROUNDS + _PATIENCE else without_facts)(type)


def stacked(type: Type, length: Dim, axis: int = 0, *, surely: bool) -> Type:
    """The type of ``length`` tensors of ``type`` stacked along a new axis.

    If there may be none (``surely`` is False), named sizes are dropped: without a tensor they are unknown, and may be
    0.
    """
    row = type if surely else without_names(type)
    if row.shape is None:
        return TensorType(row.dtype)
    at = axis + len(row.shape) + 1 if axis < 0 else axis
    return TensorType(row.dtype, (*row.shape[:at], length, *row.shape[at:]))


# -- types that hold: a tensor of a declared type may be given another shape later, by ``aten::t_``, say
#
# While passes run, values whose tensors something may change so have no more than the type that always holds. What the
# model declares of them beyond that is kept apart until the passes have run.


Memory = dict[Any, Any]
"""Where passes store results for as long as they run."""


class DeclaredTypes:
    """What graphs declare of tensors beyond the types that always hold."""

    def __init__(self) -> None:
        self._types: dict[Value, Type] = {}

    def take_apart(self, graph: Graph, alias_db: Callable[[], AliasDb], memory: Memory) -> None:
        """Leave the values of ``graph`` the types that hold, and keep what they were declared as."""
        changes = changed_in_place(graph, alias_db, memory)
        if changes is None:
            return
        for value in graph.values():
            holding = without_facts(value.type)
            if holding is not value.type and changes(value):
                self._types.setdefault(value, value.type)
                value.type = holding

    def tell(self, value: Value, type: Type) -> None:
        """Keep that ``value`` was of ``type`` when it was made."""
        self._types[value] = refined(type, self._types.get(value, value.type))

    def give_back(self) -> None:
        """Restore declared types of values that still exist, where nothing else is known any more."""
        for value, type in self._types.items():
            if value.graph.has_value(value.name) and value.graph.value(value.name) is value:
                value.type = refined(value.type, type)
        self._types.clear()


def changed_in_place(graph: Graph, alias_db: Callable[[], AliasDb], memory: Memory) -> Callable[[Value], bool] | None:
    """Whether a value's tensors may change in shape or element type; None if none in ``graph`` do.

    Args:
        graph: the graph.
        alias_db: returns its alias analysis. Only called if something may.
        memory: where passes store results.
    """
    if not changes_metadata(graph, memory):
        return None
    db = alias_db()
    # Of tensors that lists hold, others may take the places.
    return lambda value: (
        not isinstance(value.type, TensorType) or value.graph is not graph or db.has_metadata_writers(value)
    )


def changes_metadata(graph: Graph, memory: Memory) -> bool:
    """Whether a node of ``graph``, or of a called function, may change tensors' shapes or element types."""
    kinds = _changing(graph)
    return bool(kinds) if kinds != {CALL} or graph.module is None else module_changes_metadata(graph.module, memory)


def module_changes_metadata(module: Module, memory: Memory) -> bool:
    """As `changes_metadata`, for all functions of a module, those that may call a graph among them."""
    key = module_changes_metadata, module
    if key not in memory:
        memory[key] = not all(_changing(function) <= {CALL} for function in module.graphs.values())
    return memory[key]


def _changing(graph: Graph) -> set[str]:
    """The kinds of nodes of ``graph`` that may change shapes and element types."""
    unsure = {kind for kind in {node.kind for node in with_subgraphs(graph)} if not _keep_metadata(kind)}
    nodes = with_subgraphs(graph) if unsure else ()
    return {node.kind for node in nodes if node.kind in unsure and not _keeps(node)}


def _keeps(node: Node) -> bool:
    """Whether ``node`` surely leaves shapes and element types of existing tensors as they are.

    Operators that other packages have registered may write elements, but change nothing else of a tensor.
    """
    surely = _keep_metadata(node.kind)
    if surely is not None:
        return surely
    if not record(node.kind).rows:
        return not any(has_memory(v.type) for v in node.inputs)
    fitting = resolve(node)
    return not any(map(_writes_lists, schemas(node.kind) if fitting is None else (fitting,)))


@of_kind
def _keep_metadata(kind: str) -> bool | None:
    """As `_keeps`, of all nodes of ``kind``; None if their operands tell."""
    known = record(kind)
    if known.changes is not Change.ELEMENTS or kind in (CALL, "prim::CallMethod"):
        return False
    if is_opaque(kind) or (not kind.startswith("aten::") and (known.rows or kind.startswith(_KEEPING))):
        return True
    return True if known.rows and not any(map(_writes_lists, schemas(kind))) else None


def _writes_lists(row: Schema) -> bool:
    return any(_lists_tensors(a.type) and any(i.write for i in a.alias.walk()) for a in row.arguments if a.alias)


_KEEPING = ("onnx::", "prim::", "irc::")


def _lists_tensors(type: Type) -> bool:
    """Whether ``type`` is that of a list of tensors: after a write, other tensors may be in their places."""
    return isinstance(type, ListType) and (isinstance(type.elem, TensorType) or _lists_tensors(type.elem))


# -- the pass ------------------------------------------------------------------


@register
@dataclass(frozen=True)
class ShapeInference:
    """Infer element types and shapes, keeping ONNX's named dimensions."""

    name: ClassVar[str] = "shape-inference"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Refine the type of every value; changes no node."""
        return Inference.in_pass(graph, ctx).run().changed


# -- whether the types that a module states agree with each other and with inferred ones


def contradiction(module: Module) -> Error | None:
    """The first contradiction between types in ``module``, which is not changed; None if there is none.

    It is an IRC310 if a node cannot run on what it is given, so that other runtimes refuse to load the model; an IRC214
    if a value is said to have another element type or shape than its node gives it; another IRC2xx if what inference
    finds breaks a rule. Functions are looked at by themselves, and on what they are called with.
    """
    found = _contradiction(module.copy())
    if found is not None or len(module.graphs) == 1:
        return found
    inlined = module.copy()
    with suppress(Error):  # that would make too many nodes
        Inline().run(inlined.main, PassContext(inlined))
    return _contradiction(inlined)


def _contradiction(module: Module) -> Error | None:
    """As `contradiction`; the types of ``module`` become those that are inferred."""
    for graph in module.graphs.values():
        stated = {value: value.type for value in graph.values()}
        try:
            Inference(graph).run()
        except Error as error:
            return error if error.code == "IRC310" else None
        found = _differing(graph, stated)
        if found is not None:
            return found
    try:
        module.verify()
    except Error as error:
        return error
    return None


def _differing(graph: Graph, stated: dict[Value, Type]) -> Error | None:
    """The IRC214 for the first value of ``graph`` that cannot have the type that was ``stated``."""
    for node in graph.walk():
        for i, value in enumerate(node.outputs):
            if not _agree(stated[value], value.type):
                return node_error("IRC214", _words(stated[value], value), node, output=i)
        for value in (param for block in node.blocks for param in block.params):
            if not _agree(stated[value], value.type):
                return node_error("IRC214", _words(stated[value], value), node)
    return None


def _agree(stated: Type, inferred: Type) -> bool:
    """Whether a value may have both types; of containers, only what they contain is inferred."""
    tensors = isinstance(stated, TensorType) and isinstance(inferred, TensorType)
    return not tensors or accepts(stated, inferred)


def _words(stated: Type, value: Value) -> str:
    return f"%{value.name} is said to be {stated}, but it is {value.type}"
