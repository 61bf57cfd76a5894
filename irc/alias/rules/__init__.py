"""Alias rules: kind of node -> what it does to memory.

Looked for in this order: a rule registered by hand (``register``), a rule by
kind (control flow, calls, containers, objects), the operator's schema rows,
ONNX's own operators (all outputs fresh unless a row says otherwise), operators
of ONNX models that only pass through. A kind that none of these knows may do anything.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import cast

from irc import ops
from irc.alias.recorder import RULES, OfKind, Recorder, Rule, Steps
from irc.alias.rules import calls, control, objects, schema_rule, switches, tensors
from irc.alias.rules.entry import Entry, always
from irc.alias.rules.schema_program import compile_schema
from irc.alias.rules.schema_rule import is_unsettled, rule_of_schemas, with_effects
from irc.errors import Error
from irc.ir.block import Block
from irc.ir.node import Node
from irc.ops.opaque import is_opaque
from irc.ops.plugins import check_callable, check_kind, fault_of, load_for, name_of
from irc.ops.registry import on_change

_BY_KIND: dict[str, Entry] = {**control.RULES, **objects.RULES, **calls.RULES, **tensors.RULES}
_BY_HAND: dict[str, Entry] = {}
_KEEPING: dict[str, bool] = {}
"""Kinds with schema rows -> whether any row stores something or lets it escape."""


def register(kind: str, rule: Rule | None) -> None:
    """Let ``rule`` say what nodes of ``kind`` do; None: they write nothing and all their outputs are fresh.

    The last rule registered for a kind counts. IRC304 if ``rule`` is not a function or ``kind`` not the name of a kind.
    """
    check_kind("an alias rule", kind)
    if rule is not None:
        check_callable("an alias rule", kind, rule)
    _BY_HAND[kind] = Entry(None) if rule is None else Entry(_checked(kind, rule), writes=True, keeps=always)
    _forget(kind)


def _checked(kind: str, rule: Rule) -> Rule:
    """``rule``, wrapped to raise IRC305 where it fails or yields anything but blocks."""

    @wraps(rule)
    def checked(rec: Recorder, node: Node) -> Steps | None:
        with _blamed(kind, rule):
            steps = rule(rec, node)
        return None if steps is None else _blocks(kind, rule, steps)

    return checked


@contextmanager
def _blamed(kind: str, rule: Rule) -> Generator[None]:
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise Error("IRC305", f"its alias rule, {name_of(rule)}, fails: {fault_of(error, rule)}", kind) from error


def _blocks(kind: str, rule: Rule, steps: object) -> Steps:
    with _blamed(kind, rule):
        for step in cast("Iterable[object]", steps) if isinstance(steps, Iterable) else (steps,):
            if not isinstance(step, Block | Iterator):
                raise Error("IRC305", f"its alias rule must yield the blocks that run, not {step!r}", kind)
            yield step if isinstance(step, Block) else _blocks(kind, rule, cast("object", step))


def _forget(kind: str) -> None:
    RULES.pop(kind, None)
    switches.forget(kind)
    schema_rule.forget(kind)
    _KEEPING.pop(kind, None)


on_change.append(_forget)


def kinds() -> set[str]:
    """All kinds with a rule of their own."""
    return _BY_KIND.keys() | _BY_HAND.keys()


def own_rule(kind: str) -> Entry | None:
    """The rule that nodes of ``kind`` have regardless of schema rows; None if the schema rows count."""
    load_for(kind)
    return _BY_HAND.get(kind) or _BY_KIND.get(kind)


def has_rule(kind: str) -> bool:
    """Whether nodes of ``kind`` have a rule of their own, whatever their schema rows."""
    return kind in _BY_HAND or kind in _BY_KIND


def find_rule(kind: str) -> OfKind:
    """The rule for nodes of ``kind``; None, or `Functional`, if they write nothing and all their outputs are fresh."""
    own = own_rule(kind)
    if own is not None:
        rule = own.rule
    else:
        rows = ops.schemas(kind)
        if rows:
            rule = rule_of_schemas(rows)
        elif ops.functional_by_default(kind):
            rule = None
        elif is_opaque(kind):
            rule = calls.passing_through
        else:
            return calls.opaque
    return with_effects(rule, ops.effects(kind))


def may_write(kind: str) -> bool:
    """Whether nodes of ``kind`` themselves, not those in their blocks and subgraphs, may write what they are given."""
    own = own_rule(kind)
    if own is not None:
        return own.writes
    rows = ops.schemas(kind)
    return any(row.is_mutable for row in rows) if rows else not (ops.functional_by_default(kind) or is_opaque(kind))


def leaves_traces(node: Node) -> bool:
    """Whether ``node`` itself may have stored into, or let escape, something that outlives it."""
    kind = node.kind
    own = own_rule(kind)
    if own is not None:
        return own.keeps(node)
    if node.is_return:
        return False  # what it returns goes with it
    keeps = _KEEPING.get(kind)
    if keeps is None:
        rows = ops.schemas(kind)
        if not rows:
            return not ops.functional_by_default(kind)
        keeps = _KEEPING[kind] = any(p.stores or p.escapes for p in map(compile_schema, rows))
    return keeps or is_unsettled(node)
