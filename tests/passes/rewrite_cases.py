"""Cases for the canonicalisation rules: programs that a rule rewrites, and others that it must leave.

A case is the body of a graph that makes ``%y`` out of ``%x : Float(2, 3)`` and others; after it, ``%z`` is
computed from ``%y``, so that names of outputs do not come into it. Statements are those of `tests.graphs.ir`.
"""

from tests.tables import rows


def _cases(table: str, *more: str) -> list[tuple[str, ...]]:
    """Rows of a rule, with a remark behind a colon, a body and, or as in ``more``, what is left of it."""
    return [(rule.partition(":")[0], body, *(left or more)) for rule, body, *left in rows(table)]


SHARED = "k = Reshape(x, [1, 2, 1, 3]); u = Unsqueeze(k, [2]); e = Expand(u, [1, 2, 2, 1, 3]); "
"""Two heads, each for two others."""

OPEN = SHARED.replace("x, [1, 2, 1, 3]", "n, [1, 3, -1, 1]").replace("[1, 2, 2, 1, 3]", "[1, 3, 2, 1, 1]")

DROPPED = (
    "p1: float = prim.Constant(value=0.5); p0: float = prim.Constant(value=0.); no: bool = prim.Constant(value=0); "
    "yes: bool = prim.Constant(value=1); "
)

MASKED = "k: Float() = prim.Constant(value=tensor([0.])); s = Softmax(x); t = IsNaN(s); "

HALVES = (
    "t = Transpose(x); a = Slice(t, since_version=1, starts=[0], ends=[1], axes=[1]); "
    "b = Slice(t, since_version=1, starts=[-1], ends=[9], axes=[1]); m = Neg(b); "
)

PAIRS = (
    "t9 = Transpose(x); q1: Long(1) = prim.Constant(value=tensor([1])); "
    "q2: Long(1) = prim.Constant(value=tensor([2])); a9 = Slice(t9, [0], q2, q1, q2, since_version=13); "
    "b9 = Slice(t9, q1, q2, q1, q2, since_version=13); m9 = Neg(b9); c9 = Unsqueeze(m9, q2, since_version=13); "
    "d9 = Unsqueeze(a9, q2, since_version=13); e9 = Concat(c9, d9, axis=-1); f9 = Shape(t9); "
)

ROOT = (
    "last: Long(1) = prim.Constant(value=tensor([-1])); s = Pow({0}, 2.); v = ReduceMean(s, last, keepdims=1); "
    "w = Add(v, 0.5); r = Sqrt(w); "
)

CENTERED = "m = ReduceMean(x, axes=[1], keepdims=1, since_version=13); d = Sub(x, m); "

COLUMNS = "k: Float(3) = prim.Constant(value=tensor([1., 2., 3.])); "

SCALED = f"{ROOT.format('x')}g = Div(x, r); {COLUMNS}"

ALL_INDICES = (
    "s = Shape(n); zero: Long() = prim.Constant(value=tensor([0])); "
    "one: Long() = prim.Constant(value=tensor([1])); rows = Gather(s, zero, axis=0); r = Range(zero, rows, one); "
    "t = Reshape(r, [-1, 1]); last: Long(1) = prim.Constant(value=tensor([-1])); e0 = Expand(t, s); "
    "e1 = Expand([0, 1, 2], s); u0 = Unsqueeze(e0, last); u1 = Unsqueeze(e1, last); k = Concat(u0, u1, axis=-1); "
)
"""Of all elements of a matrix, in order."""

REPEATED = f"x2 = Concat(p, p, axis=0); left = Reshape(x2, [1, 4, 1, 3]); {SHARED}r = Reshape(e, [1, 4, 1, 3]); "

KEYS = "t = Transpose(p, perm=[1, 0]); s = MatMul(x, t); "

HALF = "h: Float() = prim.Constant(value=tensor([0.5])); "

ATTENTION = KEYS + "w = Softmax(s, axis=-1); y = MatMul(w, p)"

# (rule, body, what is left of it)
APPLIES = _cases(
    f"""
identity | y = Identity(x)
nothing_to_do | y = Dropout(x)
nothing_to_do | y = Dropout(x, is_test=1, since_version=1)
nothing_to_do | y = Reshape(x, [2, -1])
nothing_to_do | y = Reshape(n, [0, 3])
nothing_to_do | y = Flatten(n, axis=1)
nothing_to_do | y = Expand(x, [1, 3])
nothing_to_do | y = Cast(n, to=1)
nothing_to_do | y = CastLike(n, x)
nothing_to_do | s: Long(2) = prim.Constant(value=splat(1)); y = Tile(x, s)
nothing_to_do | y = Squeeze(x)
nothing_to_do | y = Concat(x, axis=0)
nothing_to_do | y = Sum(n)
nothing_to_do | y = Max(x)
nothing_to_do | y = Min(x)
nothing_to_do | y = Mean(x)
nothing_to_do | y = Transpose(n, perm=[0, 1])
nothing_to_do | y: Long(2) = Transpose(i)
nothing_to_do | y = Slice(x, starts=[0], ends=[5], axes=[1], since_version=1)
nothing_to_do | s: Long(4) = prim.Constant(value=splat(0)); y = Pad(n, s)
nothing_to_do | y = Pad(x, pads=[0, 0, 0, 0], since_version=2)
nothing_to_do | y = Split(x, [3], axis=1)
nothing_to_do | t: Bool() = prim.Constant(value=tensor([False])); y, mask[Bool(2, 3)] = Dropout(x, 0.5, t)
nothing_to_do | y = Slice(n, [0], [9223372036854775807])
nothing_to_do | y = Slice(x, [-3], [3], [1], [1])
torch_dropout_at_inference | {DROPPED}y = dropout(x, p1, no)
torch_dropout_at_inference | {DROPPED}y = feature_alpha_dropout(x, p1, no)
conjugate | y = conj(x) | conj_physical
conjugate | y = _conj(x) | conj_physical
adjoint | y = mH(x) | conj_physical mT
adjoint | y = adjoint(x) | conj_physical mT
neutral_operand | y = Mul(1., n)
neutral_operand | k: Float(2, 3) = prim.Constant(value=splat(1.)); y = Mul(x, k)
neutral_operand | y = Div(x, [1.])
neutral_operand | y = Pow(x, 1.)
neutral_operand | y = Sub(x, 0.)
neutral_operand | y = Add(x, -0.)
settled_choice | k: Bool() = prim.Constant(value=tensor([True])); y = Where(k, x, p)
settled_choice | k: Bool(2, 3) = prim.Constant(value=splat(False)); y = Where(k, p, x)
known_contents | y: Long(2) = Shape(x)
known_contents | s = Shape(n); y: Long(1) = Gather(s, [1], axis=0)
normalization | {ROOT.format("x")}y = Div(x, r) | RMSNormalization
normalization | {CENTERED}{ROOT.format("d")}y = Div(d, r) | LayerNormalization
masked_softmax | {MASKED}y = Where(t, k, s) | masked_softmax
rotated_halves | {HALVES}y = Concat(m, a, axis=1) | Transpose rotate_half
rotated_pairs | {PAIRS}y = Reshape(e9, f9, since_version=13) | Transpose rotate_half
activation | s = Sigmoid(n); y = Mul(s, n) | Swish
scale_of_normalization | {SCALED}y = Mul(g, k) | RMSNormalization
transpose_of_transpose | t = Transpose(x); y = Transpose(t)
transpose_of_transpose | u = Unsqueeze(x, [0]); t = Transpose(u, perm=[1, 2, 0]); y = Transpose(t, perm=[0, 2, 1]) |
    Unsqueeze Transpose
reshape_there_and_back | t = Flatten(x, axis=0); y: Float(2, 3) = Reshape(t, i)
same_contents | s = Shape(n); m = Neg(n); t = Shape(m); y = Add(t, i) | Shape Add
same_contents: (N + N) - N | s = Shape(n, start=0, end=1); m = Concat(n, n, axis=0); t = Shape(m, start=0, end=1);
    d = Sub(t, s); y = Add(d, i) | Shape Add
reshape_by_numbers | s = Shape(n, start=0, end=1); t = Concat(s, [1, 3], axis=0); y = Reshape(n, t) | Reshape
reshape_by_numbers | s = Shape(n, start=0, end=1); m = Mul(s, [3]); t = Concat([1], m, axis=0); y = Reshape(n, t) |
    Reshape
bias_of_normalization | {CENTERED}{ROOT.format("d")}g = Div(d, r); {COLUMNS}y = Add(k, g) | LayerNormalization
reshape_of_reshape | t = Flatten(x, axis=0); y = Reshape(t, [3, 2]) | Reshape
operand_expanded_for_nothing | e = Expand(c, [2, 3]); y = Add(x, e) | Add
operand_expanded_for_nothing | e = Expand(c, [2, 3]); y = Where(q, e, x) | Where
scatter_to_slice | k: Long(1, 1) = prim.Constant(value=tensor([1])); u: Float(1, 3) = prim.Constant(value=splat(5.));
    y = ScatterND(x, k, u) | slice_scatter
scatter_overwritten | k: Long(2, 1) = prim.Constant(value=tensor([1, 0])); s = ScatterND(x, k, p);
    y = ScatterND(s, k, x) | ScatterND
scatter_overwritten | u = Neg(p); s = irc.slice_scatter(x, p, starts=[0, 0], steps=[1, 1]);
    y = irc.slice_scatter(s, u, starts=[0, 0], steps=[1, 1]) | Neg slice_scatter
scatter_of_all: row by row | zero: Long() = prim.Constant(value=tensor([0]));
    one: Long() = prim.Constant(value=tensor([1])); s = Shape(n); count = Gather(s, zero, axis=0);
    r = Range(zero, count, one); k = Unsqueeze(r, [1]); y = ScatterND(n, k, n)
attention: keys that lie transposed, and all of scores | {HALF}t = Transpose(p, perm=[1, 0]); a = Abs(t);
    f: Float(1, 1) = prim.Constant(value=splat(-inf)); r = Neg(c); v = Greater(c, r); m = MatMul(x, a); d = Mul(h, m);
    q1 = Div(d, h); e = Tanh(q1); g = Mul(h, e); b = Add(c, g); u = Where(v, b, f);
    w = irc.masked_softmax(u, axis=-1); y = MatMul(w, p) | Transpose Abs Neg Greater Transpose attention
attention: which scores do not count, two masks, and types that are wider |
    {KEYS}l: Float() = prim.Constant(value=tensor([-9.])); r = Transpose(c, perm=[1, 0]); v = Greater(c, r);
    m = Add(s, c); b = Add(r, m); g = Cast(b, to=11); l1: Double() = prim.Constant(value=tensor([-9.]));
    u = Where(v, l1, g); w = Softmax(u, axis=-1); o = Cast(w, to=1); y = MatMul(o, p) |
    Transpose Greater Add Not attention
scale_of_attention: by the width, too | {HALF}s = Mul(x, h); t = Flatten(s); y = irc.attention(t, p, p) | attention
attention_of_shared_heads | {REPEATED}y = irc.attention(left, r, r, scale=1.) | Concat Reshape Reshape attention
shape_of_shared_heads | {OPEN}r = Reshape(e, [0, 6, -1, 1]); y = Shape(r, start=1, end=-1) | Reshape Shape Concat
transpose_of_heads_as_one | e = Expand(x, [1, 2, 2, 3]); m = Reshape(e, [-1, 2, 3]); t = Transpose(m, perm=[0, 2, 1]);
    y = Reshape(t, [1, 2, 3, 2]) | Expand Transpose
transpose_of_heads_as_one: they were two axes | e = Expand(x, [1, 2, 2, 2, 3]); m = Reshape(e, [-1, 2, 3]);
    t = Transpose(m, perm=[0, 2, 1]); y = Reshape(t, [1, 4, 3, 2]) | Expand Reshape Transpose
scatter_of_all | {ALL_INDICES}y = ScatterND(n, k, n)
attention | {ATTENTION} | attention
attention | {ATTENTION.replace("axis=-1", "axis=1, since_version=11")} | attention
scale_of_attention | {HALF}s = Mul(x, h); y = irc.attention(s, p, p, scale=0.5) | attention
scale_of_attention | {HALF}s = Mul(h, p); y = irc.attention(x, s, p, scale=0.5) | attention
""",
    "",
)

# (rule, body): the rule looks at %y and leaves it
REFUSES = _cases(f"""
torch_dropout_at_inference | {DROPPED}y = dropout(x, p0, yes)
conjugate | w = Neg_(x); y = conj(x)
adjoint | y = adjoint(x); w = Neg_(y)
nothing_to_do: which trains by default | y = Dropout(x, since_version=1, ratio=0.)
nothing_to_do | d, m[Bool(2, 3)] = Dropout(x); y = Where(m, d, p)
nothing_to_do | y = Reshape(x, [3, 2])
nothing_to_do | y = Reshape(x, i)
nothing_to_do | y = Cast(x, to=7)
nothing_to_do | y = Concat(x, x, axis=0)
nothing_to_do | y = Transpose(x, perm=[1, 0])
nothing_to_do | y = Transpose(x)
nothing_to_do | y = Pad(x, [0, 0, 1, 0])
nothing_to_do | s: Long(4) = Concat(i, i, axis=0); y = Pad(x, s)
nothing_to_do: it trains | t: Bool() = prim.Constant(value=tensor([True])); y = Dropout(x, 0., t)
nothing_to_do: of what rank is not known | l: "Tensor[]" = prim.ListConstruct(x); k: int = prim.Constant(value=0);
    t = __getitem__(l, k); y = Flatten(t, axis=1)
nothing_to_do: backwards | y = Slice(x, [-1], [-9], [0], [-1])
nothing_to_do | y = Slice(x, [1], [2])
nothing_to_do | s: Long(2) = prim.Constant(value=splat(1)); y, o[Float(1, 3)] = Split(x, s, axis=0)
same_contents | s = Add(i, i); m = Mul(i, s); y = Add(m, s)
normalization | {ROOT.format("x")}y = Div(p, r)
masked_softmax | {MASKED}y = Where(t, s, k)
rotated_halves | {HALVES}y = Concat(a, m, axis=1)
rotated_halves | {HALVES}y = Concat(m, a, axis=0)
activation | s = Sigmoid(x); y = Mul(s, p)
activation | s = Sigmoid(x); y = Mul(s, x); h = Abs(s)
scale_of_normalization | {SCALED}y = Mul(g, c)
scale_of_normalization | {SCALED}y = Mul(g, k); h = Abs(g)
bias_of_normalization | {SCALED}y = Add(g, k)
neutral_operand | y = Add(x, 0.)
neutral_operand | y = Sub(x, -0.)
neutral_operand | y = Sub(0., x)
neutral_operand | y = Div(1., x)
neutral_operand | y = Mul(x, 2.)
neutral_operand | k: Float(2, 3) = prim.Constant(value=splat(1.)); y = Mul(c, k)
settled_choice | y = Where(q, x, p)
settled_choice | k: Bool(2, 3) = prim.Constant(value=splat(True)); y = Where(k, c, x)
settled_choice | k: Bool(3) = prim.Constant(value=tensor([True, False, True])); y = Where(k, x, p)
known_contents | y: Long(2) = Shape(n)
known_contents | y: Long(2) = Add(i, i)
transpose_of_transpose | t1 = t(x); y = Transpose(t1)
reshape_there_and_back | t = Flatten(x, axis=0); y = Reshape(t, i)
reshape_of_reshape | t = Flatten(x, axis=0); y = Reshape(t, i)
reshape_of_reshape: the 0 copies a size of the shape in between | t = Flatten(x, axis=0); y = Reshape(t, [0, 3, 2])
operand_expanded_for_nothing | e = Expand(c, i); y = Add(n, e)
operand_expanded_for_nothing: it alone gives the result its shape | e = Expand(c, [2, 3]); y = Add(c, e)
rotated_pairs | {PAIRS}g9 = Concat(d9, c9, axis=-1); y = Reshape(g9, f9, since_version=13)
reshape_by_numbers: two sizes that are not there | t = Transpose(n); m = MatMul(n, t); f = Flatten(m, axis=0);
    s = Shape(n, start=0, end=1); w = Concat(s, [1], s, axis=0); y = Reshape(f, w)
reshape_by_numbers: nobody knows whether this is possible | s = Shape(n, start=0, end=1); g = Gather(i, 1, axis=0);
    u = Unsqueeze(g, [0]); t = Concat(s, u, axis=0); y = Reshape(n, t)
scatter_to_slice | k: Long(2, 1) = prim.Constant(value=tensor([1, 0])); y = ScatterND(x, k, p)
scatter_to_slice | k: Long(1, 1) = prim.Constant(value=tensor([1])); u: Float(1, 3) = prim.Constant(value=splat(5.));
    y = ScatterND(x, k, u, reduction="add")
scatter_overwritten | k: Long(2, 1) = prim.Constant(value=tensor([1, 0]));
    l: Long(2, 1) = prim.Constant(value=splat(1)); s = ScatterND(x, k, p); y = ScatterND(s, l, p)
scatter_overwritten | k: Long(2, 1) = prim.Constant(value=tensor([1, 0])); s = ScatterND(x, k, p, reduction="add");
    y = ScatterND(s, k, p, reduction="add")
scatter_overwritten | u: Float(1, 3) = prim.Constant(value=splat(5.));
    s = irc.slice_scatter(x, p, starts=[0, 0], steps=[1, 1]); y = irc.slice_scatter(s, u, starts=[0, 0], steps=[1, 1])
scale_of_attention: scores might overflow before | h: Float() = prim.Constant(value=splat(0.0001)); s = Mul(p, h);
    y = irc.attention(x, s, p)
attention_of_shared_heads: all heads, and then all once more |
    {REPEATED.replace("k, [2]", "k, [1]")}y = irc.attention(left, r, r)
attention_of_shared_heads: keys alone | {REPEATED}v = Neg(r); y = irc.attention(left, r, v)
shape_of_shared_heads | {OPEN}r = Reshape(e, [2, 3, -1, 1]); y = Shape(r)
transpose_of_heads_as_one | e = Expand(x, [1, 2, 2, 3]); m = Reshape(e, [-1, 3, 2]); t = Transpose(m, perm=[0, 2, 1]);
    y = Reshape(t, [1, 2, 3, 2])
scatter_of_all: in another order | {ALL_INDICES.replace("[0, 1, 2]", "[0, 2, 1]")}y = ScatterND(n, k, n)
scatter_of_all | {ALL_INDICES}y = ScatterND(n, k, n, reduction="add")
scatter_of_all | {ALL_INDICES.replace("zero, rows", "one, rows")}y = ScatterND(n, k, n)
attention | {ATTENTION.replace("axis=-1", "axis=0")}
attention | {ATTENTION.replace("axis=-1", "axis=0, since_version=11")}
attention | {ATTENTION.replace("Softmax(s, axis=-1)", "Relu(s)")}
attention | {KEYS}w = Softmax(s); a = Add(w, s); y = MatMul(a, p)
attention | {KEYS}w = Softmax(s); a = MatMul(w, p); b = MatMul(s, p); y = Add(a, b)
attention | {KEYS}{HALF}a = Add(s, c); b = Mul(a, h); w = Softmax(b); y = MatMul(w, p)
attention | {KEYS}a = Mul(s, c); w = Softmax(a); y = MatMul(w, p)
attention | {KEYS}{HALF}a = Div(h, s); w = Softmax(a); y = MatMul(w, p)
attention | {KEYS}a = Tanh(s); w = Softmax(a); y = MatMul(w, p)
attention | {KEYS}a = Transpose(s, perm=[1, 0]); w = Softmax(a); y = MatMul(w, p)
attention | {KEYS}w = Softmax(s); o: Float(2, 3) = prim.Constant(value=splat(2.)); y = MatMul(w, o)
scale_of_attention | {HALF}s = Mul(x, h); a = irc.attention(s, p, p); y = Add(a, s)
scale_of_attention | {HALF}s = Mul(x, h); w = Neg_(x); y = irc.attention(s, p, p)
scale_of_attention | {HALF}s = Mul(x, h); w = Neg_(s); y = irc.attention(s, p, p)
""")
