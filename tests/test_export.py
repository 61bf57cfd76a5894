"""`irc.export`: ONNX of compiled models, modules and graphs."""

from pathlib import Path

import numpy as np
import pytest

import irc
from irc.ir import Module, parse_graph, parse_module
from irc.tools.check.peers import onnxruntime_session
from tests.graphs import ir

CALLS = ir("""
    x: Float(2) -> z
    f: Function = prim.Constant(name="f"); y: Float(2) = prim.CallFunction(f, x); z: Float(2) = Neg(y)

    f | a: Float(2) -> r
    g: Function = prim.Constant(name="g"); r: Float(2) = prim.CallFunction(g, a)

    g | b: Float(2) -> e
    e: Float(2) = Exp(b)
""")
X = np.array([0.5, -1.0], np.float32)


def run(path: Path, x: np.ndarray = X) -> np.ndarray:
    session = onnxruntime_session(path)
    (result,) = session.run(None, {session.get_inputs()[0].name: x})
    return np.asarray(result)


@pytest.fixture
def module() -> Module:
    return parse_module(CALLS)


def test_a_compiled_model_as_the_command_line_writes_it(module: Module, tmp_path: Path) -> None:
    from irc.cli import main

    (tmp_path / "m.ir").write_text(CALLS)
    assert main(["compile", str(tmp_path / "m.ir"), "-o", str(tmp_path / "by_command.onnx")]) == 0
    size = irc.export(irc.compile(module), tmp_path / "m.onnx")
    assert size == (tmp_path / "m.onnx").stat().st_size
    assert (tmp_path / "m.onnx").read_bytes() == (tmp_path / "by_command.onnx").read_bytes()


def test_models_modules_and_graphs(module: Module, tmp_path: Path) -> None:
    irc.compile(module).save(tmp_path / "m.irc")
    for model in (irc.compile(module), irc.load(tmp_path / "m.irc"), module, module.main):
        before = str(module)
        irc.export(model, tmp_path / "m.onnx")
        assert str(module) == before
        np.testing.assert_allclose(run(tmp_path / "m.onnx"), -np.exp(X), rtol=1e-6)


def test_a_graph_alone_stays_alone(tmp_path: Path) -> None:
    graph = parse_graph("graph(%x : Float(2)):\n  %y : Float(2) = onnx::Neg(%x)\n  return (%y)\n")
    irc.export(graph, tmp_path / "m.onnx")
    assert graph.module is None
    np.testing.assert_array_equal(run(tmp_path / "m.onnx"), -X)


def test_a_function_takes_along_what_it_calls(module: Module, tmp_path: Path) -> None:
    function = module.graphs["f"]
    compiled = irc.compile(function)
    np.testing.assert_allclose(compiled.run({"a": X})["r"], np.exp(X), rtol=1e-6)
    for model in (compiled, function, irc.CompiledModel(function)):
        irc.export(model, tmp_path / "f.onnx")
        np.testing.assert_allclose(run(tmp_path / "f.onnx"), np.exp(X), rtol=1e-6)


def test_large_weights_apart(tmp_path: Path) -> None:
    model = irc.compile(
        parse_graph(
            "graph(%x : Float(20)):\n"
            f"  %w : Float(20) = prim::Constant[value=tensor([{', '.join(map(str, range(20)))}])]()\n"
            "  %y : Float(20) = onnx::Add(%x, %w)\n  return (%y)\n"
        )
    )
    irc.export(model, tmp_path / "m.onnx", external_threshold=80)
    assert (tmp_path / "m.onnx.data").stat().st_size >= 80
    np.testing.assert_array_equal(run(tmp_path / "m.onnx", np.zeros(20, np.float32)), np.arange(20))


@pytest.mark.parametrize("op", ["Reshape", "Expand", "Tile"])
def test_shapes_stay_in_the_message_whatever_the_threshold(op: str, tmp_path: Path) -> None:
    """ONNX Runtime reads them when it infers shapes, and then does not look into other files."""
    sizes = {"Reshape": "[4, -1]", "Expand": "[3, 20]", "Tile": "[2]"}[op]
    model = irc.compile(
        parse_graph(
            "graph(%x : Float(20)):\n"
            f"  %s : Long({len(sizes.split())}) = prim::Constant[value=tensor({sizes})]()\n"
            f"  %w : Float(20) = prim::Constant[value=tensor([{', '.join(map(str, range(20)))}])]()\n"
            f"  %a : Float(20) = onnx::Add(%x, %w)\n  %y : Float(*) = onnx::{op}(%a, %s)\n  return (%y)\n"
        )
    )
    irc.export(model, tmp_path / "m.onnx", external_threshold=1)
    assert (tmp_path / "m.onnx.data").stat().st_size == 80
    given = np.zeros(20, np.float32)
    np.testing.assert_array_equal(run(tmp_path / "m.onnx", given), model.run({"x": given})["y"])


def test_what_cannot_be_exported(module: Module, tmp_path: Path) -> None:
    with pytest.raises(irc.Error, match=r"IRC101: cannot export a str: give a compiled model"):
        irc.export("m.onnx", tmp_path / "m.onnx")  # type: ignore[arg-type]
    with pytest.raises(irc.Error, match=r"IRC503: .*m\.IRC: .* model\.save\(path\)"):
        irc.export(module, tmp_path / "m.IRC")
    module.main.inputs[0].type = irc.ir.parse_type("int")
    with pytest.raises(irc.Error, match="IRC214"):
        irc.export(module, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["\0", "\ud800.onnx"])
def test_names_that_no_file_can_have(name: str, module: Module) -> None:
    with pytest.raises(irc.Error, match="IRC501"):
        irc.export(module, name)
