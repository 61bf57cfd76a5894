"""Modules of many kinds, and inputs for them: what people write, and corners of what TorchScript allows."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.differential.zoo.images import Boxes, InvertedResidual, ResNet, Sampler, UNet
from tests.differential.zoo.language import (
    Containers,
    Contexts,
    Control,
    Indexing,
    Named,
    Numbers,
    Objects,
    Places,
    Spectral,
    Texts,
    Views,
    Words,
)
from tests.differential.zoo.sequences import GPT, Cells, Encoder, MultiHead, Recurrent
from tests.differential.zoo.state import Cache, Constants, Counter, Half, Instances, Lazy, Lists, Norms, Tied

torch: Any = pytest.importorskip("torch")

Case = tuple[Callable[[], Any], list[Any]]


def scripted(made: Callable[[], Any]) -> Any:
    return torch.jit.script(made().eval())


def traced(made: Callable[[], Any], *inputs: Any) -> Any:
    return torch.jit.trace(made().eval(), inputs, check_trace=False)


def image(channels: int = 3, size: int = 16, batch: int = 2) -> Any:
    return torch.randn(batch, channels, size, size)


SCRIPTED: dict[str, Case] = {
    "residual network": (ResNet, [image(size=32)]),
    "inverted residual": (InvertedResidual, [image(4)]),
    "u-net": (UNet, [image(2, 15)]),
    "language model": (GPT, [torch.randint(0, 20, (2, 7))]),
    "encoder": (Encoder, [torch.randn(2, 5, 8)]),
    "multi-head attention": (MultiHead, [torch.randn(5, 2, 8), torch.randn(6, 2, 8)]),
    "lstm": (lambda: Recurrent("lstm"), [torch.randn(2, 6, 4)]),
    "gru": (lambda: Recurrent("gru"), [torch.randn(2, 6, 4)]),
    "rnn": (lambda: Recurrent("rnn"), [torch.randn(2, 6, 4)]),
    "cells": (Cells, [torch.randn(5, 2, 4)]),
    "cache": (Cache, [torch.randn(2, 2, 4)]),
    "tied weights": (Tied, [torch.randn(2, 3)]),
    "containers": (Containers, [torch.randn(2, 3), torch.randn(3)]),
    "containers, no extra": (Containers, [torch.randn(2, 3), None]),
    "views": (Views, [torch.randn(4, 4)]),
    "control": (Control, [torch.randn(3, 3), 9, True]),
    "control, other way": (Control, [torch.randn(3, 3), 2, False]),
    "words": (Words, [torch.randn(2, 3)]),
    "counter": (Counter, [torch.randn(2, 2, 4)]),
    "instances": (Instances, [torch.randn(2, 3)]),
    "norms": (Norms, [torch.randn(6, 4, 3)]),
    "float16": (lambda: Half(torch.float16), [torch.randn(3, 6)]),
    "bfloat16": (lambda: Half(torch.bfloat16), [torch.randn(3, 6)]),
    "boxes": (Boxes, [torch.randn(12, 6)]),
    "reductions": (Spectral, [torch.randn(4, 6)]),
    "named tuples": (Named, [torch.randn(2, 3)]),
    "objects": (Objects, [torch.randn(2, 3)]),
    "contexts": (Contexts, [torch.randn(2, 3)]),
    "made when called": (Lazy, [torch.randn(2, 4)]),
    "lists that become one": (Lists, [torch.randn(1)]),
    "places": (Places, [torch.randn(3, 4)]),
    "indexing": (Indexing, [torch.randn(3, 4)]),
    "numbers": (Numbers, [2.7, 5]),
    "texts": (Texts, [torch.randn(2, 3)]),
    "sampling": (Sampler, [image(4, 6), torch.rand(2, 5, 5, 2) * 2 - 1]),
}

TRACED: dict[str, Case] = {
    name: SCRIPTED[name]
    for name in (
        *("residual network", "inverted residual", "u-net", "language model", "encoder", "multi-head attention"),
        *("lstm", "gru", "rnn", "cells", "tied weights", "views", "float16", "reductions", "sampling"),
    )
} | {"constants": (Constants, [torch.randn(3, 5)])}
