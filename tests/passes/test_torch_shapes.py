"""Shape inference on TorchScript's operators. That it is true of runs, tests/programs/test_types.py checks."""

import numpy as np
import pytest

from irc.ir import parse_graph, parse_module
from irc.ir.types import TensorType
from irc.ops import records
from irc.passes.shapes import Inference
from irc.runtime.plan import lower
from tests.passes.helpers import transform

HEAD = """graph(%x : Float(2, 3, 8, 8), %i : Long(4, 5), %w : Float(6, 3, 3, 3), %m : Float(2, 5, 4),
      %h : Half(2, 3), %z : Float(), %n : Float(4, 7), %v : Float(7, 4), %u : Tensor):
  %none : NoneType = prim::Constant()
  %false : bool = prim::Constant[value=False]()
  %true : bool = prim::Constant[value=True]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %half : float = prim::Constant[value=0.5]()
  %ones : int[] = prim::Constant[value=[1, 1]]()
  %twos : int[] = prim::Constant[value=[2, 2]]()
  %flat : int[] = prim::Constant[value=[2, -1]]()
  %dots : int[] = prim::Constant[value=[0]]()
  %last : int[] = prim::Constant[value=[-1, 2]]()
  %list : Tensor[] = prim::ListConstruct(%x, %x)
  %product : str = prim::Constant[value="bij, jk -> bik"]()
  %pair : Tensor[] = prim::ListConstruct(%m, %n)
  %v2 : Float(2, 4, 2) = prim::Constant[value=splat(1)]()
  %query : Float(1, 3, 2, 8) = prim::Constant[value=splat(1)]()
  %heads : Float(1, 6, 2, 8) = prim::Constant[value=splat(1)]()
  %complex : ComplexDouble() = prim::Constant[value=splat(1)]()
  %last_axis : int = prim::Constant[value=-1]()
  %within : Long(4, 5) = prim::Constant[value=splat(1)]()
  %places : Tensor?[] = prim::ListConstruct(%none, %within)
"""


SAID = [
    ("aten::add(%x, %x, %one)", "Float(2, 3, 8, 8)"),
    ("aten::add(%i, %half, %one)", "Float(4, 5)"),
    ("aten::add(%h, %z, %one)", "Half(2, 3)"),
    ("aten::add(%x, %u, %one)", "Tensor"),
    ("aten::add(%x, %complex, %one)", "ComplexFloat(2, 3, 8, 8)"),
    ("aten::div(%i, %two)", "Float(4, 5)"),
    ("aten::gt(%x, %zero)", "Bool(2, 3, 8, 8)"),
    ("aten::sigmoid(%i)", "Float(4, 5)"),
    ("aten::leaky_relu(%x, %half)", "Float(2, 3, 8, 8)"),
    ("aten::conv2d(%x, %w, %none, %twos, %ones, %ones, %one)", "Float(2, 6, 4, 4)"),
    ("aten::max_pool2d(%x, %twos, %twos, %zero, %one, %false)", "Float(2, 3, 4, 4)"),
    ("aten::matmul(%m, %n)", "Float(2, 5, 7)"),
    ("aten::linear(%m, %v, %none)", "Float(2, 5, 7)"),
    ("aten::einsum(%product, %pair, %none)", "Float(2, 5, 7)"),
    ("aten::einsum(%product, %list, %none)", "Tensor"),
    ("aten::sum(%i, %none)", "Long()"),
    ("aten::nansum(%x, %last, %true, %none)", "Float(2, 3, 1, 1)"),
    ("aten::rad2deg(%i)", "Float(4, 5)"),
    ("aten::signbit(%h)", "Bool(2, 3)"),
    ("aten::logaddexp(%h, %z)", "Half(2, 3)"),
    ("aten::gcd(%i, %i)", "Long(4, 5)"),
    ("aten::bitwise_not(%i)", "Long(4, 5)"),
    ("aten::bitwise_left_shift(%i, %two)", "Long(4, 5)"),
    ("aten::fix(%h)", "Half(2, 3)"),
    ("aten::hypot(%h, %z)", "Half(2, 3)"),
    ("aten::copysign(%i, %half)", "Float(4, 5)"),
    ("aten::xlogy(%two, %i)", "Float(4, 5)"),
    ("aten::logcumsumexp(%x, %one)", "Float(2, 3, 8, 8)"),
    ("aten::flip(%i, %dots)", "Long(4, 5)"),
    ("aten::special_i1(%i)", "Float(4, 5)"),
    ("aten::polygamma(%one, %i)", "Float(4, 5)"),
    ("aten::argsort(%x, %one, %false)", "Long(2, 3, 8, 8)"),
    ("aten::xlogy(%i, %two)", "Float(4, 5)"),
    ("aten::logsumexp(%x, %last, %true)", "Float(2, 3, 1, 1)"),
    ("aten::any(%x, %one, %false)", "Bool(2, 8, 8)"),
    ("aten::count_nonzero(%x, %last)", "Long(2, 3)"),
    ("aten::gather(%i, %zero, %i)", "Long(4, 5)"),
    ("aten::mT(%x)", "Float(2, 3, 8, 8)"),
    ("aten::repeat(%i, %twos)", "Long(8, 10)"),
    ("aten::pad(%x, %twos)", "Float(2, 3, 8, 12)"),
    ("aten::view_as_complex(%v2)", "ComplexFloat(2, 4)"),
    ("aten::fft_rfft(%x)", "ComplexFloat(2, 3, 8, 5)"),
    ("aten::fft_fft(%i)", "ComplexFloat(4, 5)"),
    ("aten::glu(%x, %last_axis)", "Float(2, 3, 8, 4)"),
    ("aten::pixel_unshuffle(%x, %two)", "Float(2, 12, 4, 4)"),
    ("aten::scaled_dot_product_attention(%x, %x, %x)", "Float(2, 3, 8, 8)"),
    ("aten::scaled_dot_product_attention(%query, %x, %x)", "Float(2, 3, 2, 8)"),
    ("aten::scaled_dot_product_attention(%heads, %x, %x, %none, %half, %false, %none, %true)", "Float(2, 6, 2, 8)"),
    ("aten::new_zeros(%i, %twos)", "Long(2, 2)"),
    ("aten::linspace(%zero, %one, %two)", "Float(2)"),
    ("aten::eye(%two)", "Float(2, 2)"),
    ("aten::index(%x, %places)", "Float(2, 4, 5, 8, 8)"),
    ("aten::msort(%i)", "Long(4, 5)"),
    ("aten::mean(%x, %last, %true, %none)", "Float(2, 3, 1, 1)"),
    ("aten::view(%x, %flat)", "Float(2, 192)"),
    ("aten::transpose(%x, %one, %two)", "Float(2, 8, 3, 8)"),
    ("aten::unsqueeze(%i, %zero)", "Long(1, 4, 5)"),
    ("aten::select(%x, %one, %zero)", "Float(2, 8, 8)"),
    ("aten::slice(%x, %two, %one, %none, %two)", "Float(2, 3, 4, 8)"),
    ("aten::cat(%list, %one)", "Float(2, 6, 8, 8)"),
    ("aten::stack(%list, %zero)", "Float(2, 2, 3, 8, 8)"),
    ("aten::matmul(%x, %w)", "Tensor"),  # does not fit, which is for the run to say
    ("aten::add(%x, %i, %one)", "Tensor"),
    ("aten::conv_transpose2d(%z, %z, %none, %ones, %ones, %ones, %one, %ones)", "Tensor"),
    ("aten::permute(%z, %dots)", "Tensor"),
]

VIEWS = {each.kind for each in records("aten") if each.copied}
COPIES = [(said.replace("(", "_copy(", 1), type) for said, type in SAID if said.partition("(")[0] in VIEWS]


@pytest.mark.parametrize(("operation", "expected"), [*SAID, *COPIES])
def test_what_is_said(operation, expected):
    graph = parse_graph(f"{HEAD}  %y : Tensor = {operation}\n  return (%y)\n")
    Inference(graph).run()
    said = graph.outputs[0].type
    assert str(said) == expected
    if said == TensorType():
        return
    shapes = [v.type for v in graph.inputs if isinstance(v.type, TensorType)]
    arrays = [np.ones(t.static_shape or (), t.dtype.numpy if t.dtype else np.float32) for t in shapes]
    (found,) = lower(graph).run(arrays)
    assert (found.dtype, found.shape) == (said.dtype.numpy, said.shape)


@pytest.mark.parametrize(
    ("other", "type"), [("u", "Float(2, 3, 8, 8)"), ("n", "Float"), ("h", "Tensor"), ("w", "Float(*, 3, *, *)")]
)
def test_conditions_on_the_rank_choose_the_branch(other, type):
    """If what the other gives may be of that type, too: a graph must not contradict itself."""
    text = f"""{HEAD}  %four : int = prim::Constant[value=4]()
  %rank : int = aten::dim(%x)
  %is : bool = aten::eq(%rank, %four)
  %y : Tensor = prim::If(%is)
    block0():
      %a : Tensor = aten::relu(%x)
      -> (%a)
    block1():
      -> (%{other})
  return (%y)
"""
    graph = parse_graph(text)
    Inference(graph).run()
    graph.verify()
    assert str(graph.outputs[0].type) == type


@pytest.mark.parametrize(
    ("operation", "type"),
    [
        ("aten::sigmoid(%any)", "Tensor"),
        ("aten::signbit(%any)", "Bool"),
        ("aten::hypot(%any, %x)", "Tensor"),
        ("aten::logical_xor(%x, %any)", "Bool"),
        ("aten::clamp(%x, %bound)", "Tensor"),
        ("aten::clamp(%x, %limit)", "Tensor(2, 3)"),
    ],
)
def test_operands_that_may_be_larger_tensors_leave_the_shape_open(operation, type):
    inputs = "%x : Float(2, 3), %any : Any, %bound : Tensor?, %limit : float?"
    graph = parse_graph(f"graph({inputs}):\n  %y : Tensor = {operation}\n  return (%y)\n")
    Inference(graph).run()
    assert str(graph.outputs[0].type) == type


@pytest.mark.parametrize("wide", ["Union(Tensor, Tensor[])", "Any"])
@pytest.mark.parametrize("condition", ["aten::is_floating_point(%u)", "aten::eq(%one, %two)"])
def test_what_may_be_of_two_kinds_stays_a_union_or_any(wide, condition):
    text = f"""{HEAD}  %is : bool = {condition}
  %y : {wide} = prim::If(%is)
    block0():
      -> (%x)
    block1():
      -> (%list)
  %r : {wide} = prim::Loop(%two, %true, %x)
    block0(%trip : int, %p : {wide}):
      -> (%true, %list)
  return (%y, %r)
"""
    graph = parse_graph(text)
    Inference(graph).run()
    graph.verify()
    assert [str(v.type) for v in (*graph.outputs, graph.value("p"))] == [wide] * 3


def test_a_list_that_grows_later_tells_nothing():
    text = f"""{HEAD}  %sizes : int[] = prim::ListConstruct(%two, %one)
  %more : int[] = aten::append(%sizes, %one)
  %y : Tensor = aten::view(%u, %sizes)
  return (%y)
"""
    graph = parse_graph(text)
    Inference(graph).run()
    assert str(graph.outputs[0].type) == "Tensor"


@pytest.mark.parametrize(
    "change", ["%c : Tensor = aten::squeeze_(%a)", "%c : Tensor = aten::resize_(%a, %ones, %none)"]
)
def test_nothing_is_said_where_tensors_change_shape(change):
    graph = parse_graph(f"{HEAD}  %a : Tensor = aten::clone(%x, %none)\n  {change}\n"
                        "  %y : Tensor = aten::relu(%a)\n  return (%y)\n")  # fmt: skip
    Inference(graph).run()
    assert str(graph.outputs[0].type) == "Tensor"


@pytest.mark.parametrize(
    ("body", "told"), [("aten::relu_(%p)", "Float(2, 3, 8, 8)"), ("aten::resize_(%p, %sizes, %none)", "Tensor")]
)
def test_functions_that_are_called_may_change_shapes_or_not(body, told):
    module = parse_module(f"""{HEAD}  %a : Tensor = aten::clone(%x, %none)
  %f : Function = prim::Constant[name="called"]()
  %c : Tensor = prim::CallFunction(%f, %a)
  %y : Tensor = aten::relu(%a)
  return (%y)

graph called(%p : Tensor):
  %none : NoneType = prim::Constant()
  %sizes : int[] = prim::Constant[value=[1, 1]]()
  %q : Tensor = {body}
  return (%q)
""")
    Inference(module.main).run()
    assert str(module.main.outputs[0].type) == told


@pytest.mark.parametrize(("body", "told"), [("aten::relu_(%p)", "Float(2, 3, 8, 8)"), ("aten::t_(%p)", "Tensor")])
def test_so_may_groups(body, told):
    graph = parse_graph(f"""{HEAD}  %a : Tensor = aten::clone(%x, %none)
  %c : Tensor = prim::FusionGroup_0(%a)
  %y : Tensor = aten::relu(%a)
  return (%y)
with prim::FusionGroup_0 = graph(%p : Tensor):
  %q : Tensor = {body}
  return (%q)
""")
    Inference(graph).run()
    assert str(graph.outputs[0].type) == told


def test_types_let_operators_write_in_place():
    text = f"""{HEAD}  %a : Tensor = aten::conv2d(%x, %w, %none, %twos, %ones, %ones, %one)
  %b : Tensor = aten::leaky_relu(%a, %half)
  %c : Tensor = aten::conv2d(%x, %w, %none, %twos, %ones, %ones, %one)
  %d : Tensor = aten::add(%b, %c, %one)
  return (%d)
"""
    found = [node.kind for node in transform(text, "shape-inference,in-place").nodes]
    assert found[-3:] == ["aten::leaky_relu_", "aten::conv2d", "aten::add_"]


SPLIT = "%s{} : Tensor[] = aten::split(%a, %one, %zero)"
"""What asks whether its operands are ever written."""


@pytest.mark.parametrize("where", ["first", "within", "last"])
@pytest.mark.parametrize("pipeline", ["shape-inference,cse,dce,fuse", "canonicalize,cse"])
def test_no_analysis_is_made_of_types_in_between(where: str, pipeline: str) -> None:
    """What a loop carries is None at first, which has no memory; what it becomes is written."""
    split = {place: SPLIT.format(place) if place == where else "" for place in ("first", "within", "last")}
    text = f"""graph(%x : Tensor, %count : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : float = prim::Constant[value=2.]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::mul(%x, %two)
  %y0 : Tensor = aten::mul(%a, %two)
  %y : Tensor, %z : Tensor, %op : Tensor? = prim::Loop(%count, %true, %y0, %y0, %none)
    block0(%i : int, %p : Tensor, %q : Tensor, %o : Tensor?):
      {split["first"]}
      %u : Tensor = aten::mul(%a, %two)
      %is : bool = aten::__isnot__(%o, %none)
      %o2 : Tensor? = prim::If(%is)
        block0():
          %t : Tensor = prim::unchecked_cast(%o)
          %w : Tensor = aten::add_(%t, %one, %one)
          {split["within"]}
          -> (%t)
        block1():
          -> (%o)
      {split["last"]}
      %v : Tensor = aten::mul(%a, %two)
      -> (%true, %u, %v, %a)
  %r : Tensor = aten::mul(%a, %two)
  return (%y, %z, %a, %r)
"""
    before, after = parse_graph(text), transform(text, pipeline)
    given = np.zeros((2, 2), np.float32), 3
    for found, expected in zip(lower(after).run(given), lower(before).run(given), strict=True):
        np.testing.assert_array_equal(found, expected)
