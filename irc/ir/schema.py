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

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, cast

from irc.errors import Error, did_you_mean
from irc.ir import types
from irc.ir.node import Node
from irc.ir.text.names import unquote
from irc.ir.types import Type
from irc.support.formatting import pointed_at
from irc.support.lazy import provided

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


# What the IR asks of operators. `irc.ops` answers, and the package root installs it: the IR imports nothing above.


class SchemaLookup(Protocol):
    """The signatures of operators."""

    def check(self, node: Node) -> None:
        """Error IRC213, IRC214, IRC215 or IRC217 if ``node`` does not fit the signatures of its operator."""
        ...


SCHEMAS = "schemas"
"""The name under which the package root installs it."""


def schema_lookup() -> SchemaLookup:
    """What is installed."""
    return cast("SchemaLookup", provided(SCHEMAS))


# Reading schemas: ``parse_schema``.


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|-inf\b)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::)[A-Za-z0-9_]+)*)
    | (?P<sign>->|\.\.\.|[()\[\],*=!|?<{}.])
    )""",
    re.VERBOSE,
)

_NAMED = (*types.NUMBERS, types.STR, types.ANY, types.DEVICE, types.NONE)
PRIMITIVES: dict[str, Type] = {
    "Tensor": types.TENSOR,
    **{known.name: known for known in _NAMED},
    "number": types.SCALAR,
    # Sizes that PyTorch can trace symbolically are plain integers here.
    "SymInt": types.INT,
    "SymFloat": types.FLOAT,
    "SymBool": types.BOOL,
    # Enumerations that TorchScript passes as integers.
    **dict.fromkeys(("ScalarType", "Layout", "MemoryFormat"), types.INT),
}

# Types without memory or parameters that have no name of their own here.
OTHER_TYPES = frozenset({
    "AnyClassType", "AnyEnumType", "AnyListType", "AnyTupleType", "Capsule", "Function", "Generator", "PyObject",
    "QScheme", "Storage", "Stream",
})  # fmt: skip

GENERICS = frozenset({"Await", "Dict", "Future", "List", "Optional", "RRef", "Tuple", "Union"})

TYPE_VARIABLE = re.compile(r"[a-z](?:[A-Z0-9]\w*)?")
"""Type variables: ``t``, ``t1``, ``tVal``."""

_LITERALS = {"None": None, "True": True, "False": False, "inf": float("inf"), "nan": float("nan")}


def parse_schema(text: str) -> Schema:
    """The schema for ``text`` in PyTorch's notation; Error IRC203 with a caret if it is malformed."""
    if not isinstance(text, str):  # type: ignore[reportUnnecessaryIsInstance]
        raise Error("IRC203", f"a row is text such as 'com.example::Scale(Tensor x) -> Tensor', not {text!r}", "schema")
    return _Parser(text).schema()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int, int]] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                self._fail("unexpected character", at)
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind), match.start(kind), match.end(kind)))
            at = match.end()
        self.tokens.append(("end", "", len(text), len(text)))
        self.at = 0

    # -- tokens ----------------------------------------------------------

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        column = self.tokens[self.at][2] if at is None else at
        raise Error("IRC203", message + pointed_at(self.text, column), "schema")

    @property
    def word(self) -> str:
        return self.tokens[self.at][1]

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    def _next(self) -> str:
        word = self.word
        self.at += 1
        return word

    def _take(self, sign: str) -> bool:
        if self.kind == "sign" and self.word == sign:
            self.at += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self._fail(f"expected '{sign}'")

    def _listed(self, close: str) -> Iterator[None]:
        """Stop at each part of a list that ends with the bracket ``close``."""
        if not self._take(close):
            yield
            while not self._take(close):
                self._expect(",")
                yield

    def _name(self) -> str:
        if self.kind != "name":
            self._fail("expected a name")
        return self._next()

    # -- grammar ---------------------------------------------------------

    def schema(self) -> Schema:
        name = self._name()
        if "::" not in name:
            self._fail("an operator's name is written namespace::name", 0)
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        self._expect("(")
        arguments, is_vararg = self._arguments()
        self._expect("->")
        returns, is_varret = self._returns()
        if self.kind != "end":
            self._fail("expected the end of the schema")
        return Schema(f"{namespace}::{base}", overload, arguments, returns, is_vararg, is_varret)

    def _arguments(self) -> tuple[tuple[Argument, ...], bool]:
        found: list[Argument] = []
        keyword_only = False
        for _ in self._listed(")"):
            if self._take("..."):
                self._expect(")")
                return tuple(found), True
            if self._take("*"):
                keyword_only = True
                continue
            start = self.tokens[self.at][2]
            found.append(self._argument(keyword_only))
            if any(other.name == found[-1].name for other in found[:-1]):
                self._fail(f"two arguments are called {found[-1].name}", start)
        return tuple(found), False

    def _argument(self, keyword_only: bool) -> Argument:
        start = self.tokens[self.at][2]
        type, alias, size = self._type()
        name = self._name()
        has_default = self._take("=")
        default = self._default() if has_default else None
        text = self.text[start : self.tokens[self.at - 1][3]]
        return Argument(type, name, alias, has_default, default, keyword_only, size, text)

    def _returns(self) -> tuple[tuple[Argument, ...], bool]:
        if self._take("..."):
            return (), True
        if not (self.kind == "sign" and self.word == "("):
            return (self._result(),), False
        self._next()
        found: list[Argument] = []
        for _ in self._listed(")"):
            if self._take("..."):
                self._expect(")")
                return tuple(found), True
            found.append(self._result())
        return tuple(found), False

    def _result(self) -> Argument:
        start = self.tokens[self.at][2]
        type, alias, size = self._type()
        name = self._next() if self.kind == "name" else ""
        return Argument(type, name, alias, size=size, text=self.text[start : self.tokens[self.at - 1][3]])

    def _type(self) -> tuple[Type, AliasInfo | None, int | None]:
        """A type with the annotations in it, and N if it is ``T[N]``."""
        type, parts = self._base()
        alias = _annotated(self._annotation(), parts)
        size: int | None = None
        while True:
            if self._take("["):
                size = int(self._next()) if self.kind == "number" else None
                self._expect("]")
                type = types.ListType(type)
                alias = _annotated(self._annotation(), (alias,))
            elif self._take("?"):
                # None has no memory: an optional value is the value, so its annotation stays.
                type = types.OptionalType(type)
                outer = self._annotation()
                alias = outer if outer is not None else alias
            else:
                return type, alias, size

    def _base(self) -> tuple[Type, tuple[AliasInfo | None, ...]]:
        if self._take("("):
            elems, parts = self._types(")")
            return types.TupleType(elems), parts
        name = self._name()
        if name in GENERICS:
            close = ")" if self._take("(") else "]"
            if close == "]":
                self._expect("[")
            return self._generic(name, *self._types(close))
        if name in PRIMITIVES:
            return PRIMITIVES[name], ()
        if name in OTHER_TYPES:
            return types.PrimType(name), ()
        if "." in name:
            return types.ClassType(name), ()
        if TYPE_VARIABLE.fullmatch(name):
            return types.TypeVar(name), ()
        hint = did_you_mean(name, (*PRIMITIVES, *GENERICS, *OTHER_TYPES))
        return self._fail(f"there is no type {name}{hint and f'; {hint}'}", self.tokens[self.at - 1][2])

    def _generic(
        self, name: str, elems: tuple[Type, ...], parts: tuple[AliasInfo | None, ...]
    ) -> tuple[Type, tuple[AliasInfo | None, ...]]:
        if name in ("Tuple", "Union"):
            return (types.TupleType if name == "Tuple" else types.UnionType)(elems), parts
        if len(elems) != (2 if name == "Dict" else 1):
            self._fail(f"{name} of {len(elems)} types")
        of = {"Dict": types.DictType, "List": types.ListType, "Optional": types.OptionalType}
        return of.get(name, types.FutureType)(*elems), parts

    def _types(self, close: str) -> tuple[tuple[Type, ...], tuple[AliasInfo | None, ...]]:
        found = [self._type() for _ in self._listed(close)]
        return tuple(type for type, _, _ in found), tuple(alias for _, alias, _ in found)

    def _annotation(self) -> AliasInfo | None:
        if not (self.kind == "sign" and self.word == "("):
            return None
        self._next()
        before = self._sets()
        write = self._take("!")
        must = "=" if self._take("=") else "<" if self._take("<") else ""
        must += "=" if must == "=" and self._take("=") else ""
        after = self._sets() if self._take("->") else before
        self._expect(")")
        return AliasInfo(before, after, write, must)

    def _sets(self) -> tuple[str, ...]:
        found = [WILDCARD if self._take("*") else self._name()]
        while self._take("|"):
            found.append(WILDCARD if self._take("*") else self._name())
        return tuple(sorted(set(found)))

    def _default(self) -> Any:
        if self._take("["):
            return [self._default() for _ in self._listed("]")]
        kind, word = self.kind, self._next()
        if kind == "number":
            return float(word) if any(c in word for c in ".ein") else int(word)
        if kind == "string":
            try:
                return unquote(word[1:-1])
            except ValueError as error:
                self.at -= 1
                return self._fail(str(error))
        if kind == "name":
            return _LITERALS.get(word, word)
        self.at -= 1
        return self._fail("expected a default value")


def _annotated(alias: AliasInfo | None, parts: tuple[AliasInfo | None, ...]) -> AliasInfo | None:
    """``alias`` with what is annotated inside; None if there is no annotation at all."""
    if all(p is None for p in parts):
        return alias
    if alias is None:
        return AliasInfo(contained=parts)
    return AliasInfo(alias.before, alias.after, alias.write, alias.must, parts)
