"""What irc knows of an operator, from the tables of passes, alias analysis and runtime."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple, cast

from irc import ops
from irc.alias import rules
from irc.alias.memory_types import has_memory
from irc.alias.rules import own_rule
from irc.alias.rules.by_kind import opaque, passing_through
from irc.alias.rules.entry import Rule
from irc.alias.rules.schemas import Part, Program, Result, compile_schema
from irc.errors import Error, did_you_mean
from irc.frontend.onnx.contrib import ROWS, Row
from irc.frontend.onnx.special import SPECIAL as IMPORTED
from irc.frontend.onnx_export.decompositions import schema
from irc.frontend.onnx_export.model import has_form
from irc.ir import Graph, Schema
from irc.ir.kinds import CONSTANT, GROUP, NAMES
from irc.ir.verify.operator_rules import form_rule
from irc.ops import Effects, functional_by_default, schemas
from irc.ops.onnx_signatures import all_kinds, check_onnx, signature, versions
from irc.ops.opaque import is_opaque
from irc.ops.plugins import is_foreign, load_all
from irc.ops.pointwise import inplace_variant, is_torch_pointwise
from irc.ops.record import facts_of
from irc.ops.schema_rules import check_schema
from irc.ops.signatures import kinds as kinds_with_rows
from irc.passes.remove_mutation.family import functional_form
from irc.passes.shapes import inferred_by
from irc.runtime.kernels import fallback
from irc.runtime.kernels.registry import binders, place_of, registered
from irc.runtime.lowering import subgraph_of
from irc.runtime.plan import SPECIAL
from irc.support.formatting import listed

_ROWS = {row.kind: row for row in ROWS.values()}
"""Operators of other domains that import as bodies of standard operators."""


class Operator:
    """An operator, by its kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def _row(self) -> Row | None:
        """The row that expands it, unless another operator has been registered under its name."""
        return None if schemas(self.kind) else _ROWS.get(self.kind)

    @property
    def _standard(self) -> str:
        """The ONNX operator whose in-place variant it is; its own kind if it is not a variant."""
        return self.kind.removesuffix("_") if functional_by_default(self.kind) else self.kind

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """The opsets of ONNX that introduced or changed it."""
        return versions(self._standard)

    @cached_property
    def schemas(self) -> tuple[str, ...]:
        """Its signatures; for an ONNX operator, the newest one."""
        own = self._row or (signature(self.kind) if functional_by_default(self.kind) else None)
        return tuple(map(str, [own] if own is not None else schemas(self.kind)))

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that it may have, as far as a table tells."""
        if self._row is not None:
            return tuple(self._row.attributes)
        found = schema(self._standard, self.versions[-1]) if self.versions else None
        return tuple(sorted(found.attributes)) if found is not None else ()

    @cached_property
    def memory(self) -> OnMemory | None:
        """What it does to memory; None if no node of it exists, because it is expanded."""
        return None if self._row is not None else on_memory(self.kind)

    @cached_property
    def alias_rule(self) -> str | None:
        """Where its alias rule is defined; None if schemas or the standard suffice."""
        return place(self.memory.rule) if self.memory is not None and self.memory.rule is not None else None

    @cached_property
    def functional(self) -> str | None:
        """The operator that computes into new memory what this one writes into its first input."""
        return functional_form(self.kind)

    @cached_property
    def in_place(self) -> str | None:
        """The operator that writes into its first input what this one computes."""
        found = inplace_variant(self.kind) or f"{self.kind}_"
        return found if functional_form(found) == self.kind else None

    @property
    def is_put_in_place(self) -> bool:
        """Whether the pass ``in-place`` may replace it by that operator."""
        return inplace_variant(self.kind) is not None

    @cached_property
    def other_names(self) -> tuple[str, ...]:
        """Other names that models may use for it."""
        return tuple(sorted(other for other, name in NAMES.items() if name == self.kind))

    @cached_property
    def fuses(self) -> str:
        """How it fuses; "" if it does not."""
        if ops.record(self.kind).epilogues:
            return "pointwise operators join it"
        if is_torch_pointwise(self.kind):
            return "pointwise, where the result is a tensor"
        if not ops.record(self.kind).pointwise:
            return ""
        are_aligned = not all(each.broadcasts for each in ops.record(self.kind).scalar)
        return "pointwise, from version 7 on" if are_aligned else "pointwise"

    @cached_property
    def shape_rule(self) -> str | None:
        """Where the rule for the types of its results is defined."""
        rule = inferred_by(self.kind)
        return None if rule is None else place(rule)

    @cached_property
    def record(self) -> dict[str, list[str]]:
        """The fields of its record that nothing else shows, if set; for rules, where they are defined."""
        facts = facts_of(ops.record(self.kind))
        return {name: _texts(fact) for name, fact in facts.items() if name not in _SHOWN}

    @cached_property
    def kernels(self) -> dict[int, str]:
        """Where its kernels are defined, by first version; an in-place variant uses its operator's."""
        if self.kind in SPECIAL:
            return {1: place(SPECIAL[self.kind])}
        if self.kind == GROUP:
            return {1: place(subgraph_of)}
        found = binders(self._standard)
        return {since: _place_of_kernel(self._standard, since, binder) for since, binder in found.items()}

    @cached_property
    def expanded_by(self) -> str | None:
        """Where the function is defined that replaces it by other operators when a model is imported."""
        if self._row is not None:
            return place(self._row.body)
        return place(IMPORTED[self.kind]) if not self.kernels and self.kind in IMPORTED else None

    @cached_property
    def runs(self) -> str:
        """What runs it: "kernel", "reference" (onnx.reference), "expanded" (other operators) or ""."""
        if self.kernels or self.kind == CONSTANT:
            return "kernel"
        if self.expanded_by is not None:
            return "expanded"
        return "reference" if fallback.serves(Graph().create(self.kind)) else ""

    @cached_property
    def verified(self) -> tuple[str, ...]:
        """Where the functions are defined that verify nodes of it."""
        form = form_rule(self.kind)
        signed = check_onnx if functional_by_default(self.kind) else check_schema if schemas(self.kind) else None
        return tuple(place(rule) for rule in (form, signed) if rule is not None)

    @cached_property
    def exports(self) -> bool:
        """Whether models with it can be written as ONNX."""
        return self.expanded_by is not None or has_form(self.functional or self.kind)

    def to_dict(self) -> dict[str, Any]:
        """All of this as plain data, for JSON."""
        members = vars(Operator).items()
        facts = {name: getattr(self, name) for name, member in members if isinstance(member, cached_property)}
        said = [each._asdict() for each in self.memory.said] if self.memory is not None else None
        return {"kind": self.kind, **facts, "memory": said}


_SHOWN = ("rows", "pointwise", "scalar", "shape", "kernel")
"""Fields of records that properties of `Operator` tell."""


def _texts(fact: Any) -> list[str]:
    """What a field of a record says, a text for each of several things."""
    if isinstance(fact, Mapping):
        pairs = cast("Mapping[str, Any]", fact).items()
        return [f"{key}: {' '.join(_texts(value))}" for key, value in pairs]
    if isinstance(fact, tuple | frozenset):
        found = [text for each in cast("Iterable[Any]", fact) for text in _texts(each)]
        return found if isinstance(fact, tuple) else sorted(found)
    if isinstance(fact, Enum):
        return [(fact.name or "").lower().replace("_", "-")]
    return [place(fact) if callable(fact) else "yes" if fact is True else str(fact)]


def _refuse(error: Error) -> None:
    raise error


def kinds(tell: Callable[[Error], None] = _refuse) -> list[str]:
    """All operators that irc knows, those of installed packages too, by namespace and name.

    Args:
        tell: called with the error for each namespace of a package that cannot be loaded, which is then left out.
    """
    broken = load_all()
    for error in broken.values():
        tell(error)
    tables: list[Iterable[str]] = [
        all_kinds(),
        kinds_with_rows(),
        rules.kinds(),
        (each.kind for each in ops.records() if each.shape is not None),
        registered(),
        _ROWS,
    ]
    found = {kind for table in tables for kind in table if kind.rpartition("::")[0] not in broken}
    variants = {f"{kind}_" for kind in found if inplace_variant(kind) is not None}
    return sorted(found | variants, key=lambda kind: kind.rpartition("::"))


def find(names: Sequence[str], tell: Callable[[Error], None] = _refuse) -> list[Operator]:
    """The operators of these names; IRC217 if a name matches no operator.

    A name with a namespace matches one operator, a name without one those of all namespaces. Other names of torch's
    operators, and names with an overload, match too. ``tell`` is as for `kinds`.
    """
    known = kinds(tell)
    return [Operator(kind) for kind in dict.fromkeys(kind for name in names for kind in _called(name, known))]


def _called(name: str, known: Sequence[str]) -> list[str]:
    namespace, separator, rest = name.rpartition("::")
    wanted = f"{'onnx' if namespace == 'ai.onnx' else namespace}{separator}{rest.partition('.')[0]}"
    wanted = NAMES.get(wanted, wanted)
    found = [kind for kind in known if kind == wanted or (not separator and kind.endswith(f"::{wanted}"))]
    found = found or [NAMES[other] for other in NAMES if not separator and other.endswith(f"::{wanted}")]
    if not found:
        alike = [kind for kind in known if kind.startswith(f"{namespace}::")] if separator else []
        bare = {kind.rpartition("::")[2]: kind for kind in alike or known}
        hint = did_you_mean(wanted.rpartition("::")[2], bare, lambda close: repr(bare[close]))
        raise Error("IRC217", f"irc knows no operator {name!r}{hint and f'; {hint}'}")
    return found


def place(function: Callable[..., Any]) -> str:
    """Where a function is defined: ``irc/runtime/kernels/pool.py:42``; its name if the file is not known."""
    found = inspect.unwrap(function)
    code = getattr(found, "__code__", None)
    if not isinstance(code, CodeType):
        return f"{getattr(found, '__module__', '?')}.{getattr(found, '__qualname__', found)}"
    return f"{_file(found.__module__, code.co_filename)}:{code.co_firstlineno}"


def _place_of_kernel(kind: str, since: int, binder: Callable[..., Any]) -> str:
    at = place_of(kind, since)
    if at is None or is_foreign(binder):
        return place(binder)
    module, line = at
    return f"{_file(module, sys.modules[module].__file__ or module)}:{line}"


def _file(module: str, path: str) -> str:
    """The path of a module's file from its package's parent folder on; else the full path."""
    if os.sep in module:  # a file that the command line names
        return path
    parts = Path(path).parts
    depth = module.count(".") + 1 + (parts[-1] == "__init__.py")
    return "/".join(parts[-depth:])


# -- effects on memory in words, from alias rules or schemas -------------------------


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
        switch = ops.record(kind).random_switch
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
