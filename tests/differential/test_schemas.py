"""Every row of irc's tables against the schema that PyTorch has of that name and overload."""

import re
from typing import Any

import pytest
import torch

from irc.ir import types
from irc.ir.schema import AliasInfo, Argument, Schema, parse_schema
from irc.ir.types import TENSOR, DictType, FutureType, ListType, OptionalType, PrimType, TupleType, Type, TypeVar
from irc.ops import record, schemas
from irc.ops.signatures import kinds
from tests.schema_differences import DIFFERENCES, TEXT, WORDS, difference

THEIRS = {(s.name, s.overload_name): s for s in torch._C._jit_get_all_schemas()}
OURS = [row for kind in kinds() if kind.startswith(("aten::", "prim::")) for row in schemas(kind)]

COMPUTED = {"prim::shape", "prim::isinstance"}
"""Operators that PyTorch's printer and interpreter know, but that have no schema there."""

_PRIMITIVES = {
    "NumberType": types.SCALAR,
    "IntType": types.INT,
    "FloatType": types.FLOAT,
    "BoolType": types.BOOL,
    "StringType": types.STR,
    "ComplexType": types.COMPLEX,
    "AnyType": types.ANY,
    "DeviceObjType": types.DEVICE,
    "NoneType": types.NONE,
    "TensorType": types.TENSOR,
    "AnyEnumType": PrimType("AnyEnumType"),
    "GeneratorType": PrimType("Generator"),
}


def their_type(type: Any) -> Type:
    """A type of PyTorch's as irc writes it."""
    kind = type.kind()
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if kind == "VarType":
        return TypeVar(str(type))
    if kind == "TupleType":
        return TupleType(tuple(map(their_type, type.elements())))
    if kind == "DictType":
        return DictType(their_type(type.getKeyType()), their_type(type.getValueType()))
    of = {"ListType": ListType, "OptionalType": OptionalType, "FutureType": FutureType}[kind]
    return of(their_type(type.getElementType()))


def renamed(type: Type, names: dict[str, str]) -> Type:
    """``type`` with its variables called by the order they come in."""
    if isinstance(type, TypeVar):
        return TypeVar(names.setdefault(type.name, f"v{len(names)}"))
    if isinstance(type, TupleType):
        return TupleType(tuple(renamed(e, names) for e in type.elems))
    if isinstance(type, DictType):
        return DictType(renamed(type.key, names), renamed(type.value, names))
    if isinstance(type, ListType | OptionalType | FutureType):
        return type.__class__(renamed(type.elem, names))
    return type


def alias_of(info: AliasInfo | None) -> Any:
    """An annotation without what only irc says: that something must share."""
    if info is None:
        return None
    inside = tuple(alias_of(c) for c in info.contained)
    return set(info.before), set(info.after), info.write, inside if any(inside) else ()


def differences(ours: Schema, theirs: Any) -> set[str]:
    """In which respects two schemas differ: ``"names"``, ``"types"``, ``"defaults"``, ``"aliases"``..."""
    found: set[str] = set()
    given = [*ours.arguments, *ours.returns]
    wanted = [*theirs.arguments, *theirs.returns]
    if (len(ours.arguments), len(ours.returns)) != (len(theirs.arguments), len(theirs.returns)):
        return {"types"}
    written = parse_schema(str(theirs))  # PyTorch's objects do not tell what is annotated inside containers
    if (ours.is_vararg, ours.is_varret) != (written.is_vararg, written.is_varret):
        found.add("types")
    names: dict[str, str] = {}
    their_names: dict[str, str] = {}
    for a, b, text in zip(given, wanted, [*written.arguments, *written.returns]):
        _check_reading(b, text)
        if a.name != b.name:
            found.add("names")
        if renamed(a.type, names) != renamed(their_type(b.type), their_names):
            found.add("types")
        if (a.size, a.keyword_only) != (b.N, b.kwarg_only):
            found.add("calls")
        if a.has_default != b.has_default_value() or (a.has_default and not _equal_default(a, b.default_value)):
            found.add("defaults")
        if alias_of(a.alias) != alias_of(text.alias):
            found.add("aliases")
    return found


def _check_reading(theirs: Any, text: Argument) -> None:
    """What irc's parser reads of PyTorch's text is what PyTorch's own objects say, as far as they do."""
    info = theirs.alias_info
    assert (info is None) == (text.alias is None)
    if info is not None and text.alias is not None:
        said = {s.removeprefix("alias::") for s in info.before_set}, {s.removeprefix("alias::") for s in info.after_set}
        if said != (set(), set()):  # empty where it is the elements that are annotated
            assert said == (set(text.alias.before), set(text.alias.after))
            assert info.is_write == text.alias.write


def _equal_default(a: Argument, theirs: Any) -> bool:
    ours = a.default
    if isinstance(theirs, list) and not isinstance(ours, list):
        ours = [ours] * len(theirs)
    return ours == theirs or (isinstance(theirs, torch.dtype | torch.memory_format | torch.layout) and ours is not None)


ALLOWED = {word: "types" if word == "type" else "aliases" for word in WORDS}


def test_there_are_enough_rows(record_property: Any) -> None:
    overloads = [row for row in OURS if row.name.startswith("aten::")]
    record_property("overloads", len(overloads))
    print(f"{len(OURS)} rows compared, {len(overloads)} of them aten overloads")
    assert len(overloads) >= 300


@pytest.mark.parametrize("name", sorted({row.name for row in OURS}))
def test_rows_are_pytorchs(name: str) -> None:
    for row in schemas(name):
        theirs = THEIRS.get((row.name, row.overload))
        if theirs is None:
            assert name in COMPUTED, f"PyTorch has no {row}"
            continue
        found = differences(row, theirs)
        known = difference(row.name, row.overload)
        allowed = {ALLOWED[s] for s in known.says} if known else set()
        assert found == allowed, f"\nirc:     {row}\nPyTorch: {theirs}\ndiffer in {found or 'nothing'}, listed: {known}"


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda b: " ".join(b.rows))
def test_no_entry_is_idle(entry: Any) -> None:
    """Each entry of the list is the first that speaks of some row."""
    assert any(difference(row.name, row.overload) is entry for row in OURS)
    assert entry.why and not entry.why.endswith(".")


def annotations(schema: Schema) -> list[AliasInfo]:
    return [info for a in (*schema.arguments, *schema.returns) if a.alias for info in a.alias.walk()]


@pytest.mark.parametrize(
    "row", [r for r in OURS if difference(r.name, r.overload)], ids=lambda r: f"{r.name}.{r.overload}"
)
def test_what_is_said_is_said_so(row: Schema) -> None:
    """The sort of an entry fits: where PyTorch misses sharing it says nothing, where it says unknown irc does not."""
    known = difference(row.name, row.overload)
    assert known is not None
    written = parse_schema(str(THEIRS[row.name, row.overload]))
    ours, theirs = annotations(row), annotations(written)
    assert not any("*" in (*info.before, *info.after) for info in ours)
    unknown = any("*" in (*info.before, *info.after) for info in theirs)
    assert unknown == ("where" in known.says)
    writes = [sum(info.write for a in s.arguments if a.alias for info in a.alias.walk()) for s in (row, written)]
    assert writes[0] == writes[1] - ("writes less" in known.says)


def test_rows_that_the_documentation_shows_as_pytorchs_are() -> None:
    shown = re.findall(r"^PyTorch {2}(.*)\nirc {6}(.*)$", TEXT, re.MULTILINE)
    assert len(shown) >= 5
    rows = set(map(str, THEIRS.values()))
    for theirs, ours in shown:
        assert theirs in rows
        assert ours not in rows and ours.partition("(")[0] == theirs.partition("(")[0]


def test_in_place_operators_keep_the_shape_of_what_they_write_unless_torch_says_otherwise() -> None:
    writing = [row for row in OURS if row.arguments and row.arguments[0].alias and row.arguments[0].alias.write]
    rows = [row for row in writing if row.arguments[0].type == TENSOR]
    assert len(rows) > 150
    for row in rows:
        assert [result.alias for result in row.returns] == [row.arguments[0].alias]
        operator = getattr(torch.ops.aten, row.name.removeprefix("aten::"))
        changes = torch.Tag.inplace_view in getattr(operator, row.overload or "default").tags
        assert (changes and row.name != "aten::detach_") == bool(record(row.name).changes), row
