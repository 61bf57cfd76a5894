"""Steps that append branches, loops and calls."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irc.ir import GROUP, Graph, OptionalType, Value, types
from tests.programs import onnx_steps
from tests.programs.container_steps import fitting
from tests.programs.kinds import BOOL, FLOAT, LONG, Kind, Num, Tens, blended, either, fits, ir_type
from tests.programs.maker import Maker
from tests.programs.torch_steps import Step

MAX_DEPTH = 3


def condition(m: Maker) -> Value:
    """A truth that is constant, given, or computed; a bool or a tensor of one element."""
    known = m.candidates(lambda k: isinstance(k, Tens) and k.dtype is BOOL and k.shape in ((), (1,)))
    choice = m.below(5)
    if choice < 2 and known:
        return m.pick(known)
    if choice == 4:
        total = m.emit("onnx::ReduceSum", [m.tensor(_is_float)], Tens(FLOAT, ()), keepdims=0)
        return m.emit("onnx::Less", [total, m.tensor_constant(np.float32(0))], Tens(BOOL, ()))
    if choice == 2:
        numbers = m.candidates(lambda k: isinstance(k, Num))
        if numbers:
            return m.builder.op("aten::gt", m.pick(numbers), m.number(0), type=types.BOOL)
    return m.number(m.flip()) if m.flip() else m.tensor_constant(np.array(m.flip()))


def _is_float(k: Tens) -> bool:
    return k.dtype is FLOAT


def branch(m: Maker) -> None:
    if m.depth >= MAX_DEPTH:
        return
    fork(m, condition(m), (nothing, nothing))


def nothing(m: Maker) -> None:
    """A block that begins with nothing in particular."""


def fork(m: Maker, truth: Value, starts: Sequence[Step]) -> None:
    """``prim::If``, whose blocks begin with ``starts``."""
    node = m.node_with_blocks("prim::If", [truth])
    scopes: list[list[Value]] = []
    for start in starts:
        block = node.add_block()
        with m.inside(block):
            start(m)
            m.steps(m.below(5))
            scopes.append(m.newest_first())
    returns: list[list[Value]] = [[], []]
    kinds: list[Kind] = []
    for _ in range(m.between(0, 2)):
        a = m.choose(scopes[0]) if scopes[0] else None
        for b in scopes[1] if a is not None else []:
            kind = either(m.kind(a), m.kind(b)) or (blended(m.kind(a), m.kind(b)) if m.wide else None)
            if kind is not None and (m.flip() or b is a):
                returns[0].append(a)
                returns[1].append(b)
                kinds.append(kind)
                break
    for block, values in zip(node.blocks, returns):
        block.set_returns(values)
    m.finish(node, kinds)


def choose(m: Maker) -> None:
    """One of two tensors that are there already."""
    a, b = _alike(m)
    node = m.node_with_blocks("prim::If", [condition(m)])
    for value in (a, b):
        node.add_block().set_returns([value])
    m.finish(node, [_of_both(m, a, b)])


def _alike(m: Maker) -> tuple[Value, Value]:
    """Two tensors of one element type and shape, two different ones mostly."""
    a = m.tensor()
    b = m.like(m.kind(a))
    return a, b if b is not a else m.fresh(Tens(m.kind(a).dtype, m.kind(a).shape))


def _of_both(m: Maker, a: Value, b: Value) -> Tens:
    return replace(m.kind(a), frozen=m.kind(a).frozen or m.kind(b).frozen)


def iterations(m: Maker) -> Value:
    """How often a loop goes round: from 0 to 4 times."""
    sizes = m.candidates(lambda k: isinstance(k, Num) and k.low >= 0 and k.high <= 4)
    return m.pick(sizes) if sizes and m.flip() else m.number(m.pick([2, 0, 1, 3, 4]))


def _carried(m: Maker) -> list[Value]:
    candidates = m.newest_first()
    return [m.choose(candidates) for _ in range(m.below(4))] if candidates else []


def _handed_on(m: Maker, kinds: list[Kind], params: list[Value]) -> list[Value]:
    """For each value carried, one that may take its place on the next iteration; often another parameter."""
    found = []
    for kind, param in zip(kinds, params):
        candidates = [v for v in reversed(m.scope) if fits(m.kind(v), kind)]
        others = [v for v in candidates if v in params and v is not param]
        found.append(m.pick(others) if others and not m.below(3) else m.choose(candidates))
    return found


def loop(m: Maker) -> None:
    """``prim::Loop``; the condition may end it before the iterations are used up."""
    if m.depth >= MAX_DEPTH:
        return
    initial = _carried(m)
    kinds = [_loosened(m, m.kind(v)) for v in initial]
    node = m.node_with_blocks("prim::Loop", [iterations(m), m.number(True) if m.below(4) else condition(m), *initial])
    block = node.add_block()
    number = block.add_param(types.INT)
    params = [block.add_param(ir_type(k, m.trusted)) for k in kinds]
    with m.inside(block):
        m.define([number], [Num(0, 3)])
        m.define(params, kinds)
        m.steps(m.below(5))
        go_on = m.number(True)
        if not m.below(4):
            go_on = m.builder.op("aten::lt", number, m.number(m.below(3)), type=types.BOOL)
        returned = _handed_on(m, kinds, params)
        block.set_returns([go_on, *returned])
    m.finish(node, kinds)


def swap(m: Maker) -> None:
    """``prim::Loop`` of which each iteration swaps two tensors and makes a third one anew."""
    if m.depth >= MAX_DEPTH:
        return
    a, b = _alike(m)
    c = m.tensor()
    kinds = [_of_both(m, a, b), _of_both(m, a, b), m.kind(c)]
    node = m.node_with_blocks("prim::Loop", [iterations(m), m.number(True), a, b, c])
    block = node.add_block()
    number = block.add_param(types.INT)
    u, v, w = params = [block.add_param(ir_type(k, m.trusted)) for k in kinds]
    with m.inside(block):
        m.define([number, *params], [Num(0, 3), *kinds])
        m.steps(m.below(3))
        block.set_returns([m.number(True), v, u, m.emit("aten::clone", [w], replace(kinds[2], frozen=False))])
    m.finish(node, kinds)


def remember(m: Maker) -> None:
    """``prim::Loop`` that carries an optional tensor: None on the first iteration, then what the last one has left."""
    if m.depth >= MAX_DEPTH:
        return
    kind = m.kind(m.tensor(lambda k: not k.frozen))
    optional = OptionalType(types.TENSOR)
    node = m.node_with_blocks("prim::Loop", [iterations(m), m.number(True), m.number()])
    block = node.add_block()
    number, last = block.add_param(types.INT), block.add_param(optional)

    def look(m: Maker) -> None:
        known = m.emit("prim::unchecked_cast", [last], kind)
        if m.flip() and kind.dtype is not BOOL:
            m.emit("aten::add_", [known, m.number(1), m.number(1)], kind)

    with m.inside(block):
        m.define([number], [Num(0, 3)])
        m.steps(m.below(4))
        fork(m, m.builder.op("aten::__isnot__", last, m.number(), type=types.BOOL), (look, nothing))
        m.steps(m.below(3))
        left = m.choose([v for v in reversed(m.scope) if fits(m.kind(v), kind)])
        block.set_returns([m.number(True), left])
    node.add_outputs([optional])  # nothing reads it: it may be None


def _loosened(m: Maker, kind: Kind) -> Kind:
    """A carried tensor counts as frozen sometimes, so that constants may be handed on."""
    return replace(kind, frozen=True) if isinstance(kind, Tens) and not m.below(4) else kind


def onnx_loop(m: Maker) -> None:
    """``onnx::Loop`` with scan outputs."""
    if m.depth >= MAX_DEPTH:
        return
    initial = [v for v in _carried(m) if isinstance(m.kind(v), Tens)]
    kinds = [_loosened(m, m.kind(v)) for v in initial]
    most = m.pick([2, 0, 1, 3, 4])
    limit = m.tensor_constant(np.array(most)) if m.below(4) else m.number()
    node = m.node_with_blocks("onnx::Loop", [limit, m.number(), *initial])
    block = node.add_block()
    number = block.add_param(types.tensor(LONG, ()))
    still = block.add_param(types.tensor(BOOL, ()))
    params = [block.add_param(ir_type(k, m.trusted)) for k in kinds]
    scans: list[Kind] = []
    with m.inside(block):
        # Where only the number ends the loop, a program that writes into it might never end.
        m.define([number], [Tens(LONG, (), frozen=limit.type == types.NONE)])
        m.define(params, kinds)
        m.steps(m.below(5))
        bound = m.tensor_constant(np.array(most - 1))
        go_on = m.builder.op("onnx::Less", number, bound, type=types.tensor(BOOL, ()))
        if limit.type != types.NONE and m.below(4):
            go_on = m.pick([m.tensor_constant(np.array(True)), still])
        returned = _handed_on(m, kinds, params)
        scanned = [m.like(Tens(k.dtype, k.shape)) for k in kinds[: m.below(3)]]
        for value in scanned:
            k = m.kind(value)
            value.type = types.tensor(k.dtype, k.shape)  # what it is if there is no iteration
            scans.append(k)
        block.set_returns([go_on, *returned, *scanned])
    outputs = node.add_outputs(
        [*(ir_type(k, m.trusted) for k in kinds), *(types.tensor(k.dtype, (None, *k.shape)) for k in scans)]
    )
    m.define(outputs[: len(kinds)], kinds)
    for value, k in zip(outputs[len(kinds) :], scans):
        # As many rows as iterations, which only the run will tell: their sum has a known shape.
        axes = m.shape_constant([0])
        if k.dtype is not BOOL:
            m.emit("onnx::ReduceSum", [value, axes], Tens(k.dtype, k.shape), keepdims=0)


def call(m: Maker) -> None:
    """``prim::CallFunction`` of a function that is complete."""
    if not m.functions:
        return
    name, params, results = m.pick(m.functions)
    arguments = []
    for kind in params:
        found = fitting(m, kind)
        if found is None:
            return
        arguments.append(found)
    function = m.builder.op("prim::Constant", type=types.FUNCTION, attributes={"name": name})
    node = m.builder.node("prim::CallFunction", [function, *arguments])
    m.finish(node, results)
    given = [
        v for v, k in zip(node.outputs, results, strict=True) if isinstance(k, Tens) and _is_float(k) and not k.frozen
    ]
    if given and m.flip():  # what a function returned is the caller's, to write into
        m.emit("aten::add_", [given[-1], m.number(1)], m.kind(given[-1]))


def group(m: Maker) -> None:
    """``prim::FusionGroup`` of a few pointwise operators, which may be given, and give, one thing twice."""
    given = [m.tensor(_is_float), m.tensor(_is_float)]
    kinds = [m.kind(v) for v in given]
    graph = Graph("group", m.graph.weights, m.graph.module)
    with m.inside(graph.block):
        m.scope, m.numbers = [], []
        m.define([graph.add_input(ir_type(k, m.trusted)) for k in kinds], kinds)
        for _ in range(m.between(2, 6)):
            m.pick(_IN_GROUPS)(m)
        returns = [m.choose(m.newest_first()), m.choose(m.newest_first())]
    graph.set_outputs(returns)
    m.emit_many(GROUP, given, [m.kind(v) for v in returns], Subgraph=graph)


_IN_GROUPS: tuple[Step, ...] = (onnx_steps.unary, onnx_steps.binary, onnx_steps.constant, onnx_steps.transpose)


_ONCE = ("aten::append", "aten::squeeze_", "aten::unsqueeze_", "prim::CallFunction")
_SHAPED = ("onnx::ConstantOfShape", "onnx::Expand", "onnx::Reshape")
"""Their last operand is a shape: what is written into it since may be none."""
_SIZED = ("aten::cat", "aten::stack")
"""Of a list that others may use, which may be longer by now."""


def again(m: Maker) -> None:
    """What an earlier node computed, once more."""
    nodes = [
        v.node
        for v in reversed(m.scope)
        if v.node is not None and len(v.node.outputs) == 1 and v.node.inputs and not v.node.blocks
    ]
    visible = {*m.scope, *(v for _, v in m.numbers)}
    for node in nodes[:12]:
        known = all(v in visible or (v.node is not None and v.node.block is node.block) for v in node.inputs)
        once = node.kind in _ONCE or (node.kind in _SHAPED and not m.kind(node.inputs[-1]).frozen)
        grows = node.kind in _SIZED and node.inputs[0] in visible
        if known and not once and not grows and m.flip():
            m.emit(node.kind, node.inputs, m.kind(node.output), node.output.type, **node.attributes)
            return


def again_after_a_write(m: Maker) -> None:
    """The same twice, of what is written in between, often through a view."""
    x = m.tensor(lambda k: _is_float(k) and not k.frozen)
    k = m.kind(x)
    kind = m.pick(["aten::neg", "onnx::Abs", "aten::clone"])
    m.emit(kind, [x], Tens(FLOAT, k.shape))
    written = m.emit("onnx::Identity", [x], k) if m.flip() else x
    m.emit("aten::add_", [written, m.number(1)], k)
    m.emit(kind, [x], Tens(FLOAT, k.shape))


def thrice(m: Maker) -> None:
    """The same three times."""
    x = m.tensor(_is_float)
    for _ in range(3):
        m.emit("aten::neg", [x], Tens(FLOAT, m.kind(x).shape))


STEPS: dict[str, tuple[Step, ...]] = {
    "branches": (branch, branch, choose),
    "loops": (loop, loop, swap, remember),
    "onnx loops": (onnx_loop,),
    "calls": (call,),
    "groups": (group,),
    "again": (again, again, again_after_a_write),
}
