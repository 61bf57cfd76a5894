"""Iterations of loops on arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest

import irc
from irc.ir import parse_graph
from irc.native import iterations
from irc.runtime.control_flow import Stack
from tests.native.guarded import ENDS, guarded, guarded_empty
from tests.native.test_loops import SCAN, TORCH, f32, torch_feeds


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("rows", [1, 5])
def test_rows(rows, end, monkeypatch):
    """Of sequences, of scan outputs, and what the body makes."""
    graph = parse_graph(SCAN.replace("OPTIONS", "").replace("Float(5, 7)", "Float(*, 7)"))
    native, plain = (irc.compile(graph, passes="none", backend=name) for name in ("native", "numpy"))
    feeds = {"s": f32(7), "x": f32(rows, 7), "k": f32(7)}
    wanted = plain.run(feeds)
    given = {name: guarded(x, end, is_read_only=True) for name, x in feeds.items()}
    buffers = []

    def buffer_for(stack, count, dtype, shape):
        if stack._buffer is None:
            stack._buffer = guarded_empty((count, *shape), dtype, end)
            buffers.append(stack._buffer)
        return stack._buffer

    def memory(nbytes):
        return guarded_empty((nbytes,), np.dtype(np.uint8), end)[:]

    native.run(given)
    monkeypatch.setattr(Stack, "buffer_for", buffer_for)
    monkeypatch.setattr(iterations, "aligned_bytes", memory)
    for _ in range(3):
        found = native.run(given)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
    assert native.counters.compiled == 1
    assert len(buffers) == 6


@pytest.mark.parametrize("end", ENDS)
def test_torchscript(end, monkeypatch):
    lines = """%v : Float(*, 6) = aten::select(%z, %one, %i)
      %m : Float(*, 6) = aten::addmm(%v, %a, %w, %one, %one)
      %s : Float(*, 6) = aten::tanh(%m)
      %t : Float(*, 6) = aten::sub(%s, %c, %half)"""
    graph = parse_graph(TORCH.replace("LINES", f"      {lines}").replace("RETURNS", "%true, %t, %s"))
    native, plain = (irc.compile(graph, passes="none", backend=name) for name in ("native", "numpy"))
    feeds = torch_feeds()
    wanted = plain.run(feeds)
    given = {k: guarded(x, end, is_read_only=True) if isinstance(x, np.ndarray) else x for k, x in feeds.items()}
    native.run(given)
    monkeypatch.setattr(iterations, "aligned_bytes", lambda n: guarded_empty((n,), np.dtype(np.uint8), end)[:])
    for _ in range(3):
        for name, value in native.run(given).items():
            np.testing.assert_allclose(value, wanted[name], rtol=1e-5, atol=1e-5)
    assert native.counters.compiled == 1
