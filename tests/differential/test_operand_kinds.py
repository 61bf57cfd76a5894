"""Which kinds of element types operators take: the tables of irc's kernels against PyTorch, entry by entry."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from irc import Error
from irc.ir import Schema, parse_graph
from irc.ir.types import INT, SCALAR, DType, TensorType
from irc.ops import records, schemas
from irc.runtime.kernels.aten.element_types import refused_kinds, refusing
from irc.runtime.plan import lower
from tests.differential import torch_calls
from tests.differential.helpers import compare, text_of, to_torch

KINDS = {"b": torch.bool, "u": torch.uint8, "i": torch.int64, "f": torch.float32, "c": torch.complex64}


def _leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, list):
        return [leaf for v in value for leaf in _leaves(v)]
    return [value] if isinstance(value, torch.Tensor) else []


def converted(value: Any, dtype: torch.dtype) -> Any:
    """New tensors, of which those of float32 have another element type."""
    if isinstance(value, list):
        return [converted(v, dtype) for v in value]
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(dtype) if value.dtype == torch.float32 else value.clone()


def calls(row: Schema, most: int) -> Iterator[list[Any]]:
    """Arguments that may go together: the first tensor is of floats, and all have elements."""
    for _, arguments in zip(range(most), torch_calls.calls(row, random.Random(1))):
        tensors = [] if isinstance(arguments[0], list) else _leaves(arguments)
        if tensors and tensors[0].dtype == torch.float32 and all(t.numel() and t.dim() for t in tensors):
            yield arguments


def taken(row: Schema, enough: int = 15) -> set[str]:
    """The kinds that torch takes in calls that it takes with some kind."""
    found: set[str] = set()
    done = 0
    for arguments in calls(row, 800):
        kinds = {kind for kind, dtype in KINDS.items() if _works(row, converted(arguments, dtype))}
        found |= kinds
        done += bool(kinds)
        if done == enough:
            break
    return found


def _works(row: Schema, arguments: list[Any]) -> bool:
    try:
        torch_calls.call(row, arguments)
    except torch_calls.IMPOSSIBLE:
        return False
    return True


REFUSED_FIRST = {each.name: refused_kinds(each.name)[0] for each in records("aten") if each.takes}
REFUSED_COMMON = {each.name: refused_kinds(each.name)[1] for each in records("aten") if each.takes_both}


LIKE_ANOTHER = {
    name for name in REFUSED_FIRST | REFUSED_COMMON if refused_kinds(name) == refused_kinds(name.removesuffix("_"))
} - {name for name in REFUSED_FIRST | REFUSED_COMMON if not name.endswith("_")}
"""In-place forms that take what the functional ones do, unless the result cannot be written."""


@pytest.mark.parametrize("name", sorted((REFUSED_FIRST | REFUSED_COMMON).keys() - LIKE_ANOTHER))
def test_torch_takes_what_the_tables_say(name: str) -> None:
    refused = (REFUSED_FIRST | REFUSED_COMMON)[name]
    rows = schemas(f"aten::{name}")
    if name in REFUSED_COMMON and "b" in refused:  # but with an integer, whose kind is what they have in common
        rows = [row for row in rows if SCALAR not in [a.type for a in row.arguments[:2]]]
    found: set[str] = set().union(*map(taken, rows))
    assert found == set(KINDS) - set(refused)


@pytest.mark.parametrize("name", sorted(REFUSED_FIRST))
def test_refused(name: str) -> None:
    run = refusing(name, lambda *arguments: "run")
    for kind, dtype in KINDS.items():
        x = torch.ones(2).to(dtype).numpy()
        if kind in REFUSED_FIRST[name]:
            with pytest.raises(Error, match="IRC423"):
                run(x, 1)
        else:
            assert run(x, 1) == "run"
    assert refusing(name, lambda *arguments: "run")(1.5) == "run", "numbers are not looked at"


def test_known_types_are_not_looked_at() -> None:
    run = len
    floats, ints, numbers = (
        TensorType(DType.from_numpy(np.dtype("f4"))),
        TensorType(DType.from_numpy(np.dtype("i8"))),
        TensorType(),
    )
    assert refusing("frac_", run, [floats]) is refusing("lt", run, [floats, ints]) is run
    assert run not in (refusing("frac", run, [t]) for t in (ints, numbers))
    assert run not in (refusing("lt", run, [floats, t]) for t in (numbers, INT))


@pytest.mark.parametrize("name", sorted(set(REFUSED_COMMON) - LIKE_ANOTHER - {"searchsorted", "bucketize"}))
def test_two_kinds(name: str) -> None:
    """What both operands have in common counts; few of torch's operators refuse that there are two kinds."""
    run = refusing(name, lambda *arguments: "run")
    for one in KINDS.values():
        for other in KINDS.values():
            x, y = torch.ones(3, 3).to(one), torch.ones(3, 3).to(other)
            takes, torch_takes = _takes(run, x.numpy(), y.numpy()), _takes(getattr(torch.ops.aten, name), x, y)
            assert takes == torch_takes or (takes and one != other and name in OF_ONE_TYPE), (one, other)


OF_ONE_TYPE = {"cosine_similarity", "dist", "huber_loss", "kl_div"}


def _takes(run: Callable[..., Any], *arguments: Any) -> bool:
    try:
        run(*arguments)
    except (Error, *torch_calls.IMPOSSIBLE):
        return False
    return True


INTS = np.arange(6).reshape(2, 3)
BOOLS = INTS > 2
COMPLEX = INTS * (1 + 1j)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("lerp", (INTS, INTS * 3, 0.5)),
        ("cdist", (INTS, INTS, 2.0, None)),
        ("layer_norm", (INTS, [3], None, None, 1e-5, True)),
        ("frac", (INTS,)),
        ("relu", (BOOLS,)),
        ("msort", (COMPLEX,)),
        ("lt", (COMPLEX, INTS)),
        ("lt", (COMPLEX, 2.5)),
        ("Float", (COMPLEX[1, 1],)),
        ("Int", (COMPLEX[1, 1],)),
        ("round", (INTS, 1)),
        ("round", (INTS, 0)),
        ("softmax", (COMPLEX, 1, None)),
        ("softmax", (INTS, 1, None)),
        ("linspace", (0, 1, 2, 11, None, None, None)),
        ("einsum", ("i,i->", [BOOLS[1], BOOLS[0]], None)),
    ],
)
def test_refused_by_both(name: str, arguments: tuple[Any, ...]) -> None:
    given = tuple(np.asarray(a) if isinstance(a, np.generic) else a for a in arguments)
    text = text_of(f"aten::{name}", given, 1)
    with pytest.raises(Exception, match=r"not impl|not supp|floating|imaginary|overflow|Bool|complex|[Dd]ecimals"):
        torch._C._create_function_from_graph("f", torch._C.parse_ir(text))(*(to_torch(a, {}) for a in given))
    with pytest.raises(Error, match="IRC423"):
        lower(parse_graph(text)).run(list(given))


def test_taken_by_both() -> None:
    compare("aten::lt", INTS, 2.5)
    compare("aten::Float", np.asarray(COMPLEX[0, 0]))
    compare("aten::round", INTS)
    compare("aten::softmax", INTS, 1, 6)
    compare("aten::einsum", "i,i->i", [BOOLS[1], BOOLS[0]], None)
    compare("aten::einsum", "i->", [BOOLS[1]], None)
    compare("aten::einsum", "ij->i", [INTS.astype(np.int32)], None)
