"""How shape rules are registered and applied: what those of other packages return is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from irc.errors import Error, comes_from_outside, nonsense
from irc.ir.limits import MAX_SIZE
from irc.ir.node import describe
from irc.ir.types import TensorType, Type, rebuilt, with_plain_sizes
from irc.ir.verify.attribute_rules import type_fault
from irc.ops.plugins import check_kind, fault_of, is_foreign, name_of
from irc.ops.record import Operator
from irc.ops.record import ShapeRule as Rule
from irc.ops.registry import register
from irc.support.formatting import count

if TYPE_CHECKING:
    from irc.ops.inference import NodeTypes


def shape_rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of ONNX operators (names without ``onnx::``) or of fully qualified kinds.

    A function of the same module and name replaces the earlier one: the definition has been run again.
    IRC304 if what is registered is not a function, or there is another rule for one of the kinds.
    """
    kinds = [check_kind("a shape rule", name, "onnx") for name in names]

    def enter(rule: Rule) -> Rule:
        register(*(Operator(kind, shape=rule) for kind in kinds))
        return rule

    return enter


def apply(rule: Callable[[NodeTypes], Any], types: NodeTypes) -> Any:
    """The result of ``rule``; Error IRC310 if it cannot make sense of the node, IRC305 if a foreign rule fails."""
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


def types_told(rule: Rule, types: NodeTypes) -> list[Type]:
    """The types of a node's outputs by ``rule``; Errors as `apply`, and IRC305 if it returns no sequence of types."""
    found: Any = apply(rule, types)
    told = cast("Sequence[Any]", found) if isinstance(found, Sequence) else [found]
    if is_foreign(rule):
        try:
            told = [_checked(type) for type in told]
            if len(told) != len(types.node.outputs):
                raise _NoTypeError(f": {count(len(types.node.outputs), 'result')}")
        except _NoTypeError as error:
            message = f"its shape rule, {name_of(rule)}, must return a type for each result, not {found!r}{error}"
            raise Error("IRC305", message, describe(types.node)) from None
    return [rebuilt(type, _possible) for type in told]


class _NoTypeError(Exception):
    """Something is not a type. The message is the end of a sentence: the reason, unless obvious."""


def _checked(type: Any) -> Type:
    """``type``, from an untrusted rule, with NumPy's numbers as Python's; _NoTypeError if it is not a type."""
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


def _possible(type: Type) -> Type:
    """``type`` without impossible sizes: where a model's attributes lead to one, the operator will fail."""
    if not type.shape:
        return type
    shape = tuple([None if isinstance(d, int) and not 0 <= d <= MAX_SIZE else d for d in type.shape])
    return type if shape == type.shape else TensorType(type.dtype, shape)
