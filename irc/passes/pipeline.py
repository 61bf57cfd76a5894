"""Pipelines as text: ``inline,(constant-fold,cse,dce)*4,fuse{max-size=64}``.

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

import re
from dataclasses import dataclass
from typing import Any, get_type_hints

from irc.errors import Error
from irc.passes import registry
from irc.passes.base import Pass
from irc.passes.registry import NOUNS, READERS, alternatives, fields_of, has_default, kebab, print_value
from irc.support.formatting import pointed_at


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
        if self.token in registry.PIPELINES:
            return parse_pipeline(registry.PIPELINES[self.advance()])
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
        found = registry.find(name)
        if found is None:
            raise self.error("IRC301", registry.unknown(name))
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
                hint = registry.suggest(name, list(fields))
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
                except ValueError:
                    continue
                self.advance()
                return value
        wanted = " or ".join(NOUNS.get(t, str(t)) for t in alternatives(hint))
        raise self.error("IRC303", f"option {name!r} must be {wanted}, not {self.token!r}")
