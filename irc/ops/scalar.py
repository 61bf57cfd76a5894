"""Scalar semantics: what a pointwise operator computes of one element of each operand.

Ufunc kernels and machine code are made of them; `irc.ops.algebra` states what their primitives mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from inspect import currentframe
from types import MappingProxyType
from typing import Any
from typing import cast as cast_type

from irc.errors import Error
from irc.ops.algebra import DOUBLE, AnyDType, Expression, Operand, Primitive, cast, single

Function = Callable[..., Any]
"""``(x, y, ..., *, attribute=default, ...) -> Expression``: positional parameters are the operands, None for those that
are absent; keyword-only ones are attributes with their defaults. It may ask an operand for its element type."""


@dataclass(frozen=True)
class Choice:
    """Semantics chosen by an attribute that is one of a few words or numbers."""

    attribute: str
    cases: Mapping[Any, Primitive | Function]
    default: Any = None


Definition = Primitive | Function | Choice


def module_line() -> tuple[str, int]:
    """The module that is being imported, and the line of it."""
    frame = currentframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_globals["__name__"], frame.f_lineno)


@dataclass(frozen=True, eq=False)
class ScalarSemantics:
    """What a pointwise operator computes of one element of each operand, from one version of it on.

    Attributes:
        kind: such as ``onnx::Relu``.
        definition: a single primitive where that is all. The result is converted to the result's element type.
        since: the first version of the operator that it holds for; it holds up to the next one of that kind.
        result: the operand whose element type the result has; None if it has one of its own.
        variadic: whether there may be any number of operands, at least one; a primitive of two folds them from the
            left, each result rounded to the element type.
        floats: whether the semantics are those of floats: integers are computed in float64, and truncated.
        broadcasts: whether operands broadcast as in NumPy; else attributes, or channels, tell how the second one lies
            within the first.
        ulp: the largest error in units in the last place of the result, of float32 and float64 alike, or of `scale`
            where that is larger; None: that of the primitive.
        place: the module and line where this is stated.
        scale: see ``ulp``: of a sum that may cancel, the size of its terms; infinite if that is the operands'.
    """

    kind: str
    definition: Definition
    since: int = 1
    result: int | None = 0
    variadic: bool = False
    floats: bool = False
    broadcasts: bool = True
    ulp: float | None = None
    scale: float = 0.0
    place: tuple[str, int] = field(default_factory=module_line)

    @property
    def bound(self) -> float:
        """The largest error in ulp: see `ulp`."""
        if self.ulp is not None:
            return self.ulp
        return self.definition.ulp if isinstance(self.definition, Primitive) else 0.5

    @property
    def name(self) -> str:
        """The kind without its namespace."""
        return self.kind.rpartition("::")[2]

    @cached_property
    def arity(self) -> int:
        """The largest number of operands, if that is fixed."""
        found = self.definition
        if isinstance(found, Choice):
            found = next(iter(found.cases.values()))
        return found.arity if isinstance(found, Primitive) else found.__code__.co_argcount

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the attributes, or further arguments, that the semantics depend on."""
        found = self.definition
        if isinstance(found, Choice):
            return (found.attribute,)
        return () if isinstance(found, Primitive) else tuple(found.__kwdefaults__ or ())

    def resolve(self, attributes: Mapping[str, Any] = MappingProxyType({})) -> Primitive | Function:
        """The semantics for these attributes: a primitive, or a function of the operands alone.

        Raises:
            Error: IRC320 if an attribute is none of the words that it may be.
        """
        found = self.definition
        if isinstance(found, Choice):
            given = attributes.get(found.attribute, found.default)
            if given not in found.cases:
                known = " or ".join(map(repr, found.cases))
                raise Error("IRC320", f"{self.name}'s {found.attribute} is {given!r}; it must be {known}")
            found = found.cases[given]
        if isinstance(found, Primitive):
            return found
        defaults: dict[str, Any] = found.__kwdefaults__ or {}
        taken = {name: attributes.get(name, default) for name, default in defaults.items()}
        if self.kind.startswith("onnx::"):
            taken = {name: single(value) if value.__class__ is float else value for name, value in taken.items()}
        return partial(found, **taken) if taken else found

    def expression(
        self, dtypes: Sequence[AnyDType | None], attributes: Mapping[str, Any] = MappingProxyType({})
    ) -> Expression:
        """The semantics for these element types (None: absent): an expression over `Operand` 0, 1...

        See `trace`.
        """
        return trace(self.resolve(attributes), dtypes, self.floats)


def trace(semantics: Primitive | Function, dtypes: Sequence[AnyDType | None], floats: bool = False) -> Expression:
    """What ``semantics`` gives for operands of these element types, None for those that are absent.

    Args:
        semantics: as `ScalarSemantics.resolve` gives it.
        dtypes: no small floats: these are computed in float32.
        floats: whether integers are computed in float64, and truncated.
    """
    operands = [None if dtype is None else Operand(i, dtype) for i, dtype in enumerate(dtypes)]
    compute = cast_type("Function", semantics)
    if not floats or all(dtype is None or dtype.kind not in "iub" for dtype in dtypes):
        return compute(*operands)
    found = compute(*[None if x is None else cast(x, DOUBLE) for x in operands])
    first = dtypes[0]
    return found if first is None else cast(found, first)
