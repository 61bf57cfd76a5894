"""Groups that compute attention, and what they give operator by operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.runtime.execution import Counters, Run, Watch
from irc.runtime.fused import attention, cutting
from irc.runtime.memory import memory_plan
from irc.runtime.plan import Plan, lower
from tests.runtime.helpers import graph_of

Array = np.ndarray[Any, Any]


def make_blocks_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have scores of more than 512 bytes cut."""
    monkeypatch.setattr(cutting, "TILE_BYTES", 512)
    monkeypatch.setattr(memory_plan, "TILE_BYTES", 512)
    monkeypatch.setattr(cutting, "SHARED_TILE_BYTES", 1024)
    monkeypatch.setattr(attention, "ROWS", 1)


def _typed(text: str) -> str:
    """``text`` with a type for each result that has none."""
    return re.sub(r"(%\w+) =", r"\1 : Tensor =", text)


def group(text: str, parameters: str = "q k v", constants: str = "") -> Plan:
    """A group of the operators in ``text``, between the products ``%s`` and ``%y``, which are of ``%q``, ``%k``, and
    of the last result but one and ``%v``.
    """
    typed = ", ".join(f"%{name} : Tensor" for name in parameters.split())
    names = typed.replace(" : Tensor", "")
    members = _typed(text)
    return lower(
        graph_of(
            f"""
            graph({typed}):
              %y : Tensor = prim::FusionGroup_0({names})
              return (%y)
            with prim::FusionGroup_0 = graph({typed}):
              {constants}
              {members}
              return (%y)
            """,
            verify=False,
        )
    )


def one_by_one(plan: Plan, *inputs: Any) -> Array:
    """The same operator by operator: whoever watches a run sees each of them."""
    with np.errstate(all="ignore"):
        return plan.call(inputs, Run(Counters(), Watch()))[0]


def outcome(run: Callable[[], Array]) -> Array | str:
    """What ``run`` gives, or the error."""
    try:
        return run()
    except Error as error:
        return str(error)


def close(found: Array, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    worst = {2: 0.02, 4: 1e-5, 8: 1e-7}[found.itemsize]  # of double precision, scores may be of single
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), worst, worst)


def numbers(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Array]:
    rng = np.random.default_rng(sum(map(len, shapes)))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]
