"""Programs that write into results of views: what remove-mutation makes functional, and what it must leave alone.

All take ``%x``, a matrix of floats with 4 rows and 6 columns that may lie in memory in any way, and a bool and an int
for branches and loops. ``%a`` lies as ``%x`` does, ``%k`` is contiguous.
"""

from typing import NamedTuple

import numpy as np

ELEMENTS = np.arange(-5, 19, dtype=np.float32).reshape(4, 6)

LAYOUTS = {
    "contiguous": ELEMENTS.copy(),
    "transposed": np.asfortranarray(ELEMENTS),
    "with gaps": np.repeat(np.repeat(ELEMENTS, 2, 1), 3, 0)[::3, ::2],
    "transposed with gaps": np.repeat(ELEMENTS.T, 2, 1)[:, ::2].T,
}
"""Matrices of the same elements that lie in memory in all ways."""

_INTS = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "six": 6, "last": -1, "minus2": -2}

HEAD = "".join(
    [
        "graph(%x : Tensor, %q : bool, %n : int):\n",
        *[f"  %{name} : int = prim::Constant[value={value}]()\n" for name, value in _INTS.items()],
        "  %half : float = prim::Constant[value=0.5]()\n",
        "  %true : bool = prim::Constant[value=1]()\n",
        "  %false : bool = prim::Constant[value=0]()\n",
        "  %none : NoneType = prim::Constant()\n",
        "  %a : Tensor = aten::add(%x, %one, %one)\n",
        "  %k : Tensor = aten::clone(%a, %zero)\n",
    ]
)


class Program(NamedTuple):
    """``body`` follows `HEAD`; ``stays``: why writes remain, if some do, and ``writes``: how many."""

    body: str
    stays: str = ""
    writes: int = 1

    @property
    def text(self) -> str:
        return HEAD + "".join(f"  {line}\n" for line in self.body.strip().splitlines())


def _ints(*values: str) -> str:
    return f"prim::ListConstruct({', '.join(f'%{v}' for v in values)})"


def _written(view: str, whole: str = "%a", lists: dict[str, str] | None = None) -> str:
    """The view is written, then the whole, then the view again; all are returned, with what was seen in between."""
    given = "".join(f"%{name} : int[] = {made}\n" for name, made in (lists or {}).items())
    return f"""{given}%v : Tensor = {view}
%w : Tensor = aten::add_(%v, %half, %one)
%s : Tensor = aten::sum({whole}, %none)
%m : Tensor = aten::mul_({whole}, %two)
%r : Tensor = aten::relu_(%v)
return ({whole}, %v, %w, %s)"""


def _pieces(view: str, count: int, which: int, lists: dict[str, str] | None = None, whole: str = "%a") -> str:
    """One piece is written by its number, two by unpacking all; the whole, and the pieces again, are returned."""
    given = "".join(f"%{name} : int[] = {made}\n" for name, made in (lists or {}).items())
    parts = ", ".join(f"%p{i} : Tensor" for i in range(count))
    return f"""{given}%l : Tensor[] = {view}
%i : int = prim::Constant[value={which}]()
%e : Tensor = aten::__getitem__(%l, %i)
%w : Tensor = aten::add_(%e, %half, %one)
{parts} = prim::ListUnpack(%l)
%u : Tensor = aten::mul_(%p0, %two)
%t : Tensor = aten::fill_(%p{count - 1}, %half)
%c : Tensor = aten::neg(%e)
return ({whole}, %e, %p0, %p{count - 1}, %c)"""


_VIEWS: dict[str, str] = {
    "select": "aten::select(%a, %zero, %one)",
    "select of the last": "aten::select(%a, %one, %last)",
    "slice": "aten::slice(%a, %one, %one, %none, %two)",
    "slice of one position": "aten::slice(%a, %zero, %one, %two, %one)",
    "narrow": "aten::narrow(%a, %one, %two, %three)",
    "narrow from the end": "aten::narrow(%a, %one, %minus2, %two)",
    "narrow from a place that is data": "aten::narrow(%a, %zero, %n, %one)",
    "t": "aten::t(%a)",
    "transpose": "aten::transpose(%a, %zero, %last)",
    "numpy_T": "aten::numpy_T(%a)",
    "mT": "aten::mT(%a)",
    "mH": "aten::mH(%a)",
    "matrix_H": "aten::matrix_H(%a)",
    "movedim": "aten::movedim(%a, %zero, %one)",
    "unsqueeze": "aten::unsqueeze(%a, %one)",
    "squeeze": "aten::squeeze(%a)",
    "squeeze of a dimension": "aten::squeeze(%a, %zero)",
    "diagonal": "aten::diagonal(%a, %one, %zero, %one)",
    "linalg_diagonal": "aten::linalg_diagonal(%a, %one, %minus2, %last)",
    "unfold": "aten::unfold(%a, %one, %two, %three)",
    "unfold of the last": "aten::unfold(%a, %last, %two, %two)",
    "unfold of rows": "aten::unfold(%a, %zero, %one, %two)",
    "detach": "aten::detach(%a)",
    "alias": "aten::alias(%a)",
    "view_as": "aten::view_as(%a, %x)",
    "atleast_3d": "aten::atleast_3d(%a)",
    "positive": "aten::positive(%a)",
}

_WITH_LISTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "permute": ("aten::permute(%a, %l)", "%a", {"l": _ints("one", "zero")}),
    "movedim of several": (
        "aten::movedim(%a, %l, %j)",
        "%a",
        {"l": _ints("zero", "one"), "j": _ints("one", "zero")},
    ),
    "view": ("aten::view(%k, %l)", "%k", {"l": _ints("three", "last")}),
    "reshape": ("aten::reshape(%k, %l)", "%k", {"l": _ints("two", "three", "four")}),
    "reshape_as": ("aten::reshape_as(%k, %k)", "%k", {}),
    "flatten": ("aten::flatten(%k, %zero, %last)", "%k", {}),
    "ravel": ("aten::ravel(%k)", "%k", {}),
    "contiguous": ("aten::contiguous(%k, %zero)", "%k", {}),
    "unflatten": ("aten::unflatten(%a, %one, %l)", "%a", {"l": _ints("two", "three")}),
    "as_strided": (
        "aten::as_strided(%k, %l, %j, %three)",
        "%k",
        {"l": _ints("two", "three"), "j": _ints("six", "two")},
    ),
    "as_strided of any layout": (
        "aten::as_strided(%a, %l, %j, %none)",
        "%a",
        {"l": _ints("two", "three"), "j": _ints("six", "two")},
    ),
}

_PIECES: dict[str, tuple[str, int, int, dict[str, str]]] = {
    "split": ("aten::split(%a, %four, %one)", 2, 1, {}),
    "split from the end": ("aten::split(%a, %four, %one)", 2, -2, {}),
    "split_with_sizes": ("aten::split_with_sizes(%a, %j, %one)", 3, 1, {"j": _ints("one", "three", "two")}),
    "split by sizes from the end": ("aten::split(%a, %j, %one)", 2, -1, {"j": _ints("four", "two")}),
    "chunk": ("aten::chunk(%a, %four, %one)", 3, 2, {}),
    "chunk from the end": ("aten::chunk(%a, %two, %zero)", 2, -1, {}),
    "unbind": ("aten::unbind(%a, %zero)", 4, 2, {}),
    "unbind from the end": ("aten::unbind(%a, %one)", 6, -2, {}),
    "tensor_split": ("aten::tensor_split(%a, %four, %one)", 4, 1, {}),
    "tensor_split from the end": ("aten::tensor_split(%a, %four, %one)", 4, -1, {}),
    "tensor_split at places": ("aten::tensor_split(%a, %j, %one)", 3, 1, {"j": _ints("one", "minus2")}),
    "tensor_split at places, the last": ("aten::tensor_split(%a, %j, %zero)", 3, -1, {"j": _ints("one", "two")}),
    "vsplit": ("aten::vsplit(%a, %two)", 2, 0, {}),
    "unsafe_chunk": ("aten::unsafe_chunk(%a, %three, %one)", 3, 1, {}),
    "unsafe_split": ("aten::unsafe_split(%a, %three, %zero)", 2, 1, {}),
}

_WRITES: dict[str, str] = {
    "copy_": "aten::copy_(%v, %z)",
    "add_": "aten::add_(%v, %z, %one)",
    "mul_": "aten::mul_(%v, %z)",
    "masked_fill_": "aten::masked_fill_(%v, %m, %two)",
    "masked_scatter_": "aten::masked_scatter_(%v, %m, %z)",
    "index_put_": "aten::index_put_(%v, %li, %z, %false)",
    "index_put_ that adds up": "aten::index_put_(%v, %li, %z, %true)",
    "index_fill_": "aten::index_fill_(%v, %zero, %i, %half)",
    "index_copy_": "aten::index_copy_(%v, %zero, %i, %z)",
    "index_add_": "aten::index_add_(%v, %zero, %i, %z, %one)",
    "scatter_": "aten::scatter_(%v, %zero, %ii, %z)",
    "scatter_ of a number": "aten::scatter_(%v, %zero, %ii, %half)",
    "scatter_add_": "aten::scatter_add_(%v, %zero, %ii, %z)",
    "zero_": "aten::zero_(%v)",
    "fill_": "aten::fill_(%v, %half)",
    "relu_": "aten::relu_(%v)",
    "sigmoid_": "aten::sigmoid_(%v)",
    "clamp_": "aten::clamp_(%v, %half, %two)",
    "tril_": "aten::tril_(%v, %zero)",
    "triu_": "aten::triu_(%v, %one)",
    "addcmul_": "aten::addcmul_(%v, %z, %z, %one)",
    "lt_": "aten::lt_(%v, %z)",
}


def _observed(write: str) -> str:
    """What follows a write sees how the written tensor, and what is computed from it, lie in memory."""
    return f"""%v : Tensor = aten::t(%a)
%z : Tensor = aten::mul(%v, %half)
%m : Tensor = aten::gt(%v, %two)
%i : Tensor = aten::arange(%six, %none, %none, %none, %none)
%ii : Tensor = aten::zeros_like(%v, %four, %none, %none, %none, %none)
%li : Tensor?[] = prim::ListConstruct(%i)
%w : Tensor = {write}
%d : Tensor = aten::mul(%v, %two)
%st : int[] = aten::stride(%d)
%co : bool = aten::is_contiguous(%v, %zero)
%ca : bool = aten::is_contiguous(%a, %zero)
%sz : int[] = prim::ListConstruct(%six)
%sd : int[] = prim::ListConstruct(%two)
%ad : Tensor = aten::as_strided(%v, %sz, %sd, %one)
%cl : Tensor = aten::clone(%ad, %none)
%fl : Tensor = aten::flatten(%d, %zero, %last)
%wf : Tensor = aten::add_(%fl, %one, %one)
return (%a, %v, %d, %fl, %st, %co, %ca, %cl)"""


PROGRAMS: dict[str, Program] = {
    **{name: Program(_written(view)) for name, view in _VIEWS.items()},
    **{name: Program(_written(view, whole, lists)) for name, (view, whole, lists) in _WITH_LISTS.items()},
    **{name: Program(_pieces(view, count, which, lists)) for name, (view, count, which, lists) in _PIECES.items()},
    "chain of views": Program("""
%t : Tensor = aten::t(%a)
%l : Tensor[] = aten::chunk(%t, %two, %zero)
%e : Tensor = aten::__getitem__(%l, %one)
%u : Tensor = aten::unsqueeze(%e, %zero)
%s : Tensor = aten::narrow(%u, %one, %one, %two)
%w : Tensor = aten::add_(%s, %half, %one)
%d : Tensor = aten::diagonal(%e, %zero, %zero, %one)
%m : Tensor = aten::mul_(%d, %two)
return (%a, %s, %d)"""),
    "flatten of a part that is contiguous": Program("""
%s : Tensor = aten::slice(%k, %zero, %one, %three, %one)
%f : Tensor = aten::flatten(%s, %zero, %one)
%l : Tensor[] = aten::split(%f, %three, %zero)
%e : Tensor = aten::__getitem__(%l, %two)
%w : Tensor = aten::add_(%e, %half, %one)
return (%k, %f)"""),
    "a list of one": Program("""
%l : Tensor[] = prim::ListConstruct(%a)
%e : Tensor = aten::__getitem__(%l, %zero)
%w : Tensor = aten::add_(%e, %half, %one)
%c : Tensor = aten::cat(%l, %one)
return (%a, %c)"""),
    "a list made between two writes": Program("""
%w : Tensor = aten::neg_(%a)
%l : Tensor[] = prim::ListConstruct(%w, %k, %w)
%v : Tensor = aten::tril_(%w, %zero)
%u : Tensor = aten::mul_(%k, %half)
%c : Tensor = aten::cat(%l, %zero)
%x2 : Tensor = aten::add_(%v, %half, %one)
%d : Tensor = aten::cat(%l, %zero)
return (%a, %c, %d, %u)"""),
    "a tuple made between two writes": Program("""
%w : Tensor = aten::neg_(%a)
%s : Tensor = aten::select(%w, %zero, %zero)
%l : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%s, %w, %a)
%v : Tensor = aten::tril_(%w, %zero)
%e : Tensor, %f : Tensor, %g : Tensor = prim::TupleUnpack(%l)
%x2 : Tensor = aten::add_(%v, %half, %one)
return (%e, %f, %g)"""),
    "a list of two": Program("""
%l : Tensor[] = prim::ListConstruct(%a, %x)
%e : Tensor, %f : Tensor = prim::ListUnpack(%l)
%v : Tensor = aten::select(%e, %zero, %one)
%w : Tensor = aten::add_(%v, %half, %one)
%c : Tensor = aten::cat(%l, %one)
return (%a, %c, %f)"""),
    "lists of lists' elements": Program("""
%l : Tensor[] = prim::ListConstruct(%a, %k)
%e : Tensor = aten::__getitem__(%l, %last)
%j : Tensor[] = prim::ListConstruct(%e)
%f : Tensor = aten::__getitem__(%j, %zero)
%w : Tensor = aten::add_(%f, %half, %one)
return (%a, %k)"""),
    "a tuple": Program("""
%l : (Tensor, int, Tensor) = prim::TupleConstruct(%a, %one, %k)
%e : Tensor, %i : int, %f : Tensor = prim::TupleUnpack(%l)
%w : Tensor = aten::add_(%e, %half, %i)
%u : Tensor = aten::mul_(%f, %half)
return (%a, %k)"""),
    "views in a branch": Program("""
%l : Tensor[] = aten::split(%a, %three, %one)
%v : Tensor = aten::__getitem__(%l, %one)
%r : Tensor = prim::If(%q)
  block0():
    %w : Tensor = aten::add_(%v, %half, %one)
    -> (%w)
  block1():
    %f : Tensor = aten::mT(%v)
    %u : Tensor = aten::mul_(%f, %two)
    -> (%x)
%c : Tensor = aten::cat(%l, %zero)
return (%a, %v, %c)"""),
    "views in a loop": Program("""
%r : Tensor = prim::Loop(%n, %true, %x)
  block0(%i : int, %p : Tensor):
    %v : Tensor = aten::narrow(%a, %zero, %i, %one)
    %l : Tensor[] = aten::unbind(%v, %zero)
    %e : Tensor = aten::__getitem__(%l, %zero)
    %w : Tensor = aten::add_(%e, %half, %one)
    %s : Tensor = aten::add(%p, %a, %one)
    -> (%true, %s)
return (%a, %r)"""),
    "pieces that were there before the loop": Program("""
%l : Tensor[] = aten::unbind(%a, %zero)
%e : Tensor = aten::__getitem__(%l, %one)
%r : Tensor = prim::Loop(%n, %true, %x)
  block0(%i : int, %p : Tensor):
    %w : Tensor = aten::mul_(%e, %two)
    %f : Tensor = aten::__getitem__(%l, %i)
    %s : Tensor = aten::add(%p, %f, %one)
    -> (%true, %s)
return (%a, %r, %e)"""),
    **{
        f"all of {name} in a loop": Program(f"""
{"".join(f"%{a} : int[] = {made}" for a, made in lists.items())}
%l : Tensor[] = {view}
%c : int = prim::Constant[value={count}]()
%r : Tensor = prim::Loop(%c, %true, %x)
  block0(%i : int, %p : Tensor):
    %e : Tensor = aten::__getitem__(%l, %i)
    %w : Tensor = aten::mul_(%e, %two)
    %j : int = aten::neg(%i)
    %k2 : int = aten::sub(%j, %one)
    %f : Tensor = aten::__getitem__(%l, %k2)
    %z : Tensor = aten::add_(%f, %half, %one)
    %s : Tensor = aten::add(%p, %a, %one)
    -> (%true, %s)
return (%a, %r)""")
        for name, (view, count, _, lists) in _PIECES.items()
        if not lists
    },
    "pieces of given sizes in a loop": Program(
        """
%j : int[] = prim::ListConstruct(%two, %four)
%l : Tensor[] = aten::split(%a, %j, %one)
%r : Tensor = prim::Loop(%two, %true, %x)
  block0(%i : int, %p : Tensor):
    %e : Tensor = aten::__getitem__(%l, %i)
    %w : Tensor = aten::mul_(%e, %two)
    -> (%true, %p)
return (%a)""",
        "cannot be propagated to its base",
    ),
    **{f"layout after {name}": Program(_observed(write), "may share") for name, write in _WRITES.items()},
    # -- what stays ------------------------------------------------------
    "flatten of any layout": Program(_written("aten::flatten(%a, %zero, %last)"), "may share memory with", 3),
    "reshape of any layout": Program(
        _written("aten::reshape(%a, %l)", "%a", {"l": _ints("three", "last")}), "may share memory with", 3
    ),
    "contiguous of any layout": Program(_written("aten::contiguous(%a, %zero)"), "may share memory with", 3),
    "flatten of columns": Program(
        """
%s : Tensor = aten::slice(%k, %one, %one, %three, %one)
%f : Tensor = aten::flatten(%s, %zero, %one)
%w : Tensor = aten::add_(%f, %half, %one)
return (%k, %f)""",
        "may share memory with",
    ),
    "expand": Program(
        """
%v : Tensor = aten::select(%a, %zero, %one)
%l : int[] = prim::ListConstruct(%three, %six)
%e : Tensor = aten::expand(%v, %l, %false)
%w : Tensor = aten::fill_(%e, %half)
return (%a, %e)""",
        "cannot be propagated to its base",
    ),
    "a list that changes": Program(
        """
%l : Tensor[] = aten::split(%a, %three, %one)
%m : Tensor[] = aten::append(%l, %x)
%e : Tensor = aten::__getitem__(%l, %zero)
%w : Tensor = aten::add_(%e, %half, %one)
return (%a, %e)""",
        "may share memory with",
    ),
    "a list of one that changes": Program(
        """
%l : Tensor[] = prim::ListConstruct(%a)
%m : Tensor[] = aten::append(%l, %k)
%e : Tensor = aten::__getitem__(%l, %zero)
%w : Tensor = aten::add_(%e, %half, %one)
return (%a, %e)""",
        "may share memory with",
    ),
}
