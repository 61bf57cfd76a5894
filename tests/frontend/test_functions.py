"""Local functions: calls, attributes, imports of their own, instances, limits."""

from pathlib import Path

import onnx
import pytest

from irc.frontend.onnx import import_model
from irc.ir import Module, TensorType
from irc.ir.types import NONE, TENSOR, ListType
from tests.effort import Tune
from tests.frontend.helpers import changed, parse, refused

HEAD = '<ir_version: 10, opset_import: ["" : 18, "local" : 1]>'


def with_functions(body: str, *functions: str, inputs: str = "float[2,3] x", outputs: str = "float[2,3] y"):
    texts = [f'<domain: "local", opset_import: ["" : 18, "local" : 1]> {f}' for f in functions]
    return parse(f"{HEAD} g ({inputs}) => ({outputs}) {{ {body} }} " + " ".join(texts))


def calls(module: Module, name: str = "main") -> list[tuple[str, list[str]]]:
    """Called function and names of the arguments, for each call in graph ``name``."""
    found = []
    for node in module.graphs[name].walk():
        if node.kind == "prim::CallFunction":
            callee, *args = node.inputs
            found.append((callee.node.attributes["name"], [v.name for v in args]))
    return found


def test_instances_differ_by_kinds_of_arguments() -> None:
    module = import_model(
        with_functions(
            "t = local.F(x) s = SequenceConstruct(x) u = local.F(s) v = local.C(x) w = local.C(x) y = Relu(t)",
            "F (a) => (b) { b = Identity(a) }",
            "C (a, low) => (b) { b = Clip(a, low) }",
        )
    )
    types = [graph.inputs[-1].type for name, graph in module.graphs.items() if name != "main"]
    assert types == [TENSOR, ListType(TENSOR), NONE]
    assert isinstance(module.main.value("u").type, ListType)
    assert module.main.value("t").type == TensorType()
    module.verify()


def test_an_input_left_out_that_the_body_needs() -> None:
    proto = with_functions("y = local.F(x)", "F (a, b) => (c) { c = Add(a, b) }")
    refused("IRC128", proto, "input 1 of Add", "'c'")


def test_recursion_is_refused() -> None:
    text = ("F (a) => (b) { b = local.G(a) }", "G (a) => (b) { t = Relu(a) b = local.F(t) }")
    refused("IRC132", with_functions("y = local.F(x)", *text), "local.F -> local.G -> local.F")
    refused("IRC132", with_functions("y = local.F(x)", "F (a) => (b) { b = local.F(a) }"), "local.F -> local.F")


@pytest.mark.parametrize(
    ("code", "change", "word"),
    [
        ("IRC132", lambda m: m.functions.append(m.functions[0]), "local.F"),
        ("IRC132", lambda m: setattr(m.functions[0], "name", ""), "no name"),
        ("IRC122", lambda m: setattr(m.functions[0].opset_import[0], "version", 99), "local.F"),
        ("IRC123", lambda m: m.functions[0].ClearField("opset_import"), "function local.F imports no"),
        ("IRC124", lambda m: m.functions[0].input.append("a"), "'a'"),
        ("IRC124", lambda m: m.functions[0].input.append("b"), "'b'"),
        ("IRC125", lambda m: m.functions[0].output.append("z"), "'z'"),
        ("IRC128", lambda m: m.graph.node[0].input.append("x"), "1 input"),
        ("IRC128", lambda m: m.graph.node[0].output.append("z"), "1 output"),
        ("IRC127", lambda m: m.graph.node[0].attribute.append(onnx.helper.make_attribute("q", 1)), "'q'"),
        ("IRC127", lambda m: m.functions[0].attribute.append("alpha"), "alpha"),
    ],
)
def test_malformed_functions(code: str, change, word: str) -> None:
    proto = with_functions("y = local.F(x)", "F (a) => (b) { b = Elu(a) }")
    if word == "alpha":  # a reference of another type than what the call gives
        reference = onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
        proto.functions[0].node[0].attribute.append(reference)
        proto.graph.node[0].attribute.append(onnx.helper.make_attribute("alpha", 3))
    refused(code, changed(proto, change), word)


@pytest.mark.parametrize("word", ["alpha", "given", "named"])
def test_attribute_names_that_are_not_utf8(tmp_path: Path, word: str) -> None:
    proto = with_functions(
        "y = local.F <given = 1.0> (x)",
        "F <given, named: float = 2.0> (a) => (b) { b = Elu <alpha: float = @given> (a) }",
    )
    data = proto.SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data.replace(word.encode(), b"\xff" + word[1:].encode()))
    refused("IRC121", tmp_path / "m.onnx", "UTF-8")


def test_graphs_as_attributes_of_calls_are_refused() -> None:
    proto = with_functions("y = local.F(x)", "F <g> (a) => (b) { b = Neg(a) }")
    attribute = onnx.AttributeProto(name="g", type=onnx.AttributeProto.GRAPH)
    attribute.g.SetInParent()
    proto.graph.node[0].attribute.append(attribute)
    refused("IRC132", proto, "'g'")


@pytest.mark.parametrize("given", ["as a default", "by reference", "by reference without a type"])
def test_graphs_as_attributes_of_functions_are_refused(given: str) -> None:
    """If takes its branches from the function's attributes, which are graphs by default."""
    proto = with_functions(
        "y = local.F(x, c)",
        "F (a, c) => (b) { b = If(c) <then_branch = t () => (r) { r = Neg(a) },"
        " else_branch = e () => (q) { q = Abs(a) }> }",
        inputs="float[2,3] x, bool c",
    )
    branches = proto.functions[0].node[0].attribute
    for branch, name in zip(branches, ("then", "else")):
        if given == "as a default":
            default = proto.functions[0].attribute_proto.add()
            default.CopyFrom(branch)
            default.name = name
        branch.ClearField("g")
        branch.ref_attr_name = name
        if given != "by reference":
            branch.ClearField("type")
    code = "IRC127" if given == "by reference without a type" else "IRC132"
    refused(code, proto, "'then" if code == "IRC132" else "needs attribute")


def doubling(depth: int, attributes: bool) -> onnx.ModelProto:
    """Functions that each call the next one twice."""
    names = [f"s{j}" for j in range(depth)]
    declared = f"<{', '.join(names)}>" if attributes else ""
    texts = [f"F{depth} {declared} (a) => (b) {{ b = Relu(a) }}"]
    for i in range(depth):
        bodies: list[str] = []
        for number, (source, target) in enumerate((("a", "t"), ("t", "b"))):
            passed = ", ".join([f"{n}: int = @{n}" for n in names if n != f"s{i}"] + [f"s{i}: int = {number}"])
            bodies.append(f"{target} = local.F{i + 1} {f'<{passed}>' if attributes else ''} ({source})")
        texts.append(f"F{i} {declared} (a) => (b) {{ {' '.join(bodies)} }}")
    return with_functions("y = local.F0(x)", *texts)


def test_functions_that_double_each_other_cost_nothing_as_calls() -> None:
    module = import_model(doubling(30, attributes=False))
    assert len(module.graphs) == 32
    assert sum(len(g.nodes) for g in module.graphs.values()) < 150


def test_instances_are_limited(tune: Tune) -> None:
    tune("irc.frontend.onnx.importer.MAX_REPEATED_NODES", 2000)
    refused("IRC132", doubling(20, attributes=True), "2000 nodes")


def called_with(count: int, body: str) -> onnx.ModelProto:
    """A function that is called so often, with another attribute each time."""
    texts = [f"x{i + 1} = local.F <s = {i}> (x{i}, c)" for i in range(count)]
    return with_functions(
        " ".join(["x0 = Relu(x)", *texts, f"y = Relu(x{count})"]),
        f"F <s> (a, c) => (b) {{ {body} }}",
        inputs="float[2,3] x, bool c",
    )


def test_nested_nodes_of_instances_count(tune: Tune) -> None:
    tune("irc.frontend.onnx.importer.MAX_REPEATED_NODES", 200)
    steps = " ".join(f"t{i + 1} = Neg(t{i})" for i in range(50))
    branches = f"then_branch = t () => (t50) {{ t0 = Neg(a) {steps} }}, else_branch = e () => (u) {{ u = Neg(a) }}"
    import_model(called_with(4, f"b = If(c) <{branches}>"))
    refused("IRC132", called_with(5, f"b = If(c) <{branches}>"), "200 nodes")
    import_model(called_with(60, "b = Neg(a)"))


def test_calls_nest_to_a_limit() -> None:
    def chain(depth: int) -> onnx.ModelProto:
        texts = [f"F{i} (a) => (b) {{ b = local.F{i + 1}(a) }}" for i in range(depth)]
        return with_functions("y = local.F0(x)", *texts, f"F{depth} (a) => (b) {{ b = Neg(a) }}")

    assert len(import_model(chain(60)).graphs) == 62
    refused("IRC133", chain(80), "64 levels")
    refused("IRC133", chain(3000), "64 levels")
