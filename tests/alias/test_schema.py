"""Schemas in PyTorch's notation, and which overload a node means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.ir import Builder, Graph, types
from irc.ir.schema import AliasInfo, Schema, parse_schema
from irc.ir.types import DictType, ListType, OptionalType
from irc.ops import Effects, effects_of, register, resolve, schema_of, schemas
from irc.ops.signatures import kinds
from tests.operators import operator_of


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("aten::relu(Tensor self -> Tensor", "expected ','"),
        ("relu(Tensor self) -> Tensor", "namespace::name"),
        ("a::b(Tensor(a self) -> Tensor", "expected ')'"),
        ("a::b(Tensor x) -> Tensor Tensor x", "expected the end"),
        ("a::b(Tensor $) -> Tensor", "unexpected character"),
        ("a::b(Dict(str) x) -> Tensor", "Dict of 1 types"),
        ("a::b(int x=) -> Tensor", "expected a default value"),
        ('a::b(str x="\\q") -> Tensor', "unknown escape"),
        ("a::b(Tensor x, int x) -> Tensor", "two arguments are called x"),
        ("a::b(Tensr x) -> Tensor", "there is no type Tensr; did you mean 'Tensor'?"),
        ("a::b(Tensor x) -> Tensr[]?", "there is no type Tensr"),
        ("a::b(tensor x) -> Tensor", "there is no type tensor"),
        ("", "expected a name"),
    ],
)
def test_errors_have_a_caret(text: str, message: str) -> None:
    with pytest.raises(Error, match="IRC203") as e:
        parse_schema(text)
    assert message in e.value.message
    assert e.value.message.splitlines()[-1].strip() == "^"


@given(st.text(alphabet="aten:.(Tensor!)-> []|*=,?x1'\"<", max_size=40))
def test_any_text_parses_or_is_an_error(text: str) -> None:
    try:
        schema = parse_schema(text)
    except Error:
        return
    assert parse_schema(str(schema)) == schema


def own_rows() -> list[Schema]:
    """The rows that come with irc; tests add others."""
    own = ("aten::", "prim::", "onnx::", "irc::")
    return [row for kind in kinds() if kind.startswith(own) for row in schemas(kind)]


def test_every_row_prints_as_it_parses() -> None:
    rows = own_rows()
    assert len(rows) > 1000
    for row in rows:
        assert parse_schema(str(row)) == row
    names = [(row.name, row.overload) for row in rows]
    assert len(set(names)) == len(names), "an overload is described twice"


# -- overloads --------------------------------------------------------------------


def overload(kind: str, *inputs: types.Type) -> str | None:
    graph = Graph()
    node = Builder(graph).node(kind, [graph.add_input(t) for t in inputs], [types.TENSOR])
    schema = resolve(node)
    return None if schema is None else schema.overload


T, INT, F = types.TENSOR, types.INT, types.FLOAT


@pytest.mark.parametrize(
    ("kind", "inputs", "expected"),
    [
        ("aten::add", (T, T, INT), "Tensor"),
        ("aten::add", (types.tensor(types.DType.FLOAT, (2,)), T), "Tensor"),
        ("aten::add", (T, F, INT), "Scalar"),
        ("aten::add", (INT, INT), "int"),
        ("aten::add", (INT, F), "int_float"),
        ("aten::add", (types.STR, types.STR), "str"),
        ("aten::add", (ListType(T), ListType(T)), "t"),
        ("aten::add", (types.DEVICE, INT), None),
        ("aten::__getitem__", (ListType(INT), INT), "t"),
        ("aten::__getitem__", (DictType(types.STR, T), types.STR), "Dict_str"),
        ("aten::max", (T,), ""),
        ("aten::max", (T, T), "other"),
        ("aten::max", (T, INT, types.BOOL), "dim"),
        ("aten::conv2d", (T, T, types.NONE, ListType(INT), ListType(INT), ListType(INT), INT), ""),
        ("aten::conv2d", (T, T, OptionalType(T), ListType(INT), types.STR, ListType(INT), INT), "padding"),
        ("aten::max_pool2d", (T, INT), ""),
        ("aten::_set_item", (ListType(T), INT, T), "t"),
        ("aten::slice", (T, INT, types.NONE, INT, INT), "Tensor"),
        ("aten::sub", (T,), None),
    ],
)
def test_overloads(kind: str, inputs: tuple[types.Type, ...], expected: str | None) -> None:
    assert overload(kind, *inputs) == expected


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (T, True),
        (INT, True),
        (types.UnionType((T, INT)), True),
        (types.UnionType((INT, T)), True),
        (types.UnionType((T, INT, types.STR)), False),
        (types.STR, False),
        (types.ANY, True),
    ],
)
def test_a_union_takes_unions_of_its_members(given: types.Type, fits: bool) -> None:
    register(operator_of("my::union(Union(Tensor, int) x) -> Tensor"))
    assert overload("my::union", given) == ("" if fits else None)


def test_effects_depend_on_the_arguments() -> None:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    p, yes, no = b.constant(0.5), b.constant(True), b.constant(False)
    flag = graph.add_input(types.BOOL)
    effects = [effects_of(b.node("aten::dropout", [x, p, t], [T])) for t in (yes, flag, no)]
    assert effects == [Effects.RANDOM, Effects.RANDOM, Effects.NONE]
    native = [effects_of(b.node("aten::native_dropout", [x, p, t], [T, T])) for t in (b.constant(None), no)]
    assert native == [Effects.RANDOM, Effects.NONE], "not said, it trains"
    assert effects_of(b.node("prim::Print", [x])) == Effects.SIDE_EFFECT
    assert effects_of(b.node("onnx::Dropout", [x], [T], version=13)) == Effects.NONE
    left_out = [x, b.constant(None), b.constant(None)]
    assert effects_of(b.node("onnx::Dropout", left_out, [T], version=13)) == Effects.NONE
    assert effects_of(b.node("onnx::RandomNormal", [], [T])) == Effects.RANDOM


def test_onnx_signatures_come_from_the_standard() -> None:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    reshape = schema_of(b.node("onnx::Reshape", [x, x], [T], version=13))
    assert reshape is not None
    assert [a.name for a in reshape.arguments] == ["data", "shape"]
    assert reshape.returns[0].alias == AliasInfo(("a",), ("a",))
    conv = schema_of(b.node("onnx::Conv", [x, x], [T], version=11))
    assert conv is not None
    assert not conv.has_annotations
    assert [a.has_default for a in conv.arguments] == [False, False, True]
    relu = schema_of(b.node("onnx::Relu_", [x], [T], version=14))
    assert relu is not None
    assert relu.is_mutable
    assert schema_of(b.node("onnx::NoSuchThing", [x], [T])) is None
    for version in (-(2**40), 0, 2**31, 2**70):
        assert schema_of(b.node("onnx::Relu", [x], [T], version=version)) is None
