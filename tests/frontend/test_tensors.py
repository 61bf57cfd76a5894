"""Tensors of all types in all encodings, sizes checked before allocation, laziness, splats, sparse tensors."""

import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from irc.errors import Error
from irc.frontend.onnx import import_model
from irc.frontend.onnx.tensors import EAGER_BYTES, TensorReader
from irc.ir import DType, Tensor
from tests.effort import in_groups
from tests.frontend.helpers import from_nodes, refused

ALL_TYPES = [d for d in DType if d is not DType.STRING]


def read(proto: TensorProto) -> Tensor:
    return TensorReader(None).dense(proto, "here")


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def sample(dtype: DType, count: int) -> np.ndarray:
    """``count`` elements with many different bit patterns."""
    rng = np.random.default_rng(count)
    if dtype is DType.BOOL:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.bits < 8:
        return rng.integers(0, 1 << dtype.bits, count).astype(np.uint8).view(dtype.numpy)
    return np.frombuffer(rng.bytes(count * dtype.numpy.itemsize), dtype.numpy)


@in_groups(product(ALL_TYPES, [(), (1,), (5,), (2, 3), (4, 7), (0,), (0, 3)]), by=lambda dtype, _: dtype.name)
def test_raw_data_of_every_type(dtype: DType, shape: tuple[int, ...]) -> None:
    array = sample(dtype, int(np.prod(shape))).reshape(shape)
    proto = numpy_helper.from_array(array)
    assert proto.HasField("raw_data")
    tensor = read(proto)
    assert (tensor.dtype, tensor.shape) == (dtype, shape)
    assert bits(tensor.numpy()) == bits(array) == bits(numpy_helper.to_array(proto))
    assert tensor.numpy().dtype == dtype.numpy
    assert not tensor.numpy().flags.writeable


def typed(dtype: DType, array: np.ndarray) -> TensorProto:
    """The array in the field for its type, written as the specification words it."""
    proto = TensorProto(data_type=dtype.onnx, dims=array.shape)
    flat = array.reshape(-1)
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        field = proto.float_data if dtype is DType.COMPLEX64 else proto.double_data
        field.extend(x for c in flat.tolist() for x in (c.real, c.imag))
    elif dtype in (DType.FLOAT, DType.DOUBLE, DType.INT64, DType.UINT64):
        getattr(proto, f"{dtype.name.lower()}_data").extend(flat.tolist())
    elif dtype is DType.UINT32:
        proto.uint64_data.extend(flat.tolist())
    elif dtype in (DType.INT32, DType.INT16, DType.INT8, DType.BOOL):
        proto.int32_data.extend(int(x) for x in flat.tolist())
    elif dtype.bits in (2, 4):
        codes = flat.view(np.uint8).tolist()
        per = 8 // dtype.bits
        for i in range(0, len(codes), per):
            proto.int32_data.append(sum(c << (dtype.bits * j) for j, c in enumerate(codes[i : i + per])))
    else:
        proto.int32_data.extend(flat.view(f"u{dtype.numpy.itemsize}").tolist())
    return proto


@in_groups(product(ALL_TYPES, [0, 1, 3, 4, 5, 50]), by=lambda dtype, _: dtype.name)
def test_typed_fields_of_every_type(dtype: DType, count: int) -> None:
    array = sample(dtype, count)
    if dtype in (DType.COMPLEX64, DType.COMPLEX128, DType.FLOAT, DType.DOUBLE):
        array = np.arange(count).astype(dtype.numpy) / 3  # NaNs do not survive the way through Python's floats
    proto = typed(dtype, array)
    assert bits(read(proto).numpy()) == bits(array) == bits(numpy_helper.to_array(proto))


def test_all_equal_tensors_are_splats_bit_for_bit() -> None:
    for array in (np.full((3, 4), 2.5, np.float32), np.zeros(2, np.int64), np.full(9, np.nan, np.float16)):
        tensor = read(numpy_helper.from_array(array))
        assert tensor.is_splat
        assert bits(tensor.numpy()) == bits(array)
        assert (tensor.dtype.numpy, tensor.shape) == (array.dtype, array.shape)
    for array in (np.array([0.0, -0.0], np.float32), np.array([1, 1, 2]), np.array([5])):
        assert not read(numpy_helper.from_array(array)).is_splat


def test_large_tensors_are_kept_when_first_used() -> None:
    array = np.arange(EAGER_BYTES, dtype=np.float32)
    proto = numpy_helper.from_array(array)
    tensor = read(proto)
    assert tensor.can_wait
    assert tensor.sample() == read(proto).sample() == Tensor.of(array).sample()
    np.testing.assert_array_equal(tensor.peek(), array)
    assert tensor.can_wait
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.numpy() is tensor.numpy() is tensor.peek()
    assert not tensor.can_wait


def test_large_tensors_in_typed_fields_are_decoded_at_once() -> None:
    array = np.arange(EAGER_BYTES, dtype=np.float32)
    proto = typed(DType.FLOAT, array)
    tensor = read(proto)
    assert not tensor.can_wait
    proto.float_data[0] = 7.0
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("at", [0, 1, EAGER_BYTES // 2 + 3, EAGER_BYTES - 1])
def test_a_message_that_changed_before_its_weight_was_used(at: int) -> None:
    array = np.arange(EAGER_BYTES, dtype=np.float32)
    proto = numpy_helper.from_array(array)
    tensor = read(proto)
    array[at] = -array[at] - 1
    raw = proto.raw_data
    proto.raw_data = array.tobytes()
    for use in (tensor.numpy, tensor.peek, tensor.numpy):
        with pytest.raises(Error, match=r"^IRC130: .*message was changed"):
            use()
    proto.raw_data = raw[:-4]
    with pytest.raises(Error, match="message was changed"):
        tensor.numpy()
    proto.raw_data = raw
    assert tensor.numpy()[at] != array[at]
    proto.raw_data = array.tobytes()
    assert tensor.numpy()[at] != array[at]  # read is read


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"data_type": 1, "dims": [3], "raw_data": b"1234"}, "12 bytes, but 4"),
        ({"data_type": 1, "dims": [3], "float_data": [1.0]}, "3 entries of float_data, not 1"),
        ({"data_type": 1, "dims": [3]}, "not 0"),
        ({"data_type": 1}, "1 entries"),
        ({"data_type": 14, "dims": [3], "float_data": [1.0] * 3}, "6 entries"),
        ({"data_type": 22, "dims": [3], "int32_data": [1] * 3}, "2 entries"),
        ({"data_type": 22, "dims": [3], "raw_data": b"123"}, "2 bytes, but 3"),
        ({"data_type": 8, "dims": [2], "string_data": [b"a"]}, "2 entries of string_data"),
        ({"data_type": 8, "dims": [1], "string_data": [b"\xff"]}, "UTF-8"),
        ({"data_type": 8, "dims": [1], "raw_data": b"a"}, "string_data"),
        ({"data_type": 0, "dims": [1], "raw_data": b"a"}, "element type"),
        ({"data_type": 99, "dims": [1], "raw_data": b"a"}, "99"),
        ({"data_type": 1, "dims": [-1], "raw_data": b""}, "negative"),
        ({"data_type": 1, "dims": [1 << 62, 1 << 62]}, "too large"),
        ({"data_type": 1, "dims": [0, 1 << 62]}, "too large"),
        ({"data_type": 1, "dims": [1 << 40], "raw_data": b"1234"}, None),
        ({"data_type": 8, "dims": [1 << 40], "string_data": [b"1234"]}, "not 1"),
        ({"data_type": 1, "dims": [1] * 65, "raw_data": b"1234"}, "64 dimensions"),
    ],
)
def test_sizes_are_checked_before_anything_is_allocated(fields: dict[str, Any], word: str | None) -> None:
    tracemalloc.start()
    with pytest.raises(Error) as caught:
        read(TensorProto(**fields)).numpy()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.code == "IRC129"
    assert (word or "1099511627776") in caught.value.message
    assert peak < 1 << 20


@given(st.sampled_from(ALL_TYPES), st.lists(st.integers(0, 5), max_size=4))
def test_any_array_survives(dtype: DType, shape: list[int]) -> None:
    array = sample(dtype, int(np.prod(shape))).reshape(shape)
    assert bits(read(numpy_helper.from_array(array)).numpy()) == bits(array)


# -- sparse ------------------------------------------------------------------


def sparse(values: Any, indices: Any, dims: list[int], name: str = "w") -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.asarray(values, np.float32), name),
        numpy_helper.from_array(np.asarray(indices, np.int64), "i"),
        dims,
    )


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_initializers(indices: Any) -> None:
    proto = from_nodes([helper.make_node("Add", ["x", "w"], ["y"])])
    proto.graph.sparse_initializer.append(sparse([2, 3], indices, [2, 3]))
    found = import_model(proto).main.value("w").node.attributes["value"]
    assert found.numpy().tolist() == [[0, 2, 0], [0, 0, 3]]
    assert found.shape == (2, 3)


def test_sparse_constants_and_empty_ones() -> None:
    node = helper.make_node("Constant", [], ["y"], sparse_value=sparse([], [], [1000, 1000, 10]))
    found = import_model(from_nodes([node])).main.value("y").node.attributes["value"]
    assert found.is_splat
    assert found.scalar == 0


def test_sparse_tensors_of_a_model_are_limited_together() -> None:
    proto = from_nodes([helper.make_node("Relu", ["x"], ["y"])])
    proto.graph.sparse_initializer.extend(sparse([1], [0], [1 << 28], f"w{i}") for i in range(3))
    refused("IRC129", proto, "'w2'", "limit")


@pytest.mark.parametrize(
    ("values", "indices", "dims", "word"),
    [
        ([1, 2], [1, 6], [2, 3], "outside"),
        ([1, 2], [-1, 2], [2, 3], "outside"),
        ([1, 2], [[0, 1], [0, 3]], [2, 3], "outside"),
        ([1, 2], [2, 2], [2, 3], "ascending"),
        ([1, 2], [2, 1], [2, 3], "ascending"),
        ([1, 2], [1], [2, 3], "shape"),
        ([[1, 2]], [1, 2], [2, 3], "one dimension"),
        ([1], [1], [1 << 40], "limit"),
        ([1], [1], [1 << 20, 1 << 20], "limit"),
        ([], [], [1 << 40], "limit"),
    ],
)
def test_malformed_sparse_tensors(values: Any, indices: Any, dims: list[int], word: str) -> None:
    proto = from_nodes([helper.make_node("Add", ["x", "w"], ["y"])])
    proto.graph.sparse_initializer.append(sparse(values, indices, dims))
    refused("IRC129", proto, word, "'w'")
