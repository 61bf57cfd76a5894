"""A part of a model computes what the model computes there, and has no more than it needs."""

from collections.abc import Sequence

import numpy as np
import pytest

import irc
from irc.ir import Module, parse_module
from irc.tools.extract import cut_out
from tests.graphs import ir, typed_ir

TEXT = ir("""
    x, z: Float(2, 3); big: @Float(32) -> y, other
    c: Bool(1) = prim.Constant(value=tensor([True])); f: Function = prim.Constant(name="double")
    a: Float(2, 3) = Mul(x, [1.0, 2.0, 3.0]); b: Float(2, 3) = prim.CallFunction(f, a)
    p[Float(1, 3)], q[Float(1, 3)] = Split(b, axis=0, num_outputs=2); d: Float(2, 3) = prim.If(c)
    with block(): inside: Float(2, 3) = Add(b, z); yield inside
    with block(): yield a
    y: Float(2, 3) = Softmax(d); other: Float(32) = Relu(big)

    double | v: Float(2, 3) -> s
    s: Float(2, 3) = Add(v, v)
""")

WRITES = typed_ir("""
    x: Float(4) -> d
    a = Relu(x); v = view_as(a, a); one: int = prim.Constant(value=1); b = add_(v, x, one); c = Neg(a); d = Exp(c)
""")


def model() -> Module:
    return parse_module(TEXT, weights={"big": np.arange(32, dtype=np.float32)})


def kinds(module: Module) -> list[str]:
    return [node.kind.partition("::")[2] for node in module.main.nodes if node.kind != "prim::Constant"]


X, Z = np.float32([[1, -2, 3], [4, 5, -6]]), np.float32([[0, 1, 0], [2, 0, 3]])


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        (["x", "z"], ["y"], ["Mul", "CallFunction", "If", "Softmax"]),
        (None, ["b"], ["Mul", "CallFunction"]),
        (["b", "z", "a"], ["d"], ["If"]),
        (["d"], ["y"], ["Softmax"]),
        ([], ["other"], ["Relu"]),
    ],
)
def test_a_part_computes_what_the_model_does(
    inputs: Sequence[str] | None, outputs: Sequence[str], expected: Sequence[str]
) -> None:
    whole, part = model(), cut_out(model(), inputs, outputs)
    part.verify()
    assert kinds(part) == expected
    assert [value.name for value in part.main.outputs] == outputs
    assert inputs is None or [value.name for value in part.main.inputs] == inputs
    assert set(part.weights) == ({"big"} if "Relu" in expected else set())
    assert set(part.graphs) == ({"main", "double"} if "CallFunction" in expected else {"main"})
    names = ["a", "b", "d", "y", "other"]
    whole.main.set_outputs([whole.main.value(name) for name in names])
    values = {"x": X, "z": Z, **irc.compile(whole, "none").run({"x": X, "z": Z})}
    found = irc.compile(part, "none").run({value.name: values[value.name] for value in part.main.inputs})
    assert all(np.array_equal(found[name], values[name]) for name in outputs)


def test_what_writes_on_the_way_is_taken_along() -> None:
    part = cut_out(parse_module(WRITES), ["x"], ["c"])
    assert kinds(part) == ["Relu", "view_as", "add_", "Neg"]
    whole = irc.compile(parse_module(WRITES), "none").run({"x": X[0, [0, 1, 2, 0]]})["d"]
    assert np.allclose(np.exp(irc.compile(part, "none").run({"x": X[0, [0, 1, 2, 0]]})["c"]), whole)


@pytest.mark.parametrize(
    ("text", "inputs", "outputs", "message"),
    [
        (TEXT, ["x"], ["nonsens"], "no value 'nonsens' to be an output"),
        (TEXT, ["xx"], ["y"], "no value 'xx' to be an input: did you mean"),
        (TEXT, ["x"], [], "at least one value"),
        (TEXT, ["x", "x"], ["a"], "%x is named twice"),
        (TEXT, ["x"], ["inside"], "%inside is inside of prim::If"),
        (TEXT, ["a"], ["y"], "also need what is computed from 1 input %z"),
        (TEXT, ["y", "x"], ["a"], "no output needs %y: it does not lead to %a"),
        (WRITES, ["a"], ["d"], "%a cannot be an input: aten::add_ writes into its memory"),
    ],
)
def test_parts_that_are_none(text: str, inputs: Sequence[str], outputs: Sequence[str], message: str) -> None:
    module = parse_module(text, weights={"big": np.arange(32, dtype=np.float32)})
    with pytest.raises(irc.Error, match=message) as error:
        cut_out(module, inputs, outputs)
    assert error.value.code == "IRC360"
