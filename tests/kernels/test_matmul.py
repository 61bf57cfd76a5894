"""Matrix products against ONNX Runtime."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.runtime.kernels import matmul  # noqa: F401
from tests.effort import examples
from tests.kernels.helpers import assert_same, run_kernel, values


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_products_are_summed_in_float32(dtype):
    """Summing 2,000 ones in bfloat16 would stop at 256, in float16 at 2,048."""
    a, b = np.ones((2, 4000), dtype), np.ones((4000, 3), dtype)
    for op_type in ("MatMul", "Gemm"):
        assert_same(run_kernel(op_type, [a, b], {}, 13), [np.full((2, 3), 4000, dtype)])


@given(st.data())
@examples(50)
def test_einsum_property(data):
    """Any subset of letters in any order, against the sum written out over all indices."""
    sizes = {"a": 2, "b": 3, "c": 1, "d": 4}
    labels = st.permutations("abcd").flatmap(lambda p: st.integers(0, 4).map(lambda n: "".join(p[:n])))
    terms = data.draw(st.lists(labels, min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))])
    operands = [values(*(sizes[c] for c in t), seed=i) for i, t in enumerate(terms)]
    (ours,) = run_kernel("Einsum", operands, {"equation": f"{','.join(terms)}->{result}"}, 12)
    expected = np.zeros([sizes[c] for c in result])
    for index in np.ndindex(*(sizes[c] for c in used)):
        at = dict(zip(used, index, strict=True))
        product = np.prod([x[tuple(at[c] for c in t)] for t, x in zip(terms, operands, strict=True)])
        expected[tuple(at[c] for c in result)] += product
    assert_same([ours], [expected.astype(np.float32)])


BAD = {
    "inner": ("MatMul", [values(3, 4), values(3, 4)], {}, "multiplied"),
    "scalar": ("MatMul", [values(), values(3)], {}, "multiplied"),
    "scalar b": ("MatMul", [values(3), values()], {}, "multiplied"),
    "batch": ("MatMul", [values(2, 3, 4), values(3, 4, 5)], {}, "multiplied"),
    "gemm rank": ("Gemm", [values(2, 3, 4), values(4, 5)], {}, "matrices"),
    "gemm inner": ("Gemm", [values(3, 4), values(4, 5)], {"transA": 1}, "multiplied"),
    "gemm C": ("Gemm", [values(3, 4), values(4, 5), values(4)], {}, "broadcast"),
    "gemm C's rank": ("Gemm", [values(3, 4), values(4, 5), values(1, 3, 5)], {}, "broadcast"),
    "einsum sizes": ("Einsum", [values(3, 4), values(3, 4)], {"equation": "ij,jk->ik"}, "both 4 and 3"),
    "einsum letters": ("Einsum", [values(3)], {"equation": "i->j"}, "letters of the terms"),
    "einsum letter twice": ("Einsum", [values(3)], {"equation": "i->ii"}, "each once"),
    "einsum operands": ("Einsum", [values(3)], {"equation": "i,i->"}, "2 terms for 1"),
    "einsum rank": ("Einsum", [values(3)], {"equation": "ij->i"}, "axes"),
    "einsum rank 0": ("Einsum", [values(3, 4)], {"equation": "->"}, "axes"),
    "einsum ellipsis": ("Einsum", [values(2, 3), values(4, 3)], {"equation": "...i,...i->..."}, "broadcast"),
    "einsum lost ellipsis": ("Einsum", [values(2, 3)], {"equation": "...i->i"}, "if they have it"),
    "einsum syntax": ("Einsum", [values(2, 3)], {"equation": "i.j->ij"}, "not an equation"),
    "einsum size": ("Einsum", [values(1 << 11)] * 4, {"equation": "i,j,k,l->ijkl"}, "GiB"),
    "einsum implicit size": ("Einsum", [values(1 << 11)] * 4, {"equation": "i,j,k,l"}, "GiB"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_operands_are_errors(case):
    op_type, inputs, attrs, message = BAD[case]
    with pytest.raises(Error, match=message):
        run_kernel(op_type, inputs, attrs, None)
