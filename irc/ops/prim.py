"""``prim::`` operators with a signature; others (``If``, ``ListConstruct``...) have own rules."""

from __future__ import annotations

from irc.ir import ListType, TensorType, Type, types
from irc.ops import Effects, Family, Operator, sizes
from irc.ops.inference import NodeTypes
from irc.ops.views import View, same

ROWS = """
    prim::{min max}(Scalar a, Scalar b) -> Scalar
    prim::{min max}.{int float}({} a, {} b) -> {}
    prim::{min max}.int_float(int a, float b) -> float
    prim::{min max}.float_int(float a, int b) -> float
    prim::{min max}.self_{int float bool}({}[] self) -> {}
    # The greater or lesser list itself is returned.
    prim::{min max}.{int float bool}_list({}[](a) l, {}[](b) r) -> {}[](a|b)
    prim::Print(...) -> ()
    prim::RaiseException(str msg, str? cls=None) -> ()
    prim::TimePoint() -> int
    prim::IfThenElse(bool cond, t(a) x, t(b) y) -> t(a|b)
    prim::NumToTensor.{Scalar bool}({} a) -> Tensor
    prim::EnumName(AnyEnumType enum) -> str
    prim::EnumValue.{int float str}(AnyEnumType enum) -> {}
    prim::StringIndex(str string, int index) -> str
    prim::abs(Tensor x) -> Tensor
    prim::abs.{Scalar int float}({} a) -> {}
    prim::data(Tensor(a) a) -> Tensor(a=)
    prim::device(Tensor a) -> Device
    prim::dtype(Tensor a) -> int
    prim::layout(Tensor a) -> Layout
    prim::shape(Tensor a) -> int[]
    prim::type(Device self) -> str
    prim::{requires_grad is_cpu is_cuda is_mkldnn is_nested is_quantized is_sparse}(Tensor a) -> bool
    prim::rangelist(int n) -> int[]
    prim::tolist(...) -> t
    prim::isinstance(t value, ...) -> bool
    prim::grad(Tensor a) -> Tensor(*)
    prim::{VarConcat VarStack}(...) -> Tensor
    prim::BroadcastSizes(...) -> int[]
    prim::ReductionSizes(int[] size, int[] red_axes, bool keepdim=False) -> int[]
    prim::AutogradZero() -> Tensor
    prim::AutogradAnyNonZero(...) -> bool
    """

FAMILY = Family("prim", ROWS)
FAMILY.each("data unchecked_cast", layout=frozenset({"in-order"}))
FAMILY.each("Print RaiseException", size=sizes.written)
FAMILY.each("rangelist", size=sizes.number_range)
FAMILY.each("tolist", size=sizes.nested_list)
FAMILY.each("Print RaiseException TimePoint", effects=Effects.SIDE_EFFECT)
FAMILY.each("unchecked_cast", covers_operand=True)
FAMILY.each("data", view=View(same, turns=True))


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
    return (c.element(0),) * len(c.node.outputs)


def records() -> dict[str, Operator]:
    """All records, by kind."""
    return FAMILY.records
