"""TorchScript in, without torch: IR text, attributes given by path, objects that models keep."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import numpy_helper

import irc
from benchmarks.yolov3 import build
from irc.alias import Kind, analyze
from irc.errors import Error
from irc.frontend.torchscript import import_torchscript
from irc.ir import Module
from irc.ir.objects import Strided
from irc.passes import PassManager, create_instruments
from irc.runtime.model import CompiledModel
from irc.runtime.objects import State
from tests.elsewhere import run_onnxruntime
from tests.graphs import ir
from tests.runtime.helpers import interrupted

DUMP = Path(__file__).parent.parent / "data" / "yolov3_torchscript.ir"

LINEAR = """
graph(%self : __torch__.Net,
      %x.1 : Tensor):
  %one : int = prim::Constant[value=1]()
  %inner : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="lin"](%self)
  %weight : Tensor = prim::GetAttr[name="weight"](%inner)
  %bias : Tensor? = prim::GetAttr[name="bias"](%inner)
  %scale : float = prim::GetAttr[name="scale"](%self)
  %training : bool = prim::GetAttr[name="training"](%self)
  %y : Tensor = aten::linear(%x.1, %weight, %bias)
  %z : Tensor = prim::If(%training)
    block0():
      %a : Tensor = aten::relu(%y)
      -> (%a)
    block1():
      %b : Tensor = aten::mul(%y, %scale)
      -> (%b)
  return (%z)
"""
WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
X = np.array([[1, 2, 3]], np.float32)

COUNTER = """
graph(%self : __torch__.Counter, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %calls : Tensor = prim::GetAttr[name="calls"](%self)
  %more : Tensor = aten::add_(%calls, %x, %one)
  %n : int = prim::GetAttr[name="n"](%self)
  %n.1 : int = aten::add(%n, %one)
  prim::SetAttr[name="n"](%self, %n.1)
  %now : int = prim::GetAttr[name="n"](%self)
  %result : (Tensor, int) = prim::TupleConstruct(%calls, %now)
  return (%result)
"""


def counter() -> Module:
    return import_torchscript(COUNTER, {"calls": np.zeros(2, np.float32), "n": 10})


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


# -- attributes ----------------------------------------------------------------


@pytest.mark.parametrize("passes", ["none", "default", "freeze"])
def test_attributes_are_bound_by_path(passes: str) -> None:
    module = import_torchscript(LINEAR, {"lin.weight": WEIGHT, "lin.bias": f32(1, 2), "scale": 2.0})
    model = irc.compile(module, passes)
    assert [i.name for i in model.inputs] == ["x"]
    np.testing.assert_array_equal(model.run({"x": X})["z"], (X @ WEIGHT.T + f32(1, 2)) * 2)


def test_an_absent_optional_is_none_and_training_is_as_told() -> None:
    values = {"lin.weight": WEIGHT, "scale": 2.0}
    np.testing.assert_array_equal(irc.compile(import_torchscript(LINEAR, values)).run({"x": X})["z"], X @ WEIGHT.T * 2)
    training = irc.compile(import_torchscript(LINEAR, values, training=True)).run({"x": -X})["z"]
    assert (training == 0).all()
    given = irc.compile(import_torchscript(LINEAR, {**values, "training": True})).run({"x": -X})["z"]
    assert (given == 0).all()


def test_missing_attributes_are_listed() -> None:
    with pytest.raises(Error, match=r"^IRC141: .*2 attributes that the graph reads: lin\.weight, scale; add them"):
        import_torchscript(LINEAR, {})


def test_without_weights_the_graph_is_for_analysis() -> None:
    module = import_torchscript(LINEAR)
    assert not module.objects
    assert len(analyze(module.main).locations(module.main.value("weight"))) >= 1
    with pytest.raises(Error, match=r"^IRC141: .*attributes are not known"):
        irc.compile(module)


@pytest.mark.parametrize(
    ("value", "code"), [(object(), "IRC142"), ({1, 2}, "IRC142"), (np.zeros(2, "datetime64[s]"), "IRC143")]
)
def test_values_that_cannot_be_attributes(value: Any, code: str) -> None:
    with pytest.raises(Error, match=r"'lin\.weight'") as caught:
        import_torchscript(LINEAR, {"lin.weight": value, "scale": 1.0})
    assert caught.value.code == code


@pytest.mark.parametrize("source", [3, None, b"graph():", ["graph"]])
def test_what_is_no_torchscript_is_refused(source: Any) -> None:
    with pytest.raises(Error, match=r"^IRC140: .*expected IR text"):
        import_torchscript(source)


def test_errors_in_text_say_where() -> None:
    with pytest.raises(Error, match=r"net\.ir:3:\d+") as caught:
        import_torchscript(
            "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  %z = aten::(%y)\n", filename="net.ir"
        )
    assert caught.value.code == "IRC110"
    assert "%z = aten::(%y)" in str(caught.value) and "^" in str(caught.value)


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ("%y : NoneType = prim::Exit(%self, %self)", "IRC213"),
        ('%y : Tensor = prim::GetAttr[name="a"]()', "IRC213"),
        ('prim::SetAttr[name="a"](%self)', "IRC213"),
        ('%y : Tensor, %z : Tensor = prim::GetAttr[name="a"](%self)', "IRC213"),
        ("%y : Tensor = prim::GetAttr(%self)", "IRC215"),
        ('%y : Tensor = prim::GetAttr[name="a"](%x)', "IRC214"),
    ],
)
def test_malformed_nodes_are_errors(node: str, code: str) -> None:
    text = f"graph(%self : __torch__.torch.autograd.grad_mode.no_grad, %x : Tensor):\n  {node}\n  return (%x)\n"
    for weights in (None, {}):
        with pytest.raises(Error) as caught:
            import_torchscript(text, weights)
        assert caught.value.code == code


def test_weights_that_text_names() -> None:
    text = """
    graph(%x.1 : Tensor, %x : Tensor):
      %w : Float(3) = prim::Constant[value=@"w"]()
      %12 : Tensor = aten::mul(%x.1, %w)
      return (%12)
    """
    module = import_torchscript(text, {"w": f32(1, 2, 3), "unused": f32(1)})
    assert list(module.weights) == ["w"]
    model = irc.compile(module)
    assert [i.name for i in model.inputs] == ["x.1", "x"]  # without the .1 there would be two of a name
    np.testing.assert_array_equal(model.run({"x.1": f32(1, 1, 1), "x": f32(0)})["output"], [1, 2, 3])


CONTAINERS = """
graph(%self : __torch__.Net, %x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %key : str = prim::Constant[value="k"]()
  %many : Tensor[] = prim::GetAttr[name="many"](%self)
  %table : Dict(str, Tensor) = prim::GetAttr[name="table"](%self)
  %pair : (int, float) = prim::GetAttr[name="pair"](%self)
  %nothing : Tensor? = prim::GetAttr[name="nothing"](%self)
  %device : Device = prim::GetAttr[name="device"](%self)
  %a : Tensor = aten::__getitem__(%many, %one)
  %b : Tensor = aten::__getitem__(%table, %key)
  %i : int, %f : float = prim::TupleUnpack(%pair)
  %absent : bool = aten::__is__(%nothing, %none)
  %c : Tensor = aten::add(%a, %b, %i)
  %d : Tensor = aten::mul(%c, %f)
  %e : (Tensor, bool, Device) = prim::TupleConstruct(%d, %absent, %device)
  return (%e)
"""


@pytest.mark.parametrize("passes", ["none", "default"])
def test_attributes_of_all_kinds(passes: str) -> None:
    text = CONTAINERS.replace("  %a :", "  %none : NoneType = prim::Constant()\n  %a :")
    w = f32(1, 2)
    values = {"many": [w, w + 1], "table": {"k": w}, "pair": (3, 0.5), "nothing": None, "device": "cpu"}
    model = irc.compile(import_torchscript(text, values), passes)
    result, absent, device = model.run({"x": w})["e"]
    np.testing.assert_array_equal(result, ((w + 1) + 3 * w) * 0.5)
    assert absent is True and device == "cpu"


# -- shared storage ------------------------------------------------------------

TWO = """
graph(%self : __torch__.Net, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = prim::GetAttr[name="a"](%self)
  %b : Tensor = prim::GetAttr[name="b"](%self)
  {write}
  %c : Tensor = aten::matmul(%a, %b)
  %r : Tensor = aten::add(%c, %x, %one)
  return (%r)
"""
READ, WRITE = TWO.replace("{write}", ""), TWO.replace("{write}", "%w : Tensor = aten::add_(%a, %x, %one)")


def test_tied_tensors_are_one_weight() -> None:
    w = np.arange(4, dtype=np.float32).reshape(2, 2)
    module = import_torchscript(READ, {"a": w, "b": w})
    db = analyze(module.main)
    assert db.locations(module.main.value("a")) == db.locations(module.main.value("b"))
    model = irc.compile(module, "freeze,cse,dce")
    assert list(model.graph.weights) == ["a"]
    np.testing.assert_array_equal(model.run({"x": f32(1)})["r"], w @ w + 1)


def test_tensors_of_their_own_are_locations_of_their_own() -> None:
    w = np.arange(4, dtype=np.float32).reshape(2, 2)
    module = import_torchscript(WRITE, {"a": w, "b": w.copy()})
    db = analyze(module.main)
    a, b = (module.main.value(name) for name in "ab")
    assert not db.may_alias(a, b)
    assert db.has_writers(a) and not db.has_writers(b)
    assert {location.kind for location in db.locations(a)} == {Kind.ATTRIBUTE}


@pytest.mark.parametrize("view", ["transposed", "overlapping"])
@pytest.mark.parametrize("passes", ["none", "default"])
def test_views_of_one_storage_stay_views(view: str, passes: str) -> None:
    base = np.arange(6, dtype=np.float32)
    a = base[:4].reshape(2, 2)
    b = a.T if view == "transposed" else base[2:].reshape(2, 2)
    module = import_torchscript(WRITE, {"a": a, "b": b})
    attributes = module.objects["self"].attributes
    assert all(isinstance(attributes[name], Strided) for name in "ab")
    assert attributes["a"].storage is attributes["b"].storage
    db = analyze(module.main)
    assert db.may_alias(module.main.value("a"), module.main.value("b"))
    model = irc.compile(module, passes)
    expected = a + 10
    seen = expected.T if view == "transposed" else np.concatenate([expected.reshape(-1)[2:], base[4:]]).reshape(2, 2)
    np.testing.assert_array_equal(model.run({"x": f32(10)})["r"], expected @ seen + 10)
    np.testing.assert_array_equal(base, np.arange(6))  # what was given is not what is written


def test_views_that_nothing_writes_become_views_of_one_constant() -> None:
    base = np.arange(6, dtype=np.float32)
    a, b = base[:4].reshape(2, 2), base[2:].reshape(2, 2)
    module = import_torchscript(READ, {"a": a, "b": b})
    PassManager("freeze", create_instruments(["verify-each", "verify-alias"])).run(module)
    assert Counter(n.kind for n in module.main.walk())["aten::as_strided"] == 2
    assert list(module.main.weights) == ["a"]
    np.testing.assert_array_equal(irc.compile(module, "none").run({"x": f32(0)})["r"], a @ b)


def test_storage_of_two_element_types_is_refused() -> None:
    base = np.zeros(8, np.float32)
    with pytest.raises(Error, match=r"^IRC143: .*another type"):
        import_torchscript(READ, {"a": base, "b": base.view(np.int32)})


def test_arrays_given_are_copied() -> None:
    w = WEIGHT.copy()
    model = irc.compile(import_torchscript(LINEAR, {"lin.weight": w, "scale": 1.0}))
    w[:] = 0
    np.testing.assert_array_equal(model.run({"x": X})["z"], X @ WEIGHT.T)


# -- what models keep ----------------------------------------------------------


def test_results_are_not_what_the_model_keeps() -> None:
    model = irc.compile(counter())
    calls, _ = model.run({"x": f32(1, 1)})["result"]
    calls[:] = 100
    assert model.run({"x": f32(1, 1)})["result"][0].tolist() == [2, 2]


RESET = """
graph(%self : __torch__.A, %x : Tensor, %c : bool):
  %one : int = prim::Constant[value=1]()
  %z : int = prim::If(%c)
    block0():
      %q : __torch__.B = prim::GetAttr[name="q"](%self)
      prim::SetAttr[name="p"](%self, %q)
      -> (%one)
    block1():
      -> (%one)
  %p : __torch__.B = prim::GetAttr[name="p"](%self)
  %r : __torch__.R = prim::GetAttr[name="r"](%p)
  %k : {type} = prim::GetAttr[name="k"](%r)
  %y : Tensor = aten::{op}(%x, %k, %one)
  return (%y)
"""
"""What an attribute is depends on an object further up, which a run may replace by another."""


@pytest.mark.parametrize("passes", ["none", "default", "freeze"])
@pytest.mark.parametrize("type", ["int", "Tensor"])
def test_attributes_are_those_of_the_object_that_was_set(type: str, passes: str) -> None:
    made = int if type == "int" else f32
    module = import_torchscript(RESET.format(type=type, op="add"), {"p.r.k": made(10), "q.r.k": made(20)})
    model = irc.compile(module, passes)
    assert [model.run({"x": f32(1), "c": c})["y"].tolist() for c in (False, True, False)] == [[11], [21], [21]]


@pytest.mark.parametrize("passes", ["none", "default", "freeze"])
def test_what_is_written_through_an_object_that_was_set_is_a_copy(passes: str) -> None:
    text = RESET.format(type="Tensor", op="add_").replace("(%x, %k, %one)", "(%k, %x, %one)")
    module = import_torchscript(text, {"p.r.k": f32(10), "q.r.k": f32(20)})
    for _ in range(2):
        model = irc.compile(module, passes)
        assert [model.run({"x": f32(1), "c": c})["y"].tolist() for c in (False, True, True)] == [[11], [21], [22]]


@pytest.mark.parametrize("passes", ["none", "default", "freeze"])
def test_an_object_that_a_branch_chooses(passes: str) -> None:
    text = ir("""
        self: __torch__.A; x: Tensor; c: bool -> y
        p: "__torch__.B" = prim.GetAttr(self, name="p"); q: "__torch__.B" = prim.GetAttr(self, name="q")
        o: "__torch__.B" = p if c else q; k: int = prim.GetAttr(o, name="k"); y = add(x, k, 1)
    """)
    model = irc.compile(import_torchscript(text, {"p.k": 10, "q.k": 20}), passes)
    assert [model.run({"x": f32(1), "c": c})["y"].tolist() for c in (True, False)] == [[11], [21]]


STORE = ir("""
    self: __torch__.Store; x: Tensor -> before
    before = prim.GetAttr(self, name="held"); prim.SetAttr(self, x, name="held")
""")


def test_what_a_caller_gives_is_not_kept_but_copied() -> None:
    model = irc.compile(import_torchscript(STORE, {"held": f32(0)}))
    x = f32(1, 2)
    assert model.run({"x": x})["before"].tolist() == [0]
    x[:] = 9
    kept = model.run({"x": x})["before"]
    assert kept.tolist() == [1, 2]
    kept[:] = 7
    assert model.run({"x": x})["before"].tolist() == [9, 9]


def test_a_run_that_is_interrupted_keeps_nothing_of_the_caller() -> None:
    """The state is that before the run or that after it."""
    module = irc.compile(import_torchscript(STORE, {"held": f32(0)})).module
    found = set()
    for at in range(1, 5000):
        model, x = CompiledModel(module), f32(5)
        stopped = interrupted(lambda: model.run({"x": x}), at)  # noqa: B023  # called at once
        x[:] = 9
        found.add(model.run({"x": x})["before"].item())
        if not stopped:
            break
    assert 100 < at < 4999
    assert found == {0, 5}


def test_a_state_that_cannot_be_copied_is_as_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = irc.compile(import_torchscript(STORE, {"held": f32(0)})), f32(5)

    def fails(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(State, "_settled", fails)
        with pytest.raises(MemoryError):
            model.run({"x": x})
    x[:] = 9
    assert model.run({"x": x})["before"].tolist() == [0]


def test_a_run_in_the_middle_of_another_one_of_a_model_with_state_is_an_error() -> None:
    """As a signal handler may ask for; it would wait for ever."""
    model, codes = irc.compile(counter()), set[str]()

    def run_again() -> None:
        try:
            model.run({"x": f32(1, 1)})
        except Error as error:
            codes.add(error.code)

    interrupted(lambda: model.run({"x": f32(1, 1)}), 1, "plan.py", run_again)
    assert codes == {"IRC436"}
    assert model.run({"x": f32(1, 1)})["result"][1] == 12


def test_after_an_error_the_model_runs_on() -> None:
    model = irc.compile(counter())
    with pytest.raises(Error):
        model.run({"x": f32(1, 2, 3)})
    assert model.run({"x": f32(1, 2)})["result"][0].tolist() == [1, 2]


def test_runs_of_a_model_that_changes_go_one_after_the_other() -> None:
    model = irc.compile(counter())
    threads = [threading.Thread(target=lambda: [model.run({"x": f32(1, 1)}) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.run({"x": f32(0, 0)})["result"][1] == 211


def test_files_keep_objects(tmp_path: Path) -> None:
    base = np.arange(6, dtype=np.float32)
    strided = {"a": base[:4].reshape(2, 2), "b": base[2:].reshape(2, 2)}
    for module, feeds, name in (
        (counter(), {"x": f32(1, 2)}, "result"),
        (import_torchscript(WRITE, strided), {"x": f32(1)}, "r"),
        (import_torchscript(WRITE, {"a": base[:4].reshape(2, 2).T, "b": f32(1, 2)}), {"x": f32(1)}, "r"),
    ):
        model = irc.compile(module)
        model.save(tmp_path / "m.irc")
        loaded = irc.load(tmp_path / "m.irc")
        for _ in range(2):
            expected, found = model.run(feeds)[name], loaded.run(feeds)[name]
            assert str(expected) == str(found)


def test_a_file_whose_views_reach_beyond_their_storage_is_refused(tmp_path: Path) -> None:
    from irc.runtime.file import Packer, Unpacker

    base = np.arange(6, dtype=np.float32)
    module = import_torchscript(WRITE, {"a": base[:4].reshape(2, 2), "b": base[2:].reshape(2, 2)})
    table: dict[str, Any] = {}
    packed = Packer(table).pack(module.objects["self"])
    assert Unpacker(table).unpack(packed).attributes["b"] == module.objects["self"].attributes["b"]
    for key, value in (("offset", 5), ("offset", -1), ("strides", [9, 1]), ("shape", [2]), ("strides", [1.0, 1])):
        damaged = {**packed["attributes"]["b"], key: value}
        with pytest.raises(Error, match=r"^IRC513: .*does not fit"):
            Unpacker(table).unpack(damaged)


BATCH_NORM = """
graph(%self : __torch__.Net, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %momentum : float = prim::Constant[value=0.5]()
  %eps : float = prim::Constant[value=0.]()
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %training : bool = prim::GetAttr[name="training"](%self)
   = prim::If(%training)
    block0():
      %seen : Tensor = prim::GetAttr[name="seen"](%self)
      %0 : Tensor = aten::add_(%seen, %one, %one)
      -> ()
    block1():
      -> ()
  %mean : Tensor = prim::GetAttr[name="mean"](%self)
  %var : Tensor = prim::GetAttr[name="var"](%self)
  %y : Tensor = aten::batch_norm(%x, %none, %none, %mean, %var, %training, %momentum, %eps, %true)
  %now : Tensor = aten::clone(%mean, %none)
  %count : Tensor = prim::GetAttr[name="seen"](%self)
  %r : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%y, %now, %count)
  return (%r)
"""


@pytest.mark.parametrize("training", [False, True])
def test_statistics_move_in_training_and_are_constants_in_evaluation(training: bool) -> None:
    values = {"mean": f32(1, 2), "var": f32(4, 1), "seen": np.array(5)}
    model = irc.compile(import_torchscript(BATCH_NORM, values, training=training))
    x = np.array([[1, 2], [3, 6]], np.float32)
    kinds = Counter(n.kind for n in model.graph.walk())
    assert kinds["prim::GetAttr"] == (4 if training else 0)
    mean = f32(1, 2)
    for run in (1, 2):
        y, now, count = model.run({"x": x})["r"]
        if training:
            mean = 0.5 * mean + 0.5 * x.mean(0)
            np.testing.assert_allclose(y, (x - x.mean(0)) / x.std(0), rtol=1e-6)
        else:
            np.testing.assert_allclose(y, (x - mean) / np.sqrt(f32(4, 1)), rtol=1e-6)
        np.testing.assert_allclose(now, mean)
        assert count == 5 + run * training


def test_freezing_twice_changes_nothing_and_keeps_the_analysis_right() -> None:
    module = import_torchscript(BATCH_NORM, {"mean": f32(1, 2), "var": f32(4, 1), "seen": np.array(5)})
    watch = create_instruments(["verify-each", "verify-alias"])
    PassManager("(freeze,constant-fold)*4", watch).run(module)
    before = str(module)
    assert not any(run.changed for run in PassManager("freeze", watch).run(module).passes)
    assert str(module) == before


# -- the scripted YOLOv3 -------------------------------------------------------


def yolov3_weights() -> dict[str, Any]:
    """Parameters of a narrow YOLOv3 by the names that PyTorch gives them, and the numbers that its heads hold."""
    model = build(image_size=64, width_divisor=16, batch_norm=True)
    values: dict[str, Any] = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    anchors = ([(116, 90), (156, 198), (373, 326)], [(30, 61), (62, 45), (59, 119)], [(10, 13), (16, 30), (33, 23)])
    for i, (stride, boxes) in enumerate(zip((32, 16, 8), anchors), 1):
        values |= {f"y{i}.stride": stride, f"y{i}.na": 3, f"y{i}.no": 85, f"y{i}.anchors": np.array(boxes, np.float32)}
    for name in [name for name in values if name.endswith("running_mean")]:
        values[name.replace("running_mean", "num_batches_tracked")] = np.array(0)
    return values


@pytest.mark.parametrize(
    "passes",
    [
        "none",
        "default",
        pytest.param("(freeze,constant-fold)*4,remove-mutation,dce", marks=pytest.mark.slow),
        pytest.param("(freeze,constant-fold)*4,in-place,dce", marks=pytest.mark.slow),
        "default,remove-mutation,cse,dce,in-place",
    ],
)
def test_yolov3_detects_what_onnx_runtime_does(passes: str) -> None:
    x = np.random.default_rng(1).random((1, 3, 64, 64), np.float32)
    onnx_model = build(image_size=64, width_divisor=16, batch_norm=True)
    expected = run_onnxruntime(onnx_model, {"images": x})[0]
    module = import_torchscript(DUMP.read_text(), yolov3_weights(), filename=DUMP.name)
    model = irc.compile(module, passes)
    np.testing.assert_allclose(model.run({"x": x})["output"], expected, rtol=1e-3, atol=1e-3)
    kinds = Counter(node.kind for node in model.graph.walk())
    writes = {kind: n for kind, n in kinds.items() if kind.endswith("_") and not kind.endswith("__")}
    if passes == "none":
        assert writes == {"aten::add_": 72, "aten::copy_": 9, "aten::mul_": 3}
        assert kinds["prim::GetAttr"] == 930
    else:
        assert kinds["prim::GetAttr"] == 0 and [v.name for v in model.graph.inputs] == ["x"]
        assert writes == ({} if "remove" in passes else {"aten::copy_": 9, "aten::mul_": 3})


TURNED = """
graph(%self : __torch__.Net, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = prim::GetAttr[name="a"](%self)
  %b : Tensor = prim::GetAttr[name="b"](%self)
  %many : Tensor[] = prim::GetAttr[name="many"](%self)
  %c : Tensor = aten::__getitem__(%many, %one)
  %t : Tensor = aten::transpose_(%b, %one, {other})
  %w : Tensor = aten::add_(%b, %x, %one)
  %r : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%a, %b, %c)
  return (%r)
""".replace("{other}", "%zero").replace("  %a :", "  %zero : int = prim::Constant[value=0]()\n  %a :", 1)


@pytest.mark.parametrize("layout", ["whole", "transposed", "with gaps", "overlapping", "empty", "bfloat16"])
@pytest.mark.parametrize("passes", ["none", "default"])
def test_two_tensors_of_one_memory_have_shapes_of_their_own(passes: str, layout: str, tmp_path: Path) -> None:
    """``a`` and ``b`` are two tensors, ``c`` is ``b`` itself; of a loaded model too, after any number of runs."""
    base = np.arange(12, dtype=ml_dtypes.bfloat16 if layout == "bfloat16" else np.float32)
    b = {
        "transposed": base[:6].reshape(2, 3).T,
        "with gaps": base.reshape(3, 4)[:, ::2],
        "empty": base[:0].reshape(0, 2),
    }.get(layout, base[:6].reshape(2, 3))
    a = base[3:9].reshape(2, 3) if layout == "overlapping" else b[:]
    module = import_torchscript(TURNED, {"a": a, "b": b, "many": [a, b]})
    model = irc.compile(module, passes)
    model.save(tmp_path / "m.irc")
    for each in (model, irc.load(tmp_path / "m.irc")):
        seen = b.shape
        for n in range(1, 4):
            given = np.array(1, base.dtype)
            first, second, third = each.run({"x": given})["r"]
            seen = seen[::-1]
            assert first.shape == a.shape and second.shape == third.shape == seen
            np.testing.assert_array_equal(second, third)
            now = b + np.array(n, base.dtype)
            np.testing.assert_array_equal(second, now.T if n % 2 else now)
            if layout != "overlapping":
                np.testing.assert_array_equal(first, now)
            if n == 2:
                each.save(tmp_path / "again.irc")
                first, second, third = irc.load(tmp_path / "again.irc").run({"x": given})["r"]
                assert first.shape == a.shape and second.shape == third.shape == seen[::-1]
    np.testing.assert_array_equal(base, np.arange(12).astype(base.dtype))
