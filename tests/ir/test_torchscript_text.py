"""The text that PyTorch prints, what it cannot read back itself included."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from irc.ir import Builder, DType, EnumMember, Graph, Opaque, parse_graph, parse_type, structurally_equal, types
from irc.ir.text.printer import literal_text, print_node
from tests.ir.helpers import YOLO, body

RED = EnumMember.at("__torch__.Color.RED", "r")
BLUE = EnumMember.at("__torch__.Color.BLUE", -2)


def constant(text: str, of_type: str = "Any") -> Any:
    """The value of a constant written as ``text``; the constant must also print the same after a round trip."""
    graph = parse_graph(body(f"%c : {of_type} = prim::Constant[value={text}]()"))
    assert structurally_equal(parse_graph(str(graph)), graph) is None
    return graph.value("c").node.attributes.get("value")


@pytest.mark.parametrize(
    ("text", "of_type", "value"),
    [
        ("1", "bool", True),
        ("0", "bool", False),
        ("[1, 0]", "bool[]", [True, False]),
        ("10000000000000000", "float", 1e16),
        ("2.", "float", 2.0),
        ("1.0000000000000001e-05", "float", 1e-05),
        ("-inf", "float", -math.inf),
        ("1.+2.j", "complex", 1 + 2j),
        ("-0.5-infj", "complex", complex(-0.5, -math.inf)),
        ("None", "int?", None),
        ('(1, "x", 2.5)', "(int, str, float)", (1, "x", 2.5)),
        ("(1,)", "(int)", (1,)),
        ('((1, 2), (3., "q"), None)', "((int, int), (float, str), NoneType)", ((1, 2), (3.0, "q"), None)),
        ('[(1, "a")]', "(int, str)[]", [(1, "a")]),
        ('{"a": 1, "b": 2}', "Dict(str, int)", {"a": 1, "b": 2}),
        ("annotate(List[int], [])", "int[]", []),
        ('"cuda:0"', "Device", "cuda:0"),
        (r'"h\0)+\/.)llo\n\033\'"', "str", "héllo\n\033'"),  # PyTorch's digits for bytes above 127
        (r'"h\303\251llo"', "str", "héllo"),
        ("__torch__.Color.RED", "Enum<__torch__.Color>", RED),
        ("__torch__.Color.RED", "Enum<__torch__.Color>?", RED),
        ('__torch__.Color.RED("r")', "Enum<__torch__.Color>", RED),
        ("[__torch__.Color.RED, __torch__.Color.BLUE(-2)]", "Enum<__torch__.Color>[]", [RED, BLUE]),
        ("(__torch__.Color.RED, __torch__.Color.BLUE)", "(Enum<__torch__.Color>, Enum<__torch__.Color>)", (RED, BLUE)),
        ("(__torch__.Color.RED, 1)", "(Enum<__torch__.Color>, int)", (RED, 1)),
        ("[<Tensors>]", "Tensor[]", [Opaque("<Tensors>")]),
        ("<Tensor>", "Tensor", Opaque("<Tensor>")),
        ("{0.5}", "Tensor", Opaque("{0.5}")),  # of what element type is not known
        ("-9223372036854775808", "int", -(2**63)),
    ],
)
def test_constants_of_torchscript(text: str, of_type: str, value: Any) -> None:
    found = constant(text, of_type)
    assert type(found) is type(value)
    assert found == value


@pytest.mark.parametrize(
    ("text", "of_type", "elements"),
    [
        ("{3}", "Long(requires_grad=0, device=cpu)", 3),
        ("{1}", "Bool()", True),
        ("{0.5}", "Half(1, 1)", [[0.5]]),
        ("{inf}", "Float()", math.inf),
        ("{(1,2)}", "ComplexFloat()", 1 + 2j),
        (" 1  2  3  4 [ CPULongType{2,2} ]", "Long(2, 2, strides=[2, 1])", [[1, 2], [3, 4]]),
        (" 1  0 [ CPUBoolType{2} ]", "Tensor", [True, False]),
        ("nan -1 [ CPUFloatType{2} ]", "Float(2)", [math.nan, -1.0]),
        ("[ CPUFloatType{0,3} ]", "Float(0, 3)", np.zeros((0, 3))),
        ("(1,.,.) =   0  1  (2,.,.) =   2  3 [ CPUIntType{2,1,2} ]", "Int(2, 1, 2)", [[[0, 1]], [[2, 3]]]),
    ],
)
def test_tensors_that_torchscript_writes_exactly(text: str, of_type: str, elements: Any) -> None:
    found = constant(text, of_type)
    np.testing.assert_array_equal(found.numpy(), elements)
    assert of_type.startswith(("Tensor", found.dtype.label))


def test_lists_of_tensors_as_torch_displays_them() -> None:
    items = "<Tensor>, None,  0  2 [ CPULongType{2} ], [ CPULongType{0} ],  0.25 [ CPUFloatType{1} ]"
    absent, none, two, empty, rounded = constant(f"annotate(List[Optional[Tensor]], [{items}])", "Tensor?[]")
    assert (none, two.numpy().tolist(), empty.type) == (None, [0, 2], types.tensor(DType.INT64, (0,)))
    assert rounded.is_absent and isinstance(absent, Opaque)


@pytest.mark.parametrize(
    "text",
    [
        "<Tensor>",
        " 0.3681 -0.0214 [ CPUFloatType{2} ]",
        "-1.0000e+00  1.0000e+11 [ CUDAFloatType{2} ]",
        "Columns 1 to 1  1 Columns 2 to 2 1 [ CPUFloatType{2} ]",
    ],
)
def test_tensors_that_torchscript_rounds_are_absent(text: str) -> None:
    found = constant(text, "Float(2, strides=[1], requires_grad=0, device=cpu)")
    assert found.is_absent
    assert found.type == types.tensor(DType.FLOAT, (2,))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Float(2, 3, strides=[3, 1], requires_grad=0, device=cuda:0)", "Float(2, 3)"),
        ("Float(requires_grad=0, device=cpu)", "Float()"),
        ("FloatTensor(device=cpu)", "Float"),
        ("Tensor(requires_grad=1)", "Tensor"),
        ("Tensor(2, *)", "Tensor(2, *)"),
        ("Float(SS(-1), 3)", "Float(SS(-1), 3)"),
        ("NamedTuple(a : Tensor, b : (int, int))", "(Tensor, (int, int))"),
        ("NamedTuple(logits : Tensor, loss : Tensor? = None)", "(Tensor, Tensor?)"),
        ("NamedTuple(a : int = 1, b : str = x(,))", "(int, str)"),
        ("NamedTuple(a : (int, int) = (1, 2), b : int[] = [1, 2], c : float = 0.5)[]", "((int, int), int[], float)[]"),
        ("(Tensor, NamedTuple(a : str = a, b, c : Tensor))", "(Tensor, (str, Tensor))"),
        ("Future[Tensor]", "Future(Tensor)"),
        ("List[Optional[Tuple[int, Dict[str, float]]]]", "(int, Dict(str, float))?[]"),
        ("int[2]", "int[]"),
        ("number", "Scalar"),
        ("Tensor?[]", "Tensor?[]"),
        ("()", "()"),
        ("InterfaceType<I>", "InterfaceType<I>"),
        ("__torch__.a.___torch_mangle_3.Name", "__torch__.a.___torch_mangle_3.Name"),
    ],
)
def test_types_of_torchscript(text: str, printed: str) -> None:
    assert str(parse_type(text)) == printed


def test_statements_that_pytorch_prints_but_cannot_read() -> None:
    text = """\
graph(%self : __torch__.yolov3.YOLOv3,
      %x.1 : Tensor,
      %c.1 : Enum<__torch__.Color>):
  %18 : Function = prim::Constant[name="helper"]()
  %9 : bool = prim::Constant[value=0](), scope: __module.0/__module.0.conv # /lib/conv.py:560:0
   = prim::Print(%x.1) # test.py:28:4
   = prim::If(%9), scope: Net
    block0():
      -> ()
    block1():
       = prim::RaiseException(%x.1, %x.1)
      -> ()
  %52 : Float(3, 4), %54 : bool = prim::RequiresGradCheck[types=[Tensor(requires_grad=1), int[]]](%x.1)
  %fut : Future[Tensor] = prim::fork_0(%x.1)
  %onnx::Conv_5 : Tensor = onnx::Relu(%x.1)
  %/conv/out : Tensor = onnx::Relu(%onnx::Conv_5)
  return (%/conv/out)
with prim::fork_0 = graph(%x.1 : Tensor):
  return (%x.1)
"""
    graph = parse_graph(text)
    scoped = graph.value("9").node
    assert (scoped.scope, scoped.name) == ("__module.0/__module.0.conv", "/lib/conv.py:560:0")
    assert [n.kind for n in graph.walk() if not n.outputs] == ["prim::Print", "prim::If", "prim::RaiseException"]
    assert graph.value("54").node.attributes["types"] == [types.TENSOR, types.ListType(types.INT)]
    assert graph.value("fut").node.attributes["Subgraph"].inputs[0].name == "x.1"
    assert graph.outputs[0].name == "/conv/out"
    again = parse_graph(str(graph))
    assert structurally_equal(graph, again) is None
    assert "\n  prim::Print(%x.1)" in str(graph)  # PyTorch reads statements without outputs only without "="


@pytest.mark.parametrize(
    ("value", "printed"),
    [(None, ""), ("\r\n", r'[value="\015\n"]'), (-(2.0**-1022), "[value=-2.2250738585072014e-308]")],
)
def test_constants_are_printed_as_pytorch_reads_them(value: Any, printed: str) -> None:
    graph = Graph()
    Builder(graph).constant(value)
    (node,) = graph.nodes
    assert print_node(node).partition("prim::Constant")[2] == f"{printed}()"
    assert structurally_equal(parse_graph(str(graph)), graph) is None


@pytest.mark.parametrize("value", [2.0**-1074, -(2.0**-1022 - 2.0**-1074), 2.5e-310])
def test_subnormal_numbers_have_all_digits(value: float) -> None:
    assert Decimal(literal_text(value)) == Decimal(value)
    assert constant(literal_text(value), "float") == value


@pytest.mark.parametrize(
    ("scope", "name", "printed"),
    [
        ("A/B", "f.py:1:2", " # scope: A/B # f.py:1:2"),
        ("A#", "scope: f", ' # scope: "A#" # "scope: f"'),
        ("", "scope:", ' # "scope:"'),
        (": int", ": int", ' # scope: ": int" # ": int"'),
    ],
)
def test_scopes_are_comments(scope: str, name: str, printed: str) -> None:
    graph = Graph()
    node = Builder(graph).node("aten::f", [], [])
    node.scope, node.name = scope, name
    assert print_node(node) == f"aten::f(){printed}"
    assert structurally_equal(parse_graph(str(graph)), graph) is None


PARTLY_KNOWN = """\
graph(%x : Tensor,
      %c : bool,
      %n : int): # : Tensor(2, *), bool, int
  %a : Tensor, %b : int = aten::max(%x) # : Float, int # scope: A # f.py:1:2
  %l : Tensor[] = prim::ListConstruct(%a) # : Tensor(*)[]
  %m : Tensor = aten::relu(%a) # : Float # scope: A
  %o : Tensor = prim::Loop(%n, %c, %a) # : Tensor(*)
    block0(%i : int, %u : Tensor): # : int, Float
      -> (%c, %u)
  %d : Dict(str, (Union(Tensor, int), Float(2, 3))) = aten::f() # : Dict(str, (Union(Float, int), Float(2, 3)))
  return (%o, %l)
"""


def test_types_that_pytorch_has_no_words_for_stand_in_notes() -> None:
    graph = parse_graph(PARTLY_KNOWN)
    assert str(graph) == PARTLY_KNOWN
    assert [str(graph.value(name).type) for name in "xaluo"] == [
        *("Tensor(2, *)", "Float", "Tensor(*)[]", "Float", "Tensor(*)")
    ]
    assert graph.value("a").node.name == "f.py:1:2"
    in_place = PARTLY_KNOWN.replace("%u : Tensor", "%u : Float").replace(" # : int, Float", "")
    assert structurally_equal(parse_graph(in_place), graph) is None
    assert print_node(graph.value("l").node) == "%l : Tensor(*)[] = prim::ListConstruct(%a)"


@pytest.mark.parametrize(
    "text",
    [
        "graph(%x : Float):\n  %y : Float = onnx::Relu(%x)\n  return (%y)\n",
        "graph(%x : Float(batch, 3)):\n  %y : Float(batch, 3) = aten::relu(%x)\n  return (%y)\n",
    ],
)
def test_other_types_stand_in_their_place(text: str) -> None:
    assert str(parse_graph(text)) == text


def test_scripted_yolov3_reads_back() -> None:
    graph = parse_graph(YOLO.read_text(), filename=YOLO.name)
    kinds = [node.kind for node in graph.walk()]
    for kind, count in {
        "prim::GetAttr": 930,
        "prim::ListConstruct": 257,
        "prim::If": 222,
        "aten::__getitem__": 144,
        "aten::conv2d": 75,
        "prim::Loop": 74,
        "aten::batch_norm": 72,
        "aten::leaky_relu": 72,
        "aten::copy_": 9,
        "aten::mul_": 3,
        "aten::append": 2,
    }.items():
        assert kinds.count(kind) == count, kind
    assert [v.name for v in graph.inputs] == ["s", "x.1"]
    assert graph.value("input.11").node.name == "torch/nn/functional.py:2898:11"
    again = parse_graph(str(graph))
    assert structurally_equal(graph, again) is None
    assert str(again) == str(graph)
