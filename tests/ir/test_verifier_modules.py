"""What passes may do to graphs and modules without their methods: the verifier says so, and never stumbles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import DType, Module, Tensor, WeightTable, parse_module
from tests.graphs import ir

TEXT = ir("""
    x: Float(2, 3); c: Bool() -> z
    f: Function = prim.Constant(name="f"); w: Float(3) = prim.Constant(value=tensor([1., 2., 3.]))
    a: Float(2, 3) = Add(x, w, since_version=14); b: Float(2, 3) = prim.If(c)
    with block(): i: Float(2, 3) = Relu(a, since_version=14); yield i
    with block(): j: Float(2, 3) = Neg(a, since_version=13); yield j
    z: Float(2, 3) = prim.CallFunction(f, b)

    f | p: Float(2, 3) -> q
    q: Float(2, 3) = Exp(p, since_version=13)
""")

Change = Callable[[Module], object]

ODD: dict[str, Any] = {
    "None": None,
    "a number": 3,
    "a NumPy number": np.int64(3),
    "an array": np.zeros(3),
    "a list": [1],
    "a tuple": (1, 2),
    "a dict": {"a": 1},
    "bytes": b"x",
    "a set": {1},
}


def neg(module: Module) -> Any:
    return module.main.value("j").node


def code_of(change: Change) -> str:
    module = parse_module(TEXT)
    change(module)
    with pytest.raises(Error) as caught:
        module.verify()
    return caught.value.code


ATTRIBUTES: dict[str, Callable[[Module], Any]] = {
    "kind": neg,
    "name": neg,
    "scope": neg,
    "attributes": neg,
    "inputs": neg,
    "outputs": neg,
    "blocks": lambda module: module.main.value("b").node,
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_parts_of_nodes_of_other_classes(name: str, odd: str) -> None:
    if (name, odd) != ("attributes", "a dict"):
        code = code_of(lambda module: setattr(ATTRIBUTES[name](module), name, ODD[odd]))
        assert code == "IRC210" or (name == "blocks" and code == "IRC213")  # which has a length, has a wrong one


@pytest.mark.parametrize("odd", ODD)
def test_inputs_blocks_types_and_names_of_other_classes(odd: str) -> None:
    value = ODD[odd]
    assert code_of(lambda module: setattr(neg(module), "inputs", (value,))) == "IRC210"
    assert code_of(lambda module: setattr(module.main.value("b").node, "blocks", (value, value))) == "IRC210"
    assert code_of(lambda module: setattr(neg(module).output, "type", value)) in ("IRC210", "IRC214")
    assert code_of(lambda module: setattr(neg(module).output, "_name", value)) in ("IRC210", "IRC211")
    assert code_of(lambda module: module.metadata.update(key=value)) == "IRC215"
    if isinstance(value, int | bytes | tuple | type(None)):
        assert code_of(lambda module: neg(module).attributes.update({value: 1})) in ("IRC210", "IRC215")


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["name", "module", "weights"])
def test_parts_of_graphs_of_other_classes(name: str, odd: str) -> None:
    assert code_of(lambda module: setattr(module.graphs["f"], name, ODD[odd])) == "IRC210"


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["metadata", "defaults", "objects", "main"])
def test_parts_of_modules_of_other_classes(name: str, odd: str) -> None:
    if odd != "a dict" or name == "main":
        assert code_of(lambda module: setattr(module, name, ODD[odd])) == "IRC210"


def absent_function(module: Module) -> None:
    module.graphs["g"] = module.graphs.pop("f")


def constant(tensor: Tensor) -> Change:
    return lambda module: module.main.value("w").node.attributes.update(value=tensor)  # type: ignore[union-attr]


CHANGES: dict[str, tuple[str, Change]] = {
    "another graph is the main one": ("IRC210", lambda module: setattr(module, "main", Module().main)),
    "a graph of another module": ("IRC210", lambda module: module.graphs.update(g=Module().add_graph("g"))),
    "a function under another name": ("IRC210", absent_function),
    "weights of its own": ("IRC210", lambda module: setattr(module.graphs["f"], "weights", WeightTable())),
    "no graph": ("IRC210", lambda module: module.graphs.update(g=None)),  # type: ignore[arg-type]
    "a default of no input": ("IRC210", lambda module: module.defaults.update(y=Tensor.of([1.0]))),
    "a default of another type": ("IRC214", lambda module: module.defaults.update(x=Tensor.of(np.zeros((2, 3), int)))),
    "a default of another shape": (
        "IRC214",
        lambda module: module.defaults.update(x=Tensor.of(np.arange(4, dtype=np.float32))),
    ),
    "a default that no file holds": ("IRC215", lambda module: module.defaults.update(x=[np.float32(1)])),
    "contents of another shape": ("IRC215", constant(Tensor(DType.FLOAT, (3,), array=np.ones(4, np.float32)))),
    "contents of another type": ("IRC215", constant(Tensor(DType.FLOAT, (3,), array=np.ones(3)))),
    "a splat of another type": ("IRC215", constant(Tensor(DType.FLOAT, (3,), scalar=np.array(1)))),
    "a splat of many": ("IRC215", constant(Tensor(DType.FLOAT, (3,), scalar=np.ones(3, np.float32)))),
    "an attribute of If": ("IRC215", lambda module: module.main.value("b").node.attributes.update(extra=1)),  # type: ignore[union-attr]
}


@pytest.mark.parametrize("name", CHANGES)
def test_modules_whose_parts_do_not_fit_together(name: str) -> None:
    code, change = CHANGES[name]
    assert code_of(change) == code


@pytest.mark.parametrize("name", ["an attribute of If", "contents of another shape", "a default of no input"])
def test_nothing_is_written_of_a_model_that_was_broken_after_it_was_compiled(name: str, tmp_path: Path) -> None:
    model = irc.compile(parse_module(TEXT), "none")
    code, change = CHANGES[name]
    change(model.module)
    with pytest.raises(Error, match=code):
        model.save(tmp_path / "m.irc")
    for exported in (model, model.module, model.graph):
        with pytest.raises(Error, match=code):
            irc.export(exported, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
