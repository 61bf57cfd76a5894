"""Lists and dictionaries.

PyTorch's rows mark what is stored as ``(c -> *)`` and what is taken out
as ``(*)``; these rows name the container that it goes into and comes from. ``k`` and
``b`` name what a container's keys and elements are.
"""

from __future__ import annotations

from irc.ops import sizes
from irc.ops.aten.call import TorchFamily
from irc.ops.record import Movement

_LISTS = """
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
    """

# Rows that PyTorch has once for each type of element.
_BY_ELEMENT = """
    aten::remove.{E}({E}[](a!) self, {E} el) -> ()
    aten::count.{E}({E}[] self, {E} el) -> int
    aten::sorted.{E}({E}(b)[] input) -> {E}(b)[]
    """

_FURTHER = """
    aten::sorted.any(t(b)[] self) -> t(b)[]
    """

_DICTS = """
    aten::__getitem__.Dict_{K}(Dict({K}(k), t(b)) self, {K} key) -> t(b)
    aten::_set_item.{K}(Dict({K}(k), t(b))(a!) l, {K}(i -> k) idx, t(c -> b) v) -> ()
    aten::get.{K}(Dict({K}(k), t(b)) self, {K} key) -> t(b)?
    aten::get.default_{K}(Dict({K}(k), t(b)) self, {K} key, t(d) default_value) -> t(b|d)
    aten::setdefault.{K}(Dict({K}(k), t(b))(a!) self, {K}(i -> k) key, t(c -> b) default_value) -> t(b)
    aten::pop.Dict_{K}(Dict({K}(k), t(b))(a!) self, {K} key) -> t(b)
    aten::pop.Dict_default_{K}(Dict({K}(k), t(b))(a!) self, {K} key, t(d) default_value) -> t(b|d)
    aten::popitem.{K}(Dict({K}(k), t(b))(a!) self) -> (({K}(k), t(b)))
    aten::keys.{K}(Dict({K}(k), t) self) -> {K}(k)[]
    aten::values.{K}(Dict({K}, t(b)) self) -> t(b)[]
    aten::items.{K}(Dict({K}(k), t(b)) self) -> (({K}(k), t(b))[])
    aten::update.{K}(Dict({K}(k), t(b))(a!) self, Dict({K}(i -> k), t(c -> b)) to_add) -> ()
    aten::copy.Dict_{K}(Dict({K}(k), t(b)) self) -> Dict({K}(k), t(b))
    aten::dict.Dict_{K}(Dict({K}(k), t(b)) self) -> Dict({K}(k), t(b))
    aten::dict.{K}(({K}(k), t(b))[] inputs) -> Dict({K}(k), t(b))
    aten::clear.{K}(Dict({K}, t)(a!) self) -> ()
    aten::Delete.Dict_{K}(Dict({K}, t)(a!) self, {K} key) -> ()
    aten::len.Dict_{K}(Dict({K}, t) self) -> int
    aten::__contains__.{K}(Dict({K}, t) dict, {K} key) -> bool
    """

_ELEMENTS = ("int", "float", "bool", "str", "Tensor")
_KEYS = ("str", "int", "bool", "float", "complex", "Tensor")

ROWS = (
    _LISTS
    + "".join(_BY_ELEMENT.replace("{E}", element) for element in _ELEMENTS)
    + _FURTHER
    + "".join(_DICTS.replace("{K}", key) for key in _KEYS)
)

FAMILY = TorchFamily(ROWS)
FAMILY.each("__getitem__", movement=Movement.GATHERED)
FAMILY.each("extend", size=sizes.concatenated)
FAMILY.each("items", size=sizes.pairs)
FAMILY.each("list", size=sizes.entries)
