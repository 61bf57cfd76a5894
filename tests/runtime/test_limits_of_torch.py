"""Torch's operators ask for room before they make results that are much larger than their operands."""

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import TensorType, parse_module
from irc.ops import schemas
from irc.ops.signatures import kinds
from irc.runtime.limits import Limits
from tests.runtime.helpers import model_of
from tests.runtime.test_limits import refused

MIB = 1 << 20
ROW, COLUMN, VECTOR = np.ones((1, 1024), np.float32), np.ones((1024, 1), np.float32), np.ones(1024, np.float32)
MASK, FLAGS = np.ones((1, 1024), np.bool_), np.ones(1 << 18, np.bool_)
LONG, DOUBLE, BYTE = 4, 7, 0

LARGE: dict[str, tuple[Any, ...]] = {
    "add": (ROW, COLUMN, 1),
    "addr": (np.ones((1, 1), np.float32), VECTOR, VECTOR, 1, 1),
    "arange": (MIB, BYTE, None, None, None),
    "argwhere": (FLAGS,),
    "bilinear": (COLUMN, COLUMN, np.ones((1024, 1, 1), np.float32), None),
    "bincount": (np.array([MIB]), None, 0),
    "block_diag": ([VECTOR, COLUMN],),
    "cartesian_prod": ([VECTOR, VECTOR],),
    "cdist": (COLUMN, COLUMN, 2.0, None),
    "chunk": (FLAGS[: 1 << 15], 1 << 15, 0),
    "combinations": (VECTOR, 2, False),
    "cov": (COLUMN, 1, None, None),
    "cross": (np.ones((1024, 1, 3), np.float32), np.ones((1, 1024, 3), np.float32), None),
    "diag": (VECTOR, 0),
    "diag_embed": (VECTOR, 0, 0, 1),
    "diagflat": (VECTOR, 0),
    "embedding": (ROW, np.zeros(1024, np.int64), -1, False, False),
    "eye": (1024, None, None, None, None),
    "full": ([1024, 1024], 1, None, None, None, None),
    "histc": (VECTOR, MIB, 0, 2),
    "hypot": (ROW, COLUMN),
    "inner": (COLUMN, COLUMN),
    "isclose": (ROW, COLUMN, 1e-5, 1e-8, False),
    "kron": (ROW, COLUMN),
    "linalg_qr": (np.ones((2048, 1)), "complete"),
    "linalg_svd": (np.ones((2048, 1)), True, None),
    "linalg_svd_by": (np.ones((1, 2048)), True, None),
    "linspace": (0.0, 1.0, MIB, None, None, None, None),
    "logspace": (0.0, 1.0, MIB, 10.0, None, None, None, None),
    "masked_fill": (ROW, MASK.T, 2.0),
    "masked_select": (ROW, MASK.T),
    "masked_scatter": (ROW, ~MASK.T, VECTOR),
    "mm": (COLUMN, ROW),
    "mse_loss": (ROW, COLUMN, 0),
    "multinomial": (VECTOR, MIB, True, None),
    "new_full": (VECTOR, [1024, 1024], 1, None, None, None, None),
    "nonzero": (FLAGS,),
    "normal": (0.0, 1.0, [MIB], None, None, None, None, None),
    "one_hot": (np.zeros(1024, np.int64), 1024),
    "outer": (VECTOR, VECTOR),
    "pad": (VECTOR, [MIB, 0], "constant", None),
    "pairwise_distance": (ROW, COLUMN, 2.0, 1e-6, False),
    "rand": ([MIB], BYTE + 6, None, None, None),
    "randn": ([MIB], None, None, None, None),
    "randint": (9, [MIB], BYTE, None, None, None),
    "randperm": (MIB, 3, None, None, None),
    "repeat": (VECTOR, [1024]),
    "repeat_interleave": (np.array([MIB]), None),
    "repeat_interleave_by": (VECTOR, 1024, None, None),
    "split": (FLAGS[: 1 << 15], 1, 0),
    "stack": ([VECTOR] * 1024, 0),
    "take_along_dim": (ROW, np.zeros((1024, 1), np.int64), 0),
    "tensordot": (VECTOR, VECTOR, [], []),
    "tensor_split": (FLAGS[: 1 << 15], 1 << 15, 0),
    "tile": (VECTOR, [1024]),
    "tril_indices": (1024, 1024, 0, 4, None, None, None),
    "unbind": (FLAGS[: 1 << 15], 0),
    "vander": (VECTOR, 1024, False),
    "where": (FLAGS,),
    "zeros": ([1024, 1024], None, None, None, None),
}
"""Operands."""

LISTS = {"chunk", "split", "tensor_split", "unbind", "where"}
SEVERAL = {"linalg_qr": 2, "linalg_svd": 3, "linalg_svd_by": 3}


def literal(value: Any) -> str | None:
    """How the text of a graph writes an operand that is not a tensor."""
    if isinstance(value, np.ndarray) or (isinstance(value, list) and value and isinstance(value[0], np.ndarray)):
        return None
    if isinstance(value, str):
        return f'"{value}"'
    return str(int(value) if isinstance(value, bool) else value)


def type_of(value: Any) -> str:
    if isinstance(value, list):
        return f"{type_of(value[0]) if value else 'int'}[]"
    if isinstance(value, np.ndarray):
        return "Tensor"
    return {"NoneType": "NoneType"}.get(type(value).__name__, type(value).__name__)


def program(op: str, operands: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """A model of one operator, whose tensors are inputs, and what to feed it."""
    feeds = {f"x{i}": value for i, value in enumerate(operands) if literal(value) is None}
    inputs = ", ".join(f"%{name} : {type_of(value)}" for name, value in feeds.items())
    constants = "".join(
        f"  %x{i} : {type_of(value)} = prim::Constant" + ("()\n" if value is None else f"[value={literal(value)}]()\n")
        for i, value in enumerate(operands)
        if literal(value) is not None
    )
    names = [f"%z{i}" for i in range(SEVERAL.get(op, 1))]
    type = "Tensor[]" if op in LISTS else "Tensor"
    results = ", ".join(f"{name} : {type}" for name in names)
    arguments = ", ".join(f"%x{i}" for i in range(len(operands)))
    kind = op.removesuffix("_by")
    text = f"graph({inputs}):\n{constants}  {results} = aten::{kind}({arguments})\n  return ({', '.join(names)})\n"
    return model_of(text), feeds


@pytest.mark.parametrize("op", LARGE)
def test_what_would_be_too_large_is_refused_before_it_is_there(op: str) -> None:
    """All results, or what they are drawn from, have at least 4 MiB."""
    compiled, feeds = program(op, LARGE[op])
    tracemalloc.start()
    try:
        refused(compiled, feeds, "IRC442", op.removesuffix("_by"), "needed", bytes=MIB)
        assert tracemalloc.get_traced_memory()[1] < 3 * MIB
    finally:
        tracemalloc.stop()
    compiled.run(feeds, limits=Limits(bytes=256 * MIB))


def test_drawing_by_weights_ends_in_time() -> None:
    compiled, feeds = program("multinomial", (VECTOR, 1 << 28, True, None))
    start = time.monotonic()
    with pytest.raises(irc.Error, match=r"IRC443.*the time is over"):
        compiled.run(feeds, limits=Limits(seconds=0.3))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("replacement", [True, False])
def test_drawing_in_blocks_is_drawing_by_weights(replacement: bool) -> None:
    weights = np.array([[0, 1, 3, 0], [4, 0, 0, 1]], np.float32)
    compiled, feeds = program("multinomial", (weights, 200_000 if replacement else 2, replacement, None))
    drawn = compiled.run(feeds)["z0"]
    shares = [np.bincount(row, minlength=4) / row.size for row in drawn]
    if replacement:
        np.testing.assert_allclose(shares, weights / weights.sum(1, keepdims=True), atol=0.02)
    else:
        np.testing.assert_array_equal(shares, (weights > 0) / 2)


@pytest.mark.parametrize("op", ["softmax(%u, %d, %n)", "cumsum(%u, %d, %n)", "relu(%u)"])
def test_windows_that_overlap_are_written_out_within_the_limit(op: str) -> None:
    compiled = model_of(f"""
graph(%x : Tensor, %size : int):
  %z : int = prim::Constant[value=0]()
  %d : int = prim::Constant[value=1]()
  %n : NoneType = prim::Constant()
  %u : Tensor = aten::unfold(%x, %z, %size, %d)
  %r : Tensor = aten::{op}
  return (%r)
""")
    x = np.ones(4096, np.float32)
    refused(compiled, {"x": x, "size": 2048}, "IRC442", op.partition("(")[0], "needed", bytes=MIB)
    assert compiled.run({"x": x, "size": 8}, limits=Limits(bytes=MIB))["r"].shape == (4089, 8)


def _rows_of_tensors() -> Iterator[tuple[str, int]]:
    """Operators with a row that begins with two or three tensors and needs nothing more, and with how many."""
    for kind in sorted(kinds()):
        if kind.startswith("aten::") and (not kind.endswith("_") or kind.endswith("__")):
            for row in schemas(kind):
                needed = [a for a in row.arguments if not a.has_default]
                tensors = [a for a in row.arguments if isinstance(a.type, TensorType)]
                if len(tensors) in (2, 3) and row.arguments[: len(tensors)] == tuple(tensors) and len(needed) <= 3:
                    yield kind, len(tensors)
                    break


def test_operands_that_are_spread_ask_for_room_first() -> None:
    """Every operator of two or three tensors: none is found out by what it has made."""
    n, found = 1000, list(_rows_of_tensors())
    refusals: dict[tuple[str, type], str] = {}
    for kind, count in found:
        for dtype in (np.float32, np.int64, np.bool_):
            given = {f"t{i}": np.ones(shape, dtype) for i, shape in enumerate([(n, 1), (1, n), (1, 1)][:count])}
            names = ", ".join(f"%{name}" for name in given)
            inputs = ", ".join(f"%{name} : Tensor" for name in given)
            module = parse_module(f"graph({inputs}):\n  %y : Tensor = {kind}({names})\n  return (%y)")
            try:
                irc.compile(module, "none").run(given, limits=Limits(bytes=500_000))
            except irc.Error as error:
                refusals[kind, dtype] = str(error)
    assert {where: said for where, said in refusals.items() if "alive" in said} == {}
    assert len(found) > 100 and sum("bytes needed" in said for said in refusals.values()) > 100
