"""Shape rules: registration, application, rules that operators share, and arithmetic on sizes.

What rules of other packages return is checked.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from irc.errors import Error, comes_from_outside, nonsense
from irc.ir import MAX_SIZE, Value, describe
from irc.ir.polynomials import is_positive, is_size, minus, plus, times
from irc.ir.types import REMEMBERED, Dim, DType, Shape, TensorType, Type, rebuilt, with_plain_sizes
from irc.ir.verify.operator_rules import type_fault
from irc.ops.inference import Contents, NodeTypes, elementwise, fit, trackable
from irc.ops.plugins import check_kind, fault_of, is_foreign, name_of
from irc.ops.record import ContentsRule, Count, Operator, ShapeRule
from irc.ops.registry import register
from irc.support.formatting import count


def shape_rule(*names: str) -> Callable[[ShapeRule], ShapeRule]:
    """Register the rule of ONNX operators (names without ``onnx::``) or of fully qualified kinds.

    A function of the same module and name replaces the earlier one: the definition has been run again.
    IRC304 if what is registered is not a function, or there is another rule for one of the kinds.
    """
    kinds = [check_kind("a shape rule", name, "onnx") for name in names]

    def enter(rule: ShapeRule) -> ShapeRule:
        register(*(Operator(kind, shape=rule) for kind in kinds))
        return rule

    return enter


def apply(rule: Callable[[NodeTypes], Any], types: NodeTypes) -> Any:
    """The result of ``rule``; Error IRC310 if the node makes no sense, IRC305 if a foreign rule fails."""
    try:
        return rule(types)
    except (Error, MemoryError):
        raise
    except Exception as error:
        is_nonsense = isinstance(error, ArithmeticError | AttributeError | LookupError | TypeError | ValueError)
        if is_foreign(rule) and (is_nonsense or not comes_from_outside(error)):
            message = f"its shape rule, {name_of(rule)}, fails: {fault_of(error, rule)}"
            raise Error("IRC305", message, describe(types.node)) from error
        if is_nonsense:
            types.fail(f"its operands and attributes make no sense together: {nonsense(error)}")
        raise


def types_told(rule: ShapeRule, types: NodeTypes) -> list[Type]:
    """The output types of a node by ``rule``; Errors as `apply`, and IRC305 if it returns no types."""
    found: Any = apply(rule, types)
    told = [found] if isinstance(found, Type) or not isinstance(found, Sequence) else cast("Sequence[Any]", found)
    if is_foreign(rule):
        try:
            told = [_checked(type) for type in told]
            if len(told) != len(types.node.outputs):
                raise _NoTypeError(f": {count(len(types.node.outputs), 'result')}")
        except _NoTypeError as error:
            message = f"its shape rule, {name_of(rule)}, must return a type for each result, not {found!r}{error}"
            raise Error("IRC305", message, describe(types.node)) from None
    return [_possible(type) for type in told]


def tell_contents(operator: Operator, types: NodeTypes, type_of: Callable[[Value], Type]) -> None:
    """Note the elements of a node's first result, if they are tracked, known and surely stay.

    Args:
        operator: of the node.
        types: of the node's operands; what is known of contents is noted there.
        type_of: gives the type of the result.

    Raises:
        Error: as `apply`.
    """
    if operator.contents is None:
        return
    result = types.node.outputs[0]
    type = type_of(result)
    found = apply(operator.contents, types) if trackable(type) else None
    if found is not None and fit(found, type) and types.is_fixed(result):
        types.contents[result] = found


class _NoTypeError(Exception):
    """Something is not a type. The message is the end of a sentence: the reason, unless obvious."""


def _checked(type: Any) -> Type:
    """``type`` from an untrusted rule, NumPy's numbers made Python's; _NoTypeError if it is not a type."""
    if not isinstance(type, Type):
        raise _NoTypeError
    if not isinstance(type, TensorType):
        return type.of([_checked(part) for part in type.inner]) if type.inner else type
    if not isinstance(type.shape, tuple):
        made = plain = type
    else:
        made = TensorType(type.dtype, tuple(map(_python_size, type.shape)))
        plain = with_plain_sizes(_possible(made))
    fault = type_fault(plain)
    if fault is not None:
        raise _NoTypeError(f": {fault}")
    return made


def _python_size(size: Any) -> Any:
    is_number, number = isinstance(size, np.integer), size
    return int(number) if is_number else size


@lru_cache(maxsize=REMEMBERED)
def _possible(type: Type) -> Type:
    """``type`` without impossible sizes: where a model's attributes lead to one, the operator will fail."""
    return rebuilt(type, _of_possible_sizes)


def _of_possible_sizes(type: Type) -> Type:
    if not type.shape:
        return type
    shape = tuple([None if isinstance(d, int) and not 0 <= d <= MAX_SIZE else d for d in type.shape])
    return type if shape == type.shape else TensorType(type.dtype, shape)


# -- rules of pointwise operators, and others ----------------------------------


def same_as_first(c: NodeTypes) -> Type:
    """The type of the first operand."""
    return c.type(0)


def broadcast(c: NodeTypes) -> Type:
    """Operands of one element type broadcast."""
    known = [d for d in (c.dtype(i) for i in range(len(c.node.inputs))) if d is not None]
    if len(set(known)) > 1 and c.node.kind != "onnx::BitShift":
        names = ", ".join(sorted({d.label for d in known}))
        c.fail(f"inputs must have one element type, but have {names}; insert a Cast")
    return broadcast_as(c, known[0] if known else None)


def compare(c: NodeTypes) -> Type:
    """Operands broadcast to truth values."""
    return broadcast_as(c, DType.BOOL)


def test(c: NodeTypes) -> Type:
    """A truth value for each element."""
    return TensorType(DType.BOOL, c.shape(0))


def broadcast_as(c: NodeTypes, dtype: DType | None) -> Type:
    """Tensors of element type ``dtype`` that operands broadcast to."""
    if c.version < 7 and len(c.node.inputs) == 2 and c.node.kind not in ("onnx::Max", "onnx::Min", "onnx::Sum"):
        return TensorType(dtype, c.shape(0))  # before 7 only the second input was broadcast
    return TensorType(dtype, c.broadcast([c.shape(i) for i in range(len(c.node.inputs))]))


def rule_of(operator: Operator) -> ShapeRule | None:
    """The shape rule that follows from the scalar semantics of an operator of ONNX."""
    found = operator.semantics()
    if found is None:
        return None
    if found.arity == 1 and not found.variadic:
        return test if found.result is None else same_as_first
    return compare if found.result is None else broadcast


def contents_by(apply: Callable[..., Dim], oldest: int = 7) -> ContentsRule:
    """The rule of an operator that broadcasts its operands, as it does from version ``oldest`` on."""

    def rule(c: NodeTypes) -> Contents | None:
        parts = [c.contents_of(i) for i in range(len(c.node.inputs))]
        known = [part for part in parts if part is not None]
        return None if len(known) < len(parts) or c.version < oldest else elementwise(apply, *known)

    return rule


def matrix_product(c: NodeTypes, a: Shape, b: Shape) -> Shape | None:
    """The shape of a matrix product: batch axes broadcast, the axis of 1 added to a vector is dropped."""
    batch = c.broadcast([a[:-2], b[:-2]])
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    return None if batch is None else (*batch, *rows, *columns)


# -- lengths of slices and ranges ----------------------------------------------


def bounds(start: int, end: int, step: int, size: int) -> slice:
    """Python's slice of ``size`` elements that is equal to Slice with these bounds (any ``step`` but 0).

    There is one difference: backwards from a start before the first element, Python returns nothing; Slice starts at
    the first element, as it clamps a start to ``[0, size - 1]`` (Slice-13; ONNX Runtime does so in all versions).
    """
    return slice(max(start, -size) if step < 0 else start, end, step)


def range_length(start: float, limit: float, step: float) -> int:
    """The count of numbers from ``start`` up to, excluding, ``limit``: exact for integers."""
    if isinstance(start, int) and isinstance(limit, int) and isinstance(step, int):
        return max(0, -((start - limit) // step))
    return max(0, math.ceil((limit - start) / step))


def sliced(whole: Dim, start: Dim, end: Dim, step: int) -> Dim:
    """Length of ``start:end:step`` on an axis of size ``whole``; ends from 2**31 on mean the axis's end."""
    if isinstance(whole, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(*bounds(start, end, step, whole).indices(whole)))
    if step != 1:
        return None
    first, last = _position(whole, start), whole if isinstance(end, int) and end >= 1 << 31 else _position(whole, end)
    count = minus(last, first)
    return count if is_size(count) else 0 if is_size(times(count, -1)) else None


def _position(whole: Dim, at: Dim) -> Dim:
    """The position of a slice's start or end ``at`` on an axis of size ``whole``; None if unknown."""
    if is_positive(times(at, -1)):
        at = plus(whole, at)
        return at if is_size(at) else 0 if is_size(times(at, -1)) else None
    if not is_size(at):
        return None
    return at if is_size(minus(whole, at)) else whole if is_size(minus(at, whole)) else None


# -- Einstein's summation convention -------------------------------------------


_EQUATION = re.compile(r"{term}(,{term})*(->{term})?".replace("{term}", r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"))

Axis = str | int
"""A letter; or, of those that '...' stands for, the number from the last."""


def is_equation(text: str) -> bool:
    """Whether ``text``, which has no blanks, is an equation."""
    return _EQUATION.fullmatch(text) is not None


def axes_of(equation: str, ranks: Sequence[int], sums_ellipsis: bool = False) -> tuple[list[list[Axis]], list[Axis]]:
    """The axes of operands of these ``ranks`` and of the result; ValueError if the equation does not fit.

    Where a result that is given lacks an ellipsis that terms have, torch sums over its axes (``sums_ellipsis``);
    ONNX calls it an error.
    """
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"it has {len(terms)} terms for {len(ranks)} operands")
    named = [_axes(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    letters = Counter(axis for axes in named for axis in axes if isinstance(axis, str))
    dots = range(min((axis for axes in named for axis in axes if isinstance(axis, int)), default=0), 0)
    if not arrow:
        return named, [*dots, *sorted(letter for letter, n in letters.items() if n == 1)]
    wanted, has_dots = result.replace("...", ""), "..." in result
    is_dropped = bool(dots) and not has_dots
    if len(set(wanted)) != len(wanted) or not set(wanted) <= letters.keys() or (is_dropped and not sums_ellipsis):
        raise ValueError("the result must name letters of the terms, each once, and '...' if they have it")
    return named, _axes(result, len(wanted) + (len(dots) if has_dots else 0))


def _axes(term: str, rank: int) -> list[Axis]:
    head, dots, tail = term.partition("...")
    rest = rank - len(head) - len(tail)
    if rest < 0 or (rest and not dots):
        raise ValueError(f"term {term!r} names {len(head) + len(tail)} axes of {rank}")
    return [*head, *range(-rest, 0), *tail]


def einsum_shape(
    types: NodeTypes, equation: str, shapes: Sequence[Shape | None], sums_ellipsis: bool = False
) -> Shape | None:
    """The result shape of ``equation`` for operands of ``shapes``; size 1 matches any size."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not is_equation(equation):
        return None
    try:
        terms, result = axes_of(equation, [len(shape) for shape in known], sums_ellipsis)
    except ValueError as error:
        types.fail(f"the equation {equation!r} does not fit the operands: {error}")
    sizes: dict[Axis, Dim] = {}
    for axes, shape in zip(terms, known, strict=True):
        for axis, size in zip(axes, shape, strict=True):
            together = types.broadcast([(sizes.get(axis, 1),), (size,)])
            (sizes[axis],) = together or (None,)
    return tuple(sizes[axis] for axis in result)


# -- operations, for the fields `macs` and `flops` of records ----------------------


def sizes(c: NodeTypes, index: int) -> tuple[int, ...]:
    """The shape of an operand; TypeError if it is not known."""
    return cast("tuple[int, ...]", tuple(cast("Shape", c.shape(index))))


def for_each_element(times: int = 1) -> Count:
    """A constant number of operations for each element of the first operand."""
    return lambda c, elements: times * math.prod(sizes(c, 0))


def einsum_products(equation: str, shapes: Sequence[Sequence[int]]) -> int:
    """The multiply-accumulates of ``equation`` evaluated at once: all operands' product for each index."""
    terms, _ = axes_of(equation.replace(" ", ""), [len(shape) for shape in shapes], True)
    sizes: dict[Axis, int] = {}
    for axes, shape in zip(terms, shapes, strict=True):
        for axis, size in zip(axes, shape, strict=True):
            sizes[axis] = max(sizes.get(axis, 1), size)
    return math.prod(sizes.values()) * (len(shapes) - 1)
