"""Sizes, conversions, and arithmetic on numbers and strings."""

from __future__ import annotations

from irc.ir.polynomials import product
from irc.ir.types import DType, Shape, TensorType, Type
from irc.ops import sizes
from irc.ops.aten.call import Call, TorchFamily
from irc.ops.record import Effects

ROWS = """
    aten::size(Tensor self) -> int[] | layout=anew
    aten::{dim numel}(Tensor self) -> int | layout=anew
    aten::item(Tensor self) -> Scalar
    aten::Bool.Tensor(Tensor a) -> bool
    aten::Bool.float(float a) -> bool
    aten::Bool.int(int a) -> bool
    aten::Int.Scalar(Scalar a) -> int
    aten::Int.Tensor(Tensor a) -> int
    aten::Int.bool(bool a) -> int
    aten::Int.float(float a) -> int
    aten::Int.str(str a) -> int
    aten::Float.Scalar(Scalar a) -> float
    aten::Float.Tensor(Tensor a) -> float
    aten::Float.bool(bool a) -> float
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
    aten::storage_offset(Tensor self) -> int | layout=seen
    aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType
    aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType
    aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType
    aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType
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
    aten::divmod.float(float x, float y) -> (float, float)
    aten::divmod.float_int(float x, int y) -> (float, float)
    aten::divmod.int(int x, int y) -> (int, int)
    aten::divmod.int_float(int x, float y) -> (float, float)
    aten::{degrees radians fabs}.Scalar(Scalar a) -> Scalar
    aten::{degrees radians fabs}.float(float a) -> float
    aten::{Float degrees radians fabs}.int(int a) -> float
    aten::Float.str(str a) -> float
    aten::factorial.int(int a) -> int
    aten::frexp(float a) -> (float, int)
    aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)
    aten::modf(float a) -> (float, float)
    """

FAMILY = TorchFamily(ROWS)
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
