"""What TorchScript allows around tensors: containers, control flow, numbers, texts, objects."""

# TorchScript reads these annotations from the source: no `from __future__ import annotations` here.

import math
from typing import Any, NamedTuple, Optional

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
F: Any = torch.nn.functional


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


class Outcome(NamedTuple):
    logits: torch.Tensor
    loss: torch.Tensor | None = None
    name: str = "x(,)"


class Recorded(nn.Module):
    """A part that torch's profiler would name, and a result with fields that have defaults."""

    def forward(self, x):
        with torch.autograd.profiler.record_function("twice"):
            y = x * 2
        return Outcome(y + 1, y)


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
