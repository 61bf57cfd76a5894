"""Models that PyTorch exports as ONNX: compiled once, right for several shapes.

Both exporters are asked: the one over ``torch.export``, which needs onnxscript,
and the older one over tracing, which is left out where PyTorch no longer has it.
"""

import io
import warnings
from collections.abc import Callable, Generator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

import irc

Export = Callable[[nn.Module, Sequence[Tensor], Sequence[str], dict[str, dict[int, str]]], onnx.ModelProto]


def by_export(
    module: nn.Module, args: Sequence[Tensor], names: Sequence[str], axes: dict[str, dict[int, str]]
) -> onnx.ModelProto:
    dims = {dim: torch.export.Dim(dim) for on_input in axes.values() for dim in on_input.values()}
    shapes = tuple({axis: dims[dim] for axis, dim in axes.get(name, {}).items()} or None for name in names)
    program = torch.onnx.export(
        module, tuple(args), dynamo=True, dynamic_shapes=shapes, input_names=list(names), verbose=False
    )
    assert program is not None
    return program.model_proto


def by_tracing(
    module: nn.Module, args: Sequence[Tensor], names: Sequence[str], axes: dict[str, dict[int, str]]
) -> onnx.ModelProto:
    file = io.BytesIO()
    torch.onnx.export(module, tuple(args), file, dynamo=False, input_names=list(names), dynamic_axes=axes)
    return onnx.load_model_from_string(file.getvalue())


EXPORTERS: list[Any] = [
    pytest.param(by_export, marks=pytest.mark.skipif(not find_spec("onnxscript"), reason="needs onnxscript")),
    by_tracing,
]


class Case:
    """A module, what it is exported with, and the sizes that it is then run with.

    Args:
        module: in evaluation mode.
        arguments: makes arguments of given sizes.
        axes: names of the dynamic axes, by the names of the inputs, in order.
        sizes: for the dimensions in order of their first use: to export with, and to run with.
    """

    def __init__(
        self,
        module: nn.Module,
        arguments: Callable[..., tuple[Tensor, ...]],
        axes: dict[str, dict[int, str]],
        sizes: Sequence[tuple[int, ...]],
    ) -> None:
        self.module = module.eval()
        self.arguments = arguments
        self.axes = axes
        self.sizes = sizes

    def check(self, export: Export) -> None:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            names = list(self.axes)
            proto = export(self.module, self.arguments(*self.sizes[0]), names, self.axes)
            compiled = irc.compile(proto)
            for sizes in self.sizes:
                args = self.arguments(*sizes)
                # An exporter may drop an input that nothing reads.
                known = {a.name for a in compiled.inputs}
                found = compiled.run({n: a.numpy() for n, a in zip(names, args) if n in known})
                expected = self.module(*args)
                expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
                flat = [t for e in expected for t in (e if isinstance(e, (tuple, list)) else [e])]
                assert len(found) == len(flat)
                for got, want in zip(found.values(), flat):
                    assert got.shape == want.shape, sizes
                    np.testing.assert_allclose(got, want.numpy(), rtol=2e-4, atol=2e-5)


class Decoder(nn.Module):
    """One layer of a decoder that extends the keys and values it is given."""

    def __init__(self, width: int = 16, heads: int = 4, words: int = 30) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.back = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, words)

    def forward(self, ids: Tensor, past_key: Tensor, past_value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embedding(ids)
        batch, length, width = x.shape
        parts = self.project(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        key, value = torch.cat((past_key, key), 2), torch.cat((past_value, value), 2)
        scores = query @ key.transpose(2, 3) / (width // self.heads) ** 0.5
        total = key.shape[2]
        visible = torch.arange(total)[None, :] <= torch.arange(total - length, total)[:, None]
        scores = scores.masked_fill(~visible, float("-inf"))
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width)
        x = x + self.back(mixed)
        x = x + self.feed(x)
        return self.head(x), key, value


class Tagger(nn.Module):
    """An LSTM in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(10, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        states, (last, _) = self.lstm(x)
        return self.out(states), last


class Pooled(nn.Module):
    """Convolutions over a sequence, of which each sample's mean and largest elements are taken."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(4, 8, 3, padding=1)
        self.normal = nn.BatchNorm1d(8)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = torch.relu(self.normal(self.convolution(x.transpose(1, 2)))).transpose(1, 2)
        weight = mask.unsqueeze(-1)
        mean = (y * weight).sum(1) / weight.sum(1).clamp(min=1.0)
        largest = torch.where(weight > 0, y, torch.full_like(y, -1e9)).max(1).values
        return torch.cat((mean, largest, y.reshape(y.shape[0], -1, 4).mean(1)), -1)


def encoder() -> Case:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Case(module, lambda b, t: (torch.randn(b, t, 16),), {"x": {0: "b", 1: "t"}}, [(2, 5), (3, 7), (4, 2)])


def decoder() -> Case:
    def arguments(batch: int, length: int, past: int) -> tuple[Tensor, ...]:
        cache = torch.randn(2, batch, 4, past, 4)
        return torch.randint(0, 30, (batch, length)), cache[0], cache[1]

    cached = {0: "b", 2: "past"}
    axes = {"ids": {0: "b", 1: "t"}, "past_key": cached, "past_value": cached}
    return Case(Decoder(), arguments, axes, [(2, 3, 4), (2, 2, 7), (3, 5, 2), (1, 4, 60)])


def lstm() -> Case:
    return Case(Tagger(), lambda b, t: (torch.randn(b, t, 6),), {"x": {0: "b", 1: "t"}}, [(2, 5), (3, 9), (4, 2)])


def pooled() -> Case:
    def arguments(batch: int, length: int) -> tuple[Tensor, ...]:
        return torch.randn(batch, length, 4), (torch.rand(batch, length) > 0.3).float()

    axes = {"x": {0: "b", 1: "t"}, "mask": {0: "b", 1: "t"}}
    return Case(Pooled(), arguments, axes, [(2, 6), (3, 11), (5, 2)])


@pytest.fixture(autouse=True)
def _modules_as_they_are_written() -> Generator[None]:
    """Without kernels of PyTorch's own for whole layers, which no exporter knows."""
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(True)


@pytest.mark.skipif(not find_spec("onnxscript"), reason="needs onnxscript")
def test_an_exported_encoder_is_right_for_several_shapes() -> None:
    """Tracing writes the length that it has seen into the model."""
    torch.manual_seed(0)
    encoder().check(by_export)


@pytest.mark.parametrize("export", EXPORTERS)
@pytest.mark.parametrize("make", [decoder, lstm, pooled])
def test_exported_models_are_right_for_several_shapes(make: Callable[[], Case], export: Export) -> None:
    torch.manual_seed(0)
    make().check(export)


def test_a_decoder_that_is_given_back_its_caches_computes_what_one_run_does() -> None:
    """Token by token in a session, against all tokens at once in PyTorch."""
    torch.manual_seed(0)
    case = decoder()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = irc.compile(by_tracing(case.module, case.arguments(2, 3, 4), list(case.axes), case.axes))
        ids, key, value = case.arguments(2, 9, 1)
        expected = case.module(ids, key, value)[0].numpy()
        logits, present_key, present_value = (o.name for o in compiled.outputs)
        feeds = {"past_key": key.numpy(), "past_value": value.numpy()}
        for t in range(9):
            found = compiled.run({"ids": ids[:, t : t + 1].numpy(), **feeds})
            np.testing.assert_allclose(found[logits][:, 0], expected[:, t], rtol=2e-4, atol=2e-5)
            feeds = {"past_key": found[present_key], "past_value": found[present_value]}
