"""Weights are moved into one array, which the system may give in huge pages."""

from __future__ import annotations

import mmap
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.errors import Error
from irc.ir import DType, Tensor
from irc.runtime.memory import weights
from irc.runtime.memory.weights import HUGE_PAGE, PAGE, WORTH, gather
from irc.runtime.model import CompiledModel
from irc.runtime.values import owner

SIZE = 640  # three of its squares are more than `WORTH` together
LAYERS = 3
Array = np.ndarray[Any, Any]


def squares() -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(LAYERS)]


def network() -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(LAYERS)]
    x, y = (helper.make_tensor_value_info(v, TensorProto.FLOAT, [2, SIZE]) for v in ("v0", f"v{LAYERS}"))
    held = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(squares())]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def ran(model: CompiledModel) -> list[Array]:
    """The weights of ``model`` after a run, whose result is right."""
    x = np.ones((2, SIZE), np.float32)
    wanted = x.astype(np.float64)
    for w in squares():
        wanted = wanted @ w
    (found,) = model.run({"v0": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1)
    found = [model.module.weights[f"w{i}"].numpy() for i in range(LAYERS)]
    assert all(np.array_equal(a, b) for a, b in zip(found, squares()))
    return found


def are_together(arrays: list[Array]) -> bool:
    assert not any(array.flags.writeable for array in arrays)
    return len({id(owner(array)) for array in arrays}) == 1


@pytest.mark.parametrize("form", ["message", "file"])
def test_weights_are_together(form: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(network(), path)
    arrays = ran(irc.compile(network() if form == "message" else path))
    assert are_together(arrays)
    starts = sorted(array.ctypes.data for array in arrays)
    assert starts[0] % HUGE_PAGE == 0 and np.diff(starts).tolist() == [arrays[0].nbytes] * 2
    assert all(array.ctypes.data % 64 == 0 for array in arrays)


def test_what_is_mapped_stays_so(tmp_path: Path) -> None:
    irc.compile(network()).save(tmp_path / "m.irc")
    for array in ran(irc.load(tmp_path / "m.irc")):
        assert isinstance(owner(array).base, mmap.mmap | memoryview)


def test_external_data_stays_mapped(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "m.onnx", save_as_external_data=True, location="m.data")
    for array in ran(irc.compile(tmp_path / "m.onnx")):
        assert isinstance(owner(array).base, mmap.mmap | memoryview)


def test_another_model_of_the_same_module_moves_nothing() -> None:
    model = irc.compile(network())
    before = [array.ctypes.data for array in ran(model)]
    other = irc.compile(model.module)
    assert [array.ctypes.data for array in ran(other)] == before


def dense(shape: tuple[int, ...], dtype: Any = np.float32) -> Tensor:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    return Tensor(DType.from_numpy(array.dtype), shape, name="w", array=array)


def test_each_is_freed_where_it_was_before_the_next_is_moved() -> None:
    tensors = [dense((SIZE, SIZE)) for _ in range(LAYERS)]
    before = [weakref.ref(owner(tensor.numpy())) for tensor in tensors]
    alive: list[int] = []
    peek = Tensor.peek

    def looked_at(tensor: Tensor) -> Array:
        alive.append(sum(array() is not None for array in before))
        return peek(tensor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "peek", looked_at)
        gather(tensors)
    assert alive == [3, 3, 2] or alive == [3, 2, 1]
    assert [array() for array in before] == [None] * LAYERS


def test_what_would_not_gain_stays() -> None:
    large = dense((WORTH // 4 - PAGE // 4,))
    small, least = dense((PAGE // 4 - 1,)), dense((PAGE // 4,))
    splat = Tensor.splat(DType.FLOAT, (1 << 21,), 1.0, "s")
    text = Tensor(DType.STRING, (9000,), name="t", array=np.full(9000, "a", object))
    absent = Tensor(DType.FLOAT, (9000,), name="a")
    before = [tensor.numpy().ctypes.data for tensor in (large, small, least, splat)]
    gather([large, small, large, splat, text, absent])
    assert [tensor.numpy().ctypes.data for tensor in (large, small, least, splat)] == before
    gather([large, small, least, splat, text, absent])
    after = [tensor.numpy().ctypes.data for tensor in (large, small, least, splat)]
    assert [a == b for a, b in zip(before, after)] == [False, True, False, True]
    np.testing.assert_array_equal(least.numpy(), np.arange(PAGE // 4))
    assert absent.is_absent


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.bool_, np.complex64])
def test_whatever_their_elements_and_layout(dtype: Any) -> None:
    tensors = [dense((1300, 1700), dtype), dense((1300, 1701), dtype)]
    turned = np.asfortranarray(tensors[1].numpy())
    tensors.append(Tensor(tensors[1].dtype, turned.shape, name="t", array=turned))
    wanted = [tensor.numpy().copy() for tensor in tensors]
    gather(tensors)
    assert are_together([tensor.numpy() for tensor in tensors])
    for tensor, array in zip(tensors, wanted, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
        assert tensor.numpy().dtype == array.dtype


def test_what_shows_other_memory_than_its_own_stays() -> None:
    """Parts of one array, and elements that are there once."""
    whole = np.arange(2 * SIZE * SIZE, dtype=np.float32)
    arrays = [whole[: SIZE * SIZE], whole[SIZE * SIZE :], np.broadcast_to(whole[:SIZE], (SIZE, SIZE))]
    tensors = [Tensor(DType.FLOAT, array.shape, name="w", array=array) for array in arrays]
    before = [tensor.numpy() for tensor in tensors]
    own = [dense((SIZE, SIZE)) for _ in range(LAYERS)]
    gather([*tensors, *own])
    assert are_together([tensor.numpy() for tensor in own])
    assert all(tensor.numpy() is array for tensor, array in zip(tensors, before))


def test_without_memory_for_it_they_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> Array:
        raise Error("IRC403", "out of memory")

    monkeypatch.setattr(weights, "aligned_bytes", none_left)
    assert not are_together(ran(irc.compile(network())))


def test_a_weight_that_cannot_be_read_is_an_error_of_the_run() -> None:
    proto = network()
    model = irc.compile(proto)
    right = proto.graph.initializer[1].raw_data
    proto.graph.initializer[1].raw_data = bytes(len(right))
    with pytest.raises(Error, match="changed") as caught:
        model.run({"v0": np.ones((2, SIZE), np.float32)})
    assert (caught.value.code, "'w1'" in caught.value.where) == ("IRC130", True)
    proto.graph.initializer[1].raw_data = right
    ran(model)
