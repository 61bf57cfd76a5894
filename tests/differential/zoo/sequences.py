"""What looks at sequences: attention, transformers, recurrent layers."""

# TorchScript reads these annotations from the source: no `from __future__ import annotations` here.

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn


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
