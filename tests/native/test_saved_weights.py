"""Packed weights that are saved with a model: used where they fit, and nowhere else."""

import gc
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("llvmlite")

import irc
from irc.cli import main
from irc.errors import Error
from irc.native import packed
from irc.native.packed import PACKED, PIECES
from irc.native.panels import MOST_FEATURES
from irc.native.target import current
from tests.runtime.test_file import assembled, parts, same

pytestmark = pytest.mark.skipif(
    current().vector_bytes not in MOST_FEATURES, reason="nothing is packed for this processor"
)

SPATIAL = [1, 16, 14, 14]
CONVOLUTIONS = {
    "tiles": (SPATIAL, (24, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    "pointwise": (SPATIAL, (24, 16, 1, 1), {}),
    "strided": (SPATIAL, (24, 16, 5, 5), {"strides": [2, 2]}),
    "groups": (SPATIAL, (24, 8, 3, 3), {"group": 2}),
    "few channels": ([1, 3, 30, 30], (16, 3, 7, 7), {}),
    "one axis": ([1, 16, 90], (24, 16, 3), {}),
    "three axes": ([1, 12, 6, 8, 8], (16, 12, 3, 3, 3), {}),
}


def build(shape, filters, attributes, seed=0) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    arrays = {"w": rng.standard_normal(filters, np.float32), "b": rng.standard_normal(filters[0]).astype(np.float32)}
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    return helper.make_model(
        helper.make_graph([node], "g", given, made, weights), opset_imports=[helper.make_opsetid("", 21)]
    )


@pytest.fixture(params=CONVOLUTIONS)
def case(request, tmp_path):
    """A saved model, what it is given, and what it gives."""
    shape, filters, attributes = CONVOLUTIONS[request.param]
    model = irc.compile(build(shape, filters, attributes))
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    wanted = model.run(feeds)
    model.save(tmp_path / "m.irc", packed=True)
    return tmp_path / "m.irc", feeds, wanted


def packs(model, feeds, monkeypatch) -> tuple[dict, int]:
    """What ``model`` gives, and for how many arrays it took memory to pack weights."""
    taken = []
    with monkeypatch.context() as patch:
        take = PIECES.array
        patch.setattr(PIECES, "array", lambda *given: taken.append(given) or take(*given))
        return model.run(feeds), len(taken)


def test_saved_weights_are_not_packed_again(case, monkeypatch):
    path, feeds, wanted = case
    found, count = packs(irc.load(path), feeds, monkeypatch)
    assert same(found, wanted) and count == 0


def test_a_model_that_has_not_run_keeps_them(case, tmp_path, monkeypatch):
    path, feeds, wanted = case
    irc.load(path).save(tmp_path / "again.irc", packed=True)
    found, count = packs(irc.load(tmp_path / "again.irc"), feeds, monkeypatch)
    assert same(found, wanted) and count == 0


def edited(path, change) -> None:
    header, data = parts(path.read_bytes())
    change(header)
    path.write_bytes(assembled(header, data))


def entry_of(header):
    (entry,) = header["packed"].values()
    return entry


def of_shape(change, moved=0):
    def edit(header):
        entry = entry_of(header)
        entry["offset"] -= moved
        entry["shape"] = change(*entry["shape"])
        entry["bytes"] = 4 * int(np.prod(entry["shape"]))

    return edit


def of_texts(change):
    def edit(header):
        header["packed"] = {json.dumps(change(*json.loads(text))): each for text, each in header["packed"].items()}

    return edit


NOT_TAKEN = {
    "fewer blocks": of_shape(lambda blocks, *rest: [blocks - 1, *rest]),
    "less depth": of_shape(lambda *all: [*all[:-2], all[-2] - 1, all[-1]]),
    "other order": of_shape(lambda *all: [*all[:-2], all[-1], all[-2]]),
    "no elements": of_shape(lambda *all: [0, *all[1:]]),
    "other type": lambda header: entry_of(header).update(dtype="Int"),
    "one element": lambda header: entry_of(header).update(splat=True, bytes=4),
    "other alignment": of_shape(lambda *all: all, moved=4),
    "other processor": of_texts(lambda mark, *rest: [mark.replace("cpu='", "cpu='i"), *rest]),
    "other version": of_texts(lambda mark, *rest: [mark[:-1], *rest]),
    "other purpose": of_texts(lambda mark, purpose, *rest: [mark, purpose + " ", *rest]),
    "other strides": of_texts(lambda *all: [*all[:-1], all[-1][::-1]]),
    "none": lambda header: header.pop("packed"),
}


@pytest.mark.parametrize("change", NOT_TAKEN)
@pytest.mark.parametrize("case", ["tiles", "few channels", "three axes"], indirect=True)
def test_what_does_not_fit_is_packed_anew(case, change, monkeypatch):
    path, feeds, wanted = case
    edited(path, NOT_TAKEN[change])
    found, count = packs(irc.load(path), feeds, monkeypatch)
    assert same(found, wanted) and count > 0


REFUSED = {
    "no text": lambda header: header.update(packed={"[": entry_of(header)}),
    "no list": lambda header: header.update(packed={"3": entry_of(header)}),
    "too short": of_texts(lambda *all: all[:-1]),
    "other weight": of_texts(lambda mark, purpose, name, *rest: [mark, purpose, "v", *rest]),
    "no name": of_texts(lambda mark, purpose, name, *rest: [mark, purpose, [name], *rest]),
    "no numbers": of_texts(lambda *all: [*all[:-1], 3]),
    "lists of lists": of_texts(lambda *all: [*all[:-1], [[3]]]),
    "deep": lambda header: header.update(packed={"[" * 100_000: entry_of(header)}),
    "beyond the file": lambda header: entry_of(header).update(offset=1 << 40),
    "no entry": lambda header: header.update(packed=dict.fromkeys(header["packed"], 3)),
    "no section": lambda header: header.update(packed=[3]),
}


@pytest.mark.parametrize("change", REFUSED)
@pytest.mark.parametrize("case", ["tiles"], indirect=True)
def test_what_is_damaged_is_refused(case, change):
    path, *_ = case
    edited(path, REFUSED[change])
    with pytest.raises(Error) as error:
        irc.load(path)
    assert error.value.code == "IRC513"


@pytest.mark.parametrize("case", ["pointwise"], indirect=True)
def test_a_loaded_model_ends_and_so_does_what_was_saved(case):
    path, feeds, wanted = case
    gc.collect()
    before = len(PACKED._saved), len(PACKED)
    models = [irc.load(path) for _ in range(3)]
    for model in models:
        assert same(model.run(feeds), wanted)
    assert len(PACKED._saved) == before[0] + 3
    del models, model
    gc.collect()
    assert (len(PACKED._saved), len(PACKED)) == before


@pytest.mark.parametrize("case", ["pointwise"], indirect=True)
def test_numpy_neither_saves_nor_takes_what_is_packed(case, tmp_path):
    path, feeds, wanted = case
    model = irc.load(path, backend="numpy")
    np.testing.assert_allclose(model.run(feeds)["y"], wanted["y"], rtol=1e-4, atol=1e-4)
    model.save(tmp_path / "n.irc", packed=True)
    assert parts((tmp_path / "n.irc").read_bytes())[0]["packed"] == {}


def test_only_a_models_own_weights_are_saved(tmp_path):
    models = [irc.compile(build(*CONVOLUTIONS["tiles"], seed=seed)) for seed in range(2)]
    for model in models:
        model.run({"x": np.zeros(SPATIAL, np.float32)})
    models[0].save(tmp_path / "plain.irc")
    models[1].save(tmp_path / "m.irc", packed=True)
    sections = [parts((tmp_path / name).read_bytes())[0]["packed"] for name in ("plain.irc", "m.irc")]
    assert [len(section) for section in sections] == [0, 1]


def test_the_command_line(tmp_path, monkeypatch):
    onnx.save(build(*CONVOLUTIONS["tiles"]), tmp_path / "m.onnx")
    assert main(["compile", str(tmp_path / "m.onnx"), "--check", "--packed", "-o", str(tmp_path / "m.irc")]) == 0
    _, count = packs(irc.load(tmp_path / "m.irc"), {"x": np.zeros(SPATIAL, np.float32)}, monkeypatch)
    assert count == 0


def test_the_mark_depends_on_the_code(monkeypatch, tmp_path):
    mark = packed._mark()
    (tmp_path / "packed.py").write_text("other")
    monkeypatch.setattr(packed, "__file__", str(tmp_path / "packed.py"))
    assert packed._mark.__wrapped__() != mark
