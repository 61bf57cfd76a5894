"""Rules of single nodes: attributes, and how many inputs, outputs and blocks of which types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import cycle, repeat
from typing import Any, cast

from irc.errors import Error
from irc.ir import types
from irc.ir.constants import constant_value
from irc.ir.graph import Graph
from irc.ir.kinds import CALL, CONSTANT, DIFFERENTIABLE, IF, ONNX_LOOP, PRIM_LOOP, SCAN, SUBGRAPHS
from irc.ir.limits import MAX_INTEGER, MAX_LITERAL_DEPTH, MAX_TYPE_DEPTH, MIN_INTEGER
from irc.ir.node import Block, Node, Value
from irc.ir.objects import EnumMember
from irc.ir.region_flow import DECLARED_INPUTS, DECLARED_ROWS, SCANNED_BY, STACKED_BY, callee, carried, inner_graph
from irc.ir.tensor import Tensor
from irc.ir.text.printer import NodeText, Opaque, literal_text, node_text, print_node
from irc.ir.text.type_parser import parse_type
from irc.ir.types import DictType, DType, ListType, OptionalType, PrimType, TensorType, TupleType, Type, without_shapes
from irc.support.formatting import count

_AROUND = 2
"""Lines of IR shown before the node; one less is shown after it."""
_WIDTH = 120
"""Columns of a line of IR that are shown."""


def node_error(code: str, message: str, node: Node, *, input: int | None = None, output: int | None = None) -> Error:
    """An error about ``node``, or about one of its inputs or outputs.

    Args:
        code: such as ``"IRC212"``.
        message: what is wrong and what to do about it.
        node: the node at fault; a block's return node stands for the block's results.
        input: number of the input at fault.
        output: number of the output at fault.
    """
    text = _line(node)
    line = str(text)
    start, width = _span(text, input, output)
    shown, start, width = _window(line, start, width)
    lines = [*(_cut(print_node(n)) for n in _before(node)), shown, " " * start + "^" * width]
    after = None if node.is_return else node.next
    lines += [_cut(print_node(after))] if after is not None else []
    place = _describe(node.block)
    excerpt = "\n".join(f"    {text}" for text in lines)
    return Error(code, f"{message}\n  in {place}:\n{excerpt}", _where(node))


def _line(node: Node) -> NodeText:
    if not node.is_return:
        return node_text(node)
    head = "->" if node.block is not None and node.block.node is not None else "return"
    return node_text(node)._replace(operator=f"{head} ")


def _before(node: Node) -> list[Node]:
    found: list[Node] = []
    earlier = node.prev
    while earlier is not None and len(found) < _AROUND:
        found.append(earlier)
        earlier = earlier.prev
    return found[::-1]


def _span(text: NodeText, input: int | None, output: int | None) -> tuple[int, int]:
    """Column and width of what the caret marks: an output's or input's name, else the operator's."""
    if output is not None:
        return sum(len(t) + 2 for t in text.outputs[:output]), len(text.outputs[output].partition(" : ")[0])
    head = len(str(text._replace(inputs=[], notes=""))) - len("()")
    if input is not None:
        return head + 1 + sum(len(t) + 2 for t in text.inputs[:input]), len(text.inputs[input])
    kind = len(text.operator.partition("[")[0].rstrip())
    return head - len(text.operator), kind


def _window(line: str, start: int, width: int) -> tuple[str, int, int]:
    """The part of a long line that shows what is marked, and where it stands in it."""
    cut = max(0, start - _WIDTH // 2)
    if cut:
        line, start = "..." + line[cut:], start - cut + 3
    return _cut(line), start, max(1, min(width, _WIDTH - start))


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[:_WIDTH] + "..."


def _describe(block: Block | None) -> str:
    if block is None:
        return "no block"
    if block.node is None:
        return f"graph {block.graph.name}"
    return f"block{block.node.blocks.index(block)} of {_where(block.node)}, graph {block.graph.name}"


def _where(node: Node) -> str:
    """A node in a few words: its outputs, operator and name."""
    if node.is_return:
        return f"the results of {_describe(node.block)}"
    outputs = ", ".join(f"%{v.name}" for v in node.outputs[:3]) + (", ..." if len(node.outputs) > 3 else "")
    name = f" ({node.name})" if node.name else ""
    return f"{outputs} = {node.kind}{name}" if outputs else f"{node.kind}{name}"


# -- rules ---------------------------------------------------------------------


# What types may be made of: they are not checked when they are made.


def type_fault(type: Type, depth: int = 1) -> str | None:
    """What is wrong with ``type`` at nesting ``depth``; None if nothing is."""
    if not isinstance(type, Type):  # type: ignore[reportUnnecessaryIsInstance]
        return f"a type is one of irc.ir.types, not {type!r}"
    if isinstance(type, TensorType):
        return types.tensor_fault(type)
    if depth > MAX_TYPE_DEPTH:
        return f"types nest at most {MAX_TYPE_DEPTH} levels deep"
    faults = (type_fault(part, depth + 1) for part in type.inner)
    return next((fault for fault in faults if fault is not None), None)


# -- attribute rules -----------------------------------------------------------


_PLAIN: frozenset[type] = frozenset({float, str, bool, complex, type(None), Opaque, EnumMember})


def check_attributes(node: Node) -> list[Graph]:
    """Check the attributes of ``node`` (IRC215, IRC214 for constants); the graphs among them."""
    graphs: list[Graph] = []
    for key, value in node.attributes.items():
        if not isinstance(key, str):  # type: ignore[reportUnnecessaryIsInstance]  # passes are not typed
            raise node_error("IRC215", f"the name of an attribute must be a string, not {key!r}", node)
        if value.__class__ in _PLAIN:
            continue
        if isinstance(value, Graph):
            graphs.append(value)
            continue
        fault = _fault(value, node.graph, 1)
        if fault is not None:
            raise node_error("IRC215", f"attribute {key} {fault}", node)
    return graphs


def _fault(value: Any, graph: Graph, depth: int) -> str | None:
    """What is wrong with the attribute ``value``, an integer or not a plain scalar; None if nothing is."""
    if isinstance(value, Tensor):
        if value.name and graph.weights.get(value.name) is not value:
            return f"holds weight {value.name!r}, which is not in the graph's weight table: enter it with weights.add"
        return content_fault(value) or _of_type(value.type)
    if isinstance(value, Type):
        return _of_type(value)
    if value.__class__ is int:
        return None if MIN_INTEGER <= value <= MAX_INTEGER else "holds an integer that does not fit into 64 bits"
    if depth > MAX_LITERAL_DEPTH:
        return f"nests deeper than {MAX_LITERAL_DEPTH} levels"
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
    elif isinstance(value, dict):
        items = [item for pair in cast("dict[Any, Any]", value).items() for item in pair]
    else:
        kind = value.__class__
        return f"holds a {kind.__module__}.{kind.__name__}, which the IR does not know"
    for item in items:
        if item.__class__ is int and MIN_INTEGER <= item <= MAX_INTEGER:  # of which there may be very many
            continue
        if item.__class__ not in _PLAIN:
            fault = _fault(item, graph, depth + 1)
            if fault is not None:
                return fault
    return None


def content_fault(tensor: Tensor) -> str | None:
    """What is wrong with the contents of ``tensor``, as far as they are in memory; None if nothing is."""
    return None if tensor.fits else f"holds a tensor {tensor.name!r} whose contents are not those of a {tensor.type}"


@lru_cache(maxsize=types.REMEMBERED)
def _of_type(type: Type) -> str | None:
    fault = type_fault(type)
    return None if fault is None else f"holds a wrong type: {fault}"


def check_constant(node: Node) -> None:
    """Check a ``prim::Constant``: its value has its type (IRC214), no graph, a function's name (IRC215)."""
    declared = node.outputs[0].type
    if isinstance(node.attributes.get("Subgraph"), Graph):
        raise node_error("IRC215", "a constant holds no Subgraph", node)
    if declared == types.FUNCTION and not isinstance(node.attributes.get("name"), str):
        raise node_error("IRC215", "a constant Function needs an attribute name, the function's, as a string", node)
    value = node.attributes.get("value")
    fits = _may_be_none(declared) if value is None else constant_fits(value, declared)
    if not fits:
        what = f"tensor {value.type}" if isinstance(value, Tensor) else f"value {_short(literal_text(value))}"
        raise node_error("IRC214", f"a constant of {what} cannot have type {declared}", node, output=0)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "..."


def _may_be_none(declared: Type) -> bool:
    # A tensor without a value is TorchScript's undefined tensor; functions and objects have other attributes.
    return isinstance(declared, types.OptionalType | types.UnionType | TensorType | types.ClassType) or declared in (
        types.NONE,
        types.ANY,
        types.FUNCTION,
    )


def constant_fits(value: Any, declared: Type) -> bool:
    """Whether a constant ``value`` may be declared as ``declared``."""
    if isinstance(value, Tensor) and isinstance(declared, TensorType):  # first, as most are
        return types.accepts(declared, value.type)
    if isinstance(value, Opaque) or declared == types.ANY:
        return True
    if value is None:
        return _may_be_none(declared)
    if isinstance(declared, types.OptionalType):
        return constant_fits(value, declared.elem)
    if isinstance(declared, types.UnionType):
        return any(constant_fits(value, member) for member in declared.members)
    if isinstance(value, list):
        return isinstance(declared, types.ListType) and all(
            constant_fits(item, declared.elem) for item in cast("list[Any]", value)
        )
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return (
            isinstance(declared, types.TupleType)
            and len(items) == len(declared.elems)
            and all(map(constant_fits, items, declared.elems))
        )
    if isinstance(value, dict):
        return isinstance(declared, types.DictType) and all(
            constant_fits(k, declared.key) and constant_fits(v, declared.value)
            for k, v in cast("dict[Any, Any]", value).items()
        )
    if isinstance(value, EnumMember):
        return value.type == declared
    if not isinstance(declared, types.PrimType) or isinstance(value, Tensor):
        return False
    # TorchScript writes enumerations (layouts...) as numbers: types that irc does not know hold any scalar.
    return declared in _TYPES_OF.get(value.__class__, ()) or declared not in _KNOWN


_TYPES_OF: dict[type, tuple[Type, ...]] = {
    bool: (types.BOOL, types.SCALAR),
    int: (types.INT, types.SCALAR),
    float: (types.FLOAT, types.SCALAR),
    complex: (types.COMPLEX, types.SCALAR),
    str: (types.STR, types.DEVICE),
}
_KNOWN = frozenset(t for known in _TYPES_OF.values() for t in known) | {types.NONE, types.FUNCTION}


# -- parts of the rules of single operators ------------------------------------
#
# Numbers of inputs, outputs and blocks, and which values may become which.


Form = Callable[[Node], None]
"""Checks the form of a node."""


def require(node: Node, holds: bool, message: str) -> None:
    """Error IRC213 with ``message`` unless it holds."""
    if not holds:
        raise node_error("IRC213", message, node)


def has(node: Node, *, inputs: int | None = None, outputs: int | None = None, blocks: int = 0) -> None:
    """Require exact numbers (None: any)."""
    for what, wanted, found in (
        ("input", inputs, len(node.inputs)),
        ("output", outputs, len(node.outputs)),
        ("block", blocks, len(node.blocks)),
    ):
        if wanted is not None and wanted != found:
            raise node_error("IRC213", f"{node.kind} must have {count(wanted, what)} here, not {found}", node)


def flows(
    node: Node, sources: Sequence[Value], targets: Sequence[Value], what: str, of_any_shape: bool = False
) -> None:
    """Check that each of ``sources`` may become the corresponding one of ``targets`` (IRC214).

    With ``of_any_shape``, their shapes may differ, as those of carried values do.
    """
    for source, target in zip(sources, targets, strict=False):
        if source.type == target.type:
            continue
        formal, actual = map(without_shapes, (target.type, source.type)) if of_any_shape else (target.type, source.type)
        if not types.accepts(formal, actual):
            message = f"%{source.name} : {source.type} cannot become {what} %{target.name} : {target.type}"
            raise node_error("IRC214", message, node)


def gives(node: Node, sources: Sequence[Type]) -> None:
    """Check that values of the types ``sources`` may become the corresponding outputs (IRC214)."""
    for i, (source, output) in enumerate(zip(sources, node.outputs, strict=True)):
        if source != output.type and not types.accepts(output.type, source):
            raise node_error("IRC214", f"{source} cannot become %{output.name} : {output.type}", node, output=i)


def counts(inputs: int | None, outputs: int | None) -> Form:
    """The rule of operators that have exactly these numbers of inputs and outputs (None: any)."""
    return lambda node: has(node, inputs=inputs, outputs=outputs)


def handing_on(inputs: int | None = None, outputs: int | None = None) -> Form:
    """The rule of operators that return input i as output i, with exactly these counts (None: any)."""

    def rule(node: Node) -> None:
        has(node, inputs=inputs, outputs=outputs)
        flows(node, node.inputs, node.outputs, "output")

    return rule


# Rules of the operators that put lists, tuples and dictionaries together and take them apart.
#
# The alias analysis relies on the types of their results: a result declared as a number has no memory.


def _made(node: Node, container: type[Type]) -> Any:
    """The type of the only output, that of a ``container``, which the inputs make (else IRC214)."""
    has(node, outputs=1)
    found = node.outputs[0].type
    if not isinstance(found, container):
        raise node_error("IRC214", f"{node.kind} makes a {_NAMES[container]}, not {found}", node, output=0)
    return found


def _holds(node: Node, elems: Iterable[Type], what: Callable[[int], str]) -> None:
    """Check that the inputs, called ``what``, may be elements of the types ``elems`` (IRC214)."""
    for i, (value, elem) in enumerate(zip(node.inputs, elems)):
        if value.type != elem and not types.accepts(elem, value.type):
            raise node_error("IRC214", f"%{value.name} : {value.type} cannot be {what(i)}", node, input=i)


def _list_construct(node: Node) -> None:
    of_type = _made(node, ListType)
    _holds(node, repeat(of_type.elem), lambda i: f"an element of {of_type}")


def _tuple_construct(node: Node) -> None:
    of_type = _made(node, TupleType)
    has(node, inputs=len(of_type.elems))
    _holds(node, of_type.elems, lambda i: f"a {of_type.elems[i]}")


def _dict_construct(node: Node) -> None:
    of_type = _made(node, DictType)
    require(node, len(node.inputs) % 2 == 0, "prim::DictConstruct takes keys and values by turns")
    _holds(node, cycle(of_type.inner), lambda i: f"a {('key', 'value')[i % 2]} of {of_type}")


def _list_unpack(node: Node) -> None:
    has(node, inputs=1)
    held = _held(node, ListType)
    if held is not None:
        gives(node, held * len(node.outputs))


def _tuple_unpack(node: Node) -> None:
    has(node, inputs=1)
    held = _held(node, TupleType)
    if held is not None:
        has(node, outputs=len(held))
        gives(node, held)


def _tuple_index(node: Node) -> None:
    has(node, inputs=2, outputs=1)
    index = node.inputs[1]
    if not types.accepts(types.INT, index.type):
        raise node_error("IRC214", f"%{index.name} must be int, not {index.type}", node, input=1)
    held, at = _held(node, TupleType), constant_value(index)
    if held is None:
        return
    if isinstance(at, int) and -len(held) <= at < len(held):
        gives(node, [held[at]])
        return
    output = node.outputs[0]
    if held and not any(types.accepts(output.type, elem) for elem in held):
        message = f"no element of {node.inputs[0].type} can become %{output.name} : {output.type}"
        raise node_error("IRC214", message, node, output=0)


def _tuple_slice(node: Node) -> None:
    has(node, inputs=1, outputs=1)
    bounds = [node.attributes.get(key) for key in ("beg", "end")]
    if not all(bound is None or isinstance(bound, int) for bound in bounds):
        raise node_error("IRC215", "beg and end must be integers", node)
    held = _held(node, TupleType)
    if held is not None:
        gives(node, [TupleType(held[slice(*bounds)])])


def _constant_chunk(node: Node) -> None:
    has(node, inputs=1)
    if not types.accepts(types.TENSOR, node.inputs[0].type):
        raise node_error("IRC214", f"a tensor is wanted, not {node.inputs[0].type}", node, input=0)
    gives(node, [types.TENSOR] * len(node.outputs))


def _held(node: Node, container: type[Type]) -> tuple[Type, ...] | None:
    """The element types of the first input, a ``container``; None if its type leaves that open."""
    value = node.inputs[0]
    found = value.type.elem if isinstance(value.type, OptionalType) else value.type
    if isinstance(found, container):
        return found.inner
    is_other = isinstance(found, PrimType) and not found.name.startswith("Any")
    if is_other or isinstance(found, TensorType | ListType | TupleType | DictType):
        message = f"{node.kind} takes a {_NAMES[container]}, not %{value.name} : {value.type}"
        raise node_error("IRC214", message, node, input=0)
    return None


_NAMES: dict[type[Type], str] = {ListType: "list", TupleType: "tuple", DictType: "dictionary"}

# -- operator rules ------------------------------------------------------------


def check_form(node: Node) -> None:
    """Check the counts of inputs, outputs and blocks of IR-own operators (IRC213)."""
    rule = form_rule(node.kind)
    if rule is not None:
        rule(node)
    elif "::" not in node.kind:
        raise node_error("IRC217", f"the name of an operator is namespace::name, not {node.kind!r}", node)


def form_rule(kind: str) -> Form | None:
    """What checks the form of nodes of ``kind``; None if that is not the IR's own."""
    return _FORMS.get(kind)


def _block_has(node: Node, block: Block, params: int, returns: int) -> None:
    for what, wanted, found in (("parameter", params, len(block.params)), ("result", returns, len(block.returns))):
        if wanted != found:
            i = node.blocks.index(block)
            raise node_error("IRC213", f"block{i} must have {count(wanted, what)} here, not {found}", node)


def _is(node: Node, value: Value, wanted: Type, dtype: DType, what: str) -> None:
    """Check that ``value`` is a scalar of type ``wanted``, or a tensor of ``dtype`` with one element."""
    found = value.type
    if isinstance(found, TensorType):
        one = found.static_shape is None or all(size == 1 for size in found.static_shape)
        fits = found.dtype in (None, dtype) and one
    else:
        fits = types.accepts(wanted, found)
    if not fits:
        message = f"{what} %{value.name} must be {wanted} or a {dtype.label} tensor with one element, not {found}"
        raise node_error("IRC214", message, node)


def _has_types(node: Node, key: str, wanted: int) -> None:
    """Check that attribute ``key``, if there is one, is a list of this many types as strings (IRC215)."""
    found: Any = node.attributes.get(key)
    if found is None:
        return
    if not isinstance(found, list) or len(found := cast("list[Any]", found)) != wanted:
        raise node_error("IRC215", f"{key} must be a list of {count(wanted, 'type')}, as strings", node)
    for text in found:
        try:
            parse_type(text if isinstance(text, str) else repr(text))
        except Error as error:
            reason = error.message.partition("\n")[0]
            raise node_error("IRC215", f"{key} has {text!r}, which is not a type: {reason}", node) from None


def _has_numbers(node: Node, key: str, wanted: int) -> None:
    """Check that attribute ``key``, if present and not empty, is a list of this many numbers (IRC215)."""
    found: Any = node.attributes.get(key, [])
    numbers = cast("list[Any]", found) if isinstance(found, list) else [None]
    if not all(type(number) is int for number in numbers):
        raise node_error("IRC215", f"{key} must be a list of {count(wanted, 'integer')}", node)
    if numbers and len(numbers) != wanted:
        raise node_error("IRC215", f"{key} has {count(len(numbers), 'element')}; it needs {wanted}", node)


# -- the operators -----------------------------------------------------------


def _constant(node: Node) -> None:
    has(node, inputs=0, outputs=1)
    check_constant(node)


def _if(node: Node) -> None:
    has(node, inputs=1, blocks=2)
    if node.attributes:
        raise node_error("IRC215", f"{node.kind} has no attribute {next(iter(node.attributes))}", node)
    _is(node, node.inputs[0], types.BOOL, DType.BOOL, "the condition")
    for block in node.blocks:
        _block_has(node, block, 0, len(node.outputs))
        flows(node, block.returns, node.outputs, "output")


def _prim_loop(node: Node) -> None:
    require(node, len(node.inputs) >= 2, "prim::Loop takes the trip count, the condition and the values carried")
    has(node, outputs=carried(node).many, blocks=1)
    _loop(node, scans=0)


def _onnx_loop(node: Node) -> None:
    at = carried(node)
    has(node, blocks=1)
    scans = len(node.blocks[0].returns) - at.returned - at.many
    require(node, scans >= 0, f"the block must return the condition and {count(at.many, 'carried value')}")
    # Unused trailing outputs are left out, as everywhere in ONNX.
    require(node, len(node.outputs) <= at.many + scans, f"there are only {count(at.many + scans, 'result')}")
    _has_types(node, DECLARED_ROWS, scans)
    _loop(node, scans)


def _loop(node: Node, scans: int) -> None:
    """Check what loops share: inputs (count, condition, carried...), parameters (iteration, carried...)."""
    (block,) = node.blocks
    at = carried(node)
    _block_has(node, block, at.param + at.many, at.returned + at.many + scans)
    for value, wanted, dtype, what in (
        *zip(node.inputs[:2], (types.INT, types.BOOL), (DType.INT64, DType.BOOL), ("the trip count", "the condition")),
        (block.params[0], types.INT, DType.INT64, "the iteration number"),
        (block.returns[0], types.BOOL, DType.BOOL, "the condition"),
    ):
        if not (node.kind == ONNX_LOOP and value.type == types.NONE):
            _is(node, value, wanted, dtype, what)
    _carries(node)


def _carries(node: Node) -> None:
    """Check what goes from iteration to iteration, and that what ONNX stacks are tensors (IRC214)."""
    (block,) = node.blocks
    at = carried(node)
    before, params = node.inputs[at.input :], block.params[at.param :]
    after = block.returns[at.returned :][: at.many]
    is_onnx = node.kind != PRIM_LOOP
    for sources, targets, what in (
        (before, params, "parameter"),
        (after, params, "parameter"),
        (after, node.outputs, "output"),
    ):
        flows(node, sources, targets, what, of_any_shape=is_onnx)  # ONNX's may change their shapes
    for i, output in enumerate(node.outputs[at.many :], at.many):
        if not types.accepts(types.TENSOR, output.type):
            raise node_error("IRC214", f"what is stacked is a tensor, not {output.type}", node, output=i)


def _scan(node: Node) -> None:
    has(node, blocks=1)
    scanned = node.attributes.get("num_scan_inputs")
    if type(scanned) is not int or scanned < 1:
        raise node_error("IRC215", "num_scan_inputs must be a positive number", node)
    at = carried(node)
    require(node, at.input + scanned <= len(node.inputs), f"there are fewer inputs than the {scanned} to scan")
    (block,) = node.blocks
    _block_has(node, block, at.many + scanned, len(block.returns))
    require(node, len(block.returns) >= at.many, f"the block must return {count(at.many, 'state')}")
    require(node, len(node.outputs) <= len(block.returns), f"there are only {count(len(block.returns), 'result')}")
    rows = len(block.returns) - at.many
    for attributes, of in ((SCANNED_BY, scanned), (STACKED_BY, rows)):
        for key in attributes:
            _has_numbers(node, key, of)
    _has_types(node, DECLARED_ROWS, rows)
    _has_types(node, DECLARED_INPUTS, at.many + scanned)
    _carries(node)


def _group(node: Node) -> None:
    subgraph = inner_graph(node)
    if subgraph is None:
        raise node_error("IRC215", f"{node.kind} needs an attribute Subgraph that holds a graph", node)
    if node.kind == DIFFERENTIABLE:  # what is left for the backward pass comes after its outputs
        has(node, inputs=len(subgraph.inputs))
        require(node, len(node.outputs) <= len(subgraph.outputs), "the subgraph has fewer outputs")
    else:
        has(node, inputs=len(subgraph.inputs), outputs=len(subgraph.outputs))
    flows(node, node.inputs, subgraph.inputs, "input")
    flows(node, subgraph.outputs, node.outputs, "output")


def _call_function(node: Node) -> None:
    require(node, len(node.inputs) > 0, "prim::CallFunction takes a function and its arguments")
    has(node)
    function, *arguments = node.inputs
    if function.type != types.FUNCTION:
        raise node_error("IRC214", f"%{function.name} must be a Function, not {function.type}", node, input=0)
    name = callee(node)
    module = node.graph.module
    called = None if module is None or name is None else module.graphs.get(name)
    if called is None:  # TorchScript's dumps mention functions without giving them
        return
    has(node, inputs=1 + len(called.inputs), outputs=len(called.outputs))
    flows(node, arguments, called.inputs, f"input of {name}")
    flows(node, called.outputs, node.outputs, "output")


def _field(inputs: int, outputs: int) -> Form:
    """The rule of operators on the field of an object that their attribute ``name`` tells."""

    def rule(node: Node) -> None:
        has(node, inputs=inputs, outputs=outputs)
        if not isinstance(node.attributes.get("name"), str):
            raise node_error("IRC215", f"{node.kind} needs an attribute name, that of the object's field", node)
        owner = node.inputs[0]
        if not isinstance(owner.type, types.ClassType):
            raise node_error("IRC214", f"%{owner.name} must be an object, not {owner.type}", node, input=0)

    return rule


_HANDING_ON = ("prim::profile", "prim::profile_ivalue", "prim::RequiresGradCheck", "prim::TypeCheck")

_CASTS = ("prim::unchecked_cast", "prim::unchecked_unwrap_optional")
"""In branches that no run takes, torch casts anything to anything, once functions are inlined: runs check that."""

_FORMS: dict[str, Form] = {
    CONSTANT: _constant,
    IF: _if,
    PRIM_LOOP: _prim_loop,
    ONNX_LOOP: _onnx_loop,
    SCAN: _scan,
    CALL: _call_function,
    "prim::ListConstruct": _list_construct,
    "prim::TupleConstruct": _tuple_construct,
    "prim::DictConstruct": _dict_construct,
    "prim::ListUnpack": _list_unpack,
    "prim::TupleUnpack": _tuple_unpack,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "prim::ConstantChunk": _constant_chunk,
    "prim::CreateObject": counts(0, 1),
    "prim::Guard": handing_on(1, 1),
    **dict.fromkeys(_HANDING_ON, handing_on()),
    **dict.fromkeys(_CASTS, counts(1, 1)),
    "prim::Enter": counts(1, None),
    "prim::Exit": counts(1, None),
    "prim::Uninitialized": counts(0, 1),
    "prim::GetAttr": _field(1, 1),
    "prim::SetAttr": _field(2, 0),
    **dict.fromkeys(SUBGRAPHS, _group),
}
