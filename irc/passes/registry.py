"""Passes by name, and pipelines as text: ``inline,(constant-fold,cse,dce)*4,fuse{max-size=64}``.

    pipeline := [item {',' item}]
    item     := NAME ['{' [option {',' option}] '}']  |  '(' pipeline ')' '*' INT  |  PIPELINE
    option   := NAME ['=' value]        # a bool's name alone means true
    value    := JSON string | any run of characters but whitespace and , = { } ( ) *

Options are the fields of the pass's dataclass, ``_`` written ``-``; their
values are read by the field's type. ``(...)*N`` repeats its passes until a
round changes nothing, at most N times. PIPELINE is the name of a whole
pipeline, such as ``default``.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from irc.errors import Error, did_you_mean, misfit
from irc.support.formatting import pointed_at
from irc.support.lazy import provided
from irc.support.plugins import PASSES, entry_points, load

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from irc.passes.base import Pass


# Options of passes: the fields of their dataclasses, and how pipelines spell names and values.


_WORD = r"[^\s,={}()*\"]+"
_NAME = rf"\w(?:{_WORD})?"


def fault(pass_class: object) -> str:
    """What keeps ``pass_class`` from being the class of a pass; "" if nothing does."""
    if not isinstance(pass_class, type):
        return f"{pass_class!r} is not a class"
    name = getattr(pass_class, "name", None)
    if not isinstance(name, str) or re.fullmatch(_NAME, name) is None:
        return f"its name is {name!r}, which a pipeline cannot spell"
    if not callable(getattr(pass_class, "run", None)):
        return "it has no method run"
    if not dataclasses.is_dataclass(pass_class) or pass_class.__hash__ is None:
        return "it is not decorated with @dataclass(frozen=True)"
    try:
        hints = get_type_hints(pass_class)
    except Exception as e:  # the hints are code of the pass's author
        return f"the types of its options cannot be read: {e}"
    for option, field in fields_of(pass_class).items():
        if not READERS.keys() >= set(alternatives(hints[field.name])):
            return f"its option {option!r} is of type {field.type}, not bool, int, float or str, or None besides"
    return _misfit(pass_class)


def _misfit(pass_class: type) -> str:
    """Why this class cannot be made of its options, or ``run`` not be called; "" if both work."""
    options = [field.name for field in fields_of(pass_class).values()]
    try:
        takes = inspect.signature(pass_class)
        takes.bind(**dict.fromkeys(options))
    except TypeError as e:
        return f"it cannot be made of its options: {e}"
    methods: dict[str, tuple[str, ...]] = {"run": ("graph", "ctx")}
    if takes.parameters.keys() <= set(options):  # else these may be for __post_init__
        methods["__post_init__"] = ()
    functions = {name: inspect.getattr_static(pass_class, name, None) for name in methods}
    wrong = (misfit(n, f, "self", *methods[n]) for n, f in functions.items() if isinstance(f, types.FunctionType))
    return next(filter(None, wrong), "")


def fields_of(pass_class: type) -> dict[str, dataclasses.Field[Any]]:
    """The options of a pass, by the names that pipelines use."""
    return {kebab(f.name): f for f in dataclasses.fields(cast(Any, pass_class))}


def has_default(field: dataclasses.Field[Any]) -> bool:
    """Whether an option may be left out."""
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def defaults(pass_class: type) -> str:
    """The options of a pass with defaults, as pipelines write them: `` {max-size=64}``; "" if none."""
    options = [
        name if field.default is dataclasses.MISSING else f"{name}={print_value(field.default)}"
        for name, field in fields_of(pass_class).items()
    ]
    return f" {{{','.join(options)}}}" if options else ""


def check_not_negative(options: object) -> None:
    """ValueError if a number among the options of a pass is negative."""
    for name, field in fields_of(type(options)).items():
        value = getattr(options, field.name)
        if value < 0:
            raise ValueError(f"{name} must not be negative, but it is {value}")


def kebab(name: str) -> str:
    """A field's name as pipelines spell it."""
    return name.replace("_", "-")


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The types a hint allows, None first, so that ``str | None`` reads ``none`` as None."""
    found = get_args(hint) if get_origin(hint) in (types.UnionType, Union) else (hint,)
    return tuple(sorted(found, key=lambda t: t is not types.NoneType))


def print_value(value: object) -> str:
    """The value of an option as pipelines spell it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, str):
        return value if re.fullmatch(_WORD, value) and value != "none" else json.dumps(value)
    return repr(value)


def _read_str(text: str) -> str:
    return json.loads(text) if text.startswith('"') else text


READERS: dict[Any, Any] = {
    bool: {"true": True, "false": False}.__getitem__,
    int: int,
    float: float,
    str: _read_str,
    types.NoneType: {"none": None}.__getitem__,
}
"""Functions that read the values of options, by type; ValueError or KeyError if a text is not of that type."""

NOUNS: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a word or string",
    types.NoneType: "none",
}


# The one table of passes: name -> class.


_PASSES: dict[str, type[Pass]] = {}

_LATE = {"fuse": "irc.fuser.fuse.Fuse"}
"""Passes of layers above, which enter them when they are imported."""

_UNFUSED = "inline,(freeze,canonicalize,constant-fold)*4,conv-bn-fold,cse,nest-concats,dce,constant-pool,growable"

PIPELINES = {"none": "", "unfused": _UNFUSED, "default": f"{_UNFUSED},fuse,dce"}
"""Pipelines with a name of their own, usable wherever a pass is: ``default,in-place``."""

P = TypeVar("P", bound="type[Pass]")


def register(pass_class: P) -> P:
    """Class decorator that registers a pass under its ``name``; IRC304 if it is not a pass, or taken.

    A class of the same module and name replaces the earlier one: the definition has been run again.
    """
    wrong = fault(pass_class)
    if wrong:
        raise Error("IRC304", f"this cannot be registered as a pass: {wrong}", getattr(pass_class, "__qualname__", ""))
    name, path = pass_class.name, _path(pass_class)
    if name in PIPELINES:
        raise Error("IRC304", f"a pass cannot be called {name!r}: a pipeline is", path)
    first = _LATE.get(name) or (_path(_PASSES[name]) if name in _PASSES else path)
    if first != path:
        raise Error("IRC304", f"two passes are called {name!r}: {first} and {path}", name)
    _PASSES[name] = pass_class
    return pass_class


def find(name: str) -> type[Pass] | None:
    """The class of the pass ``name``, loaded from its entry point if need be; None if there is none."""
    if name in _LATE:
        provided(name)
    found = _PASSES.get(name)
    if found is None:
        for entry in entry_points(PASSES):
            if entry.name == name:
                return _load(entry)
    return found


def names() -> list[str]:
    """The names of all passes, installed plug-ins included, sorted."""
    return sorted({*_PASSES, *_LATE, *(entry.name for entry in entry_points(PASSES))})


def create(name: str, options: dict[str, Any] | None = None) -> Pass:
    """The pass ``name`` with its fields set from ``options``; IRC301 if there is no such pass."""
    found = find(name)
    if found is None:
        raise Error("IRC301", unknown(name))
    return found(**(options or {}))


def unknown(name: str) -> str:
    """The error message for a pass that does not exist."""
    if name in PIPELINES:
        return f"{name!r} is a pipeline, not a pass; parse_pipeline gives its passes"
    known = names()
    hint = suggest(name, [*known, *PIPELINES])
    return f"no pass is called {name!r}{hint}; passes are: {', '.join(known)}; pipelines: {', '.join(PIPELINES)}"


def suggest(name: str, known: list[str]) -> str:
    """``" (did you mean 'x'?)"`` for the known name closest to ``name``, or ""."""
    hint = did_you_mean(name, known)
    return hint and f" ({hint})"


def _load(entry: EntryPoint) -> type[Pass]:
    loaded = load(entry, f"the plug-in pass {entry.name!r}")
    wrong = fault(loaded) or (f"its name is {loaded.name!r}" if loaded.name != entry.name else "")
    if wrong:
        raise Error("IRC304", f"the plug-in must be a pass class whose name is {entry.name!r}: {wrong}", entry.value)
    return register(cast("type[Pass]", loaded))


def _path(pass_class: type[Pass]) -> str:
    return f"{pass_class.__module__}.{pass_class.__qualname__}"


# -- pipelines as text ---------------------------------------------------------


@dataclass(frozen=True)
class Repeat:
    """Passes that run until a round changes nothing, at most ``rounds`` times."""

    items: Pipeline
    rounds: int

    def __str__(self) -> str:
        return f"({print_pipeline(self.items)})*{self.rounds}"


Pipeline = tuple["Pass | Repeat", ...]


def print_pipeline(pipeline: Pipeline) -> str:
    """The text of a pipeline; options at their default are left out."""
    return ",".join(str(item) if isinstance(item, Repeat) else print_pass(item) for item in pipeline)


def print_pass(p: Pass) -> str:
    """A pass as pipeline text: its name and the options that are not at their default."""
    options: list[str] = []
    for field in fields_of(type(p)).values():
        value = getattr(p, field.name)
        if value != field.default:
            options.append(f"{kebab(field.name)}={print_value(value)}")
    return f"{p.name}{{{','.join(options)}}}" if options else p.name


def parse_pipeline(text: str) -> Pipeline:
    """Read pipeline text.

    Raises:
        Error: IRC301 for an unknown pass, IRC302 for bad syntax, IRC303 for a
            bad option; the message shows the place with a caret.
    """
    return _Parser(text).parse()


_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[,={}()*]|[^\s,={}()"*]+|$)')

_MAX_NESTING = 16

_SHOWN = 100
"""How many characters of a pipeline an error shows around the place."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0  # where the current token begins
        self.end = 0  # and ends
        self.token = ""
        self.advance()

    # -- tokens ----------------------------------------------------------

    def advance(self) -> str:
        """Step to the next token; return the one left behind."""
        before = self.token
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            self.at = self.end
            raise self.error("IRC302", 'a string must end with "', length=len(self.text) - self.end)
        self.token = match[1]
        self.at, self.end = match.span(1)
        return before

    def expect(self, token: str) -> None:
        if self.token != token:
            raise self.error("IRC302", f"expected {token!r}{self.found()}")
        self.advance()

    def found(self) -> str:
        return f", found {self.token!r}" if self.token else " at the end"

    def error(self, code: str, message: str, at: int | None = None, length: int | None = None) -> Error:
        at = self.at if at is None else at
        length = max(1, len(self.token)) if length is None else length
        line = self.text.replace("\n", " ").replace("\t", " ")
        start = max(0, at - _SHOWN // 2)
        line, at, length = line[start : start + _SHOWN], at - start, min(length, _SHOWN // 2)
        return Error(code, message + pointed_at(line, at, length), "pipeline")

    # -- grammar ---------------------------------------------------------

    def parse(self) -> Pipeline:
        items = self.items(0) if self.token else ()
        if self.token:
            raise self.error("IRC302", f"expected ',' or the end{self.found()}")
        return items

    def items(self, depth: int) -> Pipeline:
        items = [*self.item(depth)]
        while self.token == ",":
            self.advance()
            items += self.item(depth)
        return tuple(items)

    def item(self, depth: int) -> Pipeline:
        if self.token in PIPELINES:
            return parse_pipeline(PIPELINES[self.advance()])
        return (self.repeat(depth) if self.token == "(" else self.one_pass(),)

    def repeat(self, depth: int) -> Repeat:
        if depth == _MAX_NESTING:
            raise self.error("IRC302", f"groups are nested more than {_MAX_NESTING} deep")
        self.expect("(")
        items = self.items(depth + 1)
        self.expect(")")
        self.expect("*")
        if not self.token.isdecimal() or not 1 <= int(self.token) <= 1000:
            raise self.error("IRC302", f"expected the highest number of rounds, 1 to 1000{self.found()}")
        return Repeat(items, int(self.advance()))

    def one_pass(self) -> Pass:
        if not re.match(r"\w", self.token):
            raise self.error("IRC302", f"expected the name of a pass{self.found()}")
        at, name = self.at, self.token
        found = find(name)
        if found is None:
            raise self.error("IRC301", unknown(name))
        self.advance()
        options: dict[str, Any] = {}
        if self.token == "{":
            self.advance()
            self.options(found, options)
        missing = [f.name for f in fields_of(found).values() if f.name not in options and not has_default(f)]
        if missing:
            raise self.error("IRC303", f"pass {name!r} needs option {kebab(missing[0])!r}", at, len(name))
        try:
            return found(**options)
        except ValueError as e:  # from __post_init__, which checks ranges
            raise self.error("IRC303", f"pass {name!r}: {e}", at, len(name)) from None

    def options(self, pass_class: type[Pass], options: dict[str, Any]) -> None:
        fields = fields_of(pass_class)
        hints = get_type_hints(pass_class)
        while self.token != "}":
            name = self.token
            if not re.match(r"\w", name):
                raise self.error("IRC302", f"expected an option or '}}'{self.found()}")
            field = fields.get(name)
            if field is None:
                known = f"its options are: {', '.join(fields)}" if fields else "it has none"
                hint = suggest(name, list(fields))
                raise self.error("IRC303", f"pass {pass_class.name!r} has no option {name!r}{hint}; {known}")
            if field.name in options:
                raise self.error("IRC303", f"option {name!r} is given twice")
            self.advance()
            if self.token == "=":
                self.advance()
                options[field.name] = self.value(name, hints[field.name])
            elif bool in alternatives(hints[field.name]):
                options[field.name] = True
            else:
                raise self.error("IRC303", f"option {name!r} needs a value: {name}=...")
            if self.token != "}":
                self.expect(",")
        self.advance()

    def value(self, name: str, hint: Any) -> Any:
        if self.token in ("", *",={}()*"):
            raise self.error("IRC302", f"expected the value of {name!r}{self.found()}")
        for python in alternatives(hint):
            read = READERS.get(python)
            if read is not None:
                try:
                    value = read(self.token)
                except (ValueError, KeyError):
                    continue
                self.advance()
                return value
        wanted = " or ".join(NOUNS.get(t, str(t)) for t in alternatives(hint))
        raise self.error("IRC303", f"option {name!r} must be {wanted}, not {self.token!r}")
