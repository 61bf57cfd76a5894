"""ONNX's types and irc's, both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, TypeProto, helper

import irc.errors
from irc.frontend.onnx.types import from_proto, from_schema, to_proto
from irc.ir.types import (
    INT,
    NONE,
    STR,
    TENSOR,
    DictType,
    DType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    join,
)

NOTHING = ("", "?", "??", "None", "none", "NULL", "unk", "unknown", "Undefined", "nan", "-1", "-2")
"""Names that exporters give sizes which they do not know."""


def _says_something(name: str) -> bool:
    return bool(name.strip("?")) and name.lower() not in map(str.lower, NOTHING) and not name.lstrip("-").isdigit()


DIMS = st.one_of(st.integers(0, 2**62), st.text(min_size=1).filter(_says_something), st.none())
TENSORS = st.builds(
    TensorType,
    st.one_of(st.none(), st.sampled_from(list(DType))),
    st.one_of(st.none(), st.lists(DIMS, max_size=4).map(tuple)),
)
TYPES = st.recursive(
    TENSORS,
    lambda inner: st.one_of(
        inner.map(ListType), inner.map(OptionalType), st.builds(DictType, st.sampled_from([INT, STR]), inner)
    ),
    max_leaves=3,
)


@given(TYPES)
def test_types_survive_the_way_there_and_back(type: Type) -> None:
    assert from_proto(to_proto(type), "here") == type


def test_onnx_makes_the_same_protos() -> None:
    float_tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, "n", None])
    assert to_proto(TensorType(DType.FLOAT, (2, "n", None))) == float_tensor
    sequence = helper.make_sequence_type_proto(float_tensor)
    assert from_proto(helper.make_optional_type_proto(sequence), "here") == OptionalType(
        ListType(TensorType(DType.FLOAT, (2, "n", None)))
    )
    scalar = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    assert from_proto(scalar, "here") == TensorType(DType.FLOAT, ())
    assert from_proto(TypeProto(), "here") == TENSOR


def test_a_type_that_onnx_lacks() -> None:
    with pytest.raises(TypeError, match="no type for"):
        to_proto(TupleType((TENSOR,)))


def nested(depth: int) -> TypeProto:
    proto = TypeProto()
    at = proto
    for _ in range(depth):
        at = at.sequence_type.elem_type
    at.tensor_type.elem_type = 1
    return proto


@pytest.mark.parametrize(
    ("proto", "word"),
    [
        (helper.make_tensor_type_proto(99, [1]), "99"),
        (helper.make_tensor_type_proto(1, [-2]), "-2"),
        (TypeProto(opaque_type=TypeProto.Opaque(name="x")), "opaque_type"),
        (TypeProto(map_type=TypeProto.Map(key_type=1, value_type=TypeProto())), "keys"),
        (nested(20), "deeper"),
    ],
)
def test_malformed_types(proto: TypeProto, word: str) -> None:
    with pytest.raises(irc.errors.Error) as caught:
        from_proto(proto, "here")
    assert (caught.value.code, caught.value.where) == ("IRC131", "here")
    assert word in caught.value.message


def test_values_of_sparse_types_are_dense() -> None:
    assert from_proto(helper.make_sparse_tensor_type_proto(1, [2, "n"]), "here") == TensorType(DType.FLOAT, (2, "n"))
    unranked = TypeProto(sparse_tensor_type=TypeProto.SparseTensor(elem_type=7))
    assert from_proto(unranked, "here") == TensorType(DType.INT64)


def test_type_strings_of_schemas() -> None:
    assert from_schema("tensor(float16)") == TensorType(DType.FLOAT16)
    assert from_schema("tensor(float8e4m3fnuz)") == TensorType(DType.FLOAT8E4M3FNUZ)
    assert from_schema("seq(tensor(string))") == ListType(TensorType(DType.STRING))
    assert from_schema("optional(seq(tensor(int4)))") == OptionalType(ListType(TensorType(DType.INT4)))
    assert from_schema("seq(map(int64, float))") == ListType(DictType(INT, TensorType(DType.FLOAT)))
    assert from_schema("map(string, double)") == DictType(STR, TensorType(DType.DOUBLE))


def test_every_type_string_of_every_schema_is_understood() -> None:
    from onnx import defs

    texts = {
        text
        for schema in defs.get_all_schemas_with_history()
        for constraint in schema.type_constraints
        for text in constraint.allowed_type_strs
    }
    for text in texts:
        type = from_schema(text)
        while not isinstance(type, TensorType):
            type = type.value if isinstance(type, DictType) else type.elem
        assert type.dtype is not None, text


FLOAT23 = TensorType(DType.FLOAT, (2, 3))


def test_join() -> None:
    assert join(FLOAT23, TensorType(DType.FLOAT, (2, 4))) == TensorType(DType.FLOAT, (2, None))
    assert join(FLOAT23, TensorType(DType.INT64, (2,))) == TENSOR
    assert join(ListType(FLOAT23), ListType(TENSOR)) == ListType(TENSOR)
    assert join(OptionalType(FLOAT23), FLOAT23) == OptionalType(FLOAT23)
    assert join(NONE, FLOAT23) == join(FLOAT23, NONE) == OptionalType(FLOAT23)
    assert join(OptionalType(NONE), FLOAT23) == OptionalType(FLOAT23)
    assert join(DictType(STR, FLOAT23), DictType(STR, TENSOR)) == DictType(STR, TENSOR)
    assert join(FLOAT23, ListType(FLOAT23)) is None
    assert join(ListType(FLOAT23), ListType(ListType(FLOAT23))) is None
