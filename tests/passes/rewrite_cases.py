"""Cases for the canonicalisation rules: programs that a rule rewrites, and others that it must leave.

A case is the body of a graph that makes ``%y`` out of ``%x : Float(2, 3)`` and others; after it, ``%z`` is
computed from ``%y``, so that names of outputs do not come into it. Numbers stand for constants (`with_constants`).
"""

import re


def sections(text: str) -> list[tuple[str, ...]]:
    """Cases of several lines: each follows a line ``== rule | what is left  # why``."""
    found: list[tuple[str, ...]] = []
    for section in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        head, body = section.split("\n", 1)
        rule, *left = (part.strip() for part in head.partition("  #")[0].split("|"))
        found.append((rule, body, *left))
    return found


SHARED = """
%k = onnx::Reshape(%x, [1, 2, 1, 3])
%u = onnx::Unsqueeze(%k, [2])
%e = onnx::Expand(%u, [1, 2, 2, 1, 3])
"""
"""Two heads, each for two others."""

OPEN = (
    SHARED.replace("%x,", "%n,").replace("[1, 2, 1, 3]", "[1, 3, -1, 1]").replace("[1, 2, 2, 1, 3]", "[1, 3, 2, 1, 1]")
)

DROPPED = """
%p1 : float = prim::Constant[value=0.5]()
%p0 : float = prim::Constant[value=0.]()
%no : bool = prim::Constant[value=0]()
%yes : bool = prim::Constant[value=1]()
"""

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
%q1 : Long(1) = prim::Constant[value=tensor([1])]()
%q2 : Long(1) = prim::Constant[value=tensor([2])]()
%a9 = onnx::Slice[since_version=13](%t9, [0], %q2, %q1, %q2)
%b9 = onnx::Slice[since_version=13](%t9, %q1, %q2, %q1, %q2)
%m9 = onnx::Neg(%b9)
%c9 = onnx::Unsqueeze[since_version=13](%m9, %q2)
%d9 = onnx::Unsqueeze[since_version=13](%a9, %q2)
%e9 = onnx::Concat[axis=-1](%c9, %d9)
%f9 = onnx::Shape(%t9)
"""

ROOT = """
%last : Long(1) = prim::Constant[value=tensor([-1])]()
%s = onnx::Pow(%{0}, 2.)
%v = onnx::ReduceMean[keepdims=1](%s, %last)
%w = onnx::Add(%v, 0.5)
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
%t = onnx::Reshape(%r, [-1, 1])
%last : Long(1) = prim::Constant[value=tensor([-1])]()
%e0 = onnx::Expand(%t, %s)
%e1 = onnx::Expand([0, 1, 2], %s)
%u0 = onnx::Unsqueeze(%e0, %last)
%u1 = onnx::Unsqueeze(%e1, %last)
%k = onnx::Concat[axis=-1](%u0, %u1)
"""
"""Of all elements of a matrix, in order."""

REPEATED = f"""
%x2 = onnx::Concat[axis=0](%p, %p)
%left = onnx::Reshape(%x2, [1, 4, 1, 3])
{SHARED}
%r = onnx::Reshape(%e, [1, 4, 1, 3])
"""

KEYS = "%t = onnx::Transpose[perm=[1, 0]](%p)\n%s = onnx::MatMul(%x, %t)\n"

HALF = "%h : Float() = prim::Constant[value=tensor([0.5])]()\n"

ATTENTION = KEYS + "%w = onnx::Softmax[axis=-1](%s)\n%y = onnx::MatMul(%w, %p)"

# (rule, body, what is left of it)
APPLIES = [
    ("identity", "%y = onnx::Identity(%x)", ""),
    ("nothing_to_do", "%y = onnx::Dropout(%x)", ""),
    ("nothing_to_do", "%y = onnx::Dropout[is_test=1, since_version=1](%x)", ""),
    ("nothing_to_do", "%y = onnx::Reshape(%x, [2, -1])", ""),
    ("nothing_to_do", "%y = onnx::Reshape(%n, [0, 3])", ""),
    ("nothing_to_do", "%y = onnx::Flatten[axis=1](%n)", ""),
    ("nothing_to_do", "%y = onnx::Expand(%x, [1, 3])", ""),
    ("nothing_to_do", "%y = onnx::Cast[to=1](%n)", ""),
    ("nothing_to_do", "%y = onnx::CastLike(%n, %x)", ""),
    ("nothing_to_do", "%s : Long(2) = prim::Constant[value=splat(1)]()\n%y = onnx::Tile(%x, %s)", ""),
    ("nothing_to_do", "%y = onnx::Squeeze(%x)", ""),
    ("torch_dropout_at_inference", f"{DROPPED}%y = aten::dropout(%x, %p1, %no)", ""),
    ("torch_dropout_at_inference", f"{DROPPED}%y = aten::feature_alpha_dropout(%x, %p1, %no)", ""),
    ("conjugate", "%y = aten::conj(%x)", "conj_physical"),
    ("conjugate", "%y = aten::_conj(%x)", "conj_physical"),
    ("adjoint", "%y = aten::mH(%x)", "conj_physical mT"),
    ("adjoint", "%y = aten::adjoint(%x)", "conj_physical mT"),
    ("nothing_to_do", "%y = onnx::Concat[axis=0](%x)", ""),
    ("nothing_to_do", "%y = onnx::Sum(%n)", ""),
    ("nothing_to_do", "%y = onnx::Max(%x)", ""),
    ("nothing_to_do", "%y = onnx::Min(%x)", ""),
    ("nothing_to_do", "%y = onnx::Mean(%x)", ""),
    ("nothing_to_do", "%y = onnx::Transpose[perm=[0, 1]](%n)", ""),
    ("nothing_to_do", "%y : Long(2) = onnx::Transpose(%i)", ""),
    ("nothing_to_do", "%y = onnx::Slice[starts=[0], ends=[5], axes=[1], since_version=1](%x)", ""),
    ("nothing_to_do", "%s : Long(4) = prim::Constant[value=splat(0)]()\n%y = onnx::Pad(%n, %s)", ""),
    ("nothing_to_do", "%y = onnx::Pad[pads=[0, 0, 0, 0], since_version=2](%x)", ""),
    ("nothing_to_do", "%y = onnx::Split[axis=1](%x, [3])", ""),
    ("neutral_operand", "%y = onnx::Mul(1., %n)", ""),
    ("neutral_operand", "%k : Float(2, 3) = prim::Constant[value=splat(1.)]()\n%y = onnx::Mul(%x, %k)", ""),
    ("neutral_operand", "%y = onnx::Div(%x, [1.])", ""),
    ("neutral_operand", "%y = onnx::Pow(%x, 1.)", ""),
    ("neutral_operand", "%y = onnx::Sub(%x, 0.)", ""),
    ("neutral_operand", "%y = onnx::Add(%x, -0.)", ""),
    ("settled_choice", "%k : Bool() = prim::Constant[value=tensor([True])]()\n%y = onnx::Where(%k, %x, %p)", ""),
    ("settled_choice", "%k : Bool(2, 3) = prim::Constant[value=splat(False)]()\n%y = onnx::Where(%k, %p, %x)", ""),
    ("known_contents", "%y : Long(2) = onnx::Shape(%x)", ""),
    ("normalization", f"{ROOT.format('x')}\n%y = onnx::Div(%x, %r)", "RMSNormalization"),
    ("normalization", f"{CENTERED}\n{ROOT.format('d')}\n%y = onnx::Div(%d, %r)", "LayerNormalization"),
    ("masked_softmax", f"{MASKED}\n%y = onnx::Where(%t, %k, %s)", "masked_softmax"),
    ("rotated_halves", f"{HALVES}\n%y = onnx::Concat[axis=1](%m, %a)", "Transpose rotate_half"),
    ("rotated_pairs", f"{PAIRS}\n%y = onnx::Reshape[since_version=13](%e9, %f9)", "Transpose rotate_half"),
    ("activation", "%s = onnx::Sigmoid(%n)\n%y = onnx::Mul(%s, %n)", "Swish"),
    ("scale_of_normalization", f"{SCALED}\n%y = onnx::Mul(%g, %k)", "RMSNormalization"),
    ("transpose_of_transpose", "%t = onnx::Transpose(%x)\n%y = onnx::Transpose(%t)", ""),
    ("reshape_there_and_back", "%t = onnx::Flatten[axis=0](%x)\n%y : Float(2, 3) = onnx::Reshape(%t, %i)", ""),
    ("scatter_of_all", ALL_INDICES + "%y = onnx::ScatterND(%n, %k, %n)", ""),
    ("attention", ATTENTION, "attention"),
    ("attention", ATTENTION.replace("[axis=-1]", "[axis=1, since_version=11]"), "attention"),
    ("scale_of_attention", HALF + "%s = onnx::Mul(%x, %h)\n%y = irc::attention[scale=0.5](%s, %p, %p)", "attention"),
    ("scale_of_attention", HALF + "%s = onnx::Mul(%h, %p)\n%y = irc::attention[scale=0.5](%x, %s, %p)", "attention"),
    *sections(
        f"""
== nothing_to_do |
%t : Bool() = prim::Constant[value=tensor([False])]()
%y, %mask : Bool(2, 3) = onnx::Dropout(%x, 0.5, %t)
== nothing_to_do |
%y = onnx::Slice(%n, [0], [9223372036854775807])
== nothing_to_do |
%y = onnx::Slice(%x, [-3], [3], [1], [1])
== known_contents |
%s = onnx::Shape(%n)
%y : Long(1) = onnx::Gather[axis=0](%s, [1])
== same_contents | Shape Add
%s = onnx::Shape(%n)
%m = onnx::Neg(%n)
%t = onnx::Shape(%m)
%y = onnx::Add(%t, %i)
== same_contents | Shape Add  # (N + N) - N
%s = onnx::Shape[start=0, end=1](%n)
%m = onnx::Concat[axis=0](%n, %n)
%t = onnx::Shape[start=0, end=1](%m)
%d = onnx::Sub(%t, %s)
%y = onnx::Add(%d, %i)
== reshape_by_numbers | Reshape
%s = onnx::Shape[start=0, end=1](%n)
%t = onnx::Concat[axis=0](%s, [1, 3])
%y = onnx::Reshape(%n, %t)
== reshape_by_numbers | Reshape
%s = onnx::Shape[start=0, end=1](%n)
%m = onnx::Mul(%s, [3])
%t = onnx::Concat[axis=0]([1], %m)
%y = onnx::Reshape(%n, %t)
== bias_of_normalization | LayerNormalization
{CENTERED}
{ROOT.format("d")}
%g = onnx::Div(%d, %r)
{COLUMNS}
%y = onnx::Add(%k, %g)
== transpose_of_transpose | Unsqueeze Transpose
%u = onnx::Unsqueeze(%x, [0])
%t = onnx::Transpose[perm=[1, 2, 0]](%u)
%y = onnx::Transpose[perm=[0, 2, 1]](%t)
== reshape_of_reshape | Reshape
%t = onnx::Flatten[axis=0](%x)
%y = onnx::Reshape(%t, [3, 2])
== operand_expanded_for_nothing | Add
%e = onnx::Expand(%c, [2, 3])
%y = onnx::Add(%x, %e)
== operand_expanded_for_nothing | Where
%e = onnx::Expand(%c, [2, 3])
%y = onnx::Where(%q, %e, %x)
== scatter_to_slice | slice_scatter
%k : Long(1, 1) = prim::Constant[value=tensor([1])]()
%u : Float(1, 3) = prim::Constant[value=splat(5.)]()
%y = onnx::ScatterND(%x, %k, %u)
== scatter_overwritten | ScatterND
%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
%s = onnx::ScatterND(%x, %k, %p)
%y = onnx::ScatterND(%s, %k, %x)
== scatter_overwritten | Neg slice_scatter
%u = onnx::Neg(%p)
%s = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%x, %p)
%y = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%s, %u)
== scatter_of_all |   # row by row
%zero : Long() = prim::Constant[value=tensor([0])]()
%one : Long() = prim::Constant[value=tensor([1])]()
%s = onnx::Shape(%n)
%count = onnx::Gather[axis=0](%s, %zero)
%r = onnx::Range(%zero, %count, %one)
%k = onnx::Unsqueeze(%r, [1])
%y = onnx::ScatterND(%n, %k, %n)
== attention | Transpose Abs Neg Greater Transpose attention  # keys that lie transposed, and all of scores
{HALF}
%t = onnx::Transpose[perm=[1, 0]](%p)
%a = onnx::Abs(%t)
%f : Float(1, 1) = prim::Constant[value=splat(-inf)]()
%r = onnx::Neg(%c)
%v = onnx::Greater(%c, %r)
%m = onnx::MatMul(%x, %a)
%d = onnx::Mul(%h, %m)
%q1 = onnx::Div(%d, %h)
%e = onnx::Tanh(%q1)
%g = onnx::Mul(%h, %e)
%b = onnx::Add(%c, %g)
%u = onnx::Where(%v, %b, %f)
%w = irc::masked_softmax[axis=-1](%u)
%y = onnx::MatMul(%w, %p)
== attention | Transpose Greater Add Not attention  # which scores do not count, two masks, and types that are wider
{KEYS}
%l : Float() = prim::Constant[value=tensor([-9.])]()
%r = onnx::Transpose[perm=[1, 0]](%c)
%v = onnx::Greater(%c, %r)
%m = onnx::Add(%s, %c)
%b = onnx::Add(%r, %m)
%g = onnx::Cast[to=11](%b)
%l1 : Double() = prim::Constant[value=tensor([-9.])]()
%u = onnx::Where(%v, %l1, %g)
%w = onnx::Softmax[axis=-1](%u)
%o = onnx::Cast[to=1](%w)
%y = onnx::MatMul(%o, %p)
== scale_of_attention | attention  # by the width, too
{HALF}
%s = onnx::Mul(%x, %h)
%t = onnx::Flatten(%s)
%y = irc::attention(%t, %p, %p)
== attention_of_shared_heads | Concat Reshape Reshape attention
{REPEATED}
%y = irc::attention[scale=1.](%left, %r, %r)
== shape_of_shared_heads | Reshape Shape Concat
{OPEN}
%r = onnx::Reshape(%e, [0, 6, -1, 1])
%y = onnx::Shape[start=1, end=-1](%r)
== transpose_of_heads_as_one | Expand Transpose
%e = onnx::Expand(%x, [1, 2, 2, 3])
%m = onnx::Reshape(%e, [-1, 2, 3])
%t = onnx::Transpose[perm=[0, 2, 1]](%m)
%y = onnx::Reshape(%t, [1, 2, 3, 2])
== transpose_of_heads_as_one | Expand Reshape Transpose  # they were two axes
%e = onnx::Expand(%x, [1, 2, 2, 2, 3])
%m = onnx::Reshape(%e, [-1, 2, 3])
%t = onnx::Transpose[perm=[0, 2, 1]](%m)
%y = onnx::Reshape(%t, [1, 4, 3, 2])
"""
    ),
]

# (rule, body): the rule looks at %y and leaves it
REFUSES = [
    ("torch_dropout_at_inference", f"{DROPPED}%y = aten::dropout(%x, %p0, %yes)"),
    ("conjugate", "%w = onnx::Neg_(%x)\n%y = aten::conj(%x)"),
    ("adjoint", "%y = aten::adjoint(%x)\n%w = onnx::Neg_(%y)"),
    ("nothing_to_do", "%y = onnx::Dropout[since_version=1, ratio=0.](%x)"),  # which trains by default
    ("nothing_to_do", "%d, %m : Bool(2, 3) = onnx::Dropout(%x)\n%y = onnx::Where(%m, %d, %p)"),
    ("nothing_to_do", "%y = onnx::Reshape(%x, [3, 2])"),
    ("nothing_to_do", "%y = onnx::Reshape(%x, %i)"),
    ("nothing_to_do", "%y = onnx::Cast[to=7](%x)"),
    ("nothing_to_do", "%y = onnx::Concat[axis=0](%x, %x)"),
    ("nothing_to_do", "%y = onnx::Transpose[perm=[1, 0]](%x)"),
    ("nothing_to_do", "%y = onnx::Transpose(%x)"),
    ("nothing_to_do", "%y = onnx::Pad(%x, [0, 0, 1, 0])"),
    ("same_contents", "%s = onnx::Add(%i, %i)\n%m = onnx::Mul(%i, %s)\n%y = onnx::Add(%m, %s)"),
    ("normalization", f"{ROOT.format('x')}\n%y = onnx::Div(%p, %r)"),
    ("masked_softmax", f"{MASKED}\n%y = onnx::Where(%t, %s, %k)"),
    ("rotated_halves", f"{HALVES}\n%y = onnx::Concat[axis=1](%a, %m)"),
    ("rotated_halves", f"{HALVES}\n%y = onnx::Concat[axis=0](%m, %a)"),
    ("activation", "%s = onnx::Sigmoid(%x)\n%y = onnx::Mul(%s, %p)"),
    ("activation", "%s = onnx::Sigmoid(%x)\n%y = onnx::Mul(%s, %x)\n%h = onnx::Abs(%s)"),
    ("scale_of_normalization", f"{SCALED}\n%y = onnx::Mul(%g, %c)"),
    ("scale_of_normalization", f"{SCALED}\n%y = onnx::Mul(%g, %k)\n%h = onnx::Abs(%g)"),
    ("bias_of_normalization", f"{SCALED}\n%y = onnx::Add(%g, %k)"),
    ("nothing_to_do", "%s : Long(4) = onnx::Concat[axis=0](%i, %i)\n%y = onnx::Pad(%x, %s)"),
    ("neutral_operand", "%y = onnx::Add(%x, 0.)"),
    ("neutral_operand", "%y = onnx::Sub(%x, -0.)"),
    ("neutral_operand", "%y = onnx::Sub(0., %x)"),
    ("neutral_operand", "%y = onnx::Div(1., %x)"),
    ("neutral_operand", "%y = onnx::Mul(%x, 2.)"),
    ("neutral_operand", "%k : Float(2, 3) = prim::Constant[value=splat(1.)]()\n%y = onnx::Mul(%c, %k)"),
    ("settled_choice", "%y = onnx::Where(%q, %x, %p)"),
    ("settled_choice", "%k : Bool(2, 3) = prim::Constant[value=splat(True)]()\n%y = onnx::Where(%k, %c, %x)"),
    ("known_contents", "%y : Long(2) = onnx::Shape(%n)"),
    ("known_contents", "%y : Long(2) = onnx::Add(%i, %i)"),
    ("transpose_of_transpose", "%t : Tensor = aten::t(%x)\n%y = onnx::Transpose(%t)"),
    ("reshape_there_and_back", "%t = onnx::Flatten[axis=0](%x)\n%y = onnx::Reshape(%t, %i)"),
    ("reshape_of_reshape", "%t = onnx::Flatten[axis=0](%x)\n%y = onnx::Reshape(%t, %i)"),
    ("operand_expanded_for_nothing", "%e = onnx::Expand(%c, %i)\n%y = onnx::Add(%n, %e)"),
    *(
        ("scatter_of_all", ALL_INDICES.replace(*change) + f"%y = onnx::ScatterND{how}(%n, %k, %n)")
        for *change, how in [
            ("[0, 1, 2]", "[0, 2, 1]", ""),  # in another order
            ("%t, %s", "%t, %s", '[reduction="add"]'),
            ("%zero, %rows", "%one, %rows", ""),
        ]
    ),
    *(
        ("attention", body)
        for body in (
            ATTENTION.replace("[axis=-1]", "[axis=0]"),
            ATTENTION.replace("[axis=-1]", "[axis=0, since_version=11]"),
            ATTENTION.replace("onnx::Softmax[axis=-1]", "onnx::Relu"),
            KEYS + "%w = onnx::Softmax(%s)\n%a = onnx::Add(%w, %s)\n%y = onnx::MatMul(%a, %p)",
            KEYS
            + "%w = onnx::Softmax(%s)\n%a = onnx::MatMul(%w, %p)\n%b = onnx::MatMul(%s, %p)\n%y = onnx::Add(%a, %b)",
            KEYS
            + HALF
            + "%a = onnx::Add(%s, %c)\n%b = onnx::Mul(%a, %h)\n%w = onnx::Softmax(%b)\n%y = onnx::MatMul(%w, %p)",
            KEYS + "%a = onnx::Mul(%s, %c)\n%w = onnx::Softmax(%a)\n%y = onnx::MatMul(%w, %p)",
            KEYS + HALF + "%a = onnx::Div(%h, %s)\n%w = onnx::Softmax(%a)\n%y = onnx::MatMul(%w, %p)",
            KEYS + "%a = onnx::Tanh(%s)\n%w = onnx::Softmax(%a)\n%y = onnx::MatMul(%w, %p)",
            KEYS + "%a = onnx::Transpose[perm=[1, 0]](%s)\n%w = onnx::Softmax(%a)\n%y = onnx::MatMul(%w, %p)",
            KEYS
            + "%w = onnx::Softmax(%s)\n%o : Float(2, 3) = prim::Constant[value=splat(2.)]()\n%y = onnx::MatMul(%w, %o)",
        )
    ),
    ("scale_of_attention", HALF + "%s = onnx::Mul(%x, %h)\n%a = irc::attention(%s, %p, %p)\n%y = onnx::Add(%a, %s)"),
    *(
        ("scale_of_attention", HALF + f"%s = onnx::Mul(%x, %h)\n%w = onnx::Neg_({it})\n%y = irc::attention(%s, %p, %p)")
        for it in ("%x", "%s")
    ),
    *sections(
        f"""
== nothing_to_do  # it trains
%t : Bool() = prim::Constant[value=tensor([True])]()
%y = onnx::Dropout(%x, 0., %t)
== nothing_to_do  # of what rank is not known
%l : Tensor[] = prim::ListConstruct(%x)
%k : int = prim::Constant[value=0]()
%t : Tensor = aten::__getitem__(%l, %k)
%y = onnx::Flatten[axis=1](%t)
== nothing_to_do  # backwards
%y = onnx::Slice(%x, [-1], [-9], [0], [-1])
== nothing_to_do
%y = onnx::Slice(%x, [1], [2])
== rotated_pairs
{PAIRS}
%g9 = onnx::Concat[axis=-1](%d9, %c9)
%y = onnx::Reshape[since_version=13](%g9, %f9)
== reshape_by_numbers  # two sizes that are not there
%t = onnx::Transpose(%n)
%m = onnx::MatMul(%n, %t)
%f = onnx::Flatten[axis=0](%m)
%s = onnx::Shape[start=0, end=1](%n)
%w = onnx::Concat[axis=0](%s, [1], %s)
%y = onnx::Reshape(%f, %w)
== reshape_by_numbers  # nobody knows whether this is possible
%s = onnx::Shape[start=0, end=1](%n)
%g = onnx::Gather[axis=0](%i, 1)
%u = onnx::Unsqueeze(%g, [0])
%t = onnx::Concat[axis=0](%s, %u)
%y = onnx::Reshape(%n, %t)
== nothing_to_do
%s : Long(2) = prim::Constant[value=splat(1)]()
%y, %o : Float(1, 3) = onnx::Split[axis=0](%x, %s)
== settled_choice
%k : Bool(3) = prim::Constant[value=tensor([True, False, True])]()
%y = onnx::Where(%k, %x, %p)
== reshape_of_reshape  # the 0 copies a size of the shape in between
%t = onnx::Flatten[axis=0](%x)
%y = onnx::Reshape(%t, [0, 3, 2])
== operand_expanded_for_nothing  # it alone gives the result its shape
%e = onnx::Expand(%c, [2, 3])
%y = onnx::Add(%c, %e)
== scatter_to_slice
%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
%y = onnx::ScatterND(%x, %k, %p)
== scatter_to_slice
%k : Long(1, 1) = prim::Constant[value=tensor([1])]()
%u : Float(1, 3) = prim::Constant[value=splat(5.)]()
%y = onnx::ScatterND[reduction="add"](%x, %k, %u)
== scatter_overwritten
%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
%l : Long(2, 1) = prim::Constant[value=splat(1)]()
%s = onnx::ScatterND(%x, %k, %p)
%y = onnx::ScatterND(%s, %l, %p)
== scatter_overwritten
%k : Long(2, 1) = prim::Constant[value=tensor([1, 0])]()
%s = onnx::ScatterND[reduction="add"](%x, %k, %p)
%y = onnx::ScatterND[reduction="add"](%s, %k, %p)
== scatter_overwritten
%u : Float(1, 3) = prim::Constant[value=splat(5.)]()
%s = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%x, %p)
%y = irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%s, %u)
== scale_of_attention  # scores might overflow before
%h : Float() = prim::Constant[value=splat(0.0001)]()
%s = onnx::Mul(%p, %h)
%y = irc::attention(%x, %s, %p)
== attention_of_shared_heads  # all heads, and then all once more
{REPEATED.replace("%k, [2]", "%k, [1]")}
%y = irc::attention(%left, %r, %r)
== attention_of_shared_heads  # keys alone
{REPEATED}
%v = onnx::Neg(%r)
%y = irc::attention(%left, %r, %v)
== shape_of_shared_heads
{OPEN}
%r = onnx::Reshape(%e, [2, 3, -1, 1])
%y = onnx::Shape(%r)
== transpose_of_heads_as_one
%e = onnx::Expand(%x, [1, 2, 2, 3])
%m = onnx::Reshape(%e, [-1, 3, 2])
%t = onnx::Transpose[perm=[0, 2, 1]](%m)
%y = onnx::Reshape(%t, [1, 2, 3, 2])
"""
    ),
]
