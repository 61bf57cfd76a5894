"""Products by the BLAS, as tables make them, have the bits that the kernel of MatMul gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from irc.ir.tensor import Array
from irc.native.blas import Matrices, call_for_product
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.threads import one_thread
from tests.effort import examples
from tests.native.guarded import fresh, placed

SIZES = st.sampled_from([1, 2, 3, 4, 5, 8, 16, 33, 64, 100])
BATCHES = st.sampled_from([(), (1,), (2,), (2, 3), (1, 4)])


@st.composite
def matrices(draw: st.DrawFn, batch: tuple[int, ...], rows: int, columns: int, dtype: str) -> Array:
    """Matrices that lie in C order, transposed, with heads behind rows, or with gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    shape = *batch, rows, columns
    match draw(st.sampled_from(["ordered", "transposed", "heads", "gaps"])):
        case "transposed":
            return rng.standard_normal((*batch, columns, rows)).astype(dtype).swapaxes(-1, -2)
        case "heads" if batch:
            return np.moveaxis(rng.standard_normal((rows, *batch, columns)).astype(dtype), 0, -2)
        case "gaps":
            return rng.standard_normal((*shape[:-1], columns + 3)).astype(dtype)[..., 1 : columns + 1]
        case _:
            return rng.standard_normal(shape).astype(dtype)


@st.composite
def operands(draw: st.DrawFn) -> tuple[Array, Array]:
    rows, depth, columns, batch = draw(SIZES), draw(SIZES), draw(SIZES), draw(BATCHES)
    other = draw(st.sampled_from([(), batch, (1,) * len(batch)]))
    dtype = draw(st.sampled_from("fd"))
    return draw(matrices(batch, rows, depth, dtype)), draw(matrices(other, depth, columns, dtype))


def lie(x: Array) -> Matrices:
    return Matrices(x.shape, tuple([stride // x.itemsize for stride in x.strides]))


@examples(300)
@given(operands())
def test_products_have_the_bits_of_the_kernel(given_: tuple[Array, Array]) -> None:
    check_product(*given_)


def check_product(a: Array, b: Array) -> None:
    found = call_for_product(lie(a), lie(b), a.dtype)
    if found is None:
        return
    wanted = one_thread().call(matrix_product, a, b)
    a, b, out = placed(a), placed(b), fresh(wanted.shape, a.dtype)
    assert found.call.run((b, a, out) if found.is_swapped else (a, b, out))
    assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "shapes", [((3, 5), (5, 7)), ((1, 9), (9, 6)), ((6, 9), (9, 1)), ((2, 3, 4), (2, 4, 5)), ((2, 33), (33, 190))]
)
@pytest.mark.parametrize("is_turned", [False, True])
def test_common_products_are_not_declined(shapes: tuple[tuple[int, ...], tuple[int, ...]], is_turned: bool) -> None:
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2) if is_turned else b
    assert call_for_product(lie(a), lie(b), a.dtype) is not None


@examples(100)
@given(SIZES, SIZES, BATCHES, st.sampled_from("fd"), st.booleans(), st.data())
def test_products_with_the_same_matrix_transposed(
    rows: int, depth: int, batch: tuple[int, ...], dtype: str, is_first: bool, data: st.DataObject
) -> None:
    """NumPy then calls another function of the BLAS, which rounds otherwise."""
    a = data.draw(matrices(batch, rows, depth, dtype))
    b = a.swapaxes(-1, -2)
    check_product(*((b, a) if is_first else (a, b)))


def test_products_in_place_of_which_numpy_makes_halves_are_not_declined() -> None:
    a = np.ones((33, 20), np.float32)
    assert call_for_product(lie(a), lie(a.T), a.dtype) is not None
