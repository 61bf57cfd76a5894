"""Lookup of records by kind. A namespace's families are read on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from threading import RLock
from typing import Any, TypeVar

from irc.errors import Error
from irc.ir.kinds import DOMAINS
from irc.ir.schema import WILDCARD, AliasInfo, Argument, Schema, parse_schema
from irc.ir.types import TENSOR, OptionalType
from irc.ops.plugins import check_callable, check_kind, load_for, origin
from irc.ops.record import Effects, Operator, facts_of
from irc.ops.scalar import ScalarSemantics

_PACKAGES = {**dict.fromkeys(DOMAINS, "onnx"), "aten": "aten", "prim": "prim", "irc": "irc", "com.microsoft": "irc"}
"""Namespace -> the module of `irc.ops` whose ``records()`` has irc's own operators of it."""

_own: dict[str, Operator] = {}
_records: dict[str, Operator] = {}
"""Those of `_own`, with what other packages have added."""

_MOST_KINDS = 4096
"""Models may have any number of kinds that irc does not know."""

_read: set[str] = set()
_lock = RLock()

on_change: list[Callable[[str], object]] = []
"""Functions called with a kind whose record has changed, for caches of what follows from records."""

_Fact = TypeVar("_Fact")


def of_kind(function: Callable[[str], _Fact]) -> Callable[[str], _Fact]:
    """``function`` of a kind, with its answers kept until a record changes: they follow from records.

    Asking again takes no call of Python code: passes ask of every node.
    """
    kept = lru_cache(_MOST_KINDS)(function)
    on_change.append(lambda kind: kept.cache_clear())
    return kept


@of_kind
def record(kind: str) -> Operator:
    """The record of ``kind``; one that says nothing if irc does not know the operator."""
    _read_namespace(kind.rpartition("::")[0])
    load_for(kind)
    return _records.get(kind) or _derive(kind)


def _derive(kind: str) -> Operator:
    """The record of a kind without one: derived from ONNX's functional operator, or an empty one.

    ``onnx::X_`` computes what ``onnx::X`` does, and writes it into its first input.
    """
    if not kind.endswith("_") or not functional_by_default(kind):
        return Operator(kind)
    row = "(Tensor(a!) self, t others, ...) -> Tensor(a!)"
    base = record(kind.removesuffix("_"))
    if not base.pointwise:
        return Operator(kind, row, shape=base.shape)
    return Operator(kind, row, shape=base.shape, value_operands=base.value_operands, kernel=base.kernel)


def records(*namespaces: str) -> Iterator[Operator]:
    """All records of these namespaces; by default, of irc's own and of loaded packages."""
    for namespace in namespaces or _PACKAGES:
        _read_namespace(namespace)
    wanted = tuple(f"{namespace}::" for namespace in namespaces) or ""
    return iter([found for kind, found in list(_records.items()) if kind.startswith(wanted)])


def semantics(kind: str, version: int | None = None) -> ScalarSemantics | None:
    """The scalar semantics of ``kind`` at ``version`` (None: the newest); None if there are none."""
    return record(kind).semantics(version)


def functional_by_default(kind: str) -> bool:
    """Whether ``kind`` is ONNX's own: it writes nothing, returns fresh memory unless a row says more."""
    return kind.rpartition("::")[0] in DOMAINS


def _read_namespace(namespace: str) -> None:
    package = _PACKAGES.get(namespace)
    if package is None or package in _read:
        return
    with _lock:
        if package in _read:
            return
        module = import_module(f"irc.ops.{package}")
        found: dict[str, Operator] = module.records()
        _own.update(found)
        _records.update(found)
        _read.add(package)


# -- registration ----------------------------------------------------------------


def register(*operators: Operator) -> None:
    """Add what other packages know of operators.

    Facts of a known operator complete its record: further rows, effects, other fields. A row replaces one with the same
    overload name that was registered before; a shape rule, one of the same module and name.

    Raises:
        Error: IRC304 if something is not a record, its kind no kind, or its shape rule not such a function; if there is
            a shape rule of another origin, or irc's own record says something else of another field; IRC203 if a row
            is not well formed, or a result shares with, or an argument is stored into, a set that is not an argument's,
            which would have no effect; if rows of a pointwise operator state anything but that it makes a tensor of
            tensors; if irc has another row for that overload; or if ``effects`` are not effects. Nothing is added
            then.
    """
    changed = {each.kind: each for each in map(_checked, operators)}
    _records.update(changed)
    for kind in changed:
        for notify in on_change:
            notify(kind)


def _checked(given: object) -> Operator:
    """The record of an operator with what is ``given``; an Error as `register` says."""
    if not isinstance(given, Operator):
        example = "irc.ops.Operator('com.example::Scale', '(Tensor x) -> Tensor')"
        message = f"register takes records, such as {example}, not {given!r}"
        raise Error("IRC304", message)
    for row in given.rows:
        if not isinstance(row, str):  # type: ignore[reportUnnecessaryIsInstance]
            parse_schema(row)  # which says what a row is
    check_kind("a record", given.kind)
    if not isinstance(given.effects, Effects):  # type: ignore[reportUnnecessaryIsInstance]
        raise Error("IRC203", f"effects are such as irc.ops.Effects.RANDOM, not {given.effects!r}", "schema")
    known = record(given.kind)
    own = {overload_of(row): row for row in _own[given.kind].rows} if given.kind in _own else {}
    rows = {overload_of(row): row for row in known.rows}
    for row in given.rows:
        schema = parse_schema(row)
        if schema.name != given.kind:
            raise Error("IRC203", f"a row of {given.kind} is {schema.name}'s\n  {schema}", "schema")
        _check_sets(schema)
        _check_own(own.get(overload_of(row)), schema)
        rows.pop(overload_of(row), None)
        rows[overload_of(row)] = own.get(overload_of(row), row)
    facts = {name: fact for name, fact in facts_of(given).items() if name not in ("rows", "effects", "pointwise")}
    _check_facts(given.kind, facts, known)
    if given.pointwise:
        facts["value_operands"] = ()
    found = replace(
        known,
        **facts,
        rows=tuple(rows.values()),
        effects=known.effects | given.effects,
        pointwise=known.pointwise or given.pointwise,
    )
    if found.pointwise:
        for row in found.rows:
            _check_pointwise(parse_schema(row), found.effects)
    return found


def _check_facts(kind: str, facts: Mapping[str, Any], known: Operator) -> None:
    """Error IRC304 for fields that contradict what is ``known`` (rows, effects aside), or are no rules."""
    if "shape" in facts:
        check_callable("a shape rule", kind, facts["shape"])
        if known.shape is not None and origin(known.shape) != origin(facts["shape"]):
            both = " and ".join(origin(rule)[0] for rule in (known.shape, facts["shape"]))
            raise Error("IRC304", f"two shape rules, of {both}", kind)
    own = facts_of(_own[kind]) if kind in _own else {}
    for name, fact in facts.items():
        if name != "shape" and own.get(name, fact) != fact:
            raise Error("IRC304", f"irc's own record says {name}={own[name]!r}", kind)


def _check_pointwise(schema: Schema, effects: Effects) -> None:
    formals = (*schema.arguments, *schema.returns)
    of_tensors = all(formal.type in (TENSOR, OptionalType(TENSOR)) for formal in formals)
    is_plain = of_tensors and len(schema.returns) == 1 and not (schema.is_vararg or schema.is_varret)
    if not is_plain or schema.has_annotations or effects:
        message = "a pointwise operator makes one tensor of tensors, and does nothing else"
        raise Error("IRC203", f"{message}\n  {schema}", "schema")


def _check_own(own: str | None, schema: Schema) -> None:
    """Error IRC203 if irc's own row for the overload, which passes and kernels rely on, is another one."""
    if own is not None and str(parse_schema(own)) != str(schema):
        message = f"irc has another row for {overload_of(own)}: give the overload a name of its own"
        raise Error("IRC203", f"{message}\n  {own}\n  {schema}", "schema")


def _check_sets(schema: Schema) -> None:
    known = {WILDCARD, *(name for info in _annotations(schema.arguments) for name in info.before)}
    for info in _annotations((*schema.arguments, *schema.returns)):
        for name in (*info.before, *info.after):
            if name not in known:
                raise Error("IRC203", f"no argument has the alias set {name}\n  {schema}", "schema")


def _annotations(formals: Iterable[Argument]) -> Iterator[AliasInfo]:
    return (info for formal in formals if formal.alias is not None for info in formal.alias.walk())


def overload_of(row: str) -> str:
    """``aten::add_.Tensor`` of the row ``aten::add_.Tensor(...) -> ...``."""
    return row.partition("(")[0].strip()


def is_own(kind: str) -> bool:
    """Whether ``kind`` is an operator that irc itself has a record of."""
    return kind in _own
