"""Types from text: TorchScript's notation in all its spellings."""

from __future__ import annotations

import re
from collections.abc import Callable

from irc.errors import did_you_mean
from irc.ir import types
from irc.ir.limits import MAX_SIZE, MAX_TYPE_DEPTH
from irc.ir.schema import GENERICS, OTHER_TYPES, PRIMITIVES, TYPE_VARIABLE
from irc.ir.text.lexer import STRING_BODY, WS, Scanner, terminal
from irc.ir.types import Dim, DType, Type
from irc.support.formatting import count

# Read with round or square brackets: Future[Tensor] and List[int] occur in dumps. With how many arguments each
# is built; None: any number, given as one tuple.
_GENERIC: dict[str, tuple[Callable[..., Type], int | None]] = {
    "List": (types.ListType, 1),
    "Optional": (types.OptionalType, 1),
    "Future": (types.FutureType, 1),
    "Dict": (types.DictType, 2),
    "Union": (types.UnionType, None),
    "Tuple": (types.TupleType, None),
    "NamedTuple": (types.TupleType, None),
}
_NAMED: dict[str, Type] = {
    **{t.name: t for t in (types.INT, types.FLOAT, types.BOOL, types.STR, types.COMPLEX)},
    "number": types.SCALAR,
}
_KNOWN = {*_NAMED, *_GENERIC, *GENERICS, *PRIMITIVES, *OTHER_TYPES, "AnyType", "Dimname", "Enum"}

# A type without nested parentheses, as a whole: such texts are looked up before they are parsed.
SIMPLE_TYPE = r"[A-Za-z_][\w.]*+(?>(?:\([^()\n\#]*+\))?)(?>(?:\[\]|\?)*)"
SIMPLE_TYPE_END = r"(?=[ \t]*+(?:[=,)>]|\r?\n|\Z))"

_SIMPLE = terminal(f"({SIMPLE_TYPE}){SIMPLE_TYPE_END}")
_WORD = terminal(r"((?:Enum|InterfaceType)<[\w.]+>|[A-Za-z_]\w*(?:\.\w+)*)")
_FIELD = terminal(rf"[A-Za-z_]\w*{WS}:")
_SUFFIX = terminal(rf"(?:\[{WS}(\d*|Undefined){WS}\]|(\?))")
_DIM = terminal(
    rf"(?:(?P<size>\d+)|(?P<unknown>\*)|(?P<name>SS\(-\d+\)|[A-Za-z_]\w*+(?!{WS}=))"
    + rf'|"(?P<quoted>{STRING_BODY})"'
    + rf"|(?P<layout>strides{WS}={WS}\[[^\]\n]*\]|requires_grad{WS}={WS}[01]|(?:device|layout){WS}={WS}[\w:]+))"
)


class TypeParser:
    """Reads types with a scanner and remembers them by their text.

    Attributes:
        known: the types read so far whose texts have no nested parentheses, by text.
    """

    __slots__ = ("_scan", "known")

    def __init__(self, scan: Scanner) -> None:
        self._scan = scan
        self.known: dict[str, Type] = {}

    def parse(self) -> Type:
        """The type at the scanner's position; ``irc.Error`` if there is none."""
        match = _SIMPLE.match(self._scan.text, self._scan.pos)
        if match is None:
            return self._type(1)[0]
        found = self.known.get(match[1])
        if found is not None:
            self._scan.pos = match.end()
            return found
        found = self._type(1)[0]
        if self._scan.pos == match.end():  # else a bracket in a quoted name looked like the type's own
            self.known[match[1]] = found
        return found

    def _type(self, depth: int) -> tuple[Type, int]:
        """A type ``depth`` levels inside the outermost one, and how many levels it has itself."""
        found, levels = self._base(depth)
        while match := self._scan.take(_SUFFIX):
            if match[1] == "Undefined":  # a tensor known not to be there: irc has no type for that
                continue
            levels += 1
            self._check(depth + levels - 1)
            found = types.OptionalType(found) if match[2] else types.ListType(found)
        return found, levels

    def _check(self, depth: int) -> None:
        if depth > MAX_TYPE_DEPTH:
            self._scan.fail(f"types nest deeper than {MAX_TYPE_DEPTH} levels", code="IRC113")

    def _base(self, depth: int) -> tuple[Type, int]:
        self._check(depth)
        scan = self._scan
        if scan.accept("("):
            elems, levels = self._arguments(")", depth, "an element type")
            return types.TupleType(tuple(elems)), levels + 1
        start = scan.skip()
        word = scan.need(_WORD, "a type, such as Tensor, Float(2, 3), int[] or (Tensor, int)")[1]
        if word in _GENERIC:
            return self._generic(word, depth)
        return self._tensor(word) or self._named(word, start), 1

    def _generic(self, word: str, depth: int) -> tuple[Type, int]:
        scan = self._scan
        start = scan.pos
        closing = "]" if scan.accept("[") else ")"
        if closing == ")":
            scan.expect("(", word)
        args, levels = self._arguments(closing, depth, f"a type argument of {word}")
        build, arity = _GENERIC[word]
        if arity is None:
            return build(tuple(args)), levels + 1
        if len(args) != arity:
            scan.fail(f"{word} takes {count(arity, 'type argument')}, not {len(args)}", start)
        return build(*args), levels + 1

    def _arguments(self, closing: str, depth: int, what: str) -> tuple[list[Type], int]:
        """Types up to the ``closing`` bracket, and the levels of the deepest."""
        scan = self._scan
        args: list[Type] = []
        deepest = 0
        for _ in scan.listed(closing, what):
            is_field = scan.take(_FIELD)  # NamedTuple(x : Tensor, ...): fields have numbers only in irc
            arg, levels = self._type(depth + 1)
            if is_field and scan.accept("="):
                self._skip_default()
            args.append(arg)
            deepest = max(deepest, levels)
        return args, deepest

    def _skip_default(self) -> None:
        """Go to the next field, or the bracket that closes the type. TorchScript prints strings bare, too."""
        text, at, depth = self._scan.text, self._scan.pos, 0
        while at < len(text) and text[at] != "\n":
            if text[at] in "([":
                depth += 1
            elif text[at] in ")]":
                depth -= 1
            if depth < 0 or (depth == 0 and text[at] == "," and _FIELD.match(text, at + 1)):
                break
            at += 1
        self._scan.pos = at

    def _named(self, word: str, start: int) -> Type:
        """The type that a word without arguments names."""
        if word in _NAMED:
            return _NAMED[word]
        if word.startswith("Enum<"):
            return types.EnumType(word[len("Enum<") : -1])
        if "." in word or "<" in word:
            return types.ClassType(word)
        if word not in _KNOWN and not TYPE_VARIABLE.fullmatch(word):
            hint = _meant(word)
            if hint:  # or else it may be one of TorchScript's that is not known here
                self._scan.fail(f"there is no type {word}; {hint}", start)
        # TorchScript's own types begin with a capital; a schema's type variables do not.
        return types.PrimType(word) if word[0].isupper() else types.TypeVar(word)

    # -- tensors ---------------------------------------------------------

    def _tensor(self, word: str) -> Type | None:
        """The tensor type whose element type or ``Tensor`` is ``word``; None if it names no tensor type."""
        dtype = DType.from_label(word)
        unranked = dtype is None
        if unranked:
            if not word.endswith("Tensor"):
                return None
            dtype = DType.from_label(word.removesuffix("Tensor"))  # FloatTensor: dtype known, rank not
            if dtype is None and word != "Tensor":
                return None
        if not self._scan.accept("("):
            return types.TensorType(dtype)
        dims, layout = self._dims()
        # Float(requires_grad=0) has rank 0, Tensor(requires_grad=0) has no known rank.
        return types.TensorType(dtype, None if unranked and layout and not dims else tuple(dims))

    def _dims(self) -> tuple[list[Dim], bool]:
        """Dimensions up to ``)``, and whether strides, device... were among them, which irc does not keep."""
        scan = self._scan
        dims: list[Dim] = []
        layout = False
        for _ in scan.listed(")", "a dimension"):
            start = scan.skip()
            match = scan.need(_DIM, "a dimension: a size, *, a name or a quoted name")
            if match["layout"]:
                layout = True
            elif layout:
                scan.fail("dimensions come before strides, requires_grad and device", start)
            else:
                dims.append(self._dim(match))
        return dims, layout

    def _dim(self, match: re.Match[str]) -> Dim:
        if match["unknown"]:
            return None
        if match["size"]:
            if len(match["size"]) > 19 or int(match["size"]) > MAX_SIZE:
                self._scan.fail("the dimension does not fit in 63 bits", match.start("size"), "IRC113")
            return int(match["size"])
        if match["name"]:
            return match["name"]
        return self._scan.unquote(match["quoted"], match.start("quoted"))


def _meant(word: str) -> str:
    """A hint at the type that the unknown ``word`` may mean, for the end of a message; or ""."""
    tensors = ["Tensor", *(dtype.label for dtype in DType)]
    by_numpy = {dtype.numpy.name: dtype.label for dtype in DType}
    if word in by_numpy:
        return f"tensors of {word} are {by_numpy[word]}(2, 3), of any shape {by_numpy[word]}Tensor"
    return did_you_mean(word, (*sorted(_KNOWN), *tensors), least=0.7)


def parse_type(text: str) -> Type:
    """The type that ``text`` writes; ``irc.Error`` (IRC110, IRC113) if it writes none."""
    scan = Scanner(text, "<type>")
    found = TypeParser(scan).parse()
    if scan.peek():
        scan.fail("expected the end of the type")
    return found
