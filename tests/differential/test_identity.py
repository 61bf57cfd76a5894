"""Which results are an operand itself, or certainly show its memory: PyTorch, irc's kernels, and irc's alias analysis.

Each operator is called with random arguments. Of PyTorch, a result is an operand if it is the same Python object; of
irc, if it is the same array, which then has one shape and one set of strides.
"""

import random
from typing import Any

import numpy as np
import pytest
import torch

from irc.errors import Error
from irc.ir import Schema, types
from irc.runtime.binding import bind
from tests.differential.both import tensors
from tests.differential.helpers import numpy_of
from tests.differential.test_memory import ROWS, UNCALLED, OneNode, name
from tests.differential.torch_calls import IMPOSSIBLE, call, calls

CALLS, TRIES = 24, 400

NUMBERS = {
    getattr(torch, dtype): number
    for number, dtype in enumerate(
        "uint8 int8 int16 int32 int64 float16 float32 float64 - complex64 complex128 bool - - - bfloat16".split()
    )
    if dtype != "-"
}
FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]


def for_irc(value: Any, made: dict[int, Any]) -> Any:
    """``value`` as irc's kernels take it, with copies of tensors; one copy of a tensor that is given twice."""
    if isinstance(value, torch.Tensor):
        if id(value) not in made:
            made[id(value)] = numpy_of(value.clone(memory_format=torch.preserve_format))
        return made[id(value)]
    if isinstance(value, list | tuple):
        return type(value)(for_irc(v, made) for v in value)
    if isinstance(value, torch.dtype):
        return NUMBERS[value]
    if isinstance(value, torch.memory_format):
        return FORMATS.index(value)
    if isinstance(value, torch.layout):
        return 0
    return str(value) if isinstance(value, torch.device) else value


def arrays(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [x for v in value for x in arrays(v)]
    return [value] if isinstance(value, np.ndarray | np.generic) else []


def identities(results: list[Any], arguments: list[Any]) -> list[int | None]:
    """For each result which argument it is; None if it is none of them."""
    return [next((i for i, y in enumerate(arguments) if x is y), None) for x in results]


def bytes_shared(a: torch.Tensor, b: torch.Tensor) -> bool:
    plain = [numpy_of(x.conj() if x.is_conj() else x) for x in (a, b)]  # as they lie in memory
    return bool(a.numel() and b.numel()) and np.shares_memory(*plain)


def check(row: Schema, arguments: list[Any], seen: set[bool]) -> bool:
    ours = for_irc(arguments, {})
    try:
        results = call(row, arguments)
    except IMPOSSIBLE:
        return False
    one = OneNode(row, arguments)
    operands = list(tensors(arguments))
    wanted = identities(list(tensors(results)), operands)
    seen.update(index is not None for index in wanted)
    got = ran(one, ours)
    if got is not None:
        made = arrays(got)
        assert len(made) == len(wanted), "a result is not a tensor, or one too many is"
        assert identities(made, arrays(ours)) == wanted, f"of {[tuple(t.shape) for t in operands]}: {arguments}"
    for i, (output, result) in enumerate(zip(one.node.outputs, [results] if len(row.returns) == 1 else results or ())):
        for value, argument, array in zip(one.inputs, arguments, ours):
            if output.type != types.TENSOR or value.type != types.TENSOR or not isinstance(argument, torch.Tensor):
                continue
            if one.db.same_tensor(output, value):
                assert result is argument, f"%{output.name} is not %{value.name}"
            if one.db.must_alias(output, value) and (result.numel() or argument.numel()):
                assert bytes_shared(result, argument), f"%{value.name}: no byte is shared"
                if got is not None:
                    assert np.shares_memory(got if len(row.returns) == 1 else got[i], array), "irc's shares none"
    return True


def ran(one: OneNode, arguments: list[Any]) -> Any:
    """What irc's kernel computes; None if it does not."""
    try:
        with np.errstate(all="ignore"):
            return bind(one.node)(*arguments)
    except (Error, *IMPOSSIBLE):  # `irc.runtime` makes errors of NumPy's
        return None


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_results_that_are_operands(row: Schema) -> None:
    torch.manual_seed(0)
    seen: set[bool] = set()
    done = 0
    for arguments, _ in zip(calls(row, random.Random(str(row))), range(TRIES)):
        done += check(row, arguments, seen)
        if done == CALLS:
            break
    assert done or name(row) in UNCALLED
    if any(result.alias and (result.alias.must == "==" or result.alias.write) for result in row.returns):
        assert seen == {True}, "such results always are operands"
