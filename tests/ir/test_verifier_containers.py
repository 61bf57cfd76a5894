"""The verifier on what is taken out of containers, handed on and carried: its type is what passes go by."""

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import parse_graph
from tests.graphs import ir_graph
from tests.ir.helpers import body, marked, refused

ITEMS = (
    "%x : Tensor, %f : Float(2, 3), %n : int, %l : Tensor[], %t : (Tensor, int), %o : (Tensor, int)?, %a : Any, "
    "%c : __torch__.Pair, %u : Union(Tensor, int), %b : bool, %d : Long(2)"
)
ONE = "%1 : int = prim::Constant[value=1]()\n  "
LOOP = "onnx::Loop(%n, %b, {})\n    block0(%i : int, %g : bool, %p : {}):\n      -> (%g, {})"
SCAN = "onnx::Scan[num_scan_inputs=1]({}, %f)\n    block0(%s : {}, %row : {}):\n      -> ({})"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r : int, %q : Tensor = prim::TupleUnpack(%t)", "Tensor cannot become %r : int"),
        ("%r : Tensor, %q : Tensor = prim::TupleUnpack(%o)", "int cannot become %q : Tensor"),
        ("%r : int = prim::TupleUnpack(%x)", "takes a tuple, not %x : Tensor"),
        ("%r : int = prim::TupleUnpack(%l)", "takes a tuple, not %l : Tensor[]"),
        ("%r : Tensor, %q : bool = prim::ListUnpack(%l)", "Tensor cannot become %q : bool"),
        ("%r : Tensor, %q : int = prim::ListUnpack(%t)", "takes a list, not %t : (Tensor, int)"),
        ("%r : int = prim::ListUnpack(%n)", "takes a list, not %n : int"),
        (f"{ONE}%r : Tensor = prim::TupleIndex(%t, %1)", "int cannot become %r : Tensor"),
        ("%r : str = prim::TupleIndex(%t, %n)", "no element of (Tensor, int) can become %r : str"),
        ("%r : Tensor = prim::TupleIndex(%t, %x)", "%x must be int, not Tensor"),
        ("%r : (int) = prim::TupleSlice[beg=0, end=1](%t)", "(Tensor) cannot become %r : (int)"),
        ("%r : (Tensor) = prim::TupleSlice[beg=0, end=2](%t)", "(Tensor, int) cannot become %r : (Tensor)"),
        ('%r : (Tensor) = prim::TupleSlice[beg="0"](%t)', "beg and end must be integers"),
        ("%r : int = prim::ConstantChunk[chunks=1, dim=0](%x)", "Tensor cannot become %r : int"),
        ("%r : Dict(int, int) = prim::DictConstruct(%n, %x)", "%x : Tensor cannot be a value of Dict(int, int)"),
        ("%r : Dict(str, int) = prim::DictConstruct(%n, %n)", "%n : int cannot be a key of Dict(str, int)"),
        ("%r : int = prim::Guard(%x)", "cannot become output %r : int"),
        ("%r : int = prim::profile(%x)", "cannot become output %r : int"),
        ("%r : Tensor, %q : int, %k : bool = prim::RequiresGradCheck(%x, %f)", "cannot become output %q : int"),
        ("%r : int = " + LOOP.format("%x", "Tensor", "%p"), "%p : Tensor cannot become output %r : int"),
        ("%r : Tensor = " + LOOP.format("%x", "int", "%p"), "%x : Tensor cannot become parameter %p : int"),
        ("%r : int = " + LOOP.format("%n", "int", "%x"), "%x : Tensor cannot become parameter %p : int"),
        ("%r : Tensor = " + LOOP.format("%d", "Float(2)", "%p"), "%d : Long(2) cannot become parameter"),
        ("%r : Tensor, %q : int = " + LOOP.format("%x", "Tensor", "%p, %x"), "what is stacked is a tensor, not int"),
        ("%r : int = " + SCAN.format("%x", "Tensor", "Tensor", "%s"), "%s : Tensor cannot become output %r : int"),
        ("%r : Tensor = " + SCAN.format("%x", "int", "Tensor", "%x"), "%x : Tensor cannot become parameter %s : int"),
        ("%r : Tensor = " + SCAN.format("%x", "Tensor", "int", "%s"), "cannot become parameter %row : int"),
        ("%r : Tensor, %q : int = " + SCAN.format("%x", "Tensor", "Tensor", "%s, %row"), "what is stacked is a tensor"),
    ],
)
def test_what_cannot_come_out_is_refused(line: str, message: str) -> None:
    error = refused(parse_graph(body(line, ITEMS)))
    assert error.code in ("IRC214", "IRC215")
    assert message in error.message and marked(error)


@pytest.mark.parametrize(
    "line",
    [
        "%r : Float(2), %q : int = prim::TupleUnpack(%t)",
        "%r : Tensor?, %q : Any = prim::TupleUnpack(%o)",
        "%r : Tensor, %q : int, %k : str = prim::TupleUnpack(%a)",
        "%r : Tensor, %q : int = prim::TupleUnpack(%c)",
        "%r : Tensor, %q : Float(3) = prim::ListUnpack(%l)",
        "%r : Tensor = prim::ListUnpack(%a)",
        "%r : Tensor = prim::TupleIndex(%t, %n)",
        f"{ONE}%r : int = prim::TupleIndex(%t, %1)",
        "%m : int = prim::Constant[value=-2]()\n  %r : Tensor = prim::TupleIndex(%t, %m)",
        "%r : (int) = prim::TupleSlice[beg=1, end=2](%t)",
        "%r : (Tensor, int) = prim::TupleSlice(%t)",
        "%r : Tensor, %q : Float(1, 3) = prim::ConstantChunk[chunks=2, dim=0](%f)",
        "%r : Dict(str, Tensor) = prim::DictConstruct()",
        "%r : Dict(int, Tensor) = prim::DictConstruct(%n, %x)",
        "%r : int = prim::unchecked_cast(%u)",
        "%r : Tensor = prim::unchecked_cast(%a)",
        "%r : int = prim::unchecked_cast(%x)",
        "%r : Tensor = prim::unchecked_unwrap_optional(%n)",
        "%r : Float(2, 3) = prim::profile(%x)",
        "prim::profile()",
        "%r : Tensor, %q : bool = prim::TypeCheck(%x)",
        "%r : Float(9) = " + LOOP.format("%f", "Float(7)", "%p"),
        "%r : Tensor, %q : Float(4, 2, 3) = " + LOOP.format("%x", "Tensor", "%p, %f"),
        "%r : Float(5) = " + SCAN.format("%f", "Float(7)", "Float(3)", "%s"),
    ],
)
def test_what_may_come_out_is_not(line: str) -> None:
    parse_graph(body(line, ITEMS)).verify()


@pytest.mark.parametrize("kind", ["unchecked_cast", "unchecked_unwrap_optional"])
def test_casts_to_what_has_no_memory_are_checked_by_the_run_that_comes_to_them(kind: str) -> None:
    model = irc.compile(
        parse_graph(f"""graph(%x : Tensor, %n : int, %c : bool):
  %p : int = prim::If(%c)
    block0():
      %q : int = prim::{kind}(%x)
      -> (%q)
    block1():
      %m : int = prim::{kind}(%n)
      -> (%m)
  return (%p)
""")
    )
    x = np.ones(2, np.float32)
    assert model.run({"x": x, "n": 3, "c": False}) == {"p": 3}
    with pytest.raises(Error, match=r"IRC424: .*float32\[2\] is not of type int"):
        model.run({"x": x, "n": 3, "c": True})


def test_passes_are_not_misled_about_what_is_written() -> None:
    graph = ir_graph("""
        x: Tensor -> r
        r = neg(x); t: "(Tensor, Tensor)" = prim.TupleConstruct(r, x); p[int], q = prim.TupleUnpack(t); w = relu_(p)
    """)
    with pytest.raises(Error, match="IRC214"):
        irc.compile(graph)
