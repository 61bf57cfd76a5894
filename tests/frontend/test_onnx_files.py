"""ONNX models as files: weights inside and beside, whole or not at all."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.frontend.onnx import import_model
from irc.frontend.onnx_export import export_model, model, save_model
from irc.ir import Module
from tests.effort import Tune
from tests.elsewhere import run_onnxruntime

WEIGHTS = {"a": 4, "b": 100, "c": 1, "d": 300_000, "e": 7}


def module() -> Module:
    """The sum of the sums of all weights, and a string."""
    nodes = [helper.make_node("ReduceSum", [name], [f"sum_{name}"], keepdims=0) for name in WEIGHTS]
    nodes.append(helper.make_node("Sum", [f"sum_{name}" for name in WEIGHTS], ["y"]))
    nodes.append(helper.make_node("Identity", ["s"], ["z"]))
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, []),
        helper.make_tensor_value_info("z", TensorProto.STRING, [40]),
    ]
    tensors = [numpy_helper.from_array(np.arange(n, dtype=np.float32), name) for name, n in WEIGHTS.items()]
    tensors.append(numpy_helper.from_array(np.array(["long"] * 40, object), "s"))
    graph = helper.make_graph(nodes, "g", [], outputs, tensors)
    return import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def external(proto: onnx.ModelProto) -> dict[str, dict[str, str]]:
    return {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data}
        for tensor in proto.graph.initializer
        if tensor.data_location == TensorProto.EXTERNAL
    }


def check(path: Path) -> None:
    """The model is valid, and computes what it should."""
    onnx.checker.check_model(str(path), full_check=True)
    wanted = sum(np.arange(n, dtype=np.float32).sum() for n in WEIGHTS.values())
    np.testing.assert_allclose(run_onnxruntime(path, {})[0], wanted, rtol=1e-5)
    again = irc.compile(str(path)).run({})
    np.testing.assert_allclose(again["y"], wanted, rtol=1e-5)
    assert again["z"].tolist() == ["long"] * 40


def test_models_that_are_too_large_for_a_message(tmp_path: Path, tune: Tune) -> None:
    """The limit is 2 GB; here it is 1 MB, for the sake of the disk."""
    tune("irc.frontend.onnx_export.tensors.MAX_BYTES", 1 << 20)
    with pytest.raises(irc.Error, match=r"IRC352.*by path"):
        export_model(module())
    save_model(module(), tmp_path / "m.onnx")
    assert "".join(external(onnx.load(tmp_path / "m.onnx", load_external_data=False))) == "d"
    check(tmp_path / "m.onnx")
    with pytest.raises(irc.Error, match=r"IRC352.* give a lower threshold"):
        save_model(module(), tmp_path / "n.onnx", 1 << 30)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]


@pytest.mark.parametrize("names", [["default", "another"], ["splat", "other splat"], ["default", "splat"]])
def test_all_that_is_too_large_for_a_message_goes_beside_it(names: list[str], tmp_path: Path, tune: Tune) -> None:
    """Not only weights that stand in the weight table."""
    tune("irc.frontend.onnx_export.tensors.MAX_BYTES", 1 << 20)
    size = 150_000
    arrays = {
        name: np.full(size, len(name), np.float32) if "splat" in name else np.arange(size, dtype=np.float32)
        for name in names
    }
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in (*names, "y")]
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    defaults = [info for info in infos[:-1] if "splat" not in info.name]
    graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "g", defaults, infos[-1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "in.onnx")
    source = import_model(tmp_path / "in.onnx")
    assert not source.weights
    with pytest.raises(irc.Error, match=r"IRC352.*by path"):
        export_model(source)
    path = tmp_path / "m.onnx"
    save_model(source, path)
    assert set(external(onnx.load(path, load_external_data=False))) == set(names)
    np.testing.assert_array_equal(run_onnxruntime(path, {})[0], sum(arrays.values()))


def test_a_message_that_protobuf_does_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from google.protobuf.message import EncodeError

    class Large:
        def ByteSize(self) -> int:
            return 0

        def SerializeToString(self) -> bytes:
            raise EncodeError("Failed to serialize proto")

    monkeypatch.setattr(model, "write_model", lambda *_: Large())
    with pytest.raises(irc.Error, match="IRC352"):
        save_model(module(), tmp_path / "m.onnx")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("obstacle", ["m.onnx", "m.onnx.data"])
def test_if_a_file_cannot_be_written_all_stays_as_it_was(tmp_path: Path, obstacle: str) -> None:
    (tmp_path / obstacle).mkdir()
    with pytest.raises(irc.Error, match="IRC501"):
        save_model(module(), tmp_path / "m.onnx", 400)
    assert os.listdir(tmp_path) == [obstacle]


def test_a_model_that_replaces_another(tmp_path: Path) -> None:
    save_model(module(), tmp_path / "m.onnx", 4)
    save_model(
        import_model(tmp_path / "m.onnx"), tmp_path / "m.onnx", 400
    )  # its weights are read from what it replaces
    assert "".join(external(onnx.load(tmp_path / "m.onnx", load_external_data=False))) == "bd"
    check(tmp_path / "m.onnx")


@pytest.mark.parametrize("link", [False, True])
def test_data_that_the_model_is_read_from_is_not_replaced(tmp_path: Path, link: bool) -> None:
    given, out, data = tmp_path / "in.onnx", tmp_path / "out.onnx", tmp_path / "out.onnx.data"
    save_model(module(), out, 400)
    out.rename(given)
    before = data.read_bytes()
    if link:
        out = tmp_path / "linked.onnx"
        (tmp_path / "linked.onnx.data").symlink_to(data)
    names = sorted(os.listdir(tmp_path))
    for source in (import_model(given), import_model(onnx.load(given, load_external_data=False), tmp_path)):
        with pytest.raises(irc.Error, match=r"^IRC503: .*onnx\.data: the model is read from this file"):
            save_model(source, out, 4)
        with pytest.raises(irc.Error, match="IRC503"):  # as the model, not beside it
            save_model(source.copy(), data)
    assert sorted(os.listdir(tmp_path)) == names
    assert data.read_bytes() == before
    save_model(import_model(given), out)  # nothing goes into the other file
    check(given)
    check(out)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "m.onnx").symlink_to(tmp_path / "real" / "there.onnx")
    save_model(module(), tmp_path / "m.onnx", 400)
    assert (tmp_path / "m.onnx").is_symlink()
    assert sorted(os.listdir(tmp_path / "real")) == ["there.onnx", "there.onnx.data"]
    check(tmp_path / "real" / "there.onnx")
