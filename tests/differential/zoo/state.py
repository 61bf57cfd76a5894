"""What keeps something between calls: buffers, attributes, shared storage, statistics."""

# TorchScript reads these annotations from the source: no `from __future__ import annotations` here.

from typing import Any, Optional

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
F: Any = torch.nn.functional


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


class Gain:
    def __init__(self, start: float) -> None:
        self.weight = torch.full((3,), start)
        self.calls = 0


class Gains:
    def __init__(self, start: float) -> None:
        self.first = Gain(start)


class Instances(nn.Module):
    """Attributes that are objects of classes, one of which takes the place of another."""

    def __init__(self) -> None:
        super().__init__()
        torch.jit.script(Gains)  # or else its instances are nothing that an attribute may be
        self.now = Gains(1.0)
        self.next = Gains(2.0)

    def forward(self, x):
        gain = self.now.first
        gain.calls += 1
        y = x * gain.weight + gain.calls
        if gain.calls > 1:
            self.now = self.next
        self.now.first.weight.add_(1)
        return y


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


class Lists(nn.Module):
    """Lists that become one with others: of another attribute, in one another, in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.a: list[torch.Tensor] = [torch.ones(1)]
        self.b: list[torch.Tensor] = [torch.ones(1)]
        self.nested: list[list[torch.Tensor]] = [[torch.ones(1)]]
        self.named: dict[str, list[int]] = {"x": [1]}
        self.pair: tuple[list[int], int] = ([1], 2)

    def forward(self, x):
        self.a.append(x)
        self.nested.append(self.nested[0])
        self.nested[-1].append(x)
        self.pair[0].append(2)
        counts = [len(self.b), len(self.named["x"])]
        for inner in self.nested:
            counts.append(len(inner))  # TorchScript's way
        self.b = self.a
        self.named["x"] = self.pair[0]
        return counts, self.b


class TwoOfOne(torch.nn.Module):
    """Tensors that are one, or of one memory: ``u``, ``u.data``, ``u[:]``, ``u`` again, and one in a list."""

    many: list[torch.Tensor]

    def __init__(self, turn: str) -> None:
        super().__init__()
        self.register_buffer("u", torch.arange(6.0).reshape(2, 3))
        self.register_buffer("again", self.u)
        self.register_buffer("part", self.u[:])
        self.register_buffer("row", self.u[1])
        self.many = [self.u.data, self.u, self.part]
        self.turn = turn

    def forward(self, x: torch.Tensor):
        if self.turn == "data":
            self.many[0].t_()
        elif self.turn == "u":
            self.u.unsqueeze_(0)
        elif self.turn == "again":
            self.again.transpose_(-1, -2)
        else:
            self.part.t_().add_(x)
        self.row.add_(x)
        return self.u, self.again, self.part, self.row, self.many
