"""Constant folding: what can be computed now need not be computed at each run.

Folded are operators that write nothing, draw nothing, and whose operands are constants; kernels of the runtime compute
them, so that results are a run's. Sizes and work are bounded before anything is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from irc.errors import Error, comes_from_outside
from irc.ir import CONSTANT, IDENTITY, IF, MAX_ELEMENTS, DType, Graph, Node, Tensor, TensorType, Type, Value, describe
from irc.ir.constants import constant_tensor, constant_value, is_constant
from irc.ir.region_flow import graphs_of
from irc.ir.types import NONE, NUMBERS, ListType, PrimType, refined, with_plain_sizes
from irc.ops import record
from irc.ops.inference import Known, NodeTypes, OperandTypes
from irc.ops.layouts import contiguous_if, sees_layout
from irc.ops.pointwise import is_pointwise
from irc.ops.record import MOVING
from irc.ops.shape_rules import types_told
from irc.ops.sizes import content_bytes, declared_bytes, object_bytes
from irc.passes.base import Evaluate, PassContext, Refused, functional, name_of
from irc.passes.layouts import Layouts
from irc.passes.quantised import QUANTISING, dequantises
from irc.passes.registry import check_not_negative, register
from irc.passes.rewriter import Rewriter
from irc.support.remarks import NOT_FOLDED, Reason, set_option

# What constant folding knows of a result before computing it: its type, its size, whether all elements are equal.


_UNKNOWN_ITEM = 16  # bytes of the largest element type
_NODE_BYTES = 512  # what a node takes itself, about: strings and lists that are smaller make no model larger


def output_types(node: Node) -> list[Type]:
    """The types of the outputs, as exact as the node's (constant) inputs tell."""
    rule = record(node.kind).shape
    declared = [v.type for v in node.outputs]
    if rule is None:
        return declared
    try:
        inferred = types_told(rule, NodeTypes(node, Known()))
    except Error as e:
        raise Refused(e.message) from None
    told = map(with_plain_sizes, inferred)
    return [refined(t, d) for t, d in zip(told, declared, strict=False)] + declared[len(inferred) :]


def evaluation_bytes(node: Node, types: list[Type]) -> int:
    """An upper bound on result bytes, so that nothing too large is computed; Refused if unknown."""
    if any(isinstance(type, TensorType) and type.static_shape is None for type in types):
        made = declared_bytes(node, [constant_value(v) for v in node.inputs])
        if made is None:
            raise Refused("the size of its result is not known")
        return made + made // 8 * _characters(types[0], node)
    return sum(map(_bytes, types, [node] * len(types)))


def _bytes(type: Type, node: Node) -> int:
    if not isinstance(type, TensorType):
        return _object_bytes(type, node)
    item = _UNKNOWN_ITEM if type.dtype is None else type.dtype.numpy.itemsize
    return math.prod(type.static_shape or ()) * (item + _characters(type, node))


def _characters(type: Type, node: Node) -> int:
    """Bytes of the characters of an element of this type, if it may be a tensor of strings."""
    if type.dtype not in (None, DType.STRING) or _takes_strings(node.kind):
        return 0
    return 2 * max(map(_longest, node.inputs), default=0)


def _takes_strings(kind: str) -> bool:
    """Whether operators of ``kind`` make no strings, but give some of those that there are."""
    return record(kind).movement is not None


def _object_bytes(type: Type, node: Node) -> int:
    if type in (*NUMBERS, NONE) or _takes_strings(node.kind):
        return 0
    operands = [constant_value(v) for v in node.inputs]
    made = declared_bytes(node, operands)
    return _beyond_node(sum(map(content_bytes, operands)) if made is None else made)


def _beyond_node(size: int) -> int:
    return size if size > _NODE_BYTES else 0


def _longest(value: Value) -> int:
    """The bytes of the longest string in a constant tensor; operators join at most two strings."""
    return max(map(object_bytes, _strings(constant_tensor(value))), default=0)


def _strings(tensor: Tensor | None) -> list[str]:
    """All elements of a tensor of strings, or the single stored one if they are equal."""
    if tensor is None or tensor.dtype is not DType.STRING or tensor.is_absent:
        return []
    return (tensor.scalar if tensor.is_splat else tensor.numpy()).reshape(-1).tolist()


def multiplications(node: Node, size: int) -> int:
    """About how many multiplications ``size`` result bytes take, if the operator sums products; else 0."""
    products = record(node.kind).macs
    if products is None:
        return 0
    operands = [constant_value(v) for v in node.inputs]
    item = max((t.dtype.numpy.itemsize for t in operands if isinstance(t, Tensor)), default=1)
    try:
        return products(OperandTypes(node, operands), size // item)
    except (TypeError, ValueError, LookupError, ArithmeticError):
        return 0  # the operands are not those that the operator takes, which the kernel will report


def stored_bytes(content: Any) -> int:
    """The bytes of a constant's content; of one element, if all are equal.

    0 for anything but a tensor that takes no more than a node does.
    """
    if not isinstance(content, Tensor):
        return _beyond_node(content_bytes(content))
    text = sum(map(object_bytes, _strings(content)))
    return text + (content.dtype.numpy.itemsize if content.is_splat else content.nbytes)


def tensor_bytes(value: Value) -> int:
    """How many bytes a constant tensor takes; 0 if ``value`` is not one."""
    tensor = constant_tensor(value)
    return 0 if tensor is None else stored_bytes(tensor)


def argument(value: Value, in_order: bool) -> Any:
    """A constant as kernels take it; splats are broadcast, unless it must lie ``in_order``."""
    content = constant_value(value)
    if not isinstance(content, Tensor):
        return content
    return content.written_out() if in_order else content.numpy()


def computed(evaluate: Evaluate, node: Node, arguments: Sequence[Any]) -> list[Any] | None:
    """The results of ``node``; None if there is no kernel. Refused if it fails."""
    try:
        with np.errstate(all="ignore"):
            return evaluate(node, arguments)
    except Exception as e:  # whatever a kernel raises: the run will raise it again
        if comes_from_outside(e):
            raise
        raise Refused(f"it fails when computed ({e})") from None


def splat_result(node: Node, types: list[Type], evaluate: Evaluate) -> list[Any] | None:
    """The results if it is clear without computing them that all elements of each are equal; else None.

    Pointwise operators are computed on one element; operators that only move elements
    keep the element; ConstantOfShape and Concat of equal elements give equal elements by nature.
    """
    shapes = [t.static_shape for t in types]
    if any(shape is None for shape in shapes):
        return None
    if any(math.prod(d or 1 for d in shape) > MAX_ELEMENTS for shape in shapes if shape is not None):
        raise Refused("its result is larger than any tensor can be")
    element = _element(node, evaluate)
    if element is None:
        return None
    dtype = DType.from_numpy(element.dtype)
    return [Tensor.splat(dtype, shape, element) for shape in shapes if shape is not None]


def _element(node: Node, evaluate: Evaluate) -> Any:
    """The element that all results consist of, as a 0-d array; None if there is no such element."""
    if node.kind == "onnx::ConstantOfShape":
        value = node.attributes.get("value")
        if not isinstance(value, Tensor):
            return np.zeros((), np.float32)
        return value.scalar if value.numel == 1 else None
    if is_pointwise(node):
        arguments = [_one_element(v) for v in node.inputs]
        if any(a is None and constant_value(v) is not None for a, v in zip(arguments, node.inputs)):
            return None
        results = computed(evaluate, node, arguments)
        return None if results is None else np.asarray(results[0]).reshape(())
    if record(node.kind).movement in MOVING or node.kind == "onnx::Concat":
        tensors = [constant_tensor(v) for v in (node.inputs if node.kind == "onnx::Concat" else node.inputs[:1])]
        splats = [t.scalar for t in tensors if t is not None and _is_uniform(t)]
        if len(splats) == len(tensors) and len({(s.dtype.name, s.tobytes()) for s in splats}) == 1:
            return splats[0]
    return None


def _one_element(value: Value) -> Any:
    """A tensor whose elements are all equal, as one element of the same rank; else None."""
    tensor = constant_tensor(value)
    if tensor is None or not _is_uniform(tensor):
        return None
    return tensor.scalar.reshape((1,) * len(tensor.shape))


def _is_uniform(tensor: Tensor) -> bool:
    return tensor.is_splat or (tensor.numel == 1 and tensor.dtype is not DType.STRING)


# -- constant fold -------------------------------------------------------------


_CONVERSION = 2
"""By what factor elements may grow compared with the constants they replace: float16 weights may become float32."""

_MAX_MULTIPLICATIONS = 1 << 33
"""What all foldings of a pipeline together may take: about a second's work on one processor. Constants of a few
megabytes are enough for a convolution that takes days."""

_GROWTH_SHARE = 8
"""A model may grow by its weights' bytes divided by this, if that is more than ``max_growth``."""


@register
@dataclass(frozen=True)
class ConstantFold:
    """Replace nodes whose inputs are all constant by constants.

    Also folded: ``prim::If`` on a constant, which becomes the branch taken. (What follows from known shapes alone is
    folded by `canonicalize`.) Never folded:

    - side effects and random results;
    - loops;
    - fusion groups, which may hold loops; pointwise groups are computed once at run time instead;
    - results that something writes into;
    - results that do not lie in memory as constants do, if something sees that;
    - nodes that fail when computed: they fail at run time, where the user sees the inputs;
    - quantised weights (`irc.passes.quantised`): QuantizeLinear and DequantizeLinear, and what would turn
      elements of 8 bits or fewer into larger ones. Runs compute these once, and other runtimes have kernels for them.

    Inputs of the graph are never constants, not even those with a default.

    Results whose elements are all equal stay one scalar and a shape, whatever
    their size, where that can be told without computing them.

    Attributes:
        max_bytes: the largest result that is computed, in bytes.
        max_growth: how many bytes all results together may add to the model, or an eighth of its
            weights if that is more. Not counted: results that take no more bytes than they replace, conversions to
            elements of twice the size, strings and lists that take no more than a node, and results that were folded
            into others.
    """

    name: ClassVar[str] = "constant-fold"
    max_bytes: int = 64 << 20
    max_growth: int = 4 << 20

    def __post_init__(self) -> None:
        check_not_negative(self)

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Fold everything in one walk: constants are made before the nodes that use them.

        A second walk is needed only if a branch was dropped in a graph that writes, or whose results a caller may write
        to, or if something was folded after a refusal for want of room, or because it looked at memory layouts: a value
        that was not constant before may be constant now.
        """
        folder = _Folder(self, ctx.rewriter(graph), ctx)
        folder.walk(graph)
        while folder.look_again:
            folder.rewriter.db.tighten()
            folder.walk(graph)
        for node, why in folder.refused.items():
            ctx.note(node, Reason(f"not folded: {why}", why.blocker, why.remedy), NOT_FOLDED)
        return folder.changed


class _Budget:
    """What all runs of the pass in a pipeline may still use.

    Attributes:
        bytes: by how many the model may grow.
        multiplications: how many may be made.
    """

    def __init__(self, bytes: int) -> None:
        self.bytes = bytes
        self.multiplications = _MAX_MULTIPLICATIONS
        self._grown: dict[Value, int] = {}

    def grown(self, values: Iterable[Value]) -> int:
        """The bytes that the model has grown by for ``values``, and would shrink by without them."""
        return sum(self._grown.get(v, 0) for v in values)

    def replace(self, old: Iterable[Value], new: Sequence[Value], growth: int) -> None:
        """Count ``growth`` bytes for ``new``, and no longer those for ``old``, which are gone."""
        self.bytes -= growth - sum(self._grown.pop(v, 0) for v in old)
        if growth:
            self._grown[new[0]] = growth


@dataclass(frozen=True)
class _Result:
    """What a node computes.

    Attributes:
        contents: of its outputs.
        growth: bytes that the model grows by, including earlier growth for the constants that go.
        gone: the constants that only the node needs.
    """

    contents: list[Any]
    growth: int = 0
    gone: Sequence[Value] = ()


class _Folder:
    def __init__(self, options: ConstantFold, rewriter: Rewriter, ctx: PassContext) -> None:
        self.options = options
        self.rewriter = rewriter
        self.ctx = ctx
        key = options, rewriter.graph
        if key not in ctx.memory:
            weights = sum(stored_bytes(tensor) for tensor in rewriter.graph.weights.values())
            ctx.memory[key] = _Budget(max(options.max_growth, weights // _GROWTH_SHARE))
        self.budget: _Budget = ctx.memory[key]
        self.refused: dict[Node, Reason] = {}
        self._layouts = Layouts(rewriter.graph, rewriter.db, ctx.memory)
        self.changed = False
        self.look_again = False
        self.out_of_room = False
        self._looked_at = False
        """Whether something looks at how a result lies, which may be folded itself."""

    def walk(self, graph: Graph) -> None:
        """Visit all nodes in pre-order, those of branches taken where they go."""
        self.refused.clear()
        self._layouts = Layouts(graph, self.rewriter.db, self.ctx.memory)
        self.look_again = self.out_of_room = self._looked_at = False
        pending = list(reversed(graph.nodes))
        with self.rewriter.db.rewrite():  # of many branches that are taken, what follows is found once
            while pending:
                node = pending.pop()
                if node.block is not None:  # not erased meanwhile
                    inner = [n for block in node.blocks for n in block.nodes]
                    pending.extend(reversed(self._visit(node) or inner))

    def _visit(self, node: Node) -> list[Node]:
        """Fold ``node`` if possible; return the nodes of the branch taken if it was an If, now dissolved."""
        if node.kind == IF:
            return self._take_branch(node)
        if not node.blocks:
            self._fold(node)
        return []

    def _fold(self, node: Node) -> None:
        if not any(v.has_uses for v in node.outputs):
            return  # dead, or there for its effects
        if node.kind == IDENTITY:
            self._skip_identity(node)
        elif node.kind != CONSTANT and all(map(is_constant, node.inputs)) and not graphs_of(node):
            if self.rewriter.db.writes_anything(node) or not self.rewriter.can_be_constant(node.outputs, node.inputs):
                self.refused[node] = self._written(node)
                return
            try:
                result = self._result(node)
            except Refused as refused:
                self.refused[node] = refused.reason
                return
            if result is not None:
                self._replace(node, result)
            else:
                self.refused[node] = Reason("there is no kernel for it")

    def _written(self, node: Node) -> Reason:
        """The reason that ``node`` writes, or something writes into its results, or into what it reads."""
        db = self.rewriter.db
        if db.writes_anything(node):
            return Reason("it has effects, or its result is random")
        writers = db.writers((*node.outputs, *node.inputs))
        if not writers:
            return Reason("the caller of the function may write into its result", node.outputs[0].name)
        text = f"{describe(writers[0])} writes into its result, or into what it reads"
        return Reason(text, name_of(writers[0]), functional(writers, db, "constant-fold"))

    def _skip_identity(self, node: Node) -> None:
        """Use the constant instead of its Identity, which may preserve an output's name."""
        if is_constant(node.inputs[0]) and self.ctx.allow(node) and self.rewriter.replace_node(node, node.inputs):
            self.ctx.count("folded")
            self.changed = True

    def _replace(self, node: Node, folded: _Result) -> None:
        if not self.ctx.allow(node):
            return
        values = [
            self.rewriter.constant(
                result, before=node, name=old.name, type=None if isinstance(result, Tensor) else old.type
            )
            for result, old in zip(folded.contents, node.outputs, strict=True)
        ]
        self.budget.replace(folded.gone, values, folded.growth)
        self.rewriter.replace_node(node, values, keep_names=True)
        self.ctx.count("folded")
        self.changed = True
        # Constants that only this node shared are another's alone now, and perhaps only it looked at how others lie.
        self.look_again |= self.out_of_room or self._looked_at

    # -- control flow ----------------------------------------------------

    def _take_branch(self, node: Node) -> list[Node]:
        condition = constant_value(node.inputs[0])
        if isinstance(condition, Tensor):
            condition = bool(condition.scalar) if condition.numel == 1 else None
        if condition is None or not self.ctx.allow(node):
            return []
        block = node.blocks[0 if condition else 1]
        taken, returns = list(block.nodes), block.returns
        self.look_again |= self.rewriter.db.any_writes() or self.rewriter.graph.is_function or self._looked_at
        self.rewriter.hoist(taken, node)
        inside = set(taken)
        for old, new in zip(node.outputs, returns, strict=True):
            self.rewriter.replace(old, new, keep_name=new.node in inside)
        self.rewriter.erase_with_constants(node)
        self.ctx.count("branches")
        self.changed = True
        return taken

    # -- evaluation ------------------------------------------------------

    def _result(self, node: Node) -> _Result | None:
        """What ``node`` computes; None if there is no kernel."""
        if not all(_can_hold(v.type) for v in node.outputs):  # a list may be of very many tensors
            raise Refused(_NOT_HELD)
        types = output_types(node)
        if node.kind in QUANTISING or dequantises(node, types):
            raise Refused("quantised weights stay quantised")
        splats = splat_result(node, types, self.ctx.evaluate)
        if splats is not None and (contiguous_if(node) == () or not self._layouts.is_seen(node.outputs)):
            return _Result(splats)
        gone = [v for v in dict.fromkeys(node.inputs) if v.user_count == 1]
        replaced = sum(stored_bytes(constant_value(v)) for v in gone)
        size = evaluation_bytes(node, types)
        free = replaced * (_CONVERSION if _converts(node, types) else 1)
        self._check_size(node, size, replaced, free)
        self.budget.multiplications -= multiplications(node, size)
        in_order = sees_layout(node.kind)
        results = computed(self.ctx.evaluate, node, [argument(v, in_order) for v in node.inputs])
        if results is None:
            return None
        if not all(map(_lies_as_constant, results)) and self._layouts.is_seen(node.outputs):
            self._looked_at = True
            raise Refused("an operator observes the memory layout of its result, and constants are contiguous")
        largest = max(map(tensor_bytes, node.inputs), default=0)
        contents = [_content(result, v.type, largest) for result, v in zip(results, node.outputs, strict=True)]
        size = sum(map(stored_bytes, contents))
        grown = self.budget.grown(gone)
        return _Result(contents, grown if replaced <= size <= free else max(0, grown + size - replaced), gone)

    def _check_size(self, node: Node, size: int, replaced: int, free: int) -> None:
        limit = self.options.max_bytes
        needed = max([size, *(t.nbytes for v in node.inputs if (t := constant_tensor(v)) is not None)])
        if needed > limit:
            text = f"it takes {needed} bytes, more than the limit of {limit} (option max-bytes)"
            raise Refused(Reason(text, remedy=set_option("constant-fold", "max-bytes", needed)))
        if multiplications(node, size) > self.budget.multiplications:
            raise Refused(f"all folding would take more than {_MAX_MULTIPLICATIONS} multiplications")
        if size > free and size - replaced > self.budget.bytes:
            self.out_of_room = True
            text = f"{replaced} bytes of constants would become {size} (option max-growth)"
            enough = self.options.max_growth + size - replaced
            raise Refused(Reason(text, remedy=set_option("constant-fold", "max-growth", enough)))


def _lies_as_constant(result: Any) -> bool:
    """Whether ``result`` is not an array, or one whose elements lie in order and are all of its memory."""
    if not isinstance(result, np.ndarray):
        return True
    array = cast("np.ndarray[Any, Any]", result)
    base = cast("Any", array.base)
    return array.flags.c_contiguous and (base is None or getattr(base, "nbytes", None) == array.nbytes)


def _content(result: Any, type: Type, largest: int) -> Any:
    """A constant's content for a computed result; ``largest`` is the largest input's size in bytes."""
    if isinstance(type, TensorType) and isinstance(result, np.ndarray):
        array = cast("np.ndarray[Any, Any]", result)
        if array.base is not None and (not array.flags.c_contiguous or array.nbytes < largest):
            array = array.copy()  # as a view it would keep more alive than its own elements
        return Tensor.of(array)
    # (A list that is declared as Any would not know its own type.)
    items = cast("list[Any]", result) if isinstance(type, ListType) and isinstance(result, list) else [result]
    if _is_plain(type) and all(map(_is_plain_value, items)):
        return cast("Any", result)
    raise Refused(_NOT_HELD)


_NOT_HELD = "a constant cannot hold its result"


def _can_hold(type: Type) -> bool:
    return isinstance(type, TensorType) or _is_plain(type)


def _converts(node: Node, types: Sequence[Type]) -> bool:
    """Whether the results have no more elements than there are in tensors of numbers among the operands."""
    given = [t.numel for v in set(node.inputs) if (t := constant_tensor(v)) is not None and t.dtype is not DType.STRING]
    shapes = [t.static_shape for t in types]
    return sum(math.inf if shape is None else math.prod(shape) for shape in shapes) <= sum(given)


def _is_plain(type: Type) -> bool:
    return isinstance(type, PrimType) or (isinstance(type, ListType) and isinstance(type.elem, PrimType))


def _is_plain_value(result: Any) -> bool:
    return isinstance(result, bool | int | float | str)
