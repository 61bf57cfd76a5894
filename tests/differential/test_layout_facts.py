"""What records state of the layouts of results is so, on calls that PyTorch takes, of tensors with reversed axes."""

import random
from typing import Any

import pytest
import torch

from irc.errors import Error
from irc.ir import Node, TensorType, Value, parse_graph
from irc.ops import records, schemas
from irc.ops.layouts import contiguous_if, keeps_layout
from irc.runtime.kernels.aten.python import strides_of
from irc.runtime.plan import lower
from tests.differential import torch_calls
from tests.differential.helpers import numpy_of, text_of
from tests.operators import TORCH_POINTWISE


def turned(x: Any) -> Any:
    """The same elements, laid out with the first axis as the fastest."""
    if not isinstance(x, torch.Tensor):
        return x
    axes = tuple(reversed(range(x.ndim)))
    return x.permute(axes).contiguous().permute(axes)


def given(value: Any) -> Any:
    if isinstance(value, list):
        return [given(turned(v)) for v in value]
    if isinstance(value, torch.Tensor):
        return numpy_of(value).copy("K")
    if isinstance(value, torch.dtype):
        return {torch.int64: 4, torch.float32: 6, torch.float64: 7}[value]
    if isinstance(value, torch.memory_format):
        return {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2}[value]
    if isinstance(value, torch.layout):
        return 0
    return value


STATED = sorted(
    TORCH_POINTWISE | {each.kind for each in records("aten") if each.layout & {"contiguous", "like-first", "part"}}
)


@pytest.mark.parametrize("kind", STATED)
def test_results_lie_as_it_is_stated(kind: str) -> None:
    rng = random.Random(kind)
    compared = 0
    for row in schemas(kind):
        if not row.returns or not isinstance(row.returns[0].type, TensorType):
            continue
        for _, call in zip(range(120), torch_calls.calls(row, rng)):
            arguments = [given(turned(a)) for a in call]
            if [] in [a for a in arguments if isinstance(a, list)]:
                continue  # of which type it is, the text does not say
            try:
                graph = parse_graph(text_of(kind, arguments, 1))
                found = lower(graph).run(arguments)[0]
            except (Error, KeyError, TypeError):
                continue  # other tests tell what irc refuses
            compared += 1
            if compared > 40:
                break
            node = next(iter(graph.nodes))
            check(node, dict(zip(node.inputs, arguments, strict=True)), found)
    assert compared


def check(node: Node, given: dict[Value, Any], found: Any) -> None:
    needed = contiguous_if(node)
    if needed is not None and all(given[v].flags.c_contiguous for v in needed):
        assert found.flags.c_contiguous
    if keeps_layout(node) and found.size and found.shape == given[node.inputs[0]].shape:
        assert strides_of(found) == strides_of(given[node.inputs[0]])
