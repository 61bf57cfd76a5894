"""``prim::`` operators with a signature; those without one (``If``, ``ListConstruct``...) have rules of their own."""

from __future__ import annotations

from irc.ir import types
from irc.ir.types import ListType, TensorType, Type
from irc.ops import sizes, tags
from irc.ops.inference import NodeTypes
from irc.ops.record import Effects, Family, Operator

_MINMAX = """
    prim::{F}(Scalar a, Scalar b) -> Scalar
    prim::{F}.int(int a, int b) -> int
    prim::{F}.float(float a, float b) -> float
    prim::{F}.int_float(int a, float b) -> float
    prim::{F}.float_int(float a, int b) -> float
    prim::{F}.self_int(int[] self) -> int
    prim::{F}.self_float(float[] self) -> float
    prim::{F}.self_bool(bool[] self) -> bool
    # The greater or lesser list itself is returned.
    prim::{F}.int_list(int[](a) l, int[](b) r) -> int[](a|b)
    prim::{F}.float_list(float[](a) l, float[](b) r) -> float[](a|b)
    prim::{F}.bool_list(bool[](a) l, bool[](b) r) -> bool[](a|b)
    """

_OTHERS = """
    prim::Print(...) -> ()
    prim::RaiseException(str msg, str? cls=None) -> ()
    prim::TimePoint() -> int
    prim::IfThenElse(bool cond, t(a) x, t(b) y) -> t(a|b)
    prim::NumToTensor.Scalar(Scalar a) -> Tensor
    prim::NumToTensor.bool(bool a) -> Tensor
    prim::EnumName(AnyEnumType enum) -> str
    prim::EnumValue.int(AnyEnumType enum) -> int
    prim::EnumValue.float(AnyEnumType enum) -> float
    prim::EnumValue.str(AnyEnumType enum) -> str
    prim::StringIndex(str string, int index) -> str
    prim::abs(Tensor x) -> Tensor
    prim::abs.Scalar(Scalar a) -> Scalar
    prim::abs.int(int a) -> int
    prim::abs.float(float a) -> float
    prim::data(Tensor(a) a) -> Tensor(a=)
    prim::device(Tensor a) -> Device
    prim::dtype(Tensor a) -> int
    prim::layout(Tensor a) -> Layout
    prim::shape(Tensor a) -> int[]
    prim::type(Device self) -> str
    prim::requires_grad(Tensor a) -> bool
    prim::is_cpu(Tensor a) -> bool
    prim::is_cuda(Tensor a) -> bool
    prim::is_mkldnn(Tensor a) -> bool
    prim::is_nested(Tensor a) -> bool
    prim::is_quantized(Tensor a) -> bool
    prim::is_sparse(Tensor a) -> bool
    prim::rangelist(int n) -> int[]
    prim::tolist(...) -> t
    prim::isinstance(t value, ...) -> bool
    prim::grad(Tensor a) -> Tensor(*)
    prim::VarConcat(...) -> Tensor
    prim::VarStack(...) -> Tensor
    prim::BroadcastSizes(...) -> int[]
    prim::ReductionSizes(int[] size, int[] red_axes, bool keepdim=False) -> int[]
    prim::AutogradZero() -> Tensor
    prim::AutogradAnyNonZero(...) -> bool
    """

FAMILY = Family("prim", tags.statements(_OTHERS))
for _name in ("min", "max"):
    FAMILY.add(tags.statements(_MINMAX.replace("{F}", _name)))
FAMILY.each("data unchecked_cast", layout=frozenset({"in-order"}))
FAMILY.each("Print RaiseException", size=sizes.written)
FAMILY.each("rangelist", size=sizes.number_range)
FAMILY.each("tolist", size=sizes.nested_list)
FAMILY.each("Print RaiseException TimePoint", effects=Effects.SIDE_EFFECT)
FAMILY.each("unchecked_cast", whole=True)


@FAMILY.shape("ListUnpack")
def unpack(c: NodeTypes) -> Type | tuple[Type, ...]:
    listed = c.contents.get(c.node.inputs[0])
    numbers = c.node.inputs[0].type == ListType(types.INT)
    for i, value in enumerate(c.node.outputs):
        c.contents.pop(value, None)
        if listed is not None and numbers and listed.size == len(c.node.outputs) and c.is_fixed(c.node.inputs[0]):
            c.contents[value] = listed[i : i + 1].reshape(())
    given = c.type(0)
    if not isinstance(given, ListType) or not isinstance(given.elem, TensorType):
        return ()
    # What lists are believed to hold is what the rules of `irc.ops.aten.views` say of lists that are only read.
    return tuple(c.element(0) if c.is_stable else TensorType() for _ in c.node.outputs)


def records() -> dict[str, Operator]:
    """All records, by kind."""
    return FAMILY.records
