"""What constant folding knows of a result before computing it: its type, its size, whether all elements are equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error, comes_from_outside
from irc.ir import Node, Tensor, Value
from irc.ir.constants import constant_tensor, constant_value
from irc.ir.limits import MAX_ELEMENTS
from irc.ir.types import BOOL, COMPLEX, FLOAT, INT, NONE, SCALAR, DType, TensorType, Type, refined, with_plain_sizes
from irc.ops import record
from irc.ops.inference import Known, NodeTypes
from irc.ops.object_size import content_bytes, made_bytes, object_bytes
from irc.ops.pointwise import is_pointwise
from irc.ops.record import MOVING
from irc.ops.shape_rules import types_told
from irc.passes.refused import Refused

if TYPE_CHECKING:
    from irc.passes.base import Evaluate

_UNKNOWN_ITEM = 16  # bytes of the largest element type
_NODE_BYTES = 512  # what a node takes itself, about: strings and lists that are smaller make no model larger
_NUMBERS = frozenset({INT, FLOAT, BOOL, COMPLEX, SCALAR, NONE})


def output_types(node: Node) -> list[Type]:
    """The types of the outputs, as exact as the node's (constant) inputs tell."""
    rule = record(node.kind).shape
    declared = [v.type for v in node.outputs]
    if rule is None:
        return declared
    try:
        inferred = types_told(rule, NodeTypes(node, Known(is_stable=True)))
    except Error as e:
        raise Refused(e.message) from None
    told = map(with_plain_sizes, inferred)
    return [refined(t, d) for t, d in zip(told, declared, strict=False)] + declared[len(inferred) :]


def evaluation_bytes(node: Node, types: list[Type]) -> int:
    """An upper bound on the bytes of the results, so that nothing too large is computed; Refused if unknown."""
    return sum(map(_bytes, types, [node] * len(types)))


def _bytes(type: Type, node: Node) -> int:
    if not isinstance(type, TensorType):
        return _object_bytes(type, node)
    item = _UNKNOWN_ITEM if type.dtype is None else type.dtype.numpy.itemsize
    if type.dtype in (None, DType.STRING) and not _takes_strings(node.kind):
        item += 2 * max(map(_longest, node.inputs), default=0)
    if type.static_shape is not None:
        return math.prod(type.static_shape) * item
    bound, shapes = record(node.kind).most_elements, _shapes(node)
    if bound is None or not shapes:
        raise Refused("the size of its result is not known")
    return bound(shapes) * item


def _takes_strings(kind: str) -> bool:
    """Whether operators of ``kind`` make no strings, but give some of those that there are."""
    return record(kind).movement is not None


def _shapes(node: Node) -> list[Sequence[int]]:
    """The shapes of the operands that are constant tensors."""
    return [tensor.shape for value in node.inputs if (tensor := constant_tensor(value)) is not None]


def _object_bytes(type: Type, node: Node) -> int:
    if type in _NUMBERS:
        return 0
    if _takes_strings(node.kind):
        return 0
    operands = [constant_value(v) for v in node.inputs]
    made = made_bytes(node.kind, operands)
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
    """About how many multiplications ``size`` bytes of results take, if the operator sums products; else 0."""
    products = record(node.kind).contracts
    if products is None:
        return 0
    tensors = [t for v in node.inputs if (t := constant_tensor(v)) is not None]
    item = max((t.dtype.numpy.itemsize for t in tensors), default=1)
    return size // item * products([t.shape for t in tensors])


def stored_bytes(content: Any) -> int:
    """How many bytes the content of a constant takes; for a tensor whose elements are all equal, those of one element.

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
    """A tensor whose elements are all equal, or that has just one, as one element of the same rank; else None."""
    tensor = constant_tensor(value)
    if tensor is None or not _is_uniform(tensor):
        return None
    return tensor.scalar.reshape((1,) * len(tensor.shape))


def _is_uniform(tensor: Tensor) -> bool:
    return tensor.is_splat or (tensor.numel == 1 and tensor.dtype is not DType.STRING)
