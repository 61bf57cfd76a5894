"""Model files: weights left in the file, external data, and everything that can be wrong with either."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import irc.errors
from irc.frontend.onnx import files, import_model
from irc.ir import Module, Tensor
from tests.frontend.helpers import DATA, changed, from_nodes, refused, weight

BIG = (64, 65)


def adding(*weights: onnx.TensorProto) -> onnx.ModelProto:
    casts = [helper.make_node("Cast", [w.name], [f"{w.name} cast"], to=onnx.TensorProto.FLOAT) for w in weights]
    total = helper.make_node("Sum", ["x", *[cast.output[0] for cast in casts]], ["y"])
    return from_nodes([*casts, total], initializers=list(weights))


def contents(module: Module, name: str = "w") -> Tensor:
    return module.main.value(name).node.attributes["value"]


# -- large weights stay in the file ------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    splat = numpy_helper.from_array(np.full(BIG, 3, np.float32), "splat")
    small = weight("small", (3,))
    odd = weight("odd", (9001,), np.int8)
    onnx.save(adding(small, weight("w", BIG), splat, odd, weight("v", BIG, np.float64)), path)
    return path


def test_by_path_and_as_proto_a_model_is_the_same(saved: Path) -> None:
    by_path, by_proto = import_model(saved), import_model(onnx.load(saved))
    assert str(by_path) == str(by_proto)
    assert list(by_path.weights) == ["w", "odd", "v"]
    for name, tensor in by_proto.weights.items():
        np.testing.assert_array_equal(by_path.weights[name].numpy(), tensor.numpy())
        array = by_path.weights[name].numpy()
        assert array.flags.aligned
        assert not array.flags.writeable
    assert contents(by_path, "splat").is_splat


def test_large_weights_are_not_parsed(saved: Path) -> None:
    source = files.read_file(str(saved))
    assert list(source.regions) == [1, 2, 3, 4]
    assert source.model.ByteSize() < 1000
    assert len(source.model.graph.initializer) == 5


def test_a_file_may_be_replaced_or_deleted_before_its_weights_are_read(saved: Path) -> None:
    modules = [import_model(saved) for _ in range(2)]
    other = saved.with_suffix(".new")
    other.write_bytes(b"something else")
    os.replace(other, saved)
    saved.unlink()
    for module in modules:
        assert contents(module).numpy()[1, 0] == BIG[1]


def test_a_file_that_is_overwritten_in_place_is_noticed(saved: Path) -> None:
    module = import_model(saved)
    status = saved.stat()
    with open(saved, "r+b") as file:
        file.seek(200)
        file.write(b"\0" * 100)
    os.utime(saved, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with pytest.raises(irc.errors.Error, match="changed since") as caught:
        contents(module).numpy()
    assert caught.value.code == "IRC130"
    assert str(saved) in caught.value.where


def test_a_file_that_is_overwritten_is_noticed_from_another_folder(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    module = import_model(saved.name)
    monkeypatch.chdir(saved.anchor)
    os.utime(saved, ns=(0, 0))
    with pytest.raises(irc.errors.Error, match=r"IRC130.*changed since"):
        contents(module).numpy()


def test_a_weight_of_another_size_than_its_shape(saved: Path) -> None:
    proto = onnx.load(saved)
    proto.graph.initializer[1].dims[0] += 1
    onnx.save(proto, saved)
    refused("IRC129", saved, str(saved), "'w'", "16640 are there")


def test_a_large_weight_that_claims_to_be_strings(saved: Path) -> None:
    onnx.save(changed(onnx.load(saved), lambda m: setattr(m.graph.initializer[1], "data_type", 8)), saved)
    refused("IRC129", saved, "'w'", "string_data")


def test_splitting_loses_nothing() -> None:
    for path in [*DATA.glob("light/*.onnx"), *DATA.glob("simple/*/model.onnx")]:
        data = path.read_bytes()
        found = files.split(memoryview(data))
        if found is None:
            continue
        model = onnx.load_model_from_string(found.message)
        for number, (offset, length) in found.places.items():
            model.graph.initializer[number].raw_data = data[offset : offset + length]
        assert model == onnx.load_model_from_string(data)


@given(st.lists(st.integers(0, 3 * files.SMALLEST), max_size=5), st.integers(0, 3), st.binary(max_size=8))
def test_splitting_any_model(sizes: list[int], nodes: int, tail: bytes) -> None:
    weights = [weight(f"w{i}", (size,), np.uint8) for i, size in enumerate(sizes)]
    proto = adding(*weights)
    proto.graph.node.extend([helper.make_node("Neg", ["x"], [f"n{i}"]) for i in range(nodes)])
    data = proto.SerializeToString()
    found = files.split(memoryview(data))
    large = {i for i, size in enumerate(sizes) if size >= files.SMALLEST}
    assert set(found.places if found else ()) == large
    if found:
        rest = onnx.load_model_from_string(found.message)
        assert [len(w.raw_data) for w in rest.graph.initializer] == [
            0 if i in large else s for i, s in enumerate(sizes)
        ]
        assert rest.graph.node == proto.graph.node
        assert rest.opset_import == proto.opset_import
    files.split(memoryview(data + tail))  # whatever comes after, it ends


@given(st.binary(max_size=200))
def test_splitting_garbage(data: bytes) -> None:
    assert files.split(memoryview(data)) is None


# -- files that are not models ------------------------------------------------


def test_missing_file(tmp_path: Path) -> None:
    refused("IRC120", tmp_path / "none.onnx", "none.onnx", "no such file")
    refused("IRC120", str(tmp_path / "none.onnx"), "none.onnx")
    refused("IRC120", "nul\0.onnx")
    refused("IRC120", "x" * 5000, "cannot read the file: File name too long")


@pytest.mark.parametrize("source", [b"bytes", None, 3, onnx.GraphProto()])
def test_neither_path_nor_model(source: Any) -> None:
    refused("IRC121", source, type(source).__name__)


def test_folder(tmp_path: Path) -> None:
    refused("IRC120", tmp_path, "folder")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused("IRC120", tmp_path / "pipe", "regular file")


def test_a_file_over_two_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with open(path, "wb") as file:
        file.truncate(2**31)  # sparse: takes no space
    refused("IRC120", path, "2147483648", "external data")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "no graph"),
        (b"hello, world\n", "not an ONNX model"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"{}", "ONNX model"),
        (bytes(1000), "not an ONNX model"),
    ],
)
def test_not_a_model(tmp_path: Path, data: bytes, word: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    refused("IRC121", path, str(path), word)


def test_truncated_models(saved: Path) -> None:
    data = saved.read_bytes()
    codes = set()
    for length in [*range(400), *range(400, len(data), 997), *range(len(data) - 40, len(data))]:
        saved.write_bytes(data[:length])
        with pytest.raises(irc.errors.Error) as caught:
            import_model(saved)
        codes.add(caught.value.code)
    assert codes == {"IRC121", "IRC122"}


# -- external data -----------------------------------------------------------


@pytest.fixture
def external(tmp_path: Path) -> Path:
    """A model whose weight w lies in w.bin, at offset 4096."""
    (tmp_path / "model").mkdir()
    path = tmp_path / "model" / "m.onnx"
    array = np.arange(np.prod(BIG), dtype=np.float32).reshape(BIG)
    (path.parent / "w.bin").write_bytes(bytes(4096) + array.tobytes())
    onnx.save(located("w.bin", offset=4096, length=array.nbytes), path)
    return path


def located(location: str, **entries: Any) -> onnx.ModelProto:
    proto = adding(weight("w", BIG))
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return proto


def test_external_data_is_mapped(external: Path) -> None:
    for source, folder in ((external, None), (onnx.load(external, load_external_data=False), external.parent)):
        tensor = contents(import_model(source, folder))
        np.testing.assert_array_equal(tensor.numpy().reshape(-1), np.arange(np.prod(BIG)))
        base: Any = tensor.numpy()
        while isinstance(base, np.ndarray):
            base = base.base
        assert isinstance(base, memoryview)  # of the map, not a copy
    refused("IRC130", onnx.load(external, load_external_data=False), "give the path of the model instead, or")


@pytest.mark.parametrize("change", ["truncated", "renamed and truncated", "renamed", "replaced", "written"])
def test_external_data_that_changes(external: Path, change: str) -> None:
    module, data = import_model(external), external.parent / "w.bin"
    if change.startswith("renamed"):
        data = data.rename(data.with_suffix(".old"))
    if change.endswith("truncated"):
        os.truncate(data, 100)
    elif change == "replaced":
        (external.parent / "new").write_bytes(b"other")
        os.replace(external.parent / "new", data)
    elif change == "written":
        os.utime(data, ns=(0, 0))
    if change in ("renamed", "replaced"):
        assert contents(module).numpy()[1, 0] == BIG[1]
    else:
        with pytest.raises(irc.errors.Error, match=r"IRC130.*changed since"):
            contents(module).numpy()


@pytest.mark.parametrize(
    ("offset", "words"),
    [("9" * 5000, ("more than any file has", f"'{'9' * 40}'...")), ("-1", ("not a number of bytes: '-1'",))],
)
def test_offsets_that_no_file_has(external: Path, offset: str, words: tuple[str, ...]) -> None:
    onnx.save(located("w.bin", offset=offset), external)
    assert len(str(refused("IRC130", external, *words))) < 300


@pytest.mark.parametrize("offset", [None, 0, 1, 4096])
def test_external_data_at_any_offset(external: Path, offset: int | None) -> None:
    array = np.arange(np.prod(BIG), dtype=np.float32).reshape(BIG)
    (external.parent / "w.bin").write_bytes(bytes(offset or 0) + array.tobytes())
    onnx.save(located("w.bin", **({} if offset is None else {"offset": offset})), external)
    found = contents(import_model(external)).numpy()
    np.testing.assert_array_equal(found, array)
    assert found.flags.aligned


def test_links_that_stay_inside(external: Path) -> None:
    os.symlink("w.bin", external.parent / "link.bin")
    onnx.save(located("./link.bin", offset=4096), external)
    assert contents(import_model(external)).numpy()[0, 1] == 1


def outside(folder: Path) -> str:
    target = folder.parent / "secret"
    target.write_bytes(bytes(20000))
    os.symlink(target, folder / "link")
    return "link"


@pytest.mark.parametrize(
    ("location", "entries", "words"),
    [
        ("missing.bin", {}, ["cannot read its external data 'missing.bin': No such file"]),
        ("", {}, ["location"]),
        ("a\0b", {}, ["location"]),
        (".", {}, ["cannot read", "directory"]),
        ("x" * 5000, {}, ["cannot read", "xxx: File name too long"]),
        ("../secret", {}, ["leaves"]),
        ("a/../../secret", {}, ["leaves"]),
        ("..\\secret", {}, ["leaves"]),
        ("/etc/passwd", {}, ["absolute"]),
        ("C:\\secret", {}, ["absolute"]),
        ("\\\\host\\share\\x", {}, ["absolute"]),
        (outside, {}, ["link"]),
        ("w.bin", {"offset": 4097}, ["from offset 4097"]),
        ("w.bin", {"offset": 10**18}, ["from offset"]),
        ("w.bin", {"offset": -1}, ["offset", "-1"]),
        ("w.bin", {"offset": "1_0"}, ["offset"]),
        ("w.bin", {"offset": "9" * 100}, ["offset"]),
        ("w.bin", {"offset": "٣"}, ["offset"]),
        ("w.bin", {"length": "x"}, ["length"]),
        ("w.bin", {"length": 4}, ["4 bytes long", "16640"]),
        ("w.bin", {"length": 20000}, ["20000 bytes long"]),
    ],
)
def test_external_data_that_is_refused(
    external: Path, location: str | Callable[[Path], str], entries: dict[str, Any], words: list[str]
) -> None:
    name = location if isinstance(location, str) else location(external.parent)
    onnx.save(located(name, **entries), external)
    refused("IRC130", external, "'w'", str(external), *words)


def test_external_data_of_absurd_size_allocates_nothing(external: Path) -> None:
    proto = changed(located("w.bin"), lambda m: m.graph.initializer[0].dims.append(1 << 40))
    onnx.save(proto, external)
    refused("IRC130", external, "are needed")
