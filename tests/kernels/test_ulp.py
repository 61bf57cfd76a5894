"""Pointwise kernels are as exact as the table in benchmarks/goldens says, on numbers that it was not measured with."""

import numpy as np
import pytest

from benchmarks.goldens import ulp
from benchmarks.goldens.pointwise import OPERATORS, Operator
from tests.operators import POINTWISE, TORCH_POINTWISE

SIZE = 3000
OTHER_NUMBERS = 1.5
"""How much larger the error may be where other numbers are tried, or other instructions compute it."""

TABLE = ulp.read()
EXHAUSTIVE = ("onnx::Exp", "onnx::Tanh", "onnx::Sigmoid", "onnx::Gelu", "aten::silu")
WITHOUT_ERRORS = frozenset(
    "onnx::And onnx::BitShift onnx::BitwiseAnd onnx::BitwiseNot onnx::BitwiseOr onnx::BitwiseXor onnx::Cast onnx::Clip "
    "onnx::Not onnx::Or onnx::Xor aten::__and__ aten::__lshift__ aten::__or__ aten::__rshift__ aten::__xor__ "
    "aten::bitwise_and aten::bitwise_left_shift aten::bitwise_not aten::bitwise_or aten::bitwise_right_shift "
    "aten::bitwise_xor aten::complex aten::float_power aten::floor_divide aten::gcd aten::lcm aten::ldexp "
    "aten::nextafter aten::polar".split()
)
"""Pointwise operators that are not in the table: of integers and bools, complex, or whose result is another operator's,
converted."""


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_errors_are_within_the_table(operator: Operator) -> None:
    measured = [element for element in ulp.DTYPES if (operator.name, element) in TABLE]
    assert len(measured) >= 3
    for element in measured:
        _check(operator, element, SIZE)


@pytest.mark.parametrize("operator", [o for o in OPERATORS if o.kind in EXHAUSTIVE], ids=lambda operator: operator.name)
def test_all_numbers_of_16_bits(operator: Operator) -> None:
    for element in ("Half", "BFloat16"):
        _check(operator, element, ulp.SIZE)


def _check(operator: Operator, element: str, size: int) -> None:
    if element == "Double" and not ulp.WIDE:
        return
    most, wrong_nans = TABLE[operator.name, element]
    found = ulp.measure(operator, element, size, seed=1)
    where = f"{operator.name} of {element} at {found.operands}"
    assert found.ulp <= (most * OTHER_NUMBERS if most > 0.51 else 0.51 if most else 0), where
    assert wrong_nans or not found.wrong_nans, where


def test_every_pointwise_operator_is_in_the_table() -> None:
    assert {operator.kind for operator in OPERATORS} == (POINTWISE | TORCH_POINTWISE) - WITHOUT_ERRORS
    assert {name for name, _ in TABLE} == {operator.name for operator in OPERATORS}
    assert len({operator.name for operator in OPERATORS}) == len(OPERATORS)


def test_a_wrong_kernel_is_seen() -> None:
    """The measurement itself: of a reference that is off, of NaN, and of results beyond the largest number."""
    exact = next(o for o in OPERATORS if o.kind == "onnx::Neg")
    assert ulp.measure(exact, "Float", SIZE).ulp == 0
    off = Operator("onnx::Neg", lambda x: -x * (1 + np.longdouble(2) ** -23))
    assert 1.9 < ulp.measure(off, "Float", SIZE).ulp <= 2
    assert ulp.measure(Operator("onnx::Neg", lambda x: x * np.nan), "Half").wrong_nans > 60_000
    assert ulp.measure(Operator("onnx::Neg", lambda x: np.where(abs(x) > 1, -x * np.inf, -x)), "Float").ulp > 1e6
    assert ulp.measure(Operator("onnx::IsNaN", np.isinf, predicate=True), "Float", SIZE).ulp == np.inf
