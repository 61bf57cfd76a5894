"""The rule for operators with a schema: it runs the `schema_program` of the overload that a node uses."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from irc.alias import facts as f
from irc.alias.facts import NOTHING, Element
from irc.alias.recorder import Functional, OfKind, Recorder, Rule, Steps, rule_for
from irc.alias.rules.calls import opaque
from irc.alias.rules.schema_program import Program, Result, bind, compile_schema, run
from irc.ir.node import Node
from irc.ir.schema import Argument, Schema
from irc.ir.types import (
    OptionalType,
    PrimType,
    TensorType,
    Type,
    TypeVar,
    UnionType,
)
from irc.ir.value import Value
from irc.ops import Effects, effects_of, resolve, schemas

_Sorts = tuple[type[Type] | str, ...]
"""Of each argument its sort: the class of its type or, of a type without parameters, the name."""


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
    simple = not (program.escapes or program.stores or any(row.is_varret for row in rows))
    sources = program.results[0].sources if len(program.results) == 1 else ()
    if simple and len(sources) == 1 and not sources[0].steps and sources[0].argument != program.variadic:
        if not program.writes:
            return _view(sources[0].argument, _most(rows))
        if program.writes == sources:
            return _unless_more(_most(rows), _in_place(sources[0].argument))
    return _unless_more(_most(rows), lambda rec, node: run(rec, node, program))


def _unless_more(most: int, rule: Rule) -> Rule:
    """``rule`` for nodes of at most ``most`` arguments; a node with more uses an overload that has no row."""

    def bounded(rec: Recorder, node: Node) -> Steps | None:
        return rule(rec, node) if len(node.inputs) <= most else opaque(rec, node)

    return bounded


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
    by_class: dict[tuple[type[Type], ...], Rule] = {}
    by_sort: dict[_Sorts, Rule] = {}

    def rule(rec: Recorder, node: Node) -> Steps | None:
        classes = tuple([v.type.__class__ for v in node.inputs])
        found = by_class.get(classes)
        if found is None:
            found = _rule_for(rows, tuple("Any" if c is PrimType else c for c in classes))
            if found is _by_types and PrimType in classes:
                found = look_closer
            by_class[classes] = found
        return found(rec, node)

    def look_closer(rec: Recorder, node: Node) -> Steps | None:
        sorts = _sorts(node)
        found = by_sort.get(sorts)
        if found is None:
            found = by_sort[sorts] = _rule_for(rows, sorts)
        return found(rec, node)

    return rule


def _sorts(node: Node) -> _Sorts:
    return tuple([t.name if isinstance(t := v.type, PrimType) else t.__class__ for v in node.inputs])


def _rule_for(rows: Sequence[Schema], sorts: _Sorts) -> Rule:
    """The rule for arguments of these sorts."""
    fitting = [row for row in rows if _takes(row, sorts)]
    programs = {compile_schema(row) for row in fitting}
    return (_rule_of_program(fitting, programs.pop()) or _fresh) if len(programs) == 1 else _by_types


_OPEN: dict[str, tuple[Functional | None, dict[_Sorts, bool]]] = {}
"""Kind -> its rule, if that tells; else sorts of the arguments -> whether they leave open which row is meant."""


def forget(kind: str) -> None:
    """The rows of ``kind`` have changed."""
    _OPEN.pop(kind, None)


def is_unsettled(node: Node) -> bool:
    """Whether the arguments of ``node`` fit no row, or several rows that say different things.

    Such a node is opaque.
    """
    found = _OPEN.get(node.kind)
    if found is None:
        rule = rule_of_schemas(schemas(node.kind))
        found = _OPEN[node.kind] = rule if isinstance(rule, Functional) else None, {}
    functional, known = found
    if functional is not None:
        return not functional.fits(node)
    sorts = _sorts(node)
    is_open = known.get(sorts)
    if is_open is None:
        rows = schemas(node.kind)
        several = len(set(map(compile_schema, rows))) > 1
        is_open = len(sorts) > _most(rows) or (several and _rule_for(rows, sorts) is _by_types)
        known[sorts] = is_open
    return is_open and resolve(node) is None


def chooses_otherwise(node: Node, value: Value, before: Type) -> bool:
    """Whether other rows may be meant by ``node``, which uses ``value``, than when that was of type ``before``."""
    if not schemas(node.kind):
        return False
    now, after = _chosen(node), value.type
    value.type = before
    try:
        return _chosen(node) != now
    finally:
        value.type = after


def _chosen(node: Node) -> tuple[bool, Program | None]:
    row = resolve(node)
    return is_unsettled(node), None if row is None else compile_schema(row)


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


def _view(argument: int, most: int) -> Rule:
    """A single result that may share memory with one argument: by far the most frequent rule.

    A node with more than ``most`` arguments is opaque.
    """

    def rule(rec: Recorder, node: Node) -> Steps | None:
        outputs = node.outputs
        if len(node.inputs) > most or len(outputs) != 1:
            return opaque(rec, node)
        output = outputs[0]
        # As `bind` of `_given`, without two calls: views are what graphs consist of, and it is a tenth of building.
        element = rec.element(node.inputs[argument]) if argument < len(node.inputs) else NOTHING
        if element == NOTHING:
            rec.fresh(output)
        else:
            rec.bind(output, element)
        return None

    return rule


def _in_place(argument: int) -> Rule:
    """Each result is one of the arguments, which is written."""

    def rule(rec: Recorder, node: Node) -> None:
        element = _given(rec, node, argument)
        rec.write(node, element)
        for output in node.outputs:
            bind(rec, output, element)

    return rule


def _given(rec: Recorder, node: Node, argument: int) -> Element:
    """What an argument denotes: nothing, if it is optional and absent or None."""
    return rec.element(node.inputs[argument]) if argument < len(node.inputs) else NOTHING


def with_effects(rule: OfKind, effects: Effects) -> OfKind:
    """``rule`` for an operator that also uses the random state or acts on the world."""
    if not effects:
        return rule

    def both(rec: Recorder, node: Node) -> Steps | None:
        actual = effects_of(node)
        if Effects.RANDOM in actual:
            rec.write(node, f.RANDOM)
        if Effects.SIDE_EFFECT in actual:
            rec.write(node, f.WORLD)
        own = rule_for(node, rule)
        return _fresh(rec, node) if own is None else own(rec, node)

    return both
