"""Alias rules: kind of node -> what it does to memory.

Looked for in this order: a rule registered by hand (``register``), a rule by
kind (control flow, calls, containers, objects), the operator's schema rows,
ONNX's own operators (all outputs fresh unless a row says otherwise), operators
of ONNX models that only pass through. A kind that none of these knows may do anything.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, NamedTuple, cast

from irc import ops
from irc.alias import facts as f
from irc.alias.rules import by_kind, schemas
from irc.alias.rules.by_kind import opaque, passing_through
from irc.alias.rules.entry import Entry, Functional, OfKind, Rule, Steps, always
from irc.alias.rules.schemas import Program, compile_schema, is_unsettled, rule_of_schemas
from irc.errors import Error
from irc.ir import CALL, CONSTANT, Block, Graph, Module, Node, Tensor, Value
from irc.ir.region_flow import callee, function_name, inner_graph, with_subgraphs
from irc.ir.types import REMEMBERED, Type
from irc.ops.opaque import is_opaque
from irc.ops.plugins import check_callable, check_kind, fault_of, load_for, name_of
from irc.ops.regions import CUTTING
from irc.ops.registry import on_change, record

if TYPE_CHECKING:
    from irc.alias.recorder import Recorder

_BY_KIND = by_kind.RULES
_BY_HAND: dict[str, Entry] = {}


class _Rules(dict[str, "OfKind"]):
    """Kind of node -> its rule, found when first needed."""

    def __missing__(self, kind: str) -> OfKind:
        rule = self[kind] = find_rule(kind)
        return rule


RULES = _Rules()


class _Traits(NamedTuple):
    """What the rows of a kind say besides its rule.

    Attributes:
        keeps: whether any row stores something or lets it escape; True if nothing is known of the kind.
        switches: the positions of arguments that decide, as constants, what a node does: in any overload.
    """

    keeps: bool
    switches: frozenset[int]


# -- registering ---------------------------------------------------------


def register(kind: str, rule: Rule | None) -> None:
    """Register ``rule`` for nodes of ``kind``; None: they write nothing, and all their outputs are fresh.

    The last rule registered for a kind counts. IRC304 if ``rule`` is not a function or ``kind`` not the name of a kind.
    """
    check_kind("an alias rule", kind)
    if rule is not None:
        check_callable("an alias rule", kind, rule)
    _BY_HAND[kind] = Entry(None) if rule is None else Entry(_checked(kind, rule), keeps=always)
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
    _traits.cache_clear()
    schemas.forget()


on_change.append(_forget)


# -- finding ---------------------------------------------------------------


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
    """The rule for nodes of ``kind``; None or `Functional` if they write nothing and return fresh memory."""
    own = own_rule(kind)
    if own is not None:
        rule = own.rule
    else:
        rows = ops.schemas(kind)
        if rows:
            rule = rule_of_schemas(rows)
            if ops.record(kind).region in CUTTING:
                rule = _taking_parts(rule)
        elif ops.functional_by_default(kind):
            rule = None
        elif is_opaque(kind):
            rule = passing_through
        else:
            return opaque
    return _with_effects(rule, ops.effects(kind))


def _taking_parts(rule: OfKind) -> OfKind:
    """``rule`` for an operator that takes parts of tensors: only then is it asked which parts overlap."""

    def noted(rec: Recorder, node: Node) -> Steps | None:
        rec.facts.has_parts = True
        return _apply(rec, node, rule)

    return noted


def _apply(rec: Recorder, node: Node, rule: OfKind) -> Steps | None:
    """Record what ``rule`` says of ``node``, also that all is fresh."""
    own = rule_for(node, rule)
    if own is not None:
        return own(rec, node)
    for output in node.outputs:
        rec.fresh(output)
    return None


def _with_effects(rule: OfKind, effects: ops.Effects) -> OfKind:
    """``rule`` for an operator that also uses the random state or acts on the world."""
    if not effects:
        return rule

    def both(rec: Recorder, node: Node) -> Steps | None:
        actual = ops.effects_of(node)
        if ops.Effects.RANDOM in actual:
            rec.write(node, f.RANDOM)
        if ops.Effects.SIDE_EFFECT in actual:
            rec.write(node, f.WORLD)
        return _apply(rec, node, rule)

    return both


def rule_of(node: Node) -> Rule | None:
    """The rule for ``node``; None if it writes nothing and all its outputs are fresh memory."""
    return rule_for(node, RULES[node.kind])


def rule_for(node: Node, rule: OfKind) -> Rule | None:
    """The rule for ``node``, given its kind's: `opaque` if that does not fit; None if all is fresh."""
    if rule is None:
        return opaque if node.blocks else None
    if isinstance(rule, Functional):  # without blocks: a node that has some means something else
        return None if not node.blocks and rule.fits(node) else opaque
    return rule


def is_functional(node: Node) -> bool:
    """Whether ``node`` writes nothing and all its outputs are fresh memory."""
    return rule_for(node, RULES[node.kind]) is None


# -- what is known of kinds besides ----------------------------------------


@lru_cache(maxsize=REMEMBERED)
def _traits(kind: str) -> _Traits:
    own, rows = own_rule(kind), ops.schemas(kind)
    keeps = any(p.stores or p.escapes for p in map(compile_schema, rows))
    name = record(kind).random_switch
    switches = {i for row in rows for i, a in enumerate(row.arguments) if a.name == name}
    if own is not None:
        switches.update(i for i in (own.switch, own.choice) if i is not None)
    return _Traits(keeps if rows else not ops.functional_by_default(kind), frozenset(switches))


def leaves_traces(node: Node) -> bool:
    """Whether ``node`` itself may have stored into, or let escape, something that outlives it."""
    own = own_rule(node.kind)
    if own is not None:
        graph = inner_graph(node)
        inside = own.runs_graph and (graph is None or any(map(leaves_traces, graph.walk())))
        return inside or own.keeps(node)
    if node.is_return:
        return False  # what it returns goes with it
    return _traits(node.kind).keeps or (bool(ops.schemas(node.kind)) and is_unsettled(node))


def is_resettled(node: Node, old: Value, new: Value) -> bool:
    """Whether ``node``, which uses ``new``, may behave differently from when it used ``old`` there."""
    switches = _traits(node.kind).switches  # of most nodes none: they may have very many inputs
    if not switches or not any(i < len(node.inputs) and node.inputs[i] is new for i in switches):
        return False
    own = own_rule(node.kind)
    return (own is not None and own.choice is not None) or not _are_equally_true(_setting(old), _setting(new))


def say_the_same(a: Value, b: Value) -> bool:
    """Whether ``a`` and ``b`` certainly mean the same to every switch; mostly as neither is a constant."""
    x, y = _setting(a), _setting(b)
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return x is y or x.same_contents(y)
    if isinstance(x, int | float | _Function):
        return type(x) is type(y) and x == y  # the type may select the overload
    return x is y or _are_equally_true(x, y)


class _Function(NamedTuple):
    """The setting of a constant that names a function."""

    name: str


_NO_CONSTANT = object()
_PLAIN: tuple[type[object], ...] = (bool, int, float, str, list, tuple)


def _setting(value: Value) -> object:
    """The constant that ``value`` is; none for a tensor of several elements, which decides nothing."""
    source = value.made_by(CONSTANT)
    if source is None:
        return _NO_CONSTANT
    name = function_name(source)
    if name is not None:
        return _Function(name)
    constant = source.attributes.get("value")
    return _NO_CONSTANT if isinstance(constant, Tensor) and constant.numel != 1 else constant


def _are_equally_true(x: object, y: object) -> bool:
    """Whether ``x`` and ``y`` have one type, which may select the overload, and one truth value."""
    return type(x) is type(y) and isinstance(x, _PLAIN) and bool(x) == bool(y)


def chooses_otherwise(node: Node, value: Value, before: Type) -> bool:
    """Whether ``node`` may select other rows now than when ``value``, which it uses, had type ``before``."""
    if not ops.schemas(node.kind):
        return False
    now, after = _chosen(node), value.type
    value.type = before
    try:
        return _chosen(node) != now
    finally:
        value.type = after


def _chosen(node: Node) -> tuple[bool, Program | None]:
    row = ops.resolve(node)
    return is_unsettled(node), None if row is None else compile_schema(row)


def unknown_operators(graph: Graph) -> dict[str, list[Node]]:
    """The opaque nodes of ``graph``, including those in blocks and fusion groups, by kind.

    A node is opaque if its kind has neither a rule nor a schema row, if its arguments leave open which of several rows
    that say different things is meant, or if it calls a function that the module does not have.
    """
    found: dict[str, list[Node]] = {}
    for node in with_subgraphs(graph):
        if not _is_known(node, graph.module):
            found.setdefault(node.kind, []).append(node)
    return found


def _is_known(node: Node, module: Module | None) -> bool:
    if node.kind == CALL:
        return module is not None and callee(node) in module.graphs
    if has_rule(node.kind):
        return True
    rows = ops.schemas(node.kind)
    if not rows:
        return ops.functional_by_default(node.kind) or is_opaque(node.kind)
    return not is_unsettled(node)
