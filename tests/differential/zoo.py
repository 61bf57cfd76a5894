"""Modules of many kinds, and inputs for them: what people write, and corners of what TorchScript allows."""

# TorchScript reads these annotations from the source: no `from __future__ import annotations` here.

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
F: Any = torch.nn.functional

Case = tuple[Callable[[], Any], list[Any]]


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(3, 2, 1))
        self.stages = nn.ModuleList([Residual(8, 8), Residual(8, 16, 2)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(torch.flatten(self.pool(x), 1))


class InvertedResidual(nn.Module):
    """Depthwise convolutions, hard activations, squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Conv2d(4, 12, 1)
        self.depth = nn.Conv2d(12, 12, 5, padding=2, groups=12)
        self.squeeze = nn.Conv2d(12, 3, 1)
        self.excite = nn.Conv2d(3, 12, 1)
        self.project = nn.Conv2d(12, 4, 1)

    def forward(self, x):
        y = F.hardswish(self.depth(F.hardswish(self.expand(x), inplace=True)), inplace=True)
        scale = F.adaptive_avg_pool2d(y, 1)
        scale = F.hardsigmoid(self.excite(F.relu6(self.squeeze(scale))))
        return x + self.project(y * scale)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, 2, 1)
        self.middle = nn.Sequential(nn.Conv2d(4, 4, 3, 1, 1), nn.GroupNorm(2, 4), nn.SiLU(), nn.InstanceNorm2d(4))
        self.up = nn.ConvTranspose2d(4, 2, 4, 2, 1)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        y = self.up(self.middle(self.down(x)))
        dy = x.size(2) - y.size(2)
        dx = x.size(3) - y.size(3)
        y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        y = F.interpolate(y, size=[x.shape[2], x.shape[3]], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.out(torch.cat([x, y], dim=1)))


class Attention(nn.Module):
    """Written out, with a mask filled in place."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, n, w = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (w // self.heads) ** -0.5
        mask = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        scores.masked_fill_(mask, float("-inf"))
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, w))


class GPT(nn.Module):
    """Token and position embeddings, two blocks, and the token embedding's weight again as the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.positions = nn.Parameter(torch.randn(1, 12, 8))
        self.blocks = nn.ModuleList([Attention(8, 2), Attention(8, 2)])
        self.norms = nn.ModuleList([nn.LayerNorm(8), nn.LayerNorm(8)])
        self.feed = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 8))
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[:, : ids.size(1)]
        for block, norm in zip(self.blocks, self.norms):
            x = x + block(norm(x))
        return self.head(x + self.feed(x))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.encoder(x)


class MultiHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, q, k):
        return self.attention(q, k, k)


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        made = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind]
        self.rnn = made(4, 5, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.rnn(x)


class Cells(nn.Module):
    """A loop over time that gathers what it makes in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 3)
        self.gru = nn.GRUCell(3, 3)

    def forward(self, x):
        h = torch.zeros(x.size(1), 3)
        c = torch.zeros(x.size(1), 3)
        g = torch.zeros(x.size(1), 3)
        steps: list[torch.Tensor] = []
        for t in range(x.size(0)):
            h, c = self.cell(x[t], (h, c))
            g = self.gru(h, g)
            steps.append(g)
        return torch.stack(steps), (h, c)


class Cache(nn.Module):
    """Keys and values of earlier calls, written into buffers, and a number that counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(4, 4)
        self.register_buffer("keys", torch.zeros(2, 8, 4))
        self.register_buffer("last", self.keys[:, -1], persistent=False)
        self.count = 0

    def forward(self, x):
        n = x.size(1)
        self.keys[:, self.count : self.count + n] = self.project(x)
        self.count += n
        self.last.add_(1)
        return self.keys[:, : self.count].sum(1), self.keys, self.count


class Tied(nn.Module):
    """One storage under several names and views; one of them is written."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3, bias=False)
        self.b = nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("transposed", self.a.weight.detach().t())
        self.register_buffer("row", self.a.weight.detach()[1])
        self.register_buffer("same", self.a.weight.detach())

    def forward(self, x):
        y = self.a(x)
        self.row.mul_(2)
        z = self.b(y) + F.linear(x, self.transposed)
        return z + self.same.sum(), self.same


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"one": nn.Linear(3, 3), "two": nn.Tanh()})
        self.parameters_ = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(2)])
        self.sizes = [1, 2, 3]
        self.names = {"a": 1, "b": 2}
        self.pair = (2, 0.5)

    def forward(self, x, extra: Optional[torch.Tensor] = None) -> dict[str, torch.Tensor]:  # noqa: UP045
        out: dict[str, torch.Tensor] = {}
        for name, layer in self.layers.items():
            x = layer(x)
            out[name] = x
        if extra is not None:
            x = x + extra
        for i, size in enumerate(self.sizes):
            x = x * size + i
        number, factor = self.pair
        out["last"] = x * factor + number + self.names["b"]
        for key in sorted(out.keys()):
            if key != "last":
                out[key] = out[key] + 1
        del out["two"]
        return out


class Views(nn.Module):
    """Writes through views of what was given and of what was made."""

    def forward(self, x):
        y = x.clone()
        rows = y.view(-1)
        rows[::2] = 0.0
        y.transpose(0, 1)[1] += 10
        parts = torch.split(y, 1, dim=0)
        for part in parts:
            part.mul_(2)
        diagonal = y[:, :3].diagonal()
        diagonal.fill_(7.0)
        y[y > 6.5] = -1.0
        y[:, torch.tensor([0, 2])] = y[:, torch.tensor([2, 0])]
        z = y.narrow(0, 1, 2).expand(3, 2, 4).contiguous()
        z.zero_()
        x.sub_(1)
        return y, rows, x.t(), z


class Control(nn.Module):
    """Branches and loops on numbers and on tensors, break, continue, early returns, exceptions not taken."""

    def forward(self, x, n: int, flag: bool = True):
        if x.dim() != 2:
            raise ValueError(f"two dimensions, not {x.dim()}")
        total = torch.zeros_like(x)
        i = 0
        while i < n:
            i += 1
            if i % 3 == 0:
                continue
            if i > 7:
                break
            total += x * i if flag else x / i
        if bool((total > 1000).any()):
            return total * 0
        assert n >= 0, "counts do not go below zero"
        k = n
        while float(total.abs().sum()) > 10 and k > 0:
            total = total * 0.5
            k -= 1
        return total + k


class Words(nn.Module):
    """Strings, lists, dicts, numbers: what scripted code does around tensors."""

    def forward(self, x):
        text = "a,b,c"
        count: dict[str, int] = {}
        for word in text.split(","):
            count[word] = len(word) + 1
        lengths = [len(k) * 2 for k in count]
        lengths.extend([1, 2])
        lengths.reverse()
        lengths.insert(1, 9)
        popped = lengths.pop()
        name = "{}-{}".format(popped, "x".upper()) + str(sum(lengths))
        shape = list(x.shape)
        pairs = [(i, float(s)) for i, s in enumerate(shape)]
        best = max([p[1] for p in pairs])
        return x * best + len(name), name, shape, 7 // -2, -7 % 3, 2**3, round(2.5), int(-2.7)


class Counter(nn.Module):
    """An attribute that every call sets, on an object inside."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Cache()
        self.history = [7]
        self.scale = 1.5

    def forward(self, x):
        self.scale = self.scale * 2
        self.history.append(len(self.history))
        y, _, count = self.inner(x)
        return y * self.scale, count, self.history[-1]


class Norms(nn.Module):
    """Statistics that a run in training mode writes."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(4, momentum=0.3)
        self.average = nn.BatchNorm1d(4, momentum=None)
        self.instance = nn.InstanceNorm1d(4, track_running_stats=True)

    def forward(self, x):
        return self.instance(self.average(self.bn(x)))


class Half(nn.Module):
    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5).to(dtype)
        self.dtype = dtype

    def forward(self, x):
        return self.layer(x.to(self.layer.weight.dtype)).float().softmax(-1)


class Constants(nn.Module):
    """Tensors that a trace makes constants of."""

    def __init__(self) -> None:
        super().__init__()
        self.table = [torch.randn(5, 4), torch.arange(4) / 3]

    def forward(self, x):
        grid = torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")
        return x @ self.table[0] + self.table[1] + grid[0].sum() * torch.tensor(1.23456789012345, dtype=torch.float64)


class Boxes(nn.Module):
    """Decoding in place, a threshold, and suppression of what overlaps."""

    def forward(self, raw):
        x = raw.clone()
        x[..., :2].sigmoid_()
        x[..., 2:4].exp_().clamp_(max=4.0)
        corners = torch.cat([x[..., :2] - x[..., 2:4] / 2, x[..., :2] + x[..., 2:4] / 2], -1)
        scores = x[..., 4].sigmoid()
        order = scores.argsort(descending=True)
        corners = corners[order]
        area = (corners[:, 2:] - corners[:, :2]).prod(1)
        low = torch.max(corners[:, None, :2], corners[None, :, :2])
        high = torch.min(corners[:, None, 2:], corners[None, :, 2:])
        shared = (high - low).clamp(min=0).prod(2)
        overlap = shared / (area[:, None] + area[None, :] - shared)
        keep = torch.ones(corners.size(0), dtype=torch.bool)
        for i in range(corners.size(0)):
            if bool(keep[i]):
                keep[i + 1 :] &= overlap[i, i + 1 :] < 0.3
        return corners[keep], torch.nonzero(keep).squeeze(1), order


class Spectral(nn.Module):
    """Reductions, indexing and sorting."""

    def forward(self, x):
        values, indices = x.topk(3, dim=1)
        mean, deviation = x.mean(1, keepdim=True), x.std(1, keepdim=True)
        scattered = torch.zeros(x.size(0), 6).scatter_(1, indices, values)
        ranked = torch.sort((x - mean) / deviation, dim=1)
        gathered = x.gather(1, ranked.indices[:, :2])
        hot = F.one_hot(x.argmax(1), 6).float()
        return scattered, ranked.values.cumsum(1), gathered, hot @ x.t(), torch.einsum("bi,ci->bc", x, x)


class Sampler(nn.Module):
    def forward(self, x, grid):
        y = F.grid_sample(x, grid, align_corners=False)
        z = F.pixel_shuffle(x, 2)
        w = F.unfold(x, [2, 2], stride=[2, 2])
        v = F.interpolate(x, scale_factor=2.0, mode="nearest") + F.interpolate(x, scale_factor=2.0, mode="bicubic")
        return y, z, w, F.avg_pool2d(v, 2, ceil_mode=True), F.log_softmax(x, 1)


class CallsPython(torch.nn.Module):
    @torch.jit.ignore
    def look(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def forward(self, x):
        return self.look(x)


class Pair(NamedTuple):
    left: torch.Tensor
    number: int


class Named(nn.Module):
    def forward(self, x):
        pair = Pair(x * 2, 3)
        return pair.left + pair.number, pair


class Total:
    """An object that scripted code makes and changes."""

    def __init__(self, start: torch.Tensor) -> None:
        self.total = start
        self.count = 0

    def add(self, x: torch.Tensor) -> None:
        self.total = self.total + x
        self.count += 1


class Objects(nn.Module):
    def forward(self, x):
        total = Total(x)
        for i in range(3):
            total.add(x * i)
        return total.total * total.count


class Contexts(nn.Module):
    """Without gradients, and in another task."""

    def forward(self, x):
        future = torch.jit.fork(torch.neg, x)
        with torch.no_grad():
            y = x * 2
        return y + torch.jit.wait(future)


class Lazy(nn.Module):
    """An attribute that is None until the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = torch.jit.Attribute(None, Optional[torch.Tensor])  # noqa: UP045
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        mask = self.mask
        mask = torch.ones_like(x) if mask is None else mask + 1
        self.mask = mask
        return self.layer(x) * mask


class Places(nn.Module):
    """Element types, devices, tensors made of numbers."""

    def forward(self, x):
        y = torch.zeros(4, dtype=torch.float32, device=x.device)
        if x.device == torch.device("cpu"):
            y = y + 1
        if x.dtype == torch.float32:
            y += 2
        if x.is_cuda:
            y += 100
        made = torch.tensor([[1, 2], [3, 4]]), torch.full((2,), 3), torch.arange(3.0), torch.linspace(0, 1, 4)
        return y + x.to(torch.float64).to("cpu"), made, torch.zeros_like(x, dtype=torch.int64), torch.empty(0).numel()


class Indexing(nn.Module):
    def forward(self, x):
        rows = [row * 2 for row in x.unbind(0)]
        picked = {i: x[i] for i in range(2)}
        return rows, picked, x[None], x[..., 0], x[:, None, ::2], x[-1], x[torch.tensor([0, 1])], x[x > 0]


class Numbers(nn.Module):
    def forward(self, a: float, n: int):
        floats = (math.sqrt(a), math.exp(a), math.log(a), math.pow(a, 2), math.cos(a), a // 2, a**n, n / 2, abs(-a))
        ints = (math.floor(a), math.ceil(a), n // 2, -n // 2, n % 3, n**2, -n, n << 2, n & 3, n | 8, n ^ 1, round(a))
        rest = (min(n, 2), max(a, 1.0), math.pi, math.inf, bool(n), float(n), math.isnan(a), sum([1, 2]), any([False]))
        return floats, ints, rest


class Texts(nn.Module):
    def forward(self, x):
        pieces = ("%d %s" % (3, "q"), f"{x.size(0)} {1.5} {True}", "a" + "b", "abc"[1], " x ".strip())  # noqa: UP031
        more = ("a-b".replace("-", "+"), ",".join(["q", "w"]), str(1.0), chr(98), "q".upper())
        return pieces, more, "abc".startswith("a"), "abc".find("c"), int("12"), float("1.5"), ord("a"), "Q" in "QW"


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
    "norms": (Norms, [torch.randn(6, 4, 3)]),
    "float16": (lambda: Half(torch.float16), [torch.randn(3, 6)]),
    "bfloat16": (lambda: Half(torch.bfloat16), [torch.randn(3, 6)]),
    "boxes": (Boxes, [torch.randn(12, 6)]),
    "reductions": (Spectral, [torch.randn(4, 6)]),
    "named tuples": (Named, [torch.randn(2, 3)]),
    "objects": (Objects, [torch.randn(2, 3)]),
    "contexts": (Contexts, [torch.randn(2, 3)]),
    "made when called": (Lazy, [torch.randn(2, 4)]),
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
