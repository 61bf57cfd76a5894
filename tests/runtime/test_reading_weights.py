"""When compiled models read their weights, and what happens if the source changed meanwhile."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import irc
from irc.errors import Error
from irc.ir import DType, Graph, Tensor, parse_graph
from irc.ir.tensor import load_together
from irc.runtime.model import CompiledModel
from irc.runtime.values import owner
from tests.models import onnx_model

SIZE = 160  # 100 KB: not read at once
WEIGHTS = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((3, SIZE)).astype(np.float32)


def product() -> onnx.ModelProto:
    return onnx_model(helper.make_node("MatMul", ["x", "w"], ["y"]), {"x": [3, SIZE]}, "y", {"w": WEIGHTS})


def right(model: CompiledModel) -> bool:
    return bool(np.allclose(model.run({"x": X})["y"], X @ WEIGHTS, atol=1e-4))


def lazy_product(load: Callable[[], np.ndarray]) -> Graph:
    text = f"""graph(%x : Float(3, {SIZE})):
  %w : Float({SIZE}, {SIZE}) = prim::Constant[value=@"w"]()
  %y : Float(3, {SIZE}) = onnx::MatMul[since_version=13](%x, %w)
  return (%y)
"""
    return parse_graph(text, weights={"w": Tensor.lazy(DType.FLOAT, (SIZE, SIZE), load, "w")})


def test_the_weights_of_a_message_are_read_by_the_first_run() -> None:
    model = irc.compile(product())
    weight = model.module.weights["w"]
    assert weight.can_wait
    assert right(model)
    assert not weight.can_wait
    assert right(model)


def test_a_message_changed_after_the_first_run_changes_nothing() -> None:
    proto = product()
    model = irc.compile(proto)
    assert right(model)
    proto.graph.initializer[0].raw_data = bytes(SIZE * SIZE * 4)
    assert right(model)


@pytest.mark.parametrize("passes", ["default", "none"])
def test_a_message_changed_before_the_first_run_is_an_error(passes: str) -> None:
    proto = product()
    model = irc.compile(proto, passes)
    changed = WEIGHTS.copy()
    changed[17, 5] += 1
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(changed, "w"))
    for _ in range(2):
        with pytest.raises(Error, match="changed") as caught:
            model.run({"x": X})
        assert caught.value.code == "IRC130"
        assert "'w'" in caught.value.where
    proto.graph.initializer[0].raw_data = WEIGHTS.tobytes()
    assert right(model)


def test_messages_taken_apart_or_forgotten_keep_their_weights() -> None:
    proto = product()
    model, other = irc.compile(proto), irc.compile(proto)
    del proto.graph.initializer[:]
    assert right(model)
    proto.Clear()
    del proto
    assert right(other)


def test_the_model_file_may_be_rewritten_or_deleted(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(product(), path)
    model = irc.compile(path)
    contents = bytearray(path.read_bytes())
    contents[-SIZE * SIZE * 2 :] = bytes(SIZE * SIZE * 2)
    path.write_bytes(contents)
    assert right(model)
    onnx.save(product(), path)
    model = irc.compile(path)
    path.unlink()
    assert right(model)


def test_external_data_changed_before_the_first_run_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(product(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    model = irc.compile(path)
    data = tmp_path / "w.bin"
    data.write_bytes(bytes(data.stat().st_size))
    os.utime(data, ns=(1, 1))  # some file systems' clocks are coarse
    with pytest.raises(Error, match=r"^IRC130: .*changed"):
        model.run({"x": X})


def test_external_data_deleted_before_the_first_run(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(product(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    model = irc.compile(path)
    (tmp_path / "w.bin").unlink()
    assert right(model)


def test_first_runs_at_the_same_time_read_once() -> None:
    threads = 8
    loads: list[int] = []
    start = Barrier(threads)

    def load() -> np.ndarray:
        loads.append(1)
        return WEIGHTS.copy()

    model = CompiledModel(lazy_product(load))

    def run(_: int) -> bool:
        start.wait()
        return right(model)

    assert not loads
    with ThreadPoolExecutor(threads) as pool:
        assert all(pool.map(run, range(threads)))
    assert len(loads) == 1


def test_reading_that_failed_is_tried_again() -> None:
    answers = [OSError("the disk is on fire"), WEIGHTS]

    def load() -> np.ndarray:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    model = CompiledModel(lazy_product(load))
    with pytest.raises(OSError, match="fire"):
        model.run({"x": X})
    assert right(model)
    assert not answers


def test_saving_keeps_no_weights_in_memory(tmp_path: Path) -> None:
    model = irc.compile(product())
    model.save(tmp_path / "model.irc")
    assert model.module.weights["w"].can_wait
    assert right(irc.load(tmp_path / "model.irc"))
    assert right(model)


def test_weights_that_are_copied_lie_in_one_piece_of_memory_each_its_own_owner() -> None:
    found = [np.arange(n, dtype=dtype).reshape(1, n) for n, dtype in ((3, "u1"), (5, "f8"), (7, "f2"))]
    sources = [array.copy() for array in found]
    tensors = [
        Tensor.lazy(DType.from_numpy(array.dtype), array.shape, lambda array=array: array, transient=True)
        for array in sources
    ]
    load_together([*tensors, *tensors, Tensor.of(X)])
    for array in sources:
        array[...] = 0
    arrays = [tensor.numpy() for tensor in tensors]
    for array, wanted in zip(arrays, found, strict=True):
        assert np.array_equal(array, wanted) and array.dtype == wanted.dtype
        assert not array.flags.writeable and array.ctypes.data % 64 == 0 and owner(array).nbytes == array.nbytes
    places = [array.ctypes.data for array in arrays]
    assert np.diff(places).tolist() == [64, 64]
