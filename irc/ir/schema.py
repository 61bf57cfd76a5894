"""Operator schemas in PyTorch's notation, with alias annotations.

``aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)``

A formal alias set, such as ``a``, names a group of memory. In an annotation:

=============  ====================================================================
``(a)``        may denote memory of set a
``(a!)``       and is written; a result marked so *is* the argument
``(a|b)``      memory of either set
``(*)``        unknown memory
``(a -> *)``   escapes: afterwards unknown code may hold it
``(a -> b)``   is stored: afterwards the memory of set b includes it
``(a==)``      irc's: a result that is the argument itself, which is not written (``positive``)
``(a=)``       irc's: a result that certainly shares, and covers the whole argument (``t``, ``view``)
``(a<)``       irc's: a result that certainly shares, and covers a part of it (``select``)
=============  ====================================================================

Annotations may stand inside lists, tuples, dictionaries and futures:
``Tensor(a)[]`` is a list of its own whose elements share with a,
``t(b)[](a!)`` a list that is written and whose elements are set b. So
``append(t(b)[](a!) self, t(c -> b) el) -> t(b)[](a!)`` says that ``el`` is
stored among the elements of ``self``. ``...`` ends a signature with any
number of further arguments or results like the last one.

The notation is that of PyTorch's ``aten/src/ATen/native/README.md`` and
``torch/csrc/jit/frontend/function_schema_parser.cpp``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from irc.ir.types import Type

WILDCARD = "*"


@dataclass(frozen=True)
class AliasInfo:
    """The alias annotation of one argument or result, and of what it contains.

    Attributes:
        before: names of the sets whose memory it may denote; ``("*",)``: unknown memory.
        after: for arguments, the sets it is part of afterwards; equal to ``before`` if there is no arrow.
        write: whether the operator writes to it.
        must: ``"=="``, ``"="`` or ``"<"`` for a result that certainly shares, "" for one that may.
        contained: the annotations inside it, in the order of the type's parts; empty if there are none.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    write: bool = False
    must: str = ""
    contained: tuple[AliasInfo | None, ...] = ()

    @property
    def escapes(self) -> bool:
        """Whether unknown code may hold it afterwards."""
        return WILDCARD in self.after and WILDCARD not in self.before

    @property
    def stored_into(self) -> tuple[str, ...]:
        """The sets it is stored into: those after the arrow that are not before it, but for ``*``."""
        return tuple(s for s in self.after if s not in self.before and s != WILDCARD)

    def walk(self) -> Iterator[AliasInfo]:
        """This annotation and all those inside it."""
        pending: list[AliasInfo] = [self]
        while pending:
            info = pending.pop()
            yield info
            pending.extend(c for c in reversed(info.contained) if c is not None)

    def __str__(self) -> str:
        """The annotation proper, ``(a!)``; "" if there is none at this level."""
        if not self.before:
            return ""
        arrow = f" -> {'|'.join(self.after)}" if self.after != self.before else ""
        return f"({'|'.join(self.before)}{'!' if self.write else ''}{self.must}{arrow})"


@dataclass(frozen=True)
class Argument:
    """An argument or a result of an operator; results may be nameless.

    ``size`` is N of ``int[N]``: one value then stands for a list of N equal ones.
    ``default`` is meaningful only if ``has_default``.
    """

    type: Type
    name: str = ""
    alias: AliasInfo | None = None
    has_default: bool = False
    default: Any = field(default=None, compare=False)
    keyword_only: bool = False
    size: int | None = None
    text: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Schema:
    """A signature: ``name`` is ``aten::add_``, ``overload`` is ``Tensor`` or ""."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    is_vararg: bool = False
    is_varret: bool = False

    @property
    def has_annotations(self) -> bool:
        """Whether any argument or result has an alias annotation."""
        return any(a.alias is not None for a in (*self.arguments, *self.returns))

    @property
    def is_mutable(self) -> bool:
        """Whether it writes to an argument or to something inside one."""
        return any(info.write for a in self.arguments if a.alias is not None for info in a.alias.walk())

    def argument(self, index: int) -> Argument | None:
        """The formal of actual argument ``index``; for a vararg operator the last one repeats."""
        if index < len(self.arguments):
            return self.arguments[index]
        return self.arguments[-1] if self.is_vararg and self.arguments else None

    def result(self, index: int) -> Argument | None:
        """The formal of actual result ``index``; for an operator with variadic results the last one repeats."""
        if index < len(self.returns):
            return self.returns[index]
        return self.returns[-1] if self.is_varret and self.returns else None

    def __str__(self) -> str:
        parts: list[str] = []
        keyword = False
        for a in self.arguments:
            if a.keyword_only and not keyword:
                parts.append("*")
                keyword = True
            parts.append(str(a))
        if self.is_vararg:
            parts.append("...")
        results = [*map(str, self.returns), *(["..."] if self.is_varret else [])]
        bare = len(results) == 1 and not results[0].startswith("(")
        returned = results[0] if bare else f"({', '.join(results)})"
        dot = f".{self.overload}" if self.overload else ""
        return f"{self.name}{dot}({', '.join(parts)}) -> {returned}"
