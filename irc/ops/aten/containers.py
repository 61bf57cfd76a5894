# ruff: noqa: E501 - a row is one line
"""Lists and dictionaries.

PyTorch's rows mark what is stored as ``(c -> *)`` and what is taken out
as ``(*)``; these rows name the container that it goes into and comes from. ``k`` and
``b`` name what a container's keys and elements are.
"""

from __future__ import annotations

from irc.ops import sizes
from irc.ops.aten.call import TorchFamily
from irc.ops.record import Movement

ROWS = """
    aten::append.t(t(b)[](a!) self, t(c -> b) el) -> t(b)[](a!)
    aten::extend.t(t(b)[](a!) self, t(c -> b)[] other) -> ()
    aten::insert.t(t(b)[](a!) self, int idx, t(c -> b) el) -> ()
    aten::pop.t(t(b)[](a!) self, int idx=-1) -> t(b)
    aten::reverse.t(t[](a!) self) -> ()
    aten::clear.t(t[](a!) self) -> ()
    aten::Delete.t(t[](a!) self, int idx) -> ()
    aten::__getitem__.t(t(b)[] list, int idx) -> t(b)
    aten::__getitem__.str(str s, int index) -> str
    aten::_set_item.t(t(b)[](a!) l, int idx, t(c -> b) el) -> t(b)[](a!)
    aten::list.t(t(b)[] l) -> t(b)[]
    aten::list(str t) -> str[]
    aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor | layout=like-first
    aten::copy.t(t(b)[] self) -> t(b)[]
    aten::len.Tensor(Tensor t) -> int
    aten::len.any(Any[] a) -> int
    aten::len.str(str s) -> int
    aten::len.t(t[] a) -> int
    aten::values(Tensor(a) self) -> Tensor(a) | out=none
    aten::__contains__.float_list(float[] l, float item) -> bool
    aten::__contains__.int_list(int[] l, int item) -> bool
    aten::__contains__.str_list(str[] l, str item) -> bool
    aten::dict() -> Dict(str, Tensor)
    # PyTorch has a row for each type of elements, and of keys.
    aten::remove.{int float bool str Tensor}({}[](a!) self, {} el) -> ()
    aten::count.{int float bool str Tensor}({}[] self, {} el) -> int
    aten::sorted.{int float bool str Tensor}({}(b)[] input) -> {}(b)[]
    aten::sorted.any(t(b)[] self) -> t(b)[]
    aten::__getitem__.Dict_{str int bool float complex Tensor}(Dict({}(k), t(b)) self, {} key) -> t(b)
    aten::_set_item.{str int bool float complex Tensor}(Dict({}(k), t(b))(a!) l, {}(i -> k) idx, t(c -> b) v) -> ()
    aten::get.{str int bool float complex Tensor}(Dict({}(k), t(b)) self, {} key) -> t(b)?
    aten::get.default_{str int bool float complex Tensor}(Dict({}(k), t(b)) self, {} key, t(d) default_value) -> t(b|d)
    aten::setdefault.{str int bool float complex Tensor}(Dict({}(k), t(b))(a!) self, {}(i -> k) key, t(c -> b) default_value) -> t(b)
    aten::pop.Dict_{str int bool float complex Tensor}(Dict({}(k), t(b))(a!) self, {} key) -> t(b)
    aten::pop.Dict_default_{str int bool float complex Tensor}(Dict({}(k), t(b))(a!) self, {} key, t(d) default_value) -> t(b|d)
    aten::popitem.{str int bool float complex Tensor}(Dict({}(k), t(b))(a!) self) -> (({}(k), t(b)))
    aten::keys.{str int bool float complex Tensor}(Dict({}(k), t) self) -> {}(k)[]
    aten::values.{str int bool float complex Tensor}(Dict({}, t(b)) self) -> t(b)[]
    aten::items.{str int bool float complex Tensor}(Dict({}(k), t(b)) self) -> (({}(k), t(b))[])
    aten::update.{str int bool float complex Tensor}(Dict({}(k), t(b))(a!) self, Dict({}(i -> k), t(c -> b)) to_add) -> ()
    aten::copy.Dict_{str int bool float complex Tensor}(Dict({}(k), t(b)) self) -> Dict({}(k), t(b))
    aten::dict.Dict_{str int bool float complex Tensor}(Dict({}(k), t(b)) self) -> Dict({}(k), t(b))
    aten::dict.{str int bool float complex Tensor}(({}(k), t(b))[] inputs) -> Dict({}(k), t(b))
    aten::clear.{str int bool float complex Tensor}(Dict({}, t)(a!) self) -> ()
    aten::Delete.Dict_{str int bool float complex Tensor}(Dict({}, t)(a!) self, {} key) -> ()
    aten::len.Dict_{str int bool float complex Tensor}(Dict({}, t) self) -> int
    aten::__contains__.{str int bool float complex Tensor}(Dict({}, t) dict, {} key) -> bool
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each("__getitem__", movement=Movement.GATHERED)
FAMILY.each("extend", size=sizes.concatenated)
FAMILY.each("items", size=sizes.pairs)
FAMILY.each("list", size=sizes.entries)
