"""Which types of values are allowed where a given type is expected."""

from __future__ import annotations

from irc.ir import types
from irc.ir.types import OptionalType, TensorType, Type, TypeVar

Bindings = dict[str, Type]
"""What the type variables of a schema stand for."""


def accepts(formal: Type, actual: Type, bindings: Bindings | None = None) -> bool:
    """Whether a value of type ``actual`` may stand where ``formal`` is expected.

    False only where the types contradict each other: what is not known
    (``Any``, ``Tensor`` without a shape, named dimensions, members of unions,
    what an optional holds) is taken to agree. (Which overload is meant asks
    for more: that every value fits, `irc.ops.signatures.matches`.)

    Args:
        formal: the type expected; type variables in it are bound at their first use.
        actual: the type at hand.
        bindings: the type variables bound so far; updated.
    """
    if formal == actual or types.ANY in (formal, actual) or isinstance(actual, TypeVar):
        return True
    if isinstance(formal, TypeVar):
        if bindings is None:
            return True
        bound = bindings.setdefault(formal.name, actual)
        return accepts(bound, actual) or accepts(actual, bound)
    if isinstance(formal, TensorType) and isinstance(actual, TensorType):
        return types.may_be_equal(formal, actual)
    if isinstance(formal, OptionalType):
        return actual == types.NONE or accepts(formal.elem, _inside(actual), bindings)
    if isinstance(actual, types.UnionType):
        return any(accepts(formal, member, bindings) for member in actual.members)
    if isinstance(formal, types.UnionType):
        return any(accepts(member, actual, bindings) for member in formal.members)
    if isinstance(actual, OptionalType):
        return formal == types.NONE or accepts(formal, actual.elem, bindings)
    return _parts_agree(formal, actual, bindings)


def _inside(t: Type) -> Type:
    return t.elem if isinstance(t, OptionalType) else t


def _parts_agree(formal: Type, actual: Type, bindings: Bindings | None) -> bool:
    if formal.inner and formal.__class__ is actual.__class__:
        if isinstance(formal, types.ListType | types.DictType):
            # A list of tensors is not a list of optional tensors: one could put None into it.
            inner = [_bound(part, bindings) for part in formal.inner] if bindings else formal.inner
            if not all(map(types.may_be_one_type, inner, actual.inner)):
                return False
        agree = (accepts(f, a, bindings) for f, a in zip(formal.inner, actual.inner))
        return len(formal.inner) == len(actual.inner) and all(agree)
    if isinstance(formal, types.ClassType) and isinstance(actual, types.ClassType):
        return formal.is_interface or actual.is_interface  # text does not tell which class has which interface
    if formal == types.SCALAR or actual == types.SCALAR:
        return formal in types.NUMBERS and actual in types.NUMBERS
    return formal == types.FLOAT and actual == types.INT


def _bound(type: Type, bindings: Bindings) -> Type:
    """``type``, with what its variables stand for."""
    return types.rebuilt(type, lambda part: bindings.get(part.name, part) if isinstance(part, TypeVar) else part)
