"""Programs that write into results of views: what remove-mutation makes functional, and what it must leave alone.

All take ``x``, a matrix of floats with 4 rows and 6 columns that may lie in memory in any way, and a bool ``q`` and an
int ``n`` for branches and loops. ``a`` lies as ``x`` does, ``k`` is contiguous.
"""

import re
from typing import NamedTuple

import numpy as np

from tests.graphs import ir_graph

ELEMENTS = np.arange(-5, 19, dtype=np.float32).reshape(4, 6)

LAYOUTS = {
    "contiguous": ELEMENTS.copy(),
    "transposed": np.asfortranarray(ELEMENTS),
    "with gaps": np.repeat(np.repeat(ELEMENTS, 2, 1), 3, 0)[::3, ::2],
    "transposed with gaps": np.repeat(ELEMENTS.T, 2, 1)[:, ::2].T,
}
"""Matrices of the same elements that lie in memory in all ways."""


class Program(NamedTuple):
    """The text of a graph; ``stays``: why writes remain, if some do, and ``writes``: how many."""

    text: str
    stays: str = ""
    writes: int = 1


def _program(body: str, outputs: str, stays: str = "", writes: int = 1) -> Program:
    """Lists of numbers are made in the graph, as TorchScript makes them."""
    body = re.sub(r"(?<=, )\[([-\d, ]+)\]", r"prim.ListConstruct(\1)", body)
    graph = ir_graph("x: Tensor; q: bool; n: int", "a = add(x, 1, 1)\nk = clone(a, 0)\n" + body, outputs)
    return Program(str(graph), stays, writes)


def _written(view: str, stays: str = "", writes: int = 1) -> Program:
    """The view is written, then the whole, then the view again; all are returned, with what was seen in between."""
    whole = view.partition("(")[2][0]
    body = f"v = {view}; w = add_(v, 0.5, 1); s = sum({whole}, None); m = mul_({whole}, 2); r = relu_(v)"
    return _program(body, f"{whole}, v, w, s", stays, writes)


def _pieces(view: str, count: int, which: int) -> Program:
    """One piece is written by its number, two by unpacking all; the whole, and the pieces again, are returned."""
    parts = ", ".join(f"p{i}[Tensor]" for i in range(count))
    body = f"""
l: "Tensor[]" = {view}; e = __getitem__(l, {which}); w = add_(e, 0.5, 1)
{parts} = prim.ListUnpack(l); u = mul_(p0, 2); t = fill_(p{count - 1}, 0.5); c = neg(e)
"""
    return _program(body, f"a, e, p0, p{count - 1}, c")


def _pieces_in_a_loop(view: str, count: int) -> Program:
    body = f"""
l: "Tensor[]" = {view}; r = prim.Loop({count}, True, x)
with block(i=int, p=Tensor):
    e = __getitem__(l, i); w = mul_(e, 2); j: int = neg(i); k2: int = sub(j, 1)
    f = __getitem__(l, k2); z = add_(f, 0.5, 1); s = add(p, a, 1); yield True, s
"""
    return _program(body, "a, r")


def _observed(write: str) -> Program:
    """What follows a write sees how the written tensor, and what is computed from it, lie in memory."""
    body = f"""
v = t(a); z = mul(v, 0.5); m = gt(v, 2); i = arange(6, None, None, None, None)
ii = zeros_like(v, 4, None, None, None, None); li: "Tensor?[]" = prim.ListConstruct(i)
w = {write}
d = mul(v, 2); st = stride(d); co: bool = is_contiguous(v, 0); ca: bool = is_contiguous(a, 0)
ad = as_strided(v, [6], [2], 1); cl = clone(ad, None); fl = flatten(d, 0, -1); wf = add_(fl, 1, 1)
"""
    return _program(body, "a, v, d, fl, st, co, ca, cl", "may share")


_VIEWS = """
select(a, 0, 1)
select(a, 1, -1)
slice(a, 1, 1, None, 2)
slice(a, 0, 1, 2, 1)
narrow(a, 1, 2, 3)
narrow(a, 1, -2, 2)
narrow(a, 0, n, 1)
t(a)
transpose(a, 0, -1)
numpy_T(a)
mT(a)
mH(a)
matrix_H(a)
movedim(a, 0, 1)
unsqueeze(a, 1)
squeeze(a)
squeeze(a, 0)
diagonal(a, 1, 0, 1)
linalg_diagonal(a, 1, -2, -1)
unfold(a, 1, 2, 3)
unfold(a, -1, 2, 2)
unfold(a, 0, 1, 2)
detach(a)
alias(a)
view_as(a, x)
atleast_3d(a)
positive(a)
permute(a, [1, 0])
movedim(a, [0, 1], [1, 0])
view(k, [3, -1])
reshape(k, [2, 3, 4])
reshape_as(k, k)
flatten(k, 0, -1)
ravel(k)
contiguous(k, 0)
unflatten(a, 1, [2, 3])
as_strided(k, [2, 3], [6, 2], 3)
as_strided(a, [2, 3], [6, 2], None)
"""

_PIECES = {  # how many pieces there are, and which is written
    "split(a, 4, 1)": (2, 1),
    "split(a, 4, 1) from the end": (2, -2),
    "split_with_sizes(a, [1, 3, 2], 1)": (3, 1),
    "split(a, [4, 2], 1) from the end": (2, -1),
    "chunk(a, 4, 1)": (3, 2),
    "chunk(a, 2, 0) from the end": (2, -1),
    "unbind(a, 0)": (4, 2),
    "unbind(a, 1) from the end": (6, -2),
    "tensor_split(a, 4, 1)": (4, 1),
    "tensor_split(a, 4, 1) from the end": (4, -1),
    "tensor_split(a, [1, -2], 1)": (3, 1),
    "tensor_split(a, [1, 2], 0) from the end": (3, -1),
    "vsplit(a, 2)": (2, 0),
    "unsafe_chunk(a, 3, 1)": (3, 1),
    "unsafe_split(a, 3, 0)": (2, 1),
}

_WRITES = """
copy_(v, z)
add_(v, z, 1)
mul_(v, z)
masked_fill_(v, m, 2)
masked_scatter_(v, m, z)
index_put_(v, li, z, False)
index_put_(v, li, z, True)
index_fill_(v, 0, i, 0.5)
index_copy_(v, 0, i, z)
index_add_(v, 0, i, z, 1)
scatter_(v, 0, ii, z)
scatter_(v, 0, ii, 0.5)
scatter_add_(v, 0, ii, z)
zero_(v)
fill_(v, 0.5)
relu_(v)
sigmoid_(v)
clamp_(v, 0.5, 2)
tril_(v, 0)
triu_(v, 1)
addcmul_(v, z, z, 1)
lt_(v, z)
"""

_OTHERS = """
== chain of views -> a, s, d
e = __getitem__(chunk(t(a), 2, 0), 1); s = narrow(unsqueeze(e, 0), 1, 1, 2); w = add_(s, 0.5, 1)
d = diagonal(e, 0, 0, 1); m = mul_(d, 2)
== flatten of a part that is contiguous -> k, f
s = slice(k, 0, 1, 3, 1); f = flatten(s, 0, 1); e = __getitem__(split(f, 3, 0), 2); w = add_(e, 0.5, 1)
== a list of one -> a, c
l: "Tensor[]" = prim.ListConstruct(a); e = __getitem__(l, 0); w = add_(e, 0.5, 1); c = cat(l, 1)
== a list made between two writes -> a, c, d, u
w = neg_(a); l: "Tensor[]" = prim.ListConstruct(w, k, w); v = tril_(w, 0); u = mul_(k, 0.5); c = cat(l, 0)
x2 = add_(v, 0.5, 1); d = cat(l, 0)
== a tuple made between two writes -> e, f, g
w = neg_(a); s = select(w, 0, 0); l: "(Tensor, Tensor, Tensor)" = prim.TupleConstruct(s, w, a); v = tril_(w, 0)
e[Tensor], f[Tensor], g[Tensor] = prim.TupleUnpack(l); x2 = add_(v, 0.5, 1)
== a list of two -> a, c, f
l: "Tensor[]" = prim.ListConstruct(a, x); e[Tensor], f[Tensor] = prim.ListUnpack(l); v = select(e, 0, 1)
w = add_(v, 0.5, 1); c = cat(l, 1)
== lists of lists' elements -> a, k
l: "Tensor[]" = prim.ListConstruct(a, k); e = __getitem__(l, -1); j: "Tensor[]" = prim.ListConstruct(e)
f = __getitem__(j, 0); w = add_(f, 0.5, 1)
== a tuple -> a, k
l: "(Tensor, int, Tensor)" = prim.TupleConstruct(a, 1, k); e[Tensor], i[int], f[Tensor] = prim.TupleUnpack(l)
w = add_(e, 0.5, i); u = mul_(f, 0.5)
== views in a branch -> a, v, c
l = split(a, 3, 1); v = __getitem__(l, 1); r = prim.If(q)
with block(): w = add_(v, 0.5, 1); yield w
with block(): f = mT(v); u = mul_(f, 2); yield x
c = cat(l, 0)
== views in a loop -> a, r
r = prim.Loop(n, True, x)
with block(i=int, p=Tensor):
    e = __getitem__(unbind(narrow(a, 0, i, 1), 0), 0); w = add_(e, 0.5, 1); s = add(p, a, 1); yield True, s
== pieces that were there before the loop -> a, r, e
l = unbind(a, 0); e = __getitem__(l, 1); r = prim.Loop(n, True, x)
with block(i=int, p=Tensor): w = mul_(e, 2); f = __getitem__(l, i); s = add(p, f, 1); yield True, s
== pieces of given sizes in a loop -> a | cannot be propagated to its base
l = split(a, [2, 4], 1); r = prim.Loop(2, True, x)
with block(i=int, p=Tensor): e = __getitem__(l, i); w = mul_(e, 2); yield True, p
== flatten of columns -> k, f | may share memory with
s = slice(k, 1, 1, 3, 1); f = flatten(s, 0, 1); w = add_(f, 0.5, 1)
== expand -> a, e | cannot be propagated to its base
v = select(a, 0, 1); e = expand(v, [3, 6], False); w = fill_(e, 0.5)
== a list that changes -> a, e | may share memory with
l = split(a, 3, 1); m: "Tensor[]" = append(l, x); e = __getitem__(l, 0); w = add_(e, 0.5, 1)
== a list of one that changes -> a, e | may share memory with
l: "Tensor[]" = prim.ListConstruct(a); m: "Tensor[]" = append(l, k); e = __getitem__(l, 0); w = add_(e, 0.5, 1)
"""


def _others(table: str) -> dict[str, Program]:
    found = re.findall(r"^== (.*) -> ([\w, ]+?)(?: \| (.*))?\n((?:(?!== ).*\n)+)", table, re.MULTILINE)
    return {name: _program(body, outputs, stays) for name, outputs, stays, body in found}


PROGRAMS: dict[str, Program] = {
    **{view: _written(view) for view in _VIEWS.strip().split("\n")},
    **{name: _pieces(name.partition(" from")[0], *of) for name, of in _PIECES.items()},
    **{
        f"all of {name} in a loop": _pieces_in_a_loop(name.partition(" from")[0], count)
        for name, (count, _) in _PIECES.items()
        if "[" not in name
    },
    **_others(_OTHERS),
    **{f"layout after {write}": _observed(write) for write in _WRITES.strip().split("\n")},
    **{
        view: _written(view, "may share memory with", 3)  # whose results are views of some layouts only
        for view in ("flatten(a, 0, -1)", "reshape(a, [3, -1])", "contiguous(a, 0)")
    },
}
