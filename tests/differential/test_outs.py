"""Operators that write into a tensor given as ``out=``: which element types it may have, and what it then holds."""

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch

import irc
from irc.alias import analyze
from irc.frontend.torchscript import may_have_out
from irc.ir import Builder, Graph, Schema, parse_type
from irc.ir.types import TENSOR
from irc.ops import Effects, effects, records, schemas
from irc.ops.signatures import kinds
from tests.differential.helpers import Differ, Typed, compare, numpy_of
from tests.differential.torch_calls import IMPOSSIBLE, call, calls

DTYPES = ("bool", "uint8", "int64", "float16", "float32", "float64", "complex64")

CALLS, TRIES = 2, 120

LOSSES = "binary_cross_entropy huber_loss mse_loss smooth_l1_loss soft_margin_loss".split()
"""PyTorch keeps what they reduce in ``out``, which then is of another size, or refuses that."""

AS_OTHERS = {"aten::max.unary_out", "aten::min.unary_out"}
"""They take what another overload takes, which is what calls mean."""

_FORMS: dict[str, list[list[str]]] = defaultdict(list)
for _schema in torch._C._jit_get_all_schemas():
    if _schema.arguments and _schema.arguments[-1].is_out:
        _FORMS[_schema.name].append([a.name for a in _schema.arguments[:-1]])

ROWS = {
    f"{row.name}.{row.overload}".rstrip("."): row
    for kind in kinds()
    if kind.startswith("aten::") and not effects(kind) & Effects.RANDOM and kind[6:] not in LOSSES
    for row in schemas(kind)
    if [r.type for r in row.returns] == [TENSOR] and [a.name for a in row.arguments] in _FORMS[kind]
}
"""Those of which torch has an overload that takes what they do, and a tensor for the result."""

TYPES = {row for each in records("aten") for row, how in each.out.items() if how in ("any", "dtype")} & ROWS.keys()
"""Rows of which ``out`` may have another element type than the result has by itself."""


def _plain(value: Any, type: Any) -> Any:
    """An argument with arrays for tensors, and with numbers for types."""
    if isinstance(value, list):
        items = [_plain(v, None) for v in value]
        return items if items and None not in map(id, items) else Typed(items, str(type))
    if isinstance(value, torch.dtype):
        return {torch.int64: 4, torch.float32: 6, torch.float64: 7}[value]
    return numpy_of(value.resolve_conj()).copy() if isinstance(value, torch.Tensor) else value


def _difference(kind: str, arguments: list[Any]) -> str:
    try:
        compare(kind, *arguments, strides=False, tolerance=2e-3)
    except (Differ, AssertionError) as error:
        return str(error)
    return ""


def check(name: str, row: Schema) -> int:
    """How many calls were compared with outs of all types."""
    done = 0
    for _, arguments in zip(range(TRIES), calls(row, random.Random(name))):
        try:
            shape = call(row, arguments).shape
            given = [_plain(v, a.type) for v, a in zip(arguments, row.arguments, strict=True)]
            differ = _difference(row.name, given)
        except (KeyError, *IMPOSSIBLE):
            continue
        if differ:
            continue
        for dtype in DTYPES:
            difference = _difference(row.name, [*given, np.zeros(shape, dtype)])
            is_stricter = difference.startswith("torch: fine\nirc: IRC421") and name not in TYPES
            if difference and not is_stricter and "INTERNAL ASSERT" not in difference:  # of one who cannot say it
                raise AssertionError(f"{given} into {dtype}: {difference}")
        done += 1
        if done == CALLS:
            break
    return done


@pytest.mark.parametrize("name", sorted(TYPES))
def test_element_types_that_may_differ(name: str) -> None:
    assert check(name, ROWS[name])


def test_which_operators_have_out() -> None:
    for kind in kinds():
        if kind.startswith("aten::"):
            makes_one = any([r.type for r in row.returns] == [TENSOR] for row in schemas(kind))
            assert may_have_out(kind) == (makes_one and bool(_FORMS.get(kind))), kind


def test_no_out_is_thought_to_stay_as_it_is() -> None:
    """Nor by the analysis of a graph in which it is not written out."""
    found = 0
    for schema in torch._C._jit_get_all_schemas():
        outs = [i for i, a in enumerate(schema.arguments) if a.is_out]
        if not outs or not schemas(schema.name) or f"{schema.name}.{schema.overload_name}" in AS_OTHERS:
            continue
        graph = Graph()
        values = [graph.add_input(parse_type(str(a.type)), f"a{i}") for i, a in enumerate(schema.arguments)]
        node = Builder(graph).node(schema.name, values, [parse_type(str(r.type)) for r in schema.returns])
        db = analyze(graph)
        for i in outs:
            assert db.writes_to_alias(node, [values[i]]), schema
            found += 1
    assert found > 500


def test_element_types_that_must_not() -> None:
    done = sum(bool(check(name, row)) for name, row in ROWS.items() if name not in TYPES)
    assert done > 200


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_made_has_the_element_type_of_the_tensor(dtype: str) -> None:
    for kind, *arguments in (
        ("arange", 4),
        ("arange", 0.5, 4.5, 1),
        ("linspace", 0.0, 3.0, 4),
        ("full", [2, 2], 2),
        ("zeros", [2, 2]),
        ("ones", [4]),
        ("eye", 2),
        ("eye", 2, 2),
    ):
        shape = (2, 2) if kind == "eye" or arguments[0] == [2, 2] else 4
        assert not _difference(f"aten::{kind}", [*arguments, np.full(shape, 1, dtype)]), (kind, arguments)


def halves(x: Any, pairs: Any) -> Any:
    total, product, running = torch.zeros(3), torch.zeros(3), torch.zeros(40, 3)
    torch.sum(x, [0], out=total)
    torch.prod(x[:2], 0, out=product)
    torch.cumsum(x, 0, out=running)
    joined, more = torch.zeros(80, 3), torch.zeros(40, 3)
    torch.cat([x, x], 0, out=joined)
    torch.add(x, x, alpha=2, out=more)
    plus_one, below = torch.zeros(40, 3), torch.zeros(40, 3)
    torch.add(x, 1, out=plus_one)
    torch.lt(x, x, out=below)
    return total, product, running, joined, more, plus_one, below, torch.sum(pairs, [1], out=torch.zeros(2).long())


@pytest.mark.parametrize("passes", ["none", "default", "default,remove-mutation,dce", "default,in-place"])
def test_results_that_are_wider_than_what_they_are_made_of(passes: str) -> None:
    inputs = [torch.full((40, 3), 2048.0).half(), torch.tensor([[1.5, 2.5], [3.0, -1.0]])]
    traced = torch.jit.trace(halves, inputs)
    (found,) = irc.compile(traced, passes).run({"x": inputs[0].numpy(), "pairs": inputs[1].numpy()}).values()
    for mine, its in zip(found, traced(*inputs), strict=True):
        np.testing.assert_array_equal(mine, its.numpy(), strict=True)
