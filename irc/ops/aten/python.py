# ruff: noqa: E501 - a row is one line
"""Python's values: sizes, conversions, arithmetic on numbers and strings, lists and dictionaries.

PyTorch's rows mark what is stored as ``(c -> *)`` and what is taken out
as ``(*)``; these rows name the container that it goes into and comes from. ``k`` and
``b`` name what a container's keys and elements are.
"""

from __future__ import annotations

from irc.ir.polynomials import product
from irc.ir.types import DType, Shape, TensorType, Type
from irc.ops import Effects, Movement, sizes
from irc.ops.aten.call import Call, TorchFamily

ROWS = """
    aten::size(Tensor self) -> int[] | layout=anew
    aten::{dim numel}(Tensor self) -> int | layout=anew
    aten::item(Tensor self) -> Scalar
    aten::Bool.{Tensor float int}({} a) -> bool
    aten::Int.{Scalar Tensor bool float str}({} a) -> int
    aten::Float.{Scalar Tensor bool str}({} a) -> float
    aten::FloatImplicit(Tensor a) -> float
    aten::IntImplicit(Tensor a) -> int
    aten::ScalarImplicit(Tensor a) -> Scalar
    aten::{__is__ __isnot__}(t1 self, t2 obj) -> bool
    aten::__not__(bool self) -> bool
    aten::{format percentFormat}(str self, ...) -> str
    aten::str(t elem) -> str
    aten::warn(str message, int stacklevel=2) -> ()
    aten::{is_floating_point is_complex is_nonzero}(Tensor self) -> bool
    aten::floordiv(Scalar a, Scalar b) -> Scalar
    aten::floordiv.float(float a, float b) -> float
    aten::floordiv.float_int(float a, int b) -> float
    aten::{floordiv __round_to_zero_floordiv}.int(int a, int b) -> int
    aten::floordiv.int_float(int a, float b) -> float
    aten::__range_length(int lo, int hi, int step) -> int
    aten::__derive_index(int index, int start, int step) -> int
    aten::ord(str string) -> int
    aten::{chr hex bin oct}(int i) -> str
    aten::_size_if_not_equal(int[] self_size, int[] other_size) -> int[]?
    aten::stride(Tensor self) -> int[] | layout=seen
    aten::{size stride}.int(Tensor self, int dim) -> int
    aten::{element_size get_device}(Tensor self) -> int
    aten::is_contiguous(Tensor self) -> bool | layout=seen
    aten::{is_grad_enabled is_autocast_enabled}() -> bool
    aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool
    aten::storage_offset(Tensor self) -> int | layout=seen+storage
    aten::result_type.{Scalar Tensor}(Tensor tensor, {} other) -> ScalarType
    aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType
    aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType
    aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType
    aten::can_cast(ScalarType from_, ScalarType to) -> bool
    aten::device(str a) -> Device
    aten::device.with_index(str type, int index) -> Device
    aten::{lower upper capitalize swapcase title}(str self) -> str
    aten::join(str self, str[] values) -> str
    aten::{startswith endswith}(str self, str substr, int start=0, int end=-1) -> bool
    aten::Complex.Scalar(Scalar a) -> complex
    aten::{isalnum isalpha isdecimal isdigit islower isnumeric isprintable isspace istitle isupper}(str self) -> bool
    aten::{find rfind rindex}(str self, str substr, int start=0, int end=-1) -> int
    aten::{center ljust rjust}(str self, int width, str fillchar=" ") -> str
    aten::splitlines(str self, bool keepends=False) -> str[]
    aten::rsplit(str self, str separator=" ", int max=-1) -> str[]
    aten::{strip lstrip rstrip}(str self, str chars=" \\n\\t\\f\\v") -> str
    aten::zfill(str self, int width) -> str
    aten::replace(str self, str old, str new, int max=-1) -> str
    aten::{partition rpartition}(str self, str separator) -> (str, str, str)
    aten::divmod.{float int}({} x, {} y) -> ({}, {})
    aten::divmod.float_int(float x, int y) -> (float, float)
    aten::divmod.int_float(int x, float y) -> (float, float)
    aten::{degrees radians fabs}.{Scalar float}({} a) -> {}
    aten::{Float degrees radians fabs}.int(int a) -> float
    aten::factorial.int(int a) -> int
    aten::frexp(float a) -> (float, int)
    aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)
    aten::modf(float a) -> (float, float)
    """

CONTAINERS = """
    aten::append.t(t(b)[](a!) self, t(c -> b) el) -> t(b)[](a!)
    aten::extend.t(t(b)[](a!) self, t(c -> b)[] other) -> ()
    aten::insert.t(t(b)[](a!) self, int idx, t(c -> b) el) -> ()
    aten::pop.t(t(b)[](a!) self, int idx=-1) -> t(b)
    aten::{reverse clear}.t(t[](a!) self) -> ()
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
    aten::__contains__.{float int str}_list({}[] l, {} item) -> bool
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

FAMILY = TorchFamily(ROWS + CONTAINERS)
FAMILY.each("dim numel size", contents_from="shapes")
FAMILY.each("__getitem__", movement=Movement.GATHERED)
FAMILY.each("extend", size=sizes.concatenated)
FAMILY.each("items", size=sizes.pairs)
FAMILY.each("list", size=sizes.entries)
FAMILY.each("center ljust rjust zfill", size=sizes.padded)
FAMILY.each("format percentFormat str", size=sizes.written)
FAMILY.each("join", size=sizes.joined)
FAMILY.each("replace", size=sizes.replaced)
FAMILY.each("rsplit", size=sizes.split)
FAMILY.each("splitlines", size=sizes.split_lines)
FAMILY.each("warn", effects=Effects.SIDE_EFFECT)


@FAMILY.shape("size")
def size(c: Call) -> tuple[Type, ...]:
    shape, out = c.tensor(0).shape, c.node.outputs[0]
    if shape is not None and c.schema.overload == "int":
        at = c.axis(c.arg("dim"), len(shape))
        if at is not None and shape and shape[at] is not None:
            c.tell(out, shape[at])
    elif shape is not None and c.schema.overload == "":
        c.tell(out, list(shape))
    return ()


@FAMILY.shape("dim")
def rank(c: Call) -> tuple[Type, ...]:
    shape = c.tensor(0).shape
    if shape is not None:
        c.tell(c.node.outputs[0], len(shape))
    return ()


@FAMILY.shape("numel")
def numel(c: Call) -> tuple[Type, ...]:
    shape: Shape | None = c.tensor(0).shape
    if shape is not None and product(shape) is not None:
        c.tell(c.node.outputs[0], product(shape))
    return ()


@FAMILY.shape("frexp")
def frexp(c: Call) -> tuple[Type, ...]:
    x = c.tensor(0)
    return () if c.is_number() else (x, TensorType(DType.INT32, x.shape))
