"""The rule of operators with schemas: a program compiled from an overload's alias annotations.

A schema is compiled once: which parts of which arguments are
written, escape, are stored where, and what each result is made of. A part is
an argument and the steps into its containers: ``Tensor(a!)[]`` writes part
(0, (0,)), the elements of argument 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from irc.alias.facts import NOTHING, Element, Field
from irc.alias.memory_types import REMEMBERED, has_memory
from irc.alias.rules.by_kind import opaque
from irc.alias.rules.entry import Functional, OfKind, Rule, Steps
from irc.ir import Node, Value, types
from irc.ir.schema import WILDCARD, AliasInfo, Argument, Schema
from irc.ir.types import (
    DictType,
    FutureType,
    ListType,
    OptionalType,
    PrimType,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    UnionType,
)
from irc.ops import record, resolve, schemas
from irc.ops.record import Change

if TYPE_CHECKING:
    from irc.alias.recorder import Recorder

_Steps = tuple[int, ...]
_Sorts = tuple[type[Type] | str, ...]
"""Of each argument its sort: the class of its type or, of a type without parameters, the name."""


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


# -- choosing an overload ------------------------------------------------


def rule_of_schemas(rows: Sequence[Schema]) -> OfKind:
    """One rule for all overloads of an operator."""
    programs = {compile_schema(row) for row in rows}
    if len(programs) > 1:
        return _by_overload(rows)
    found = _rule_of_program(rows, programs.pop())
    if found is None and not any(row.is_vararg for row in rows):
        return Functional(_most(rows), _tensors_last(rows))
    return found


def _rule_of_program(rows: Sequence[Schema], program: Program) -> Rule | None:
    """The rule of overloads that all do the same; None if all outputs are fresh and nothing is written."""
    if all(r == Result() for r in program.results) and not (program.writes or program.escapes or program.stores):
        return None
    most = _most(rows)  # a node with more arguments uses an overload that has no row
    sources = program.results[0].sources if len(program.results) == 1 else ()
    source = sources[0] if len(sources) == 1 and not sources[0].steps else None
    does_no_more = not (program.escapes or program.stores or any(row.is_varret for row in rows))
    writes_no_more = not program.writes or program.writes == sources
    if source is not None and source.argument != program.variadic and does_no_more and writes_no_more:
        change = record(rows[0].name).changes if program.writes else None
        return _of_argument(source.argument, most, change)
    return lambda rec, node: run(rec, node, program) if len(node.inputs) <= most else opaque(rec, node)


def _most(rows: Sequence[Schema]) -> int:
    """The largest number of arguments that any of ``rows`` takes."""
    return sys.maxsize if any(row.is_vararg for row in rows) else max(len(row.arguments) for row in rows)


def _tensors_last(rows: Sequence[Schema]) -> frozenset[int]:
    """The numbers of arguments that a node may have if its last argument is a tensor."""
    return frozenset(i for row in rows for i, a in enumerate(row.arguments, 1) if _admits(a, TensorType))


def _by_overload(rows: Sequence[Schema]) -> Rule:
    """The rule of an operator whose overloads do different things.

    Mostly the sorts of the arguments (tensor, list, number...) tell them
    apart; only where they do not, the overload is looked for by types.
    """
    rule_of = cache(partial(_rule_for, rows))
    return lambda rec, node: rule_of(_sorts(node))(rec, node)


def _sorts(node: Node) -> _Sorts:
    return tuple([t.name if isinstance(t := v.type, PrimType) else t.__class__ for v in node.inputs])


def _rule_for(rows: Sequence[Schema], sorts: _Sorts) -> Rule:
    """The rule for arguments of these sorts."""
    fitting = _fitting(rows, sorts)
    programs = {compile_schema(row) for row in fitting}
    return (_rule_of_program(fitting, programs.pop()) or _fresh) if len(programs) == 1 else _by_types


def _fitting(rows: Sequence[Schema], sorts: _Sorts) -> list[Schema]:
    return [row for row in rows if _takes(row, sorts)]


def program_of(node: Node) -> Program | None:
    """What ``node`` does, by the row that its arguments fit; None if that is not known."""
    found = _program_for(node.kind, _sorts(node))
    schema = resolve(node) if found is None else None
    return found if schema is None else compile_schema(schema)


@lru_cache(maxsize=REMEMBERED)
def _program_for(kind: str, sorts: _Sorts) -> Program | None:
    """What the rows for arguments of these sorts do, if all do the same."""
    programs = set(map(compile_schema, _fitting(schemas(kind), sorts)))
    return programs.pop() if len(programs) == 1 else None


def is_unsettled(node: Node) -> bool:
    """Whether the arguments of ``node`` fit no row, or several rows that say different things.

    Such a node is opaque.
    """
    rule = _rule_of(node.kind)
    if isinstance(rule, Functional):
        return not rule.fits(node)
    return _is_open(node.kind, _sorts(node)) and resolve(node) is None


@lru_cache(maxsize=REMEMBERED)
def _rule_of(kind: str) -> OfKind:
    return rule_of_schemas(schemas(kind))


@lru_cache(maxsize=REMEMBERED)
def _is_open(kind: str, sorts: _Sorts) -> bool:
    """Whether arguments of these sorts leave open which row is meant."""
    rows = schemas(kind)
    several = len(set(map(compile_schema, rows))) > 1
    return len(sorts) > _most(rows) or (several and _rule_for(rows, sorts) is _by_types)


def forget() -> None:
    """Rows have changed."""
    _program_for.cache_clear()
    _rule_of.cache_clear()
    _is_open.cache_clear()


def _by_types(rec: Recorder, node: Node) -> Steps | None:
    schema = resolve(node)
    if schema is None:
        return opaque(rec, node)
    run(rec, node, compile_schema(schema))
    return None


def _fresh(rec: Recorder, node: Node) -> None:
    for output in node.outputs:
        rec.fresh(output)


def _takes(schema: Schema, sorts: _Sorts) -> bool:
    """Whether arguments of these sorts may be meant for ``schema``."""
    formals = [schema.argument(i) for i in range(len(sorts))]
    if any(not a.has_default for a in schema.arguments[len(sorts) :]) and not schema.is_vararg:
        return False
    return all(formal is not None and _admits(formal, sort) for formal, sort in zip(formals, sorts))


def _admits(formal: Argument, sort: type[Type] | str) -> bool:
    type = formal.type
    is_plain = isinstance(sort, str)
    if isinstance(type, OptionalType):
        if is_plain:  # None, perhaps
            return True
        type = type.elem
    if sort in ("Any", OptionalType, UnionType) or isinstance(type, TypeVar | UnionType):
        return True
    if isinstance(type, PrimType):
        return is_plain or type.name.startswith("Any")  # AnyClassType takes objects, say
    return formal.size is not None if is_plain else isinstance(type, sort)


def _of_argument(argument: int, most: int, change: Change | None) -> Rule:
    """A result that may share memory with one argument: by far the most frequent rule.

    Args:
        argument: its position.
        most: a node with more arguments is opaque.
        change: what changes of the argument; None: it is not written.
    """

    def rule(rec: Recorder, node: Node) -> Steps | None:
        inputs, outputs = node.inputs, node.outputs
        if len(inputs) > most or (len(outputs) != 1 and change is None):
            return opaque(rec, node)
        facts = rec.facts
        element = NOTHING
        if argument < len(inputs):
            known = facts.elements.get(value := inputs[argument])
            element = rec.define(value) if known is None else known
        if change is not None:
            rec.write(node, element, change)
        for output in outputs:
            # As `bind`, without a call: views are what graphs consist of, and it is a tenth of building.
            if element == NOTHING:
                rec.fresh(output)
            else:
                facts.elements[output] = facts.same(element)
        return None

    return rule
