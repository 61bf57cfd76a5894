"""What an operator with a schema does to memory, as a program compiled from its alias annotations.

A schema is compiled once: which parts of which arguments are
written, escape, are stored where, and what each result is made of. A part is
an argument and the steps into its containers: ``Tensor(a!)[]`` writes part
(0, (0,)), the elements of argument 0.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from irc.alias.facts import NOTHING, Element, Field
from irc.alias.memory_types import has_memory
from irc.alias.recorder import Recorder
from irc.ir import types
from irc.ir.node import Node
from irc.ir.schema import WILDCARD, AliasInfo, Schema
from irc.ir.types import DictType, FutureType, ListType, OptionalType, TupleType, Type
from irc.ir.value import Value

_Steps = tuple[int, ...]


class Part(NamedTuple):
    """A part of an argument: ``steps`` are positions among the parts of its type, from the outside in."""

    argument: int
    steps: _Steps


class Result(NamedTuple):
    """What a result, or a part of one, is: the union of ``sources``, unknown memory, or else fresh.

    ``held`` describes what a fresh container holds; if empty, the container holds fresh things.
    """

    sources: tuple[Part, ...] = ()
    unknown: bool = False
    held: tuple[Result, ...] = ()


class Program(NamedTuple):
    """What an operator does, in terms of its arguments and results.

    The last argument and the last result of a variadic operator stand for all further ones.
    """

    writes: tuple[Part, ...]
    escapes: tuple[Part, ...]
    stores: tuple[tuple[Part, Part], ...]
    """(container, what is stored into it)"""
    results: tuple[Result, ...]
    variadic: int
    """Number of the argument that repeats, or -1."""


@cache
def compile_schema(schema: Schema) -> Program:
    """The program of a schema."""
    writes: list[Part] = []
    escapes: list[Part] = []
    members: dict[str, list[Part]] = {}
    stored: list[tuple[str, Part]] = []
    for i, argument in enumerate(schema.arguments):
        for part, info in _annotated(Part(i, ()), argument.alias):
            for name in info.before:
                members.setdefault(name, []).append(part)
            if info.write:
                writes.append(part)
            if info.escapes:
                escapes.append(part)
            stored += [(name, part) for name in info.stored_into]
    stores: list[tuple[Part, Part]] = []
    for name, part in stored:
        for member in list(members.get(name, ())):
            if member.steps:
                stores.append((member, part))
        members.setdefault(name, []).append(part)
    results = tuple(_result(r.alias, members) for r in schema.returns)
    variadic = len(schema.arguments) - 1 if schema.is_vararg else -1
    return Program(tuple(writes), tuple(escapes), tuple(stores), results, variadic)


def _annotated(part: Part, info: AliasInfo | None) -> list[tuple[Part, AliasInfo]]:
    if info is None:
        return []
    found = [(part, info)]
    for i, inner in enumerate(info.contained):
        found += _annotated(Part(part.argument, (*part.steps, i)), inner)
    return found


def _result(info: AliasInfo | None, members: dict[str, list[Part]]) -> Result:
    if info is None:
        return Result()
    if info.before:
        sources = [p for name in info.before for p in members.get(name, ())]
        return Result(tuple(dict.fromkeys(sources)), WILDCARD in info.before)
    return Result(held=tuple(_result(inner, members) for inner in info.contained))


# -- running a program ---------------------------------------------------


def run(rec: Recorder, node: Node, program: Program) -> None:
    """Record what ``program`` says of ``node``."""
    for part in program.writes:
        for element in _elements(rec, node, program, part):
            rec.write(node, element)
    for part in program.escapes:
        for element in _elements(rec, node, program, part):
            rec.escape(element)
    results = program.results
    for i, output in enumerate(node.outputs):
        # Results come before stores: an element that is popped and pushed is read before it is stored.
        result = results[min(i, len(results) - 1)] if results else Result()
        made = _make(rec, node, program, result, output, output.type, ())
        if result.sources or result.unknown:
            bind(rec, output, made)
    for container, part in program.stores:
        for value in _arguments(node, program, container):
            type, field = _step(_inside(value.type, container.steps[:-1]), container.steps[-1])
            base = _follow(rec, value, container.steps[:-1])
            for element in _elements(rec, node, program, part):
                rec.store(base, element, type, field)


def _arguments(node: Node, program: Program, part: Part) -> tuple[Value, ...]:
    """The inputs of ``node`` that ``part`` refers to: several if its argument is the variadic one."""
    if part.argument == program.variadic:
        return node.inputs[part.argument :]
    return node.inputs[part.argument : part.argument + 1]


def _elements(rec: Recorder, node: Node, program: Program, part: Part) -> list[Element]:
    return [_follow(rec, value, part.steps) for value in _arguments(node, program, part)]


def _follow(rec: Recorder, value: Value, steps: _Steps) -> Element:
    element, type = rec.element(value), value.type
    for step in steps:
        type, field = _step(type, step)
        element = rec.load(element, type, field)
    return element


def _make(
    rec: Recorder, node: Node, program: Program, result: Result, value: Value, type: Type, path: tuple[str, ...]
) -> Element:
    """The element of a result, or of what is at ``path`` inside it."""
    if not has_memory(type):
        return NOTHING
    if result.sources or result.unknown:
        found = [e for part in result.sources for e in _elements(rec, node, program, part)]
        made = rec.join([*found, rec.unknown(type)] if result.unknown else found)
        if made != NOTHING or not path:
            return made
    if not result.held:
        return rec.memory(value, type, path) if path else rec.fresh(value)
    location = rec.container(value, type, path) if path else rec.container(value)
    for i, held in enumerate(result.held):
        inner, field = _step(type, i)
        rec.store(location, _make(rec, node, program, held, value, inner, (*path, _name(type, i))), inner, field)
    return location


def _step(type: Type, position: int) -> tuple[Type, Field]:
    """The type of part ``position`` of a container type, and the field that holds it."""
    while isinstance(type, OptionalType):
        type = type.elem
    if isinstance(type, ListType | FutureType):
        return type.elem, None
    if isinstance(type, DictType):
        return (type.value if position else type.key), None
    if isinstance(type, TupleType) and position < len(type.elems):
        return type.elems[position], position
    return types.ANY, None


def _inside(type: Type, steps: _Steps) -> Type:
    for step in steps:
        type, _ = _step(type, step)
    return type


def _name(type: Type, position: int) -> str:
    return f"[{position}]" if isinstance(type, TupleType) else "[*]"


def bind(rec: Recorder, output: Value, element: Element) -> None:
    """``output`` denotes what an argument does or, if that denotes nothing, memory of its own."""
    if element == NOTHING:
        rec.fresh(output)
    else:
        rec.bind(output, element)
