"""IR text: its layout, and that it reads back exactly."""

import struct

import numpy as np
import pytest
from hypothesis import given

import irc.ir.text.printer as printer
from irc.errors import Error
from irc.ir import Builder, DType, Graph, Tensor, parse_graph, parse_module, parse_type, structurally_equal, types
from tests.ir import strategies
from tests.ir.helpers import body

# -- layout ------------------------------------------------------------------

LAYOUT = """\
graph(%x : Float(batch, 3),
      %c : bool):
  %w : Float(3) = prim::Constant[value=@"conv.weight"]()
  %"gpu_0/y" : Float(batch, 3) = onnx::Add[since_version=14](%x, %w) # /model/add
  %n : NoneType = prim::Constant()
  %r : Tensor = prim::If(%c) # scope: Net/If
    block0():
      %a : Tensor, %b : Tensor = my::two[ks=[1, 2], mode="s", alpha=0.5](%"gpu_0/y")
      prim::Print(%a)
      -> (%a)
    block1():
      %l : Tensor = prim::Loop(%n, %c, %x)
        block0(%i : int, %z : Tensor):
          -> (%c, %z)
      -> (%l)
  %f : Tensor = prim::FusionGroup_0(%r)
  return (%f, %"gpu_0/y")
with prim::FusionGroup_0 = graph(%p : Tensor):
  %q : Tensor = prim::FusionGroup_0(%p)
  return (%q)
with prim::FusionGroup_0 = graph(%p : Tensor):
  %q : Tensor = aten::relu(%p)
  return (%q)
"""


def test_layout_is_that_of_torchscript() -> None:
    graph = parse_graph(LAYOUT)
    assert str(graph) == LAYOUT
    assert graph.value("gpu_0/y").node.name == "/model/add"
    assert graph.value("gpu_0/y").node.version == 14
    assert graph.value("r").node.scope == "Net/If"
    assert graph.value("l").node.block is graph.value("r").node.blocks[1]
    inner = graph.value("f").node.attributes["Subgraph"].value("q").node
    assert inner.kind == "prim::FusionGroup"
    assert inner.attributes["Subgraph"].value("q").node.kind == "aten::relu"


TOKENS = """
graph "a+b" ( %x : Tensor , %"y+z" : Float ( 2 , "n+m" , strides = [3,1] ) [ ] ) :
  %c : Dict ( str , int ) , %d : NamedTuple ( a : int ) = my::op
    [ a = 1 , "b+c" = [ 1 , 2 ] , d = { "k" : 1 } , e = tensor < Float ( ) > ( [ 1. ] ) , f = <Type : int > ]
    ( %x , %"y+z" )
  my::op ( )
    block0 ( %i : int ) :
      -> ( %i )
  return ( %c )
"""


def test_a_comment_may_stand_between_any_two_tokens() -> None:
    lines = [line.split() for line in TOKENS.splitlines()]
    expected = parse_graph(TOKENS)
    spaced = parse_graph("\n".join(' # %x ( ), "\n '.join(line) for line in lines))
    assert structurally_equal(spaced, expected) is None


def test_kind_that_ends_like_a_subgraph_reference_is_quoted() -> None:
    graph = parse_graph(body('"prim::FusionGroup_0"()'))
    assert graph.nodes[0].kind == "prim::FusionGroup_0"
    assert '"prim::FusionGroup_0"()' in str(graph)
    # Without a section, a bare one is such an operator too: dumps of single graphs leave the sections out.
    assert parse_graph(body("prim::FusionGroup_0()")).nodes[0].kind == "prim::FusionGroup_0"


# -- exact round trips -------------------------------------------------------


@given(strategies.graphs())
def test_graphs_read_back_exactly(graph: Graph) -> None:
    text = str(graph)
    parsed = parse_graph(text, graph.weights)
    assert structurally_equal(graph, parsed) is None
    assert str(parsed) == text
    for name, tensor in graph.weights.items():
        assert parsed.weights[name] is tensor


@given(strategies.all_types)
def test_types_read_back(of_type: types.Type) -> None:
    assert parse_type(str(of_type)) == of_type


@pytest.mark.parametrize(
    "size", ["n), m", "n) = onnx::Neg[since_version=13](%x) #", "n), %z : Tensor): #", "n) ", "n)>", 'n")', "(n", "n)("]
)
def test_brackets_in_names_of_sizes_end_nothing(size: str) -> None:
    """A model's file may name its sizes so, and text is how irc stores programs."""
    of_type = types.tensor(DType.FLOAT, (size, 3))
    graph = Graph()
    x = graph.add_input(of_type, "x")
    graph.set_outputs([Builder(graph).node("onnx::Sigmoid", [x], [of_type, of_type]).outputs[0]])
    read = parse_graph(str(graph))
    assert structurally_equal(read, graph) is None
    assert parse_type(str(of_type)) == of_type


@given(strategies.texts)
def test_any_name_survives(name: str) -> None:
    graph = Graph()
    value = graph.add_input(types.TENSOR, name or "x")
    graph.set_outputs([Builder(graph).node("my::op", [value], [types.STR], names=[name + "'"], name=name).output])
    parsed = parse_graph(str(graph))
    assert parsed.inputs[0].name == value.name
    assert parsed.value(value.name).uses[0].node.name == name


SMALL = [d for d in DType if d is not DType.STRING and d is not DType.BOOL and d.numpy.itemsize <= 2]


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.label)
def test_every_bit_pattern_of_small_types_reads_back(dtype: DType) -> None:
    if dtype.is_integer:
        signed = dtype.label[0] in "ICS"
        low, high = (-(1 << (dtype.bits - 1)), 1 << (dtype.bits - 1)) if signed else (0, 1 << dtype.bits)
        array = np.arange(low, high).astype(dtype.numpy)
    else:
        array = np.arange(1 << dtype.bits).astype(f"u{dtype.numpy.itemsize}").view(dtype.numpy)
    graph = Graph()
    Builder(graph).constant(Tensor(dtype, array.shape, array=array))
    parsed = parse_graph(str(graph)).nodes[0].attributes["value"]
    assert parsed.dtype is dtype
    assert parsed.numpy().tobytes() == array.tobytes()


def test_floats_are_as_short_as_exactness_allows() -> None:
    graph = Graph()
    build = Builder(graph)
    build.constant(Tensor(DType.FLOAT, (3,), array=np.array([0.1, 1e10, -0.0], np.float32)))
    build.constant(Tensor(DType.FLOAT16, (2,), array=np.array([0.1, 65504], np.float16)))
    build.constant(Tensor.splat(DType.DOUBLE, (2, 2), 0.1))
    build.constant(1e16)
    lines = [printer.print_node(node).partition("= ")[2] for node in graph.nodes]
    assert lines == [
        "prim::Constant[value=tensor([0.1, 10000000000., -0.])]()",
        "prim::Constant[value=tensor([0.1, 65500.])]()",
        "prim::Constant[value=splat(0.1)]()",
        "prim::Constant[value=1e+16]()",
    ]


def test_nan_bits_are_kept() -> None:
    bits = 0xFFF0000000000001
    value = struct.unpack("<d", struct.pack("<Q", bits))[0]
    graph = Graph()
    Builder(graph).constant(value)
    assert f"value=nan({bits:#x})" in str(graph)
    found = parse_graph(str(graph)).nodes[0].attributes["value"]
    assert struct.pack("<d", found) == struct.pack("<d", value)


# -- weights -----------------------------------------------------------------

WEIGHT = body('%w : Float(2) = prim::Constant[value=@"a b"]()')


def test_missing_weight_is_absent_and_one_object() -> None:
    text = WEIGHT.replace("  return", '  %v : Tensor = prim::Constant[value=@"a b"<Float(2)>]()\n  return')
    graph = parse_graph(text)
    tensor = graph.value("w").node.attributes["value"]
    assert tensor.is_absent
    assert tensor is graph.value("v").node.attributes["value"] is graph.weights["a b"]
    with pytest.raises(Error, match="IRC306"):
        tensor.numpy()


def test_weight_of_another_type_is_refused() -> None:
    with pytest.raises(Error, match=r'IRC114.*weight "a b" is Float\(3\), but the text says Float\(2\)'):
        parse_graph(WEIGHT, {"a b": np.zeros(3, np.float32)})


def test_a_tensor_is_not_taken_for_what_it_holds() -> None:
    with pytest.raises(TypeError, match=r"tensor\.scalar\.item\(\)"):
        bool(Tensor.of(np.array(False)))


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("tensor", "did you mean 'Tensor'?"),
        ("Flaot(2, 3)", "did you mean 'Float'?"),
        ("List[Tensr]", "did you mean 'Tensor'?"),
        ("boolean", "did you mean 'bool'?"),
        ("float32[2]", r"tensors of float32 are Float\(2, 3\), of any shape FloatTensor"),
        ("int64", r"tensors of int64 are Long\(2, 3\), of any shape LongTensor"),
    ],
)
def test_types_that_are_misspelt(word: str, meant: str) -> None:
    with pytest.raises(Error, match=rf"IRC110: t\.ir:1:\d+: there is no type \w+; {meant}"):
        parse_module(f"graph(%x : {word}):\n  return (%x)\n", filename="t.ir")
