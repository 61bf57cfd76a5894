"""Products by the BLAS touch nothing but their arrays: run by `tests.native.test_faults`."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irc.native.blas import call_for_product
from tests.native.guarded import ENDS, End, guarded, guarded_empty
from tests.native.test_blas import lie


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("shapes", [((3, 5), (5, 7)), ((1, 9), (9, 6)), ((6, 9), (9, 1)), ((2, 3, 4), (4, 5))])
def test_products_stay_inside_of_their_arrays(end: End, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (guarded(np.ones(shape, np.float32), end, is_read_only=True) for shape in shapes)
    found = call_for_product(lie(a), lie(b), a.dtype)
    assert found is not None
    out = guarded_empty(np.matmul(a, b).shape, a.dtype, end)
    assert found.call.run((b, a, out) if found.is_swapped else (a, b, out))
    np.testing.assert_array_equal(out, np.full(out.shape, a.shape[-1]))
