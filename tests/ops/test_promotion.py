"""Which element type results of operands of several have."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from irc.ir import DType, TensorType, Type, types
from irc.ops.aten.call import result_type
from irc.runtime.kernels.aten.element_types import result_type as kernels_type


def test_promotion_leaves_open_what_ranks_decide():
    half, single = TensorType(DType.FLOAT16, (2,)), TensorType(DType.FLOAT)
    assert result_type([half, single]) is None  # Float if it has dimensions, else Half
    assert result_type([half, TensorType(DType.FLOAT, (2,))]) is DType.FLOAT
    assert result_type([TensorType(DType.FLOAT16), TensorType(DType.DOUBLE, ())]) is None  # Half or Double
    assert result_type([TensorType(DType.DOUBLE, (2,)), TensorType(DType.COMPLEX64, ())]) is DType.COMPLEX128
    assert result_type([TensorType(DType.UINT8, (2,)), TensorType(DType.INT8, (2,))]) is DType.INT16
    assert result_type([half, TensorType(DType.BFLOAT16, (2,))]) is DType.FLOAT


PROMOTED = "BOOL UINT8 INT8 INT16 INT32 INT64 FLOAT16 BFLOAT16 FLOAT DOUBLE COMPLEX64 COMPLEX128".split()


@pytest.mark.parametrize("count", [2, 3])
def test_types_promote_as_values_do(count: int) -> None:
    """Kernels know all of the operands, shape inference what their types say."""
    values = [np.zeros(shape, DType[name].numpy) for name in PROMOTED for shape in ((2,), ())]
    operands: list[tuple[Type, Any]] = [(TensorType(DType.from_numpy(x.dtype), x.shape), x) for x in values]
    operands += [(types.BOOL, True), (types.INT, 1), (types.FLOAT, 1.0)]
    told = 0
    for chosen in product(operands, repeat=count):
        found = result_type([type for type, _ in chosen])
        if found is not None:
            told += 1
            assert found is DType.from_numpy(kernels_type(*[value for _, value in chosen])), [str(t) for t, _ in chosen]
    assert told == len(operands) ** count
