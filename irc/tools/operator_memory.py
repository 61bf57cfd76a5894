"""An operator's effects on memory in words, from its alias rule or schema programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from irc import ops
from irc.alias.memory_types import has_memory
from irc.alias.rules import own_rule
from irc.alias.rules.by_kind import opaque, passing_through
from irc.alias.rules.entry import Rule
from irc.alias.rules.schemas import Part, Program, Result, compile_schema
from irc.ir.schema import Schema
from irc.ops import Effects
from irc.ops.opaque import is_opaque
from irc.ops.registry import record
from irc.support.formatting import listed

FRESH = ("writes nothing", "results are fresh memory")


class Said(NamedTuple):
    """Statements about some overloads of an operator; about all of them if ``overloads`` is empty."""

    overloads: tuple[str, ...]
    statements: tuple[str, ...]


class OnMemory(NamedTuple):
    """What an operator does to memory.

    Attributes:
        said: one item for all overloads that do the same.
        rule: the operator's own rule, or that of unknown code; None if schemas or the ONNX standard say it all.
        is_known: whether anything is known of the operator; an unknown one may do whatever it can.
    """

    said: tuple[Said, ...]
    rule: Rule | None = None
    is_known: bool = True


def on_memory(kind: str) -> OnMemory:
    """What nodes of ``kind`` do."""
    own, rows = own_rule(kind), ops.schemas(kind)
    is_known = own is not None or bool(rows) or ops.functional_by_default(kind)
    unseen = passing_through if is_opaque(kind) else opaque
    rule = own.rule if own is not None else None if is_known else unseen
    if rule is not None:
        said = {tuple(_summary(rule)): list[str]()}
    elif own is not None or not rows:
        said = {FRESH: list[str]()}
    else:
        said = _by_overload(rows)
    besides = tuple(_besides(kind))
    alike = len(said) == 1
    found = tuple(Said(() if alike else tuple(names), (*does, *besides)) for does, names in said.items())
    return OnMemory(found, rule, is_known)


def _summary(rule: Rule) -> Iterator[str]:
    """The docstring of ``rule``, a sentence for each paragraph."""
    for paragraph in (rule.__doc__ or "what it does is not said").split("\n\n"):
        yield " ".join(paragraph.split()).removesuffix(".").replace("``", "")


def _besides(kind: str) -> Iterator[str]:
    effects = ops.effects(kind)
    if Effects.RANDOM in effects:
        switch = record(kind).random_switch
        yield "draws random numbers" + (f", unless {switch} is false" if switch else "")
    if Effects.SIDE_EFFECT in effects:
        yield "acts on the world: it is never removed, and nothing is moved past it"


def _by_overload(rows: tuple[Schema, ...]) -> dict[tuple[str, ...], list[str]]:
    said: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        name = f"{row.name}.{row.overload}" if row.overload else row.name
        said.setdefault(tuple(_statements(row, compile_schema(row))), []).append(name)
    return said


def _statements(row: Schema, program: Program) -> Iterator[str]:
    def name(part: Part) -> str:
        argument = row.arguments[part.argument].name or f"argument {part.argument}"
        return f"what {argument} holds" if part.steps else argument

    def names(parts: Iterable[Part], unknown: bool = False) -> str:
        return listed([*dict.fromkeys(map(name, parts)), *(["unknown memory"] if unknown else [])])

    yield f"writes {names(program.writes)}" if program.writes else "writes nothing"
    if program.escapes:
        yield f"lets unknown code keep {names(program.escapes)}"
    for container, part in program.stores:
        if has_memory(row.arguments[part.argument].type):
            yield f"stores {name(part)} in {name(Part(container.argument, container.steps[:-1]))}"
    for i, (formal, result) in enumerate(zip(row.returns, program.results, strict=True)):
        if not has_memory(formal.type):
            continue
        which = formal.name or ("the result" if len(row.returns) == 1 else f"result {i}")
        sources, held = names(result.sources, result.unknown), list(_held(result))
        inside = names((part for each in held for part in each.sources), any(each.unknown for each in held))
        alias = formal.alias
        if alias is not None and (alias.write or alias.must == "=="):
            yield f"{which} is {sources}"
        elif alias is not None and alias.must:
            yield f"{which} shares {'a part' if alias.must == '<' else 'all'} of {sources}"
        elif sources:
            yield f"{which} may share with {sources}"
        else:
            yield f"{which} is fresh memory{inside and f', and may hold {inside}'}"


def _held(result: Result) -> Iterator[Result]:
    """What a fresh container, and those in it, hold."""
    for inner in result.held:
        yield inner
        yield from _held(inner)
