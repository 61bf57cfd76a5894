"""Where schema rows and effects are found by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from irc.errors import Error
from irc.ir.ops import aten, irc, microsoft, onnx_alias, prim
from irc.ir.ops.aten.copied import rows_copied
from irc.ir.ops.aten.in_place import rows_in_place
from irc.ir.ops.effects import Effects
from irc.ir.ops.opaque import is_opaque
from irc.ir.ops.plugins import load_for
from irc.ir.ops.pointwise import POINTWISE
from irc.ir.schema import WILDCARD, AliasInfo, Argument, Schema
from irc.ir.schema_parser import parse_schema
from irc.ir.types import TENSOR, OptionalType

# Rows are parsed when first asked for: a table of hundreds costs nothing to import.
_TEXTS: dict[str, list[str]] = {}
_PARSED: dict[str, tuple[Schema, ...]] = {}
_EFFECTS: dict[str, Effects] = {}
_SWITCHES: dict[str, str] = {}
_OWN: dict[str, int] = {}  # kind -> how many of its rows, the first ones, are irc's

on_change: list[Callable[[str], None]] = []
"""Functions called with a kind whose rows have changed, for caches of what follows from rows."""


def register(*rows: str, effects: Effects = Effects.NONE, pointwise: bool = False) -> None:
    """Add schema rows, which may be further overloads of known kinds.

    A row replaces one with the same overload name that was registered before, as kernels do.

    Args:
        rows: as PyTorch writes schemas.
        effects: what the operators do besides.
        pointwise: whether each element of the result depends only on the element at its place in each operand. Such
            operators broadcast as in NumPy, and the result has the element type of the first operand.

    Raises:
        Error: IRC203 if a row is not well formed, or a result shares with, or an argument is stored into, a set that is
            no argument's, which would have no effect; if rows of a pointwise operator state anything but that it makes
            a tensor of tensors; if irc has another row for that overload; or if ``effects`` are not effects. No row is
            added then.
    """
    if not isinstance(effects, Effects):  # type: ignore[reportUnnecessaryIsInstance]
        raise Error("IRC203", f"effects are such as irc.ir.ops.Effects.RANDOM, not {effects!r}", "schema")
    for row in rows:
        schema = parse_schema(row)
        _check_sets(schema)
        _check_own(row, schema)
        if pointwise or schema.name in POINTWISE:
            for each in (schema, *map(parse_schema, _TEXTS.get(schema.name, ()))):
                _check_pointwise(each, effects | _EFFECTS.get(schema.name, Effects.NONE))
    for row in rows:
        _enter(row, effects)
    if pointwise:
        POINTWISE.update(map(_kind, rows))


def _check_pointwise(schema: Schema, effects: Effects) -> None:
    formals = (*schema.arguments, *schema.returns)
    of_tensors = all(formal.type in (TENSOR, OptionalType(TENSOR)) for formal in formals)
    is_plain = of_tensors and len(schema.returns) == 1 and not (schema.is_vararg or schema.is_varret)
    if not is_plain or schema.has_annotations or effects:
        message = "a pointwise operator makes one tensor of tensors, and does nothing else"
        raise Error("IRC203", f"{message}\n  {schema}", "schema")


def _check_own(row: str, schema: Schema) -> None:
    """Error IRC203 if ``row`` differs from irc's own row for that overload, which passes and kernels rely on."""
    own = _own(row)
    if own and str(parse_schema(own)) != str(schema):
        message = f"irc has another row for {_overload(row)}: give the overload a name of its own"
        raise Error("IRC203", f"{message}\n  {own}\n  {schema}", "schema")


def _own(row: str) -> str:
    """Irc's row for the same overload; "" if it has none."""
    kind, name = _kind(row), _overload(row)
    return next((own for own in _TEXTS.get(kind, [])[: _OWN.get(kind, 0)] if _overload(own) == name), "")


def _enter(row: str, effects: Effects) -> None:
    """Add ``row``, replacing one registered earlier for the same overload. A row of irc's own stays: it is the same."""
    kind, name = _kind(row), _overload(row)
    if not _own(row):
        _TEXTS[kind] = [*(text for text in _TEXTS.get(kind, ()) if _overload(text) != name), row]
    _PARSED.pop(kind, None)
    if effects:
        _EFFECTS[kind] = _EFFECTS.get(kind, Effects.NONE) | effects
    for notify in on_change:
        notify(kind)


def _check_sets(schema: Schema) -> None:
    known = {WILDCARD, *(name for info in _annotations(schema.arguments) for name in info.before)}
    for info in _annotations((*schema.arguments, *schema.returns)):
        for name in (*info.before, *info.after):
            if name not in known:
                raise Error("IRC203", f"no argument has the alias set {name}\n  {schema}", "schema")


def _annotations(formals: Iterable[Argument]) -> Iterator[AliasInfo]:
    return (info for formal in formals if formal.alias is not None for info in formal.alias.walk())


def schemas(kind: str) -> tuple[Schema, ...]:
    """All overloads of ``kind``; empty if irc has no row for it.

    An ONNX operator with a trailing underscore is the twin of the one without
    that writes its result into its first input.
    """
    found = _PARSED.get(kind)
    if found is None:
        load_for(kind)
        texts = _TEXTS.get(kind, ())
        if not texts and kind.endswith("_") and functional_by_default(kind):
            texts = (f"{kind}(Tensor(a!) self, t others, ...) -> Tensor(a!)",)
        rows = tuple(parse_schema(text) for text in texts)
        found = _PARSED[kind] = rows if kind in _OWN else tuple(map(_of_others, rows))
    return found


def _of_others(schema: Schema) -> Schema:
    """``schema`` as in ONNX: optional inputs at the end may be left out, with or without a default."""
    arguments = tuple(
        replace(a, has_default=True) if isinstance(a.type, OptionalType) and not a.has_default else a
        for a in schema.arguments
    )
    return replace(schema, arguments=arguments)


def effects(kind: str) -> Effects:
    """The effects that nodes of ``kind`` may have."""
    if is_opaque(kind):
        return Effects.SIDE_EFFECT
    load_for(kind)
    return _EFFECTS.get(kind, Effects.NONE)


def random_switch(kind: str) -> str | None:
    """The name of the argument that disables random numbers if it is false or zero; None if there is none."""
    return _SWITCHES.get(kind)


def functional_by_default(kind: str) -> bool:
    """Whether ``kind`` is one of ONNX's own, which write nothing and return fresh memory unless a row says more."""
    return kind.rpartition("::")[0] in onnx_alias.DOMAINS


def kinds() -> Iterable[str]:
    """All kinds that have rows."""
    return _TEXTS.keys()


def _overload(row: str) -> str:
    """``aten::add_.Tensor`` of ``aten::add_.Tensor(...) -> ...``."""
    return row.partition("(")[0].strip()


def _kind(row: str) -> str:
    """``aten::add_`` of ``aten::add_.Tensor(...) -> ...``."""
    namespace, _, rest = _overload(row).rpartition("::")
    return f"{namespace}::{rest.partition('.')[0]}"


def _load() -> None:
    for table in (aten, prim, onnx_alias, irc, microsoft):
        for rows in table.ROWS:
            _append(line for line in map(str.strip, rows.splitlines()) if line and not line.startswith("#"))
        _EFFECTS.update(dict.fromkeys((*table.RANDOM, *table.RANDOM_UNLESS_FALSE), Effects.RANDOM))
        _SWITCHES.update(table.RANDOM_UNLESS_FALSE)
        for kind in table.SIDE_EFFECT:
            _EFFECTS[kind] = effects(kind) | Effects.SIDE_EFFECT
    _append(rows_in_place(_TEXTS))
    _append(rows_copied(_TEXTS))
    _OWN.update((kind, len(texts)) for kind, texts in _TEXTS.items())


def _append(rows: Iterable[str]) -> None:
    for row in rows:
        _TEXTS.setdefault(_kind(row), []).append(row)


_load()
