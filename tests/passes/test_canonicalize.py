"""Every canonicalisation rule: where it applies, where it must not, and what a write forbids.

A case is the body of a graph that makes ``%y`` out of ``%x : Float(2, 3)`` and others; after it, ``%z`` is
computed from ``%y``, so that names of outputs do not come into it.
"""

from __future__ import annotations

import numpy as np
import pytest

import irc
from irc.ir import Graph, Value, parse_graph, parse_module
from irc.passes import PassManager
from irc.passes.canonicalize.match import RULES, Match
from irc.passes.shapes import Inference
from tests.passes.helpers import assert_same_results, kinds, run_passes

INPUTS = "%x : Float(2, 3), %p : Float(2, 3), %q : Bool(2, 3), %n : Float(N, 3), %i : Long(2), %c : Float(2, 1)"
RANDOM = np.random.default_rng(0)
FEEDS = (
    RANDOM.standard_normal((2, 3)).astype(np.float32),
    RANDOM.standard_normal((2, 3)).astype(np.float32),
    RANDOM.standard_normal((2, 3)) > 0,
    RANDOM.standard_normal((2, 3)).astype(np.float32),
    np.array([2, 3]),
    RANDOM.standard_normal((2, 1)).astype(np.float32),
)


def graph_of(body: str, last: str = "%z = onnx::Abs(%y)") -> Graph:
    lines = "\n".join(f"  {line.strip()}" for line in f"{body}\n{last}".splitlines() if line.strip())
    return parse_graph(f"graph({INPUTS}):\n{lines}\n  return (%z)\n")


def canonicalized(body: str, last: str = "%z = onnx::Abs(%y)") -> tuple[Graph, dict[str, int]]:
    """The graph afterwards, without dead code, and how often each rule was used; the results are the same."""
    before, graph = graph_of(body, last), graph_of(body, last)
    report = run_passes(graph, "canonicalize,dce")
    used = {k.removeprefix("canonicalize."): n for k, n in report.stats.items() if k.startswith("canon")}
    rounded = {"activation", "normalization"}.intersection(used)  # sums in another order, a quotient for a product
    assert_same_results(before, graph, *FEEDS, rtol=1e-6 if rounded else 0)
    return graph, used


SHARED = """
%ks : Long(4) = prim::Constant[value=tensor([1, 2, 1, 3])]()
%k = onnx::Reshape(%x, %ks)
%two : Long(1) = prim::Constant[value=tensor([2])]()
%u = onnx::Unsqueeze(%k, %two)
%es : Long(5) = prim::Constant[value=tensor([1, 2, 2, 1, 3])]()
%e = onnx::Expand(%u, %es)
"""
"""Two heads, each for two others."""

OPEN = (
    SHARED.replace("%x,", "%n,").replace("[1, 2, 1, 3]", "[1, 3, -1, 1]").replace("[1, 2, 2, 1, 3]", "[1, 3, 2, 1, 1]")
)

MASKED = """
%k : Float() = prim::Constant[value=tensor([0.])]()
%s = onnx::Softmax(%x)
%t = onnx::IsNaN(%s)
"""

HALVES = """
%t = onnx::Transpose(%x)
%a = onnx::Slice[since_version=1, starts=[0], ends=[1], axes=[1]](%t)
%b = onnx::Slice[since_version=1, starts=[-1], ends=[9], axes=[1]](%t)
%m = onnx::Neg(%b)
"""

PAIRS = """
%t9 = onnx::Transpose(%x)
%q0 : Long(1) = prim::Constant[value=tensor([0])]()
%q1 : Long(1) = prim::Constant[value=tensor([1])]()
%q2 : Long(1) = prim::Constant[value=tensor([2])]()
%a9 = onnx::Slice[since_version=13](%t9, %q0, %q2, %q1, %q2)
%b9 = onnx::Slice[since_version=13](%t9, %q1, %q2, %q1, %q2)
%m9 = onnx::Neg(%b9)
%c9 = onnx::Unsqueeze[since_version=13](%m9, %q2)
%d9 = onnx::Unsqueeze[since_version=13](%a9, %q2)
%e9 = onnx::Concat[axis=-1](%c9, %d9)
%f9 = onnx::Shape(%t9)
"""

ROOT = """
%two : Float() = prim::Constant[value=tensor([2.])]()
%e : Float() = prim::Constant[value=tensor([0.5])]()
%last : Long(1) = prim::Constant[value=tensor([-1])]()
%s = onnx::Pow(%{0}, %two)
%v = onnx::ReduceMean[keepdims=1](%s, %last)
%w = onnx::Add(%v, %e)
%r = onnx::Sqrt(%w)
"""

CENTERED = "%m = onnx::ReduceMean[axes=[1], keepdims=1, since_version=13](%x)\n%d = onnx::Sub(%x, %m)"

COLUMNS = "%k : Float(3) = prim::Constant[value=tensor([1., 2., 3.])]()"

SCALED = f"{ROOT.format('x')}\n%g = onnx::Div(%x, %r)\n{COLUMNS}"

ALL_INDICES = """
%s = onnx::Shape(%n)
%zero : Long() = prim::Constant[value=tensor([0])]()
%one : Long() = prim::Constant[value=tensor([1])]()
%rows = onnx::Gather[axis=0](%s, %zero)
%r = onnx::Range(%zero, %rows, %one)
%tall : Long(2) = prim::Constant[value=tensor([-1, 1])]()
%t = onnx::Reshape(%r, %tall)
%columns : Long(3) = prim::Constant[value=tensor([0, 1, 2])]()
%last : Long(1) = prim::Constant[value=tensor([-1])]()
%e0 = onnx::Expand(%t, %s)
%e1 = onnx::Expand(%columns, %s)
%u0 = onnx::Unsqueeze(%e0, %last)
%u1 = onnx::Unsqueeze(%e1, %last)
%k = onnx::Concat[axis=-1](%u0, %u1)
"""
"""Of all elements of a matrix, in order."""

REPEATED = f"""
%c2 = onnx::Concat[axis=0](%c, %c)
%qs : Long(4) = prim::Constant[value=tensor([1, 4, 1, 1])]()
%left = onnx::Reshape(%c2, %qs)
{SHARED}
%rs : Long(4) = prim::Constant[value=tensor([1, 4, 1, 3])]()
%r = onnx::Reshape(%e, %rs)
"""

# (rule, body, what is left of it)
APPLIES = [
    ("identity", "%y = onnx::Identity(%x)", ""),
    ("dropout_at_inference", "%y = onnx::Dropout(%x)", ""),
    ("dropout_at_inference", "%y = onnx::Dropout[is_test=1, since_version=1](%x)", ""),
    (
        "dropout_at_inference",
        """%r : Float() = prim::Constant[value=tensor([0.5])]()
           %t : Bool() = prim::Constant[value=tensor([False])]()
           %y, %mask : Bool(2, 3) = onnx::Dropout(%x, %r, %t)""",
        "",
    ),
    ("shape_and_type_kept", "%s : Long(2) = prim::Constant[value=tensor([2, -1])]()\n%y = onnx::Reshape(%x, %s)", ""),
    ("shape_and_type_kept", "%s : Long(2) = prim::Constant[value=tensor([0, 3])]()\n%y = onnx::Reshape(%n, %s)", ""),
    ("shape_and_type_kept", "%y = onnx::Flatten[axis=1](%n)", ""),
    ("shape_and_type_kept", "%s : Long(2) = prim::Constant[value=tensor([1, 3])]()\n%y = onnx::Expand(%x, %s)", ""),
    ("shape_and_type_kept", "%y = onnx::Cast[to=1](%n)", ""),
    ("shape_and_type_kept", "%y = onnx::CastLike(%n, %x)", ""),
    ("shape_and_type_kept", "%s : Long(2) = prim::Constant[value=splat(1)]()\n%y = onnx::Tile(%x, %s)", ""),
    ("shape_and_type_kept", "%y = onnx::Squeeze(%x)", ""),
    ("conjugate", "%y = aten::conj(%x)", "conj_physical"),
    ("conjugate", "%y = aten::_conj(%x)", "conj_physical"),
    ("adjoint", "%y = aten::mH(%x)", "conj_physical mT"),
    ("adjoint", "%y = aten::adjoint(%x)", "conj_physical mT"),
    ("single_operand", "%y = onnx::Concat[axis=0](%x)", ""),
    ("single_operand", "%y = onnx::Sum(%n)", ""),
    ("single_operand", "%y = onnx::Max(%x)", ""),
    ("single_operand", "%y = onnx::Min(%x)", ""),
    ("single_operand", "%y = onnx::Mean(%x)", ""),
    ("transpose_in_order", "%y = onnx::Transpose[perm=[0, 1]](%n)", ""),
    ("transpose_in_order", "%y : Long(2) = onnx::Transpose(%i)", ""),
    (
        "full_slice",
        """%b : Long(1) = prim::Constant[value=tensor([0])]()
           %e : Long(1) = prim::Constant[value=tensor([9223372036854775807])]()
           %y = onnx::Slice(%n, %b, %e)""",
        "",
    ),
    (
        "full_slice",
        """%b : Long(1) = prim::Constant[value=tensor([-3])]()
           %e : Long(1) = prim::Constant[value=tensor([3])]()
           %a : Long(1) = prim::Constant[value=tensor([1])]()
           %s : Long(1) = prim::Constant[value=tensor([1])]()
           %y = onnx::Slice(%x, %b, %e, %a, %s)""",
        "",
    ),
    ("full_slice", "%y = onnx::Slice[starts=[0], ends=[5], axes=[1], since_version=1](%x)", ""),
    ("no_padding", "%s : Long(4) = prim::Constant[value=splat(0)]()\n%y = onnx::Pad(%n, %s)", ""),
    ("no_padding", "%y = onnx::Pad[pads=[0, 0, 0, 0], since_version=2](%x)", ""),
    ("single_part", "%s : Long(1) = prim::Constant[value=tensor([3])]()\n%y = onnx::Split[axis=1](%x, %s)", ""),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([1.])]()\n%y = onnx::Mul(%k, %n)", ""),
    ("neutral_operand", "%k : Float(2, 3) = prim::Constant[value=splat(1.)]()\n%y = onnx::Mul(%x, %k)", ""),
    ("neutral_operand", "%k : Float(1) = prim::Constant[value=tensor([1.])]()\n%y = onnx::Div(%x, %k)", ""),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([1.])]()\n%y = onnx::Pow(%x, %k)", ""),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([0.])]()\n%y = onnx::Sub(%x, %k)", ""),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([-0.])]()\n%y = onnx::Add(%x, %k)", ""),
    ("settled_choice", "%k : Bool() = prim::Constant[value=tensor([True])]()\n%y = onnx::Where(%k, %x, %p)", ""),
    ("settled_choice", "%k : Bool(2, 3) = prim::Constant[value=splat(False)]()\n%y = onnx::Where(%k, %p, %x)", ""),
    ("known_contents", "%y : Long(2) = onnx::Shape(%x)", ""),
    (
        "known_contents",
        """%s = onnx::Shape(%n)
           %k : Long(1) = prim::Constant[value=tensor([1])]()
           %y : Long(1) = onnx::Gather[axis=0](%s, %k)""",
        "",
    ),
    (
        "same_contents",
        "%s = onnx::Shape(%n)\n%m = onnx::Neg(%n)\n%t = onnx::Shape(%m)\n%y = onnx::Add(%t, %i)",
        "Shape Add",
    ),
    (
        "same_contents",  # (N + N) - N
        """%s = onnx::Shape[start=0, end=1](%n)
           %m = onnx::Concat[axis=0](%n, %n)
           %t = onnx::Shape[start=0, end=1](%m)
           %d = onnx::Sub(%t, %s)
           %y = onnx::Add(%d, %i)""",
        "Shape Add",
    ),
    (
        "reshape_by_numbers",
        """%s = onnx::Shape[start=0, end=1](%n)
           %k : Long(2) = prim::Constant[value=tensor([1, 3])]()
           %t = onnx::Concat[axis=0](%s, %k)
           %y = onnx::Reshape(%n, %t)""",
        "Reshape",
    ),
    (
        "reshape_by_numbers",
        """%s = onnx::Shape[start=0, end=1](%n)
           %k : Long(1) = prim::Constant[value=tensor([3])]()
           %m = onnx::Mul(%s, %k)
           %o : Long(1) = prim::Constant[value=tensor([1])]()
           %t = onnx::Concat[axis=0](%o, %m)
           %y = onnx::Reshape(%n, %t)""",
        "Reshape",
    ),
    ("normalization", f"{ROOT.format('x')}\n%y = onnx::Div(%x, %r)", "RMSNormalization"),
    ("normalization", f"{CENTERED}\n{ROOT.format('d')}\n%y = onnx::Div(%d, %r)", "LayerNormalization"),
    ("masked_softmax", f"{MASKED}\n%y = onnx::Where(%t, %k, %s)", "masked_softmax"),
    ("rotated_halves", f"{HALVES}\n%y = onnx::Concat[axis=1](%m, %a)", "Transpose rotate_half"),
    ("rotated_pairs", f"{PAIRS}\n%y = onnx::Reshape[since_version=13](%e9, %f9)", "Transpose rotate_half"),
    ("activation", "%s = onnx::Sigmoid(%n)\n%y = onnx::Mul(%s, %n)", "Swish"),
    ("scale_of_normalization", f"{SCALED}\n%y = onnx::Mul(%g, %k)", "RMSNormalization"),
    (
        "bias_of_normalization",
        f"{CENTERED}\n{ROOT.format('d')}\n%g = onnx::Div(%d, %r)\n{COLUMNS}\n%y = onnx::Add(%k, %g)",
        "LayerNormalization",
    ),
    ("transpose_of_transpose", "%t = onnx::Transpose(%x)\n%y = onnx::Transpose(%t)", ""),
    (
        "transpose_of_transpose",
        """%a : Long(1) = prim::Constant[value=tensor([0])]()
           %u = onnx::Unsqueeze(%x, %a)
           %t = onnx::Transpose[perm=[1, 2, 0]](%u)
           %y = onnx::Transpose[perm=[0, 2, 1]](%t)""",
        "Unsqueeze Transpose",
    ),
    ("reshape_there_and_back", "%t = onnx::Flatten[axis=0](%x)\n%y : Float(2, 3) = onnx::Reshape(%t, %i)", ""),
    (
        "reshape_of_reshape",
        """%t = onnx::Flatten[axis=0](%x)
           %s : Long(2) = prim::Constant[value=tensor([3, 2])]()
           %y = onnx::Reshape(%t, %s)""",
        "Reshape",
    ),
    (
        "operand_expanded_for_nothing",
        "%s : Long(2) = prim::Constant[value=tensor([2, 3])]()\n%e = onnx::Expand(%c, %s)\n%y = onnx::Add(%x, %e)",
        "Add",
    ),
    (
        "operand_expanded_for_nothing",
        """%s : Long(2) = prim::Constant[value=tensor([2, 3])]()
           %e = onnx::Expand(%c, %s)
           %y = onnx::Where(%q, %e, %x)""",
        "Where",
    ),
    (
        "constant_of_known_shape",
        "%s = onnx::Shape(%x)\n%y = onnx::ConstantOfShape[value=tensor<Float(1)>([7.])](%s)",
        "",
    ),
    (
        "scatter_to_slice",
        """%k : Long(1, 1) = prim::Constant[value=tensor([1])]()
           %u : Float(1, 3) = prim::Constant[value=splat(5.)]()
           %y = onnx::ScatterND(%x, %k, %u)""",
        "slice_scatter",
    ),
    (
        "scatter_overwritten",
        """%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
           %s = onnx::ScatterND(%x, %k, %p)
           %y = onnx::ScatterND(%s, %k, %x)""",
        "ScatterND",
    ),
    (
        "scatter_overwritten",
        """%u = onnx::Neg(%p)
           %s = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%x, %p)
           %y = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%s, %u)""",
        "Neg slice_scatter",
    ),
    ("scatter_of_all", ALL_INDICES + "%y = onnx::ScatterND(%n, %k, %n)", ""),
    (
        "scatter_of_all",  # row by row
        """%zero : Long() = prim::Constant[value=tensor([0])]()
           %one : Long() = prim::Constant[value=tensor([1])]()
           %s = onnx::Shape(%n)
           %count = onnx::Gather[axis=0](%s, %zero)
           %r = onnx::Range(%zero, %count, %one)
           %last : Long(1) = prim::Constant[value=tensor([1])]()
           %k = onnx::Unsqueeze(%r, %last)
           %y = onnx::ScatterND(%n, %k, %n)""",
        "",
    ),
    (
        "scale_of_the_smaller_operand",
        """%h : Float() = prim::Constant[value=tensor([0.5])]()
           %s = onnx::Mul(%x, %h)
           %t = onnx::Transpose[perm=[1, 0]](%s)
           %y = onnx::MatMul(%t, %c)""",
        "Transpose Mul MatMul",
    ),
    (
        "scale_of_the_smaller_operand",
        """%h : Float() = prim::Constant[value=tensor([0.5])]()
           %s = onnx::Mul(%x, %h)
           %t = onnx::Flatten[axis=2](%s)
           %o : Float(1, 2) = prim::Constant[value=splat(2.)]()
           %w = onnx::Neg(%o)
           %y = onnx::MatMul(%t, %w)""",
        "Neg Flatten Mul MatMul",
    ),
    (
        "scale_of_the_smaller_operand",  # what both are multiplied with, at once: a cache is larger
        """%h : Float(1) = prim::Constant[value=splat(0.5)]()
           %t = onnx::Transpose[perm=[1, 0]](%n)
           %k = onnx::Concat[axis=1](%t, %t)
           %s = onnx::Mul(%h, %k)
           %a = onnx::Abs(%x)
           %b = onnx::Mul(%a, %h)
           %y = onnx::MatMul(%b, %s)""",
        "Transpose Concat Abs Mul MatMul",
    ),
    (
        "product_of_shared_heads",
        REPEATED + "%y = onnx::MatMul(%left, %r)",
        "Concat Reshape Reshape Reshape MatMul Reshape",
    ),
    (
        "product_of_shared_heads",
        REPEATED.replace("1, 3]", "3, 1]")
        + """%h : Float() = prim::Constant[value=tensor([3.])]()
             %t = onnx::Transpose[perm=[0, 1, 3, 2]](%r)
             %s = onnx::Mul(%h, %t)
             %y = onnx::MatMul(%left, %s)""",
        "Concat Reshape Reshape Transpose Mul Reshape MatMul Reshape",
    ),
    (
        "shape_of_shared_heads",
        OPEN
        + """%rs : Long(4) = prim::Constant[value=tensor([0, 6, -1, 1])]()
             %r = onnx::Reshape(%e, %rs)
             %y = onnx::Shape[start=1, end=-1](%r)""",
        "Reshape Shape Concat",
    ),
    (
        "transpose_of_heads_as_one",
        """%b : Long(4) = prim::Constant[value=tensor([1, 2, 2, 3])]()
           %e = onnx::Expand(%x, %b)
           %k : Long(3) = prim::Constant[value=tensor([-1, 2, 3])]()
           %m = onnx::Reshape(%e, %k)
           %t = onnx::Transpose[perm=[0, 2, 1]](%m)
           %s : Long(4) = prim::Constant[value=tensor([1, 2, 3, 2])]()
           %y = onnx::Reshape(%t, %s)""",
        "Expand Transpose",
    ),
    (
        "transpose_of_heads_as_one",  # they were two axes
        """%b : Long(5) = prim::Constant[value=tensor([1, 2, 2, 2, 3])]()
           %e = onnx::Expand(%x, %b)
           %k : Long(3) = prim::Constant[value=tensor([-1, 2, 3])]()
           %m = onnx::Reshape(%e, %k)
           %t = onnx::Transpose[perm=[0, 2, 1]](%m)
           %s : Long(4) = prim::Constant[value=tensor([1, 4, 3, 2])]()
           %y = onnx::Reshape(%t, %s)""",
        "Expand Reshape Transpose",
    ),
]


@pytest.mark.parametrize(("rule", "body", "left"), APPLIES)
def test_rule_applies(rule: str, body: str, left: str) -> None:
    graph, used = canonicalized(body)
    assert used[rule]
    assert kinds(graph) == [*left.split(), "Abs"]
    assert not left or graph.has_value("y")  # what is new has the name of what it stands for


# (rule, body): the rule looks at %y and leaves it
REFUSES = [
    ("conjugate", "%w = onnx::Neg_(%x)\n%y = aten::conj(%x)"),
    ("adjoint", "%y = aten::adjoint(%x)\n%w = onnx::Neg_(%y)"),
    (
        "dropout_at_inference",  # it trains
        """%r : Float() = prim::Constant[value=tensor([0.])]()
           %t : Bool() = prim::Constant[value=tensor([True])]()
           %y = onnx::Dropout(%x, %r, %t)""",
    ),
    ("dropout_at_inference", "%y = onnx::Dropout[since_version=1, ratio=0.](%x)"),  # which trains by default
    ("dropout_at_inference", "%d, %m : Bool(2, 3) = onnx::Dropout(%x)\n%y = onnx::Where(%m, %d, %p)"),
    ("shape_and_type_kept", "%s : Long(2) = prim::Constant[value=tensor([3, 2])]()\n%y = onnx::Reshape(%x, %s)"),
    ("shape_and_type_kept", "%y = onnx::Reshape(%x, %i)"),
    (
        "shape_and_type_kept",  # of what rank is not known
        """%l : Tensor[] = prim::ListConstruct(%x)
           %k : int = prim::Constant[value=0]()
           %t : Tensor = aten::__getitem__(%l, %k)
           %y = onnx::Flatten[axis=1](%t)""",
    ),
    ("shape_and_type_kept", "%y = onnx::Cast[to=7](%x)"),
    ("single_operand", "%y = onnx::Concat[axis=0](%x, %x)"),
    ("transpose_in_order", "%y = onnx::Transpose[perm=[1, 0]](%x)"),
    ("transpose_in_order", "%y = onnx::Transpose(%x)"),
    (
        "full_slice",  # backwards
        """%b : Long(1) = prim::Constant[value=tensor([-1])]()
           %e : Long(1) = prim::Constant[value=tensor([-9])]()
           %a : Long(1) = prim::Constant[value=tensor([0])]()
           %s : Long(1) = prim::Constant[value=tensor([-1])]()
           %y = onnx::Slice(%x, %b, %e, %a, %s)""",
    ),
    (
        "full_slice",
        """%b : Long(1) = prim::Constant[value=tensor([1])]()
           %e : Long(1) = prim::Constant[value=tensor([2])]()
           %y = onnx::Slice(%x, %b, %e)""",
    ),
    ("no_padding", "%s : Long(4) = prim::Constant[value=tensor([0, 0, 1, 0])]()\n%y = onnx::Pad(%x, %s)"),
    ("same_contents", "%s = onnx::Add(%i, %i)\n%m = onnx::Mul(%i, %s)\n%y = onnx::Add(%m, %s)"),
    ("normalization", f"{ROOT.format('x')}\n%y = onnx::Div(%p, %r)"),
    ("masked_softmax", f"{MASKED}\n%y = onnx::Where(%t, %s, %k)"),
    ("rotated_halves", f"{HALVES}\n%y = onnx::Concat[axis=1](%a, %m)"),
    ("rotated_halves", f"{HALVES}\n%y = onnx::Concat[axis=0](%m, %a)"),
    (
        "rotated_pairs",
        f"{PAIRS}\n%g9 = onnx::Concat[axis=-1](%d9, %c9)\n%y = onnx::Reshape[since_version=13](%g9, %f9)",
    ),
    ("activation", "%s = onnx::Sigmoid(%x)\n%y = onnx::Mul(%s, %p)"),
    ("activation", "%s = onnx::Sigmoid(%x)\n%y = onnx::Mul(%s, %x)\n%h = onnx::Abs(%s)"),
    ("scale_of_normalization", f"{SCALED}\n%y = onnx::Mul(%g, %c)"),
    ("scale_of_normalization", f"{SCALED}\n%y = onnx::Mul(%g, %k)\n%h = onnx::Abs(%g)"),
    ("bias_of_normalization", f"{SCALED}\n%y = onnx::Add(%g, %k)"),
    (
        "reshape_by_numbers",  # two sizes that are not there
        """%t = onnx::Transpose(%n)
           %m = onnx::MatMul(%n, %t)
           %f = onnx::Flatten[axis=0](%m)
           %s = onnx::Shape[start=0, end=1](%n)
           %k : Long(1) = prim::Constant[value=tensor([1])]()
           %w = onnx::Concat[axis=0](%s, %k, %s)
           %y = onnx::Reshape(%f, %w)""",
    ),
    (
        "reshape_by_numbers",  # nobody knows whether this is possible
        """%s = onnx::Shape[start=0, end=1](%n)
           %k : Long() = prim::Constant[value=tensor([1])]()
           %o : Long(1) = prim::Constant[value=tensor([0])]()
           %g = onnx::Gather[axis=0](%i, %k)
           %u = onnx::Unsqueeze(%g, %o)
           %t = onnx::Concat[axis=0](%s, %u)
           %y = onnx::Reshape(%n, %t)""",
    ),
    ("no_padding", "%s : Long(4) = onnx::Concat[axis=0](%i, %i)\n%y = onnx::Pad(%x, %s)"),
    (
        "single_part",
        "%s : Long(2) = prim::Constant[value=splat(1)]()\n%y, %o : Float(1, 3) = onnx::Split[axis=0](%x, %s)",
    ),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([0.])]()\n%y = onnx::Add(%x, %k)"),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([-0.])]()\n%y = onnx::Sub(%x, %k)"),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([0.])]()\n%y = onnx::Sub(%k, %x)"),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([1.])]()\n%y = onnx::Div(%k, %x)"),
    ("neutral_operand", "%k : Float() = prim::Constant[value=tensor([2.])]()\n%y = onnx::Mul(%x, %k)"),
    ("neutral_operand", "%k : Float(2, 3) = prim::Constant[value=splat(1.)]()\n%y = onnx::Mul(%c, %k)"),
    (
        "settled_choice",
        "%k : Bool(3) = prim::Constant[value=tensor([True, False, True])]()\n%y = onnx::Where(%k, %x, %p)",
    ),
    ("settled_choice", "%y = onnx::Where(%q, %x, %p)"),
    ("settled_choice", "%k : Bool(2, 3) = prim::Constant[value=splat(True)]()\n%y = onnx::Where(%k, %c, %x)"),
    ("known_contents", "%y : Long(2) = onnx::Shape(%n)"),
    ("known_contents", "%y : Long(2) = onnx::Add(%i, %i)"),
    ("transpose_of_transpose", "%t : Tensor = aten::t(%x)\n%y = onnx::Transpose(%t)"),
    ("reshape_there_and_back", "%t = onnx::Flatten[axis=0](%x)\n%y = onnx::Reshape(%t, %i)"),
    (
        "reshape_of_reshape",  # the 0 copies a size of the shape in between
        """%t = onnx::Flatten[axis=0](%x)
           %s : Long(3) = prim::Constant[value=tensor([0, 3, 2])]()
           %y = onnx::Reshape(%t, %s)""",
    ),
    ("reshape_of_reshape", "%t = onnx::Flatten[axis=0](%x)\n%y = onnx::Reshape(%t, %i)"),
    (
        "operand_expanded_for_nothing",  # it alone gives the result its shape
        "%s : Long(2) = prim::Constant[value=tensor([2, 3])]()\n%e = onnx::Expand(%c, %s)\n%y = onnx::Add(%c, %e)",
    ),
    ("operand_expanded_for_nothing", "%e = onnx::Expand(%c, %i)\n%y = onnx::Add(%n, %e)"),
    ("constant_of_known_shape", "%y = onnx::ConstantOfShape(%i)"),
    (
        "scatter_to_slice",
        """%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
           %y = onnx::ScatterND(%x, %k, %p)""",
    ),
    (
        "scatter_to_slice",
        """%k : Long(1, 1) = prim::Constant[value=tensor([1])]()
           %u : Float(1, 3) = prim::Constant[value=splat(5.)]()
           %y = onnx::ScatterND[reduction="add"](%x, %k, %u)""",
    ),
    *(
        ("scatter_of_all", ALL_INDICES.replace(*change) + f"%y = onnx::ScatterND{how}(%n, %k, %n)")
        for *change, how in [
            ("[0, 1, 2]", "[0, 2, 1]", ""),  # in another order
            ("%t, %s", "%t, %s", '[reduction="add"]'),
            ("%zero, %rows", "%one, %rows", ""),
        ]
    ),
    (
        "scatter_overwritten",
        """%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
           %l : Long(2, 1) = prim::Constant[value=splat(1)]()
           %s = onnx::ScatterND(%x, %k, %p)
           %y = onnx::ScatterND(%s, %l, %p)""",
    ),
    (
        "scatter_overwritten",
        """%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
           %s = onnx::ScatterND[reduction="add"](%x, %k, %p)
           %y = onnx::ScatterND[reduction="add"](%s, %k, %p)""",
    ),
    (
        "scatter_overwritten",
        """%u : Float(1, 3) = prim::Constant[value=splat(5.)]()
           %s = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%x, %p)
           %y = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%s, %u)""",
    ),
    (
        "scale_of_the_smaller_operand",  # which might overflow there
        """%h : Float() = prim::Constant[value=tensor([2.])]()
           %s = onnx::Mul(%x, %h)
           %t = onnx::Transpose[perm=[1, 0]](%s)
           %y = onnx::MatMul(%t, %c)""",
    ),
    (
        "scale_of_the_smaller_operand",  # which makes NaN of infinity
        """%h : Float() = prim::Constant[value=tensor([0.])]()
           %s = onnx::Mul(%x, %h)
           %t = onnx::Transpose[perm=[1, 0]](%s)
           %y = onnx::MatMul(%t, %c)""",
    ),
    (
        "scale_of_the_smaller_operand",  # it adds a dimension
        """%h : Float(1, 1, 1) = prim::Constant[value=splat(0.5)]()
           %s = onnx::Mul(%x, %h)
           %t = onnx::Transpose[perm=[0, 2, 1]](%s)
           %y = onnx::MatMul(%t, %c)""",
    ),
    (
        "scale_of_the_smaller_operand",  # it is at the smaller one
        """%h : Float() = prim::Constant[value=tensor([0.5])]()
           %s = onnx::Mul(%c, %h)
           %t = onnx::Transpose[perm=[1, 0]](%x)
           %y = onnx::MatMul(%t, %s)""",
    ),
    (
        "scale_of_the_smaller_operand",  # others use it scaled
        """%h : Float() = prim::Constant[value=tensor([0.5])]()
           %s = onnx::Mul(%x, %h)
           %t = onnx::Transpose[perm=[1, 0]](%s)
           %u = onnx::MatMul(%t, %c)
           %v = onnx::ReduceMax[keepdims=0](%s)
           %a = onnx::Add(%u, %v)
           %y = onnx::Neg(%a)""",
    ),
    (
        "product_of_shared_heads",  # all heads, and then all once more
        REPEATED.replace("tensor([2])", "tensor([1])") + "%y = onnx::MatMul(%left, %r)",
    ),
    (
        "product_of_shared_heads",  # rows and columns change, too
        REPEATED.replace("[1, 4, 1, 3]", "[1, 4, 3, 1]")
        + """%t = onnx::Transpose[perm=[0, 1, 3, 2]](%r)
             %y = onnx::MatMul(%left, %t)""",
    ),
    (
        "shape_of_shared_heads",
        OPEN
        + """%rs : Long(4) = prim::Constant[value=tensor([2, 3, -1, 1])]()
             %r = onnx::Reshape(%e, %rs)
             %y = onnx::Shape(%r)""",
    ),
    (
        "transpose_of_heads_as_one",
        """%b : Long(4) = prim::Constant[value=tensor([1, 2, 2, 3])]()
           %e = onnx::Expand(%x, %b)
           %k : Long(3) = prim::Constant[value=tensor([-1, 3, 2])]()
           %m = onnx::Reshape(%e, %k)
           %t = onnx::Transpose[perm=[0, 2, 1]](%m)
           %s : Long(4) = prim::Constant[value=tensor([1, 2, 3, 2])]()
           %y = onnx::Reshape(%t, %s)""",
    ),
]


@pytest.mark.parametrize(("rule", "body"), REFUSES)
def test_rule_refuses(rule: str, body: str) -> None:
    graph, used = canonicalized(body)
    assert rule not in used
    assert graph.value("y").node.kind == graph_of(body).value("y").node.kind


def test_every_rule_is_tested() -> None:
    rules = {rule.__name__ for of_kind in RULES.values() for rule in of_kind}
    assert {rule for rule, *_ in APPLIES} == rules
    assert {rule for rule, *_ in REFUSES} == rules - {"identity"}


def test_a_cast_to_the_type_it_has_goes_whatever_the_shape() -> None:
    graph, _ = canonicalized("%r = onnx::Reshape(%x, %i)\n%y = onnx::Cast[to=1](%r)")
    assert kinds(graph) == ["Reshape", "Abs"]


# -- writes --------------------------------------------------------------------

WRITE_INPUTS = "%w1 = onnx::Neg_(%x)\n%w2 = onnx::Neg_(%n)\n%w3 = onnx::Neg_(%c)\n%w4 = onnx::Neg_(%i)\n"
LOOK_AT_RESULT = "%z = onnx::Abs(%y)"
WRITE_RESULT = "%w = onnx::Neg_(%y)\n"
LOOK_AT_INPUTS = "%z1 = onnx::Add(%x, %n)\n%z = onnx::Concat[axis=1](%z1, %c)"

FRESH = {
    "known_contents",
    "constant_of_known_shape",
    "product_of_shared_heads",
    "shape_of_shared_heads",
    "scale_of_the_smaller_operand",
    "scatter_to_slice",
    "scatter_overwritten",
    "same_contents",
    "reshape_by_numbers",
    "masked_softmax",
    "rotated_halves",
    "rotated_pairs",
    "activation",
    "normalization",
    "scale_of_normalization",
    "bias_of_normalization",
}
"""Rules that put one fresh result in the place of another."""

UNWRITTEN = {"known_contents", "constant_of_known_shape", "rotated_pairs"}
"""Rules that put in its place what is written by nobody: a constant, or memory that shares with nothing any more."""


@pytest.mark.parametrize(("rule", "body"), [(rule, body) for rule, body, _ in APPLIES if rule not in FRESH])
def test_a_copy_of_what_is_written_later_stays(rule: str, body: str) -> None:
    _, used = canonicalized(body, WRITE_INPUTS + LOOK_AT_RESULT)
    assert rule not in used or rule == "identity"  # which shares memory anyhow


@pytest.mark.parametrize(
    ("rule", "body"),
    [(rule, body) for rule, body, _ in APPLIES if "Expand" not in body and rule not in FRESH - UNWRITTEN],
)
def test_what_is_written_stays_a_copy(rule: str, body: str) -> None:
    """And does not become a constant. (Expand's results repeat elements: nobody can write them.)"""
    _, used = canonicalized(body, WRITE_RESULT + LOOK_AT_INPUTS)
    assert rule not in used or rule == "identity"


SCATTER_TWICE = """
%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
%s = onnx::ScatterND(%x, %k, %p)
WRITE
%u = onnx::Abs(%p)
%y = onnx::ScatterND(%s, %k, %u)
"""


@pytest.mark.parametrize("write", ["%w = onnx::Neg_(%x)", "%w = onnx::Neg_(%s)"])
def test_what_was_overwritten_is_not_looked_for_behind_a_write(write: str) -> None:
    _, used = canonicalized(SCATTER_TWICE.replace("WRITE", write))
    assert "scatter_overwritten" not in used


SCALED = """
%h : Float() = prim::Constant[value=tensor([0.5])]()
%s = onnx::Mul(%x, %h)
WRITE
%t = onnx::Transpose[perm=[1, 0]](%s)
%y = onnx::MatMul(%t, %c)
"""


@pytest.mark.parametrize("write", ["%w = onnx::Neg_(%x)", "%w = onnx::Neg_(%s)"])
def test_what_is_written_after_it_was_scaled_is_not_read_later(write: str) -> None:
    _, used = canonicalized(SCALED.replace("WRITE", write))
    assert "scale_of_the_smaller_operand" not in used


@pytest.mark.parametrize("write", ["%w = onnx::Neg_(%x)", "%w = onnx::Neg_(%r)"])
def test_heads_that_are_written_after_they_were_repeated_are_not_read_later(write: str) -> None:
    _, used = canonicalized(f"{REPEATED}{write}\n%y = onnx::MatMul(%left, %r)")
    assert "product_of_shared_heads" not in used


ROW = "%at : Long(1, 1) = prim::Constant[value=tensor([1])]()\n%row : Float(1, 3) = prim::Constant[value=splat(5.)]()\n"

KEYS = {
    "repeated": "%k : Float(M, 3) = onnx::Expand(%n, %i)",
    "a window": """%from : Long(1) = prim::Constant[value=tensor([-1])]()
                   %to : Long(1) = prim::Constant[value=tensor([9])]()
                   %k : Float(M, 3) = onnx::Slice(%n, %from, %to)""",
    "ScatterND": ROW + "%k : Float(M, 3) = onnx::ScatterND(%n, %at, %row)",
    "ScatterElements": """%at : Long(1, 3) = prim::Constant[value=splat(1)]()
                          %row : Float(1, 3) = prim::Constant[value=splat(5.)]()
                          %k : Float(M, 3) = onnx::ScatterElements[axis=0](%n, %at, %row)""",
    "slice_scatter": ROW + "%k : Float(M, 3) = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%n, %row)",
    "TensorScatter": """%at : Long(2) = prim::Constant[value=tensor([0, 2])]()
                        %u = onnx::Neg(%c)
                        %k : Float(M, 3) = onnx::TensorScatter[axis=1](%n, %u, %at)""",
}


@pytest.mark.parametrize("keys", KEYS)
def test_the_keys_are_a_cache_however_a_step_makes_them_of_it(keys: str) -> None:
    rest = """%h : Float() = prim::Constant[value=tensor([0.5])]()
              %s = onnx::Mul(%k, %h)
              %t = onnx::Transpose[perm=[1, 0]](%s)
              %r = onnx::Neg(%x)
              %y = onnx::MatMul(%r, %t)"""
    _, used = canonicalized(f"{KEYS[keys]}\n{rest}")
    assert used["scale_of_the_smaller_operand"] == 1


BOX = """
%k0 : Long(2, 1) = prim::Constant[value=tensor([0, 1])]()
%k1 : Long(2) = prim::Constant[value=tensor([0, 2])]()
%s : Long(2) = prim::Constant[value=splat(2)]()
%a : Long(1) = prim::Constant[value=tensor([-1])]()
%e0 = onnx::Expand(%k0, %s)
%u0 = onnx::Unsqueeze(%e0, %a)
%e1 = onnx::Expand(%k1, %s)
%u1 = onnx::Unsqueeze(%e1, %a)
%k = onnx::Concat[axis=-1](%u0, %u1)
WRITE
%v : Float(2, 2) = prim::Constant[value=tensor([5., 6., 7., 8.])]()
%y = onnx::ScatterND(%x, %k, %v)
"""


def test_a_box_of_indices_as_exporters_spell_it_out() -> None:
    graph, used = canonicalized(BOX.replace("WRITE", ""))
    assert used["scatter_to_slice"] == 1
    assert graph.value("y").node.attributes == {"starts": [0, 0], "steps": [1, 2]}
    assert kinds(graph) == ["slice_scatter", "Abs"]


@pytest.mark.parametrize("write", ["%w = onnx::Sub_(%k, %k)", "%z0 : Tensor = aten::zero_(%k)"])
def test_indices_that_are_written_are_not_read_off(write: str) -> None:
    _, used = canonicalized(BOX.replace("WRITE", write))
    assert "scatter_to_slice" not in used


# -- what is around the rules --------------------------------------------------


def test_outputs_keep_their_names() -> None:
    graph = parse_graph("""
graph(%x : Float(2, 3)):
  %a = onnx::Neg(%x)
  %y = onnx::Cast[to=1](%a)
  %z = onnx::Identity(%x)
  return (%y, %z)
""")
    run_passes(graph, "canonicalize,dce")
    assert [v.name for v in graph.outputs] == ["y", "z"]
    assert kinds(graph) == ["Neg", "Identity"]


def test_what_a_function_returns_does_not_become_a_constant() -> None:
    module = parse_module("""
graph(%x : Float(2, 3)):
  %f : Function = prim::Constant[name="shape"]()
  %s : Long(2) = prim::CallFunction(%f, %x)
  %t = onnx::Neg_(%s)
  return (%t)

graph shape(%p : Float(2, 3)):
  %s = onnx::Shape(%p)
  return (%s)
""")
    before = module.copy()
    run_passes(module, "canonicalize")
    assert kinds(module.graphs["shape"]) == ["Shape"]
    assert_same_results(before, module, FEEDS[0])


def test_contents_are_not_read_past_a_call_that_writes_them() -> None:
    module = parse_module("""
graph(%x : Float(2, 3)):
  %f : Function = prim::Constant[name="negate"]()
  %s = onnx::Shape(%x)
  prim::CallFunction(%f, %s)
  %t = onnx::Abs(%s)
  %k : Long(1) = prim::Constant[value=tensor([0])]()
  %z = onnx::Gather[axis=0](%s, %k)
  return (%z, %t)

graph negate(%p : Long(2)):
  %q = onnx::Neg_(%p)
  return ()
""")
    before = module.copy()
    run_passes(module, "canonicalize")
    assert_same_results(before, module, FEEDS[0])


def test_rewrites_reach_a_fixed_point_in_one_run() -> None:
    lines = ["%y0 = onnx::Transpose(%x)"]
    lines += [f"%y{i} = onnx::Transpose(%y{i - 1})" for i in range(1, 11)]
    graph, used = canonicalized("\n".join([*lines, "%y = onnx::Transpose(%y10)"]))
    assert kinds(graph) == ["Abs"]
    assert used["transpose_of_transpose"] >= 6


def test_what_a_rewrite_tells_about_later_shapes_is_used_at_once() -> None:
    """The contents of CastLike are not followed; once it has become its operand, the shapes that it gives are known."""
    body = """%s : Long(2) = prim::Constant[value=tensor([2, 3])]()
              %m : Long(2) = onnx::CastLike(%s, %i)
              %e : Float = onnx::Expand(%x, %m)
              %y : Float = onnx::Reshape(%e, %m)"""
    graph, used = canonicalized(body)
    assert used == {"shape_and_type_kept": 3}
    assert kinds(graph) == ["Abs"]


# -- sizes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "indices", ["Long(1, 1) = prim::Constant[value=tensor([0])]()", "Long(1, 3) = prim::Constant[value=splat(0)]()"]
)
def test_updates_that_do_not_fit_are_left_to_the_run(indices: str) -> None:
    """A slice would take the updates of more rows than there are indices."""
    graph = graph_of(f"%k : {indices}\n%y = onnx::ScatterND(%x, %k, %p)")
    report = run_passes(graph, "canonicalize")
    assert not any("scatter" in name for name in report.stats)
    assert graph.value("y").node.kind == "onnx::ScatterND"


def expanded(count: int) -> str:
    """The maximum of ``count`` Expands of a column to 2 x 3."""
    lines = ["%s : Long(2) = prim::Constant[value=tensor([2, 3])]()"]
    lines += [f"%e{i} = onnx::Expand(%c, %s)" for i in range(count)]
    return "\n".join(lines)


def test_all_operands_that_are_expanded_for_nothing_go_at_once() -> None:
    operands = ", ".join(f"%e{i}" for i in range(5))
    graph, used = canonicalized(f"{expanded(5)}\n%y = onnx::Max({operands}, %x)")
    assert used["operand_expanded_for_nothing"] == 1
    assert kinds(graph) == ["Max", "Abs"]


def test_of_several_expands_that_give_the_result_its_shape_one_stays() -> None:
    operands = ", ".join(f"%e{i}" for i in range(5))
    graph, used = canonicalized(f"{expanded(5)}\n%y = onnx::Max({operands})")
    assert used["operand_expanded_for_nothing"] == 1
    assert kinds(graph) == ["Expand", "Max", "Abs"]


def test_long_chains_of_reshapes_are_not_walked_again_at_every_link(monkeypatch: pytest.MonkeyPatch) -> None:
    surely_equal = Match.surely_equal

    def compared(links: int) -> int:
        count = 0

        def counting(self: Match, a: Value, b: Value) -> bool:
            nonlocal count
            count += 1
            return surely_equal(self, a, b)

        monkeypatch.setattr(Match, "surely_equal", counting)
        chain = [f"%r{i + 1} = onnx::Reshape(%r{i}, %i)" for i in range(links)]
        run_passes(graph_of("\n".join(["%r0 = onnx::Neg(%x)", *chain]), f"%z = onnx::Abs(%r{links})"), "canonicalize")
        return count

    assert compared(200) < 2.5 * compared(100)


def test_what_one_branch_worked_out_the_other_has_not() -> None:
    body = "%s{0} : Long(2) = onnx::Shape(%{1})\n%w{0} : Long(2) = onnx::Mul(%s{0}, %i)\n"
    text = f"""graph(%n : Float(N, 3), %i : Long(2), %c : Bool()):
      %m : Float(N, 3) = onnx::Neg(%n)
      %y : Long(2) = prim::If(%c)
        block0():
          {body.format(0, "n")}
          -> (%w0)
        block1():
          {body.format(1, "m")}
          -> (%w1)
      {body.format(2, "m")}
      %z : Long(2) = onnx::Add(%y, %w2)
      return (%z)
    """
    graph = parse_graph("\n".join(line.strip() for line in text.splitlines()))
    stats = PassManager("canonicalize").run(graph).stats
    assert "canonicalize.same_contents" not in stats
    for choice in (True, False):
        found = irc.compile(graph).run({"n": np.ones((2, 3), np.float32), "i": np.array([5, 7]), "c": np.array(choice)})
        assert found["z"].tolist() == [20, 42]


@pytest.mark.parametrize("kind", ["Identity", "Dropout"])
def test_a_node_is_inferred_once_for_all_of_its_inputs_that_are_replaced(kind, monkeypatch):
    visits = []
    infer = Inference.infer_node
    monkeypatch.setattr(Inference, "infer_node", lambda self, node: (visits.append(node), infer(self, node))[1])
    wide = range(50)
    lines = "\n".join(f"  %a{i} : Float(2, 3) = onnx::{kind}(%x)" for i in wide)
    last = f"  %z : Tensor = onnx::Concat[axis=0]({', '.join(f'%a{i}' for i in wide)})"
    graph = parse_graph(f"graph(%x : Float(2, 3)):\n{lines}\n{last}\n  return (%z)\n")
    PassManager("canonicalize").run(graph)
    assert set(graph.value("z").node.inputs) == {graph.value("x")}
    assert sum(node.kind == "onnx::Concat" for node in visits) == 2


@pytest.mark.parametrize(
    ("factor", "large", "small"), [(1e-19, 1e30, 1e-27), (2.0**-60, 1e25, 1e-25), (1e-5, 1e35, 1e-37)]
)
def test_scales_that_would_take_bits_from_small_operands_stay(factor, large, small):
    graph = parse_graph(
        "graph(%x : Float(4, 8), %y : Float(8, 1)):\n"
        f"  %s : Float() = prim::Constant[value=splat({factor!r})]()\n"
        "  %a : Float(4, 8) = onnx::Mul(%x, %s)\n  %z : Float(4, 1) = onnx::MatMul(%a, %y)\n  return (%z)\n"
    )
    x, y = np.full((4, 8), large, np.float32), np.full((8, 1), small, np.float32)
    found = irc.compile(graph).run({"x": x, "y": y})["z"]
    np.testing.assert_allclose(found, (x * np.float32(factor)) @ y, rtol=1e-6)


@pytest.mark.parametrize("weight", ["%w", "%turned"])
def test_weights_are_not_scaled_in_place_of_what_is_given(weight):
    graph = parse_graph(
        "graph(%x : Float(b, 8)):\n"
        "  %s : Float() = prim::Constant[value=splat(0.5)]()\n"
        "  %w : Float(8, 8) = prim::Constant[value=splat(3.)]()\n"
        "  %turned : Float(8, 8) = onnx::Transpose[perm=[1, 0]](%w)\n"
        "  %a : Float(b, 8) = onnx::Mul(%x, %s)\n"
        f"  %z : Float(b, 8) = onnx::MatMul(%a, {weight})\n  return (%z, %w, %turned)\n"
    )
    PassManager("canonicalize").run(graph)
    (product,) = [node for node in graph.nodes if node.kind == "onnx::Mul"]
    assert product.inputs[0] is graph.inputs[0]


@pytest.mark.parametrize("kind", ["conj", "_conj", "mH", "adjoint"])
@pytest.mark.parametrize("written", [False, True])
def test_conjugates_that_nothing_writes_are_copies(kind, written):
    write = "%w : Tensor = aten::add_(%y, %x, %one)" if written else ""
    module = parse_module(f"""
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::{kind}(%x)
  {write}
  return (%y)
""")
    model = irc.compile(module, "canonicalize,dce")
    kinds = {node.kind for node in model.graph.walk()}
    assert ("aten::conj_physical" in kinds) == (not written)
    if not written:
        x = np.array([[1, 2 + 1j], [3j, 4]], np.complex64)
        expected = x.conj() if "conj" in kind else x.conj().T
        np.testing.assert_array_equal(model.run({"x": x})[model.outputs[0].name], expected)


def test_what_two_outputs_are_is_written_out_once() -> None:
    """The Identity that keeps the name of the second is left alone when the pass runs again."""
    g = parse_graph(
        """graph(%x : Float(3, 1)):
  %s : Long(2) = onnx::Shape(%x)
  %n : Long(1) = onnx::Shape(%s)
  %a : Long(2) = onnx::Expand(%s, %n)
  %b : Long(2) = onnx::Expand(%s, %n)
  return (%b, %a)"""
    )
    run_passes(g, "canonicalize")
    assert g.value("b").made_by("onnx::Identity") is not None


def test_what_a_group_writes_is_not_known():
    text = """
graph(%x : Float(3)):
  %one : Long(1) = prim::Constant[value=tensor<Long(1)>([1])]()
  %s : Long(1) = onnx::Shape(%x)
  %g : Long(1) = prim::FusionGroup_0(%s, %one)
  %r : Long(1) = onnx::Add(%s, %one)
  return (%r)
with prim::FusionGroup_0 = graph(%p : Long(1), %q : Long(1)):
  %w : Long(1) = onnx::Add_(%p, %q)
  return (%w)
"""
    x = np.zeros(3, np.float32)
    for passes in ("none", "canonicalize", "unfused"):
        assert irc.compile(parse_module(text), passes).run({"x": x})["r"].tolist() == [5]
