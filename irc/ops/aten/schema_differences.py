"""Where these rows differ from PyTorch's, and why.

``tests/differential`` compares every row with PyTorch's and allows only these differences.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple


class Says(Enum):
    """What a row states that PyTorch's does not."""

    SHARES = "a result may share with an argument; PyTorch calls it fresh"
    HOLDS = "a container holds what an argument does; PyTorch says nothing, as whatever is in one is unknown to it"
    WHERE = "what one container holds is followed; PyTorch takes what is stored or loaded for unknown memory"
    WRITES_LESS = "an argument is only read; PyTorch calls it written"
    TYPE = "a type, more exactly"


class Difference(NamedTuple):
    """Rows (``name.overload``, separated by spaces, with wildcards), what they state, and why."""

    rows: str
    says: tuple[Says, ...]
    why: str


_SHARES, _HOLDS, _WHERE = (Says.SHARES,), (Says.HOLDS,), (Says.WHERE,)

DIFFERENCES = (
    # -- tensors ---------------------------------------------------------
    Difference("aten::broadcast_tensors", _SHARES, "results are expanded views of the operands"),
    Difference("aten::meshgrid*", _SHARES, "results are expanded views of the operands"),
    Difference("aten::atleast_*", _SHARES, "an operand of enough dimensions is returned itself, else a view of it"),
    Difference("aten::type_as", _SHARES, "a tensor that has the type already is returned itself"),
    Difference("aten::data", _SHARES, "the tensor without its gradient, but with its memory"),
    Difference(
        "aten::dropout aten::feature_dropout aten::alpha_dropout aten::feature_alpha_dropout",
        _SHARES,
        "in evaluation, or with p = 0, the input is returned itself",
    ),
    Difference("aten::native_dropout aten::diff", _SHARES, "an empty tensor is returned itself"),
    Difference("aten::einsum", _SHARES, "of one operand it is a permutation or a diagonal, a view"),
    Difference("aten::conj_physical", _SHARES, "real numbers are their own conjugates"),
    Difference("aten::cartesian_prod", _SHARES, "of one operand it is that operand"),
    Difference(
        "aten::unsafe_*", _SHARES, "'unsafe' means that PyTorch does not track that results are views; they are"
    ),
    # -- tensors taken apart: PyTorch lets the source escape --------------
    Difference("aten::chunk", _WHERE, "results are views of the source, which nobody else gets to know"),
    Difference("aten::split aten::split.Tensor aten::split.sizes aten::split_with_sizes", _WHERE, "as for chunk"),
    Difference("aten::tensor_split.*", _WHERE, "as for chunk"),
    Difference("aten::?split.*", _WHERE, "as for chunk"),
    Difference("aten::unbind.int", _WHERE, "as for chunk"),
    # -- lists -----------------------------------------------------------
    Difference("aten::add.t", _HOLDS, "the result holds the elements of both lists"),
    Difference(
        "aten::add_.t", (Says.SHARES, Says.HOLDS), "the list itself, which then holds the elements of the other too"
    ),
    Difference("aten::extend.t", _HOLDS, "the list then holds the elements of the other too"),
    Difference("aten::mul.left_t", _HOLDS, "the result holds the elements of the list, several times"),
    Difference("aten::mul.right_", _HOLDS, "the result holds the elements of the list, several times"),
    Difference("aten::slice.t", _HOLDS, "the result holds elements of the list"),
    Difference("aten::list.t", _HOLDS, "a new list of the same elements"),
    Difference("aten::copy.*", _HOLDS, "a new container of the same elements"),
    Difference("aten::sorted.*", _HOLDS, "a new list of the same elements"),
    Difference("aten::append.t", _WHERE, "the element is stored into this list"),
    Difference("aten::insert.t", _WHERE, "the element is stored into this list"),
    Difference("aten::_set_item.*", _WHERE, "key and element are stored into this container"),
    Difference("aten::__getitem__.t aten::__getitem__.Dict_*", _WHERE, "the result is an element of this container"),
    Difference("aten::pop.*", _WHERE, "the result is an element of this container, or the default"),
    Difference("prim::m??.*_list", _SHARES, "the lesser or greater list itself is returned"),
    # -- dictionaries ----------------------------------------------------
    Difference("aten::get.*", _WHERE, "the result is an element of this dictionary, or the default"),
    Difference(
        "aten::setdefault.*", _WHERE, "key and default are stored into this dictionary; the result is an element"
    ),
    Difference("aten::keys.*", _WHERE, "a new list of this dictionary's keys"),
    Difference("aten::values.*", _WHERE, "a new list of this dictionary's elements"),
    Difference("aten::items.*", _HOLDS, "new pairs of this dictionary's keys and elements"),
    Difference("aten::popitem.*", _HOLDS, "a new pair of a key and an element of this dictionary"),
    Difference("aten::dict.Dict_*", _HOLDS, "a new dictionary of the same elements"),
    Difference("aten::dict.*", _HOLDS, "the result holds what the pairs hold"),
    Difference(
        "aten::update.*", (Says.HOLDS, Says.WRITES_LESS), "keys and elements are stored; the second dictionary is read"
    ),
    # -- types -----------------------------------------------------------
    Difference("prim::IfThenElse", (Says.TYPE,), "both branches are of the type of the result"),
    Difference("prim::tolist", (Says.TYPE,), "it has one result"),
)


@cache
def difference(name: str, overload: str) -> Difference | None:
    """What the row with that name and overload states beyond PyTorch's; None if they state the same."""
    row = f"{name}.{overload}" if overload else name
    return next((b for b in DIFFERENCES if any(fnmatchcase(row, r) for r in b.rows.split())), None)


def is_missed(name: str, overload: str) -> bool:
    """Whether PyTorch's row misses that a result may share with an argument."""
    found = difference(name, overload)
    return found is not None and Says.SHARES in found.says
