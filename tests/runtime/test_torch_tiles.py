"""Fusion groups of TorchScript's operators run block by block: bit for bit what the operators give one by one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import parse_graph
from irc.ir.ops.aten import TAGS
from irc.runtime.fused import cutting, tiles
from irc.runtime.model import CompiledModel
from irc.runtime.options import Options
from tests.kernels import torch_operands
from tests.kernels.test_shortcuts import DTYPES, as_taken, elements, operand_counts
from tests.kernels.torch_operands import operands_of

NAMES = sorted(TAGS.pointwise)
SHAPES = [((12, 8), (12, 8)), ((12, 8), (8,)), ((12, 1), (1, 8)), ((12, 8), (1, 1)), ((12, 8), ()), ((), (12, 8))]
PAIRS = [tuple(map(np.dtype, pair)) for pair in (("f", "f"), ("f", "d"), ("e", "f"), ("i8", "e"), ("?", "i8"))]
NUMBERS = (2, 0.5, True)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few elements, so that small arrays are several."""
    monkeypatch.setattr(cutting, "TILE_BYTES", 64)
    monkeypatch.setattr(cutting, "SHARED_TILE_BYTES", 64)
    monkeypatch.setattr(tiles, "WORTH", 1)


def feeds_of(arguments: list[Any]) -> dict[str, Any]:
    return {f"x{i}": x for i, x in enumerate(arguments) if isinstance(x, np.ndarray)}


def of_one_operator(name: str, arguments: list[Any]) -> CompiledModel:
    """The operator in a group of its own; arguments that are no tensors are constants."""
    names = ", ".join(f"%x{i}" for i in range(len(arguments)))
    types = {bool: "bool", int: "int", float: "float", type(None): "NoneType", str: "str"}
    constants = [
        f"  %x{i} : {types[type(x)]} = prim::Constant[value={x!r}]()".replace("'", '"').replace("[value=None]", "")
        for i, x in enumerate(arguments)
        if not isinstance(x, np.ndarray)
    ]
    inputs = ", ".join(f"%{x} : Tensor" for x in feeds_of(arguments))
    text = ["graph(" + inputs + "):", *constants, f"  %y : Tensor = prim::FusionGroup_0({names})", "  return (%y)"]
    params = ", ".join(
        f"%x{i}" + ("" if isinstance(x, np.ndarray) else f" : {types[type(x)]}") for i, x in enumerate(arguments)
    )
    text += [f"with prim::FusionGroup_0 = graph({params}):"]
    text += [f"  %y : Tensor = aten::{name}({names})", "  return (%y)"]
    return CompiledModel(parse_graph("\n".join(text)), options=Options(threads=2))


def outcome(model: Any, feeds: dict[str, Any], threads: int) -> Any:
    """What ``model`` gives, bit for bit, and how it lies; or how it refuses."""
    try:
        (result,) = model.run({name: np.copy(x, order="K") for name, x in feeds.items()}, threads=threads).values()
    except Error as error:
        return error.code, error.message
    return result.dtype, result.shape, result.strides, result.tobytes()


def one_by_one(model: CompiledModel, feeds: dict[str, Any]) -> Any:
    """What ``model`` gives if large arrays are no reason for blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "WORTH", 1 << 30)
        found = outcome(model, feeds, 1)
    assert len(found) == 2 or not model.counters.tiled_groups
    return found


@pytest.mark.parametrize("name", NAMES)
def test_blocks_give_what_the_operator_gives(name: str) -> None:
    """Two threads ask for blocks even of one operator, one does not."""
    tiled = 0
    for count in sorted(operand_counts(name)):
        cases: list[list[Any]] = []
        for number, (shapes, (a, b)) in enumerate(product(SHAPES, PAIRS)):
            cases.append([elements(shapes[0], a, number), elements(shapes[1], b, number + 1), 2])
        for a, y in product(DTYPES, NUMBERS):
            cases.append([elements((12, 8), a, 7), y, 1])
        x = elements((12, 8), DTYPES[0], 3)
        cases += [[x.T, x.T, 1], [np.asfortranarray(x), x, 1]]
        tiled += compared(name, [as_taken(name, case[:count]) for case in cases])
    assert tiled or not operand_counts(name) or name == "gelu"  # whose further argument is a word


@pytest.mark.parametrize(("a", "b"), [*PAIRS, *(tuple(map(np.dtype, pair)) for pair in ("f?", "FF", "fD"))], ids=str)
@pytest.mark.parametrize("name", torch_operands.NAMES)
def test_selections_and_powers_in_blocks(name: str, a: np.dtype[Any], b: np.dtype[Any]) -> None:
    assert compared(name, operands_of(name, (12, 8), a, b))


@pytest.mark.parametrize("name", ["pow", "float_power", "ldexp"])
@pytest.mark.parametrize("exponent", [3.0, 0.5, -1.0])
def test_blocks_make_no_exponents_of_one_element(name: str, exponent: float) -> None:
    """Kernels cube for an exponent that is 3: of several, each of which would be one in a block, they do not."""
    x = elements((12, 8), np.dtype("d"), 1)
    shapes = [(12, 1), (8,), (1, 1), ()]
    assert compared(name, ([x, np.full(s, exponent)] for s in shapes)) == 2


def compared(name: str, cases: Iterable[list[Any]]) -> int:
    """Fail if blocks give another result than the operator for one of the ``cases``; how many ran in blocks."""
    models: dict[Any, CompiledModel] = {}
    tiled = 0
    for arguments in cases:
        feeds, key = feeds_of(arguments), str([x for x in arguments if not isinstance(x, np.ndarray)])
        model = models[key] = models.get(key) or of_one_operator(name, arguments)
        wanted = one_by_one(model, feeds)
        assert outcome(model, feeds, 2) == wanted, arguments
        tiled += len(wanted) > 2 and model.counters.tiled_groups
    return tiled


CHAIN = """
graph(%x : Tensor, %y : Tensor, %k : float):
  %one : int = prim::Constant[value=1]()
  %way : str = prim::Constant[value="tanh"]()
  %a : Tensor = aten::mul(%x, %k)
  %b : Tensor = aten::add(%a, %y, %one)
  %c : Tensor = aten::gelu(%b, %way)
  %d : Tensor = aten::lt(%c, %a)
  %e : Tensor = aten::mul(%d, %c)
  return (%e, %d)
"""


def test_a_chain_runs_in_blocks_and_numbers_may_change() -> None:
    fused, plain = irc.compile(parse_graph(CHAIN)), irc.compile(parse_graph(CHAIN), "none")
    x, y = elements((40, 30), np.dtype("f"), 1), elements((30,), np.dtype("f"), 2)
    for k in (0.5, -2.0, float("nan"), 1e30):
        feeds = {"x": x, "y": y, "k": k}
        fused.run(feeds)  # the first run is watched for shapes, operator by operator
        found, wanted = fused.run(feeds, threads=1), plain.run(feeds, threads=1)
        assert fused.counters.tiled_groups == 1 and fused.counters.tiles > 10
        for got, want in zip(found.values(), wanted.values(), strict=True):
            np.testing.assert_array_equal(got, want)


MIDDLES = {
    "where": "aten::where(%m, %a, %x)",
    "where of a number": "aten::where(%m, %a, %k)",
    "masked_fill": "aten::masked_fill(%a, %m, %k)",
    "pow": "aten::pow(%a, %k)",
    "pow of tensors": "aten::pow(%a, %x)",
    "log_sigmoid": "aten::log_sigmoid(%a)",
}


@pytest.mark.parametrize("middle", MIDDLES)
@pytest.mark.parametrize("dtype", ["f", "e"])
def test_a_group_with_one_in_its_middle_runs_in_blocks(middle: str, dtype: str) -> None:
    """Of one operator after it alone, one thread would make no blocks. The last result takes the donated memory."""
    text = f"""
graph(%x : Tensor, %y : Tensor, %k : float):
  %a : Tensor = aten::mul(%x, %y)
  %m : Tensor = aten::lt(%a, %x)
  %b : Tensor = {MIDDLES[middle]}
  %c : Tensor = aten::mul(%b, %y)
  return (%c)
"""
    fused, plain = irc.compile(parse_graph(text)), irc.compile(parse_graph(text), "none")
    x, y = elements((40, 30), np.dtype(dtype), 1), elements((30,), np.dtype(dtype), 2)
    for k in (0.5, -2.0, 3.0):
        feeds = {"x": x, "y": y, "k": k}
        (wanted,) = plain.run(feeds, threads=1).values()
        for threads in (1, 2):
            for _ in range(2):  # the first run is watched for shapes, operator by operator
                given = x.copy()
                (got,) = fused.run({**feeds, "x": given}, threads=threads, donate=["x"]).values()
            assert fused.counters.tiled_groups == 1
            assert fused.counters.tiles > 10
            assert fused.counters.in_place == 1
            assert np.shares_memory(got, given)
            assert got.tobytes() == wanted.tobytes()


def test_a_result_lies_as_pytorch_lays_it() -> None:
    """As the operands do, which views of it show; so what does not lie in order is not cut."""
    fused = irc.compile(parse_graph(CHAIN))
    x, y = np.asfortranarray(elements((40, 30), np.dtype("f"), 1)), elements((30,), np.dtype("f"), 2)
    for _ in range(2):
        e, d = fused.run({"x": x, "y": y, "k": 2.0}, threads=1).values()
    assert fused.counters.tiled_groups == 0
    assert e.strides == x.strides and d.flags.f_contiguous


def test_a_failure_in_a_block_says_what_the_operands_are() -> None:
    text = """
graph(%x : Tensor, %n : int):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::remainder(%a, %n)
  return (%b)
"""
    model = irc.compile(parse_graph(text))
    x = np.arange(200).reshape(20, 10)
    model.run({"x": x, "n": 7})
    with pytest.raises(Error, match="divided by zero"):  # of this, nothing is kept
        model.run({"x": x, "n": 0}, threads=1)
    for threads in (1, 2):
        (good,) = model.run({"x": x, "n": 7}, threads=threads).values()
        assert model.counters.tiled_groups == 1
        np.testing.assert_array_equal(good, np.remainder(-x, 7))
        with pytest.raises(Error) as caught:
            model.run({"x": x, "n": 0}, threads=threads)
        assert caught.value.where == "aten::remainder '%b'"
        assert "inputs: int64[20, 10], int 0" in caught.value.message
