"""In-place forms of operators: there are all that torch has, and they write, share and refuse as torch's do."""

import random
from typing import Any

import numpy as np
import pytest
import torch

import irc
from irc.ir.kinds import NAMES
from irc.ops import schemas
from irc.ops.signatures import kinds
from irc.runtime.kernels.registry import registered
from tests.differential import torch_calls
from tests.differential.helpers import compare, numpy_of
from tests.operators import IN_PLACE

THEIRS = {s.name for s in torch._C._jit_get_all_schemas()} - NAMES.keys()

ELSEWHERE = {"aten::as_strided_"}
"""What it makes of a tensor, NumPy's arrays cannot become."""

WRITTEN_OUT = ("conj_physical", "float_power", "floor_divide", "ldexp", "pow")

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
]


def test_there_is_a_row_and_a_kernel_wherever_torch_has_an_in_place_form() -> None:
    ours, kernels = set(kinds()), registered()
    forms = {name for name in THEIRS if name.endswith("_") and not name.endswith("__")}
    assert {name for name in forms if name[:-1] in ours and name not in ours} <= ELSEWHERE
    assert {name for name in forms if name[:-1] in kernels and name not in kernels} <= ELSEWHERE
    assert {f"aten::{name}_" for name in IN_PLACE} <= forms


def test_no_row_is_there_twice() -> None:
    for kind in kinds():
        rows = schemas(kind)
        assert len(rows) == len({(row.overload, str(row)) for row in rows}), kind


def _arrays(value: Any, dtype: torch.dtype) -> Any:
    """An argument with arrays for tensors, those of floats of another element type, and with numbers for types."""
    if isinstance(value, list):
        return [_arrays(v, dtype) for v in value]
    if isinstance(value, torch.dtype):
        return {torch.int64: 4, torch.float32: 6, torch.float64: 7}[value]
    if not isinstance(value, torch.Tensor):
        return value
    return numpy_of(value.to(dtype) if value.is_floating_point() else value).copy()


def _differ(kind: str, arguments: list[Any]) -> bool:
    try:
        compare(kind, *arguments)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("name", sorted({*IN_PLACE, *WRITTEN_OUT} - {"rrelu"}))
def test_they_write_and_refuse_as_torch_does(name: str) -> None:
    """Wherever the functional forms of both agree; on operands of one element type and of two."""
    rng = random.Random(name)
    compared = 0
    for row in schemas(f"aten::{name}_"):
        for i, (x, *others) in zip(range(60), torch_calls.calls(row, rng)):
            first, other = rng.choices(DTYPES, k=2) if i % 3 else [rng.choice(DTYPES)] * 2
            given = [_arrays(x, first), *(_arrays(a, other) for a in others)]
            agree = not _differ(f"aten::{name}", given)
            compared += agree
            assert not (agree and _differ(f"aten::{name}_", given)), given
    assert compared >= 40


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("passes", ["none", "default", "default,remove-mutation,dce", "default,in-place"])
def test_they_write_through_views(passes: str) -> None:
    def through_views(x, mask):
        row = x[0]
        row.hypot_(x[1]).erfc_().digamma_()
        x[:, 1].xlogy_(x[1, 0]).lgamma_()
        x.addr_(x[:, 0].clone(), x[1] * 2).addbmm_(x.view(1, 2, 3) + 1, torch.ones(1, 3, 3))
        mask[1:].bitwise_not_()
        return x, row, mask

    script = torch.jit.script(through_views)
    x, mask = torch.tensor([[0.5, 1.25, 2.0], [3.0, 0.25, 1.5]]), torch.tensor([True, False, True])
    (found,) = irc.compile(script, passes).run({"x": x.numpy().copy(), "mask": mask.numpy().copy()}).values()
    for mine, its in zip(found, script(x, mask), strict=True):
        np.testing.assert_allclose(mine, its.numpy(), rtol=1e-5)
