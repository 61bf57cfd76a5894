"""``.irc`` files: what survives, what is refused."""

import copy
import json
import os
import pickle
import struct
import subprocess
import sys
import zlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import irc
from irc.errors import Error
from irc.ir import Builder, DType, Graph, Module, Tensor, clone_node, parse_module, types
from irc.ir.objects import map_tensors
from irc.runtime.file import MAGIC, read
from irc.runtime.model import CompiledModel, load
from irc.runtime.report import Report
from irc.support.remarks import PassRun, Remark
from tests.effort import examples
from tests.graphs import ir
from tests.runtime.helpers import f32, i64, model_of

PREFIX = struct.Struct("<8sIIQQ")

TEXT = """
graph(%x : Float(n, 3), %m : Long()):
  %yes : Bool() = prim::Constant[value=tensor<Bool()>([True])]()
  %w : Float(3, 8) = prim::Constant[value=@"w 1"]()
  %z : Float(8) = prim::Constant[value=splat<Float(8)>(0.25)]()
  %f : Function = prim::Constant[name="odd.Name"]()
  %p : Float(n, 8) = onnx::MatMul(%x, %w)
  %q : Float(n, 8) = prim::FusionGroup_0(%p, %z)
  %r : Float(n, 8), %s : Tensor = onnx::Loop(%m, %yes, %q)
    block0(%i : Long(), %go : Bool(), %v : Float(n, 8)):
      %t : Float(n, 8) = prim::CallFunction(%f, %v)
      -> (%go, %t, %t)
  return (%r, %s)
with prim::FusionGroup_0 = graph(%p : Float(n, 8), %z : Float(8)):
  %k : Float(8) = prim::Constant[value=@"k"]()
  %a : Float(n, 8) = onnx::Add(%p, %z)
  %b : Float(n, 8) = onnx::Mul(%a, %k)
  return (%b)

graph odd.Name(%v : Float(n, 8)):
  %k : Float(8) = prim::Constant[value=@"k"]()
  %w : Float(n, 8) = onnx::Sub(%v, %k) # minus
  return (%w)
"""
RNG = np.random.default_rng(0)
WEIGHTS = {"w 1": RNG.random((3, 8), np.float32), "k": RNG.random(8, np.float32)}
FEEDS = {"x": RNG.random((2, 3), np.float32), "m": i64(3)}


def same(a, b) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


@pytest.fixture
def model():
    return model_of(TEXT, **WEIGHTS)


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "model.irc")
    return tmp_path / "model.irc"


def test_a_loaded_model_is_the_saved_one(model, path):
    loaded = load(path)
    assert same(loaded.run(FEEDS), model.run(FEEDS))
    assert loaded.inputs == model.inputs and loaded.outputs == model.outputs
    assert str(loaded.module) == str(model.module)
    loaded.save(path)  # over the file that it is mapped from
    assert same(load(path).run(FEEDS), model.run(FEEDS))
    assert same(loaded.run(FEEDS), model.run(FEEDS))


def test_metadata_defaults_and_report(tmp_path):
    module = Module()
    graph = module.main
    x, w = graph.add_input(types.tensor(DType.FLOAT, (2,)), "x"), graph.add_input(types.tensor(DType.FLOAT, (2,)), "w")
    graph.set_outputs([Builder(graph).op("onnx::Mul", x, w, type=x.type, name="y")])
    module.defaults["w"] = Tensor.of(f32(2, 3))
    module.metadata["producer"] = 'näme "quoted" \ud800'
    report = Report(name="m", passes=[PassRun("cse", 0.5, True)], remarks=[Remark("fuse", "a", "b")])
    CompiledModel(module, report).save(tmp_path / "m.irc")
    loaded = load(tmp_path / "m.irc")
    assert loaded.report == report
    assert loaded.module.metadata == module.metadata
    assert loaded.run({"x": f32(1, 2)})["y"].tolist() == [2, 6]
    assert loaded.run({"x": f32(1, 2), "w": f32(1, 1)})["y"].tolist() == [1, 2]


ARRAYS = {
    "float": RNG.random((3, 50), np.float32),
    "odd strides": RNG.random((7, 50), np.float64).T[::2],
    "bool": RNG.random(50) < 0.5,
    "int8": RNG.integers(-128, 127, 51).astype(np.int8),
    "complex": RNG.random(20) + 1j,
    "half": RNG.random(33).astype(np.float16),
    "bfloat16": RNG.random((2, 20)).astype(ml_dtypes.bfloat16),
    "float8": RNG.random(21).astype(ml_dtypes.float8_e4m3fn),
    "int4": RNG.integers(-8, 7, 21).astype(ml_dtypes.int4),
    "nan": np.array([np.nan, -0.0, 0.0, np.inf] * 6, np.float32),
    "empty": np.zeros((0, 20), np.float32),
    "strings": np.array([f"s{i}" * i for i in range(20)] + ["", "é\0\n", "\ud8ff", "🙂"], object),
    "no strings": np.array([], object),
    "scalar": np.array(3, np.int64),
    "splat": np.full((1000, 1000), 7, np.uint16),
    "string splat": np.array(["a"] * 100, object),
}


@pytest.mark.parametrize("named", [True, False])
def test_every_kind_of_tensor(tmp_path, named):
    graph = Graph()
    b = Builder(graph)
    for name, array in ARRAYS.items():
        tensor = Tensor.of(array)
        graph.set_outputs(
            [*graph.outputs, b.constant(graph.weights.add(name, tensor) if named else tensor, name=f"out {name}")]
        )
    model = CompiledModel(graph)
    model.save(tmp_path / "m.irc")
    got = load(tmp_path / "m.irc").run({})
    for name, array in ARRAYS.items():
        result = got[f"out {name}"]
        assert result.dtype == array.dtype and result.shape == array.shape, name
        if array.dtype.hasobject:
            assert result.tolist() == array.tolist()
        else:
            assert result.tobytes() == array.tobytes(), name
    assert os.path.getsize(tmp_path / "m.irc") < 30_000  # the splat is stored as one element


def test_large_tensors_are_not_stored_as_text(tmp_path):
    graph = Graph()
    array = RNG.random(1000, np.float32)
    graph.set_outputs([Builder(graph).constant(Tensor.of(array), name="y")])
    model = CompiledModel(graph)
    model.save(tmp_path / "m.irc")
    assert os.path.getsize(tmp_path / "m.irc") < 5000
    assert np.array_equal(load(tmp_path / "m.irc").run({})["y"], array)
    assert not graph.weights  # saving leaves the model as it is


def test_weights_are_mapped_and_aligned(path):
    loaded = load(path)
    for tensor in loaded.module.weights.values():
        array = tensor.numpy()
        assert array.ctypes.data % 64 == 0
        owner = array
        while isinstance(owner, np.ndarray):
            assert not owner.flags.owndata and not owner.flags.writeable
            owner = owner.base
        assert type(getattr(owner, "obj", owner)).__name__ == "mmap"


def test_results_do_not_share_with_the_file(path):
    loaded = load(path)
    first = loaded.run(FEEDS)
    for array in first.values():
        array[...] = 0
    assert same(loaded.run(FEEDS), load(path).run(FEEDS))


def test_loading_and_running_need_no_onnx(path):
    script = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("onnx", "networkx", "rich"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
import numpy as np
from irc.runtime.model import load
model = load(sys.argv[1])
out = model.run({"x": np.ones((2, 3), np.float32), "m": 3})
print(out["r"].shape, "onnx" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 8) False\n", done.stderr


# -- bad files -----------------------------------------------------------------


def refusal(path) -> Error:
    with pytest.raises(Error) as caught:
        load(path)
    assert str(path) in caught.value.where
    return caught.value


@pytest.mark.parametrize("contents", [b"", b"\x89", b"\x08\x07\x12\x04onnx", b"PK\x03\x04" * 20, MAGIC[:-1]])
def test_foreign_files(tmp_path, contents):
    path = tmp_path / "m.irc"
    path.write_bytes(contents)
    assert refusal(path).code == "IRC510"


def test_files_of_a_newer_irc(path):
    raw = bytearray(path.read_bytes())
    raw[8] = 2
    path.write_bytes(raw)
    error = refusal(path)
    assert error.code == "IRC511" and "version 2" in error.message


def test_truncated_files(path):
    raw = path.read_bytes()
    for size in (len(MAGIC), len(MAGIC) + 3, 31, 32, 100, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:size])
        assert refusal(path).code == "IRC512"
    path.write_bytes(raw + b"\0")
    assert refusal(path).code == "IRC512"


def test_a_damaged_header(path):
    raw = bytearray(path.read_bytes())
    raw[40] ^= 1
    path.write_bytes(raw)
    assert refusal(path).code == "IRC513"


def parts(raw: bytes):
    size = PREFIX.unpack_from(raw)[3]
    start = -(-(PREFIX.size + size) // 64) * 64
    return json.loads(raw[PREFIX.size : PREFIX.size + size]), raw[start:]


def assembled(header, data: bytes) -> bytes:
    """A file with a header of our own, its checksum right."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = -(-(PREFIX.size + len(text)) // 64) * 64
    prefix = PREFIX.pack(MAGIC, 1, zlib.crc32(text), len(text), start + len(data))
    return (prefix + text).ljust(start, b"\0") + data


@pytest.mark.parametrize("header", [b"", b"{", b"[]", b"3", b"{}", b"[" * 100_000, b'{"ir": 1}', b"\xff", b"null"])
def test_headers_that_are_none(path, header):
    path.write_bytes(assembled(header, b""))
    assert refusal(path).code == "IRC513"


HUGE = 1 << 62


@pytest.mark.parametrize(
    "change",
    [
        *[{"shape": s} for s in ([3, 9], [HUGE, HUGE], [-3, -8], [3.0, 8], [True, 24], "38", [1] * 70 + [24])],
        *[{"bytes": n} for n in (95, HUGE, -1)],
        *[{"offset": n} for n in (HUGE, -64, 1, None)],
        *[{"dtype": name} for name in ("Floot", 3, "Double", "String")],
        {"splat": True},
        {"shape": [HUGE], "splat": True, "bytes": 4},
    ],
)
def test_inconsistent_tensors(path, change):
    header, data = parts(path.read_bytes())
    header["weights"]["w 1"] |= change
    path.write_bytes(assembled(header, data))
    assert refusal(path).code == "IRC513"


def test_a_shape_without_end_is_refused_at_once(path):
    """The product of so many sizes takes minutes, and has as many digits."""
    header, data = parts(path.read_bytes())
    header["weights"]["w 1"]["shape"] = [HUGE] * 400_000
    path.write_bytes(assembled(header, data))
    error = refusal(path)
    assert error.code == "IRC513" and len(error.message) < 200


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ir", "graph("),
        ("ir", "graph(%x : Float(2)):\n  %y : Float(2) = onnx::Neg(%z)\n  return (%y)\n"),
        *[("ir", text) for text in (3, "")],
        *[("weights", given) for given in ({}, [], {"w 1": None})],
        ("defaults", {"x": 1}),
        ("defaults", {"nothing": {"dtype": "Float", "shape": [0], "offset": 0, "bytes": 0}}),
        ("metadata", 5),
        *[("objects", {"x": value}) for value in (5, {"complex": [10**400, 1]}, {"complex": [1, "2"]})],
        *[("report", given) for given in ("fine", [], {"name": 5}, {"notes": [5]}, {"operators_before": None})],
        *[("report", {"passes": [given]}) for given in (1, {"name": "cse"})],
        ("report", {"passes": [{"name": "cse", "seconds": "1", "changed": True}]}),
        ("report", {"groups": [{"result": "x", "operators": "relu"}]}),
        *[("report", {"seconds": given}) for given in (5, {"import": None})],
        *[("report", {"nodes_before": given}) for given in (1.5, True)],
        *[("report", {"memory": given}) for given in ({"weights": 10**400}, {"peak": "1"}, None)],
        ("byteorder", "middle"),
    ],
)
def test_inconsistent_headers(path, key, value):
    header, data = parts(path.read_bytes())
    header[key] = value
    path.write_bytes(assembled(header, data))
    error = refusal(path)
    assert error.code == "IRC513" and "IRC" not in error.message
    if key != "objects":  # which a model need not have
        del header[key]
        path.write_bytes(assembled(header, data))
        assert refusal(path).code == "IRC513"


def test_operators_that_this_irc_does_not_have(path):
    header, data = parts(path.read_bytes())
    header["ir"] = header["ir"].replace("onnx::MatMul", "onnx::MattMull")
    path.write_bytes(assembled(header, data))
    error = refusal(path)
    assert error.code == "IRC323" and "MattMull" in error.message
    assert "onnx::MattMull" in str(read(path)[0]), "one can look at it nevertheless"


def saved(tmp_path, array):
    """The path of a model whose one weight is ``array``, and the parts of the file."""
    graph = Graph()
    graph.set_outputs([Builder(graph).constant(graph.weights.add("w", Tensor.of(array)))])
    path = tmp_path / "m.irc"
    CompiledModel(graph).save(path)
    return path, *parts(path.read_bytes())


@pytest.mark.parametrize("offsets", [[0, 1, 2, 9], [0, 2, 1, 3], [1, 1, 2, 3], [0, 1, 2, 2], [0, 2**63, 1, 3]])
def test_inconsistent_strings(tmp_path, offsets):
    path, header, data = saved(tmp_path, np.array(["a", "b", "c"], object))
    path.write_bytes(assembled(header, np.array(offsets, np.uint64).tobytes() + data[32:]))
    with pytest.raises(Error, match="strings"):
        load(path).run({})


@pytest.mark.parametrize("text", [b"\xff", b"\xc3"])
def test_strings_that_are_no_utf8(tmp_path, text):
    path, header, data = saved(tmp_path, np.array(["a"], object))
    path.write_bytes(assembled(header, data[:16] + text + data[17:]))
    with pytest.raises(Error, match="UTF-8"):
        load(path).run({})


SMALL = [dtype for dtype in DType if dtype is DType.BOOL or 0 < dtype.bits < 8]


@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: dtype.label)
def test_bytes_that_are_no_elements(tmp_path, dtype):
    bits = 1 if dtype is DType.BOOL else dtype.bits
    array = np.arange(1 << bits).astype(np.uint8).view(dtype.numpy)
    path, header, data = saved(tmp_path, array)
    (found,) = load(path).run({}).values()
    assert found.tobytes() == array.tobytes()
    for byte in (1 << bits, 0x80, 0xFF):
        path.write_bytes(assembled(header, bytes([byte]) + data[1:]))
        with pytest.raises(Error, match=f"IRC513.*no {dtype.label}"):
            load(path).run({})


def loads_or_refuses(path) -> None:
    """A model, whose run gives results or an `Error`, or an `Error`; nothing else may happen."""
    try:
        loaded = load(path)
        loaded.run({i.name: FEEDS[i.name] for i in loaded.inputs if i.name in FEEDS})
    except Error:
        pass


@examples(150, HealthCheck.function_scoped_fixture)
@given(st.data())
def test_flipped_bits_and_cuts(path, data):
    raw = path.read_bytes()
    broken = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    target = path.with_name("broken.irc")
    target.write_bytes(broken[: data.draw(st.integers(0, len(raw)) | st.just(len(raw)))])
    loads_or_refuses(target)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@examples(150, HealthCheck.function_scoped_fixture)
@given(st.data())
def test_headers_with_changed_values(path, data):
    """The checksum is right, so that what lies behind it is reached."""
    header, tail = parts(path.read_bytes())
    place, key = header, data.draw(st.sampled_from(sorted(header)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(JSON)
    target = path.with_name("broken.irc")
    target.write_bytes(assembled(header, tail))
    loads_or_refuses(target)


@examples(150, HealthCheck.function_scoped_fixture)
@given(st.data())
def test_ir_text_with_changed_characters(path, data):
    header, tail = parts(path.read_bytes())
    text = header["ir"]
    at = data.draw(st.integers(0, len(text) - 1))
    replacement = data.draw(
        st.sampled_from(["", "0", "9", "(", ")", "%", " ", "\n", "[", '"', "x", "-", "@"]) | st.text()
    )
    header["ir"] = text[:at] + replacement + text[at + data.draw(st.integers(0, 3)) :]
    target = path.with_name("broken.irc")
    target.write_bytes(assembled(header, tail))
    loads_or_refuses(target)


# -- writing -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "raised", "says"),
    [
        (OSError(28, "No space left on device"), Error, r"^IRC501: .*No space left"),
        (KeyboardInterrupt(), KeyboardInterrupt, ""),
    ],
)
def test_nothing_half_written_is_left(failure, raised, says, tmp_path, model, monkeypatch):
    def fail(file, tensor):
        file.write(b"some")
        raise failure

    model.save(tmp_path / "m.irc")
    before = (tmp_path / "m.irc").read_bytes()
    monkeypatch.setattr("irc.runtime.file.write_tensor", fail)
    for name in ("m.irc", "new.irc"):
        with pytest.raises(raised, match=says):
            model.save(tmp_path / name)
        assert os.listdir(tmp_path) == ["m.irc"]
        assert (tmp_path / "m.irc").read_bytes() == before


def test_names_of_onnx_files(tmp_path, model):
    for name in ("m.onnx", "M.ONNX"):
        (tmp_path / name).write_bytes(b"a model")
        with pytest.raises(Error, match=rf"IRC503: .*{name}: .*irc\.export\(model, path\)"):
            model.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == b"a model"


def test_names_in_bytes(tmp_path, model):
    model.save(os.fsencode(tmp_path / "b.irc"))
    assert same(load(os.fsencode(tmp_path / "b.irc")).run(FEEDS), model.run(FEEDS))


def test_places_that_cannot_be_written(tmp_path, model):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "none" / "m.irc", tmp_path / "folder"):
        with pytest.raises(Error) as caught:
            model.save(path)
        assert caught.value.code == "IRC501" and str(path) in caught.value.where
    assert os.listdir(tmp_path) == ["folder"] and not os.listdir(tmp_path / "folder")


def test_a_pipe_takes_a_model(tmp_path, model, path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        model.save(tmp_path / "pipe")
        assert reader.communicate()[0] == path.read_bytes()


def test_a_function_of_a_module_can_be_a_model(tmp_path, model):
    model.module.defaults["m"] = Tensor.of(i64(3))  # of the main graph's input
    function = CompiledModel(model.module.graphs["odd.Name"])
    function.save(tmp_path / "f.irc")
    x = RNG.random((2, 8), np.float32)
    (got,) = load(tmp_path / "f.irc").run({"v": x}).values()
    np.testing.assert_array_equal(got, x - WEIGHTS["k"])


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("form", ["({v}, {w})", "[{v}, {w}]", "({v}, ({w}, 3))"])
def test_tensors_in_constant_containers(tmp_path, form, passes, named):
    """As ``torch.jit.freeze`` makes them of attributes."""
    weights = {name: Tensor.of(np.arange(300, dtype=np.float32) * i) for i, name in enumerate("vw", 1)}
    types_of = {"(": "(Tensor, Tensor)", "[": "Tensor[]"}
    type_text = "(Tensor, (Tensor, int))" if "3" in form else types_of[form[0]]
    taken = form.format(v='@"v"', w='@"w"')
    text = f"""graph(%x : Float(300), %i : int):
      %t : {type_text} = prim::Constant[value={taken}]()
      %u : Any = {"aten::__getitem__" if form[0] == "[" else "prim::TupleIndex"}(%t, %i)
      return (%u, %t, %x)
    """
    module = parse_module(text, weights=weights)
    if not named:  # large ones get names when the file is written
        (node,) = [node for node in module.main.nodes if node.kind == "prim::Constant"]
        node.attributes["value"] = map_tensors(node.attributes["value"], lambda t: Tensor.of(t.numpy()))
    model = irc.compile(module, passes)
    assert model.report.memory.weights == 2400
    path = tmp_path / "t.irc"
    model.save(path)
    loaded = irc.load(path)
    feeds = {"x": np.zeros(300, np.float32), "i": 0}
    for found, expected in zip(loaded.run(feeds).values(), model.run(feeds).values()):
        assert repr(found) == repr(expected)
    copy = loaded.graph.copy()
    copy.verify()
    other = Graph("other")
    for node in loaded.graph.nodes:
        if node.kind == "prim::Constant":
            other.block.append(clone_node(node, other, {}))
    other.verify()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda report: pickle.loads(pickle.dumps(report))])
def test_a_report_is_copied_before_it_is_read(copied):
    report, again = (irc.compile(parse_module(ir("x: Float(2)", "y = Relu(x)", "y"))).report for _ in range(2))
    for each in (copied(report), report):
        assert each.memory == again.memory and each.alias == again.alias
        assert each.after == again.after and each.sizes == again.sizes
