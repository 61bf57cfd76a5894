"""``python -m benchmarks.runtime caches``: extending key/value caches by a position.

24 caches, float32 [1, 12, T, 64], each joined with new rows [1, 12, 1, 64] by a
Concat: what the steps of a decoder of 12 layers do to its caches. `irc.Session`
keeps them and extends them in place; others are given them as arrays and give
longer ones back.

Aims: the bytes that irc copies a step do not depend on T; at T = 4,096 a step
takes at most 1/200 of what ONNX Runtime's takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

import irc
from benchmarks import peers
from benchmarks.race import race
from benchmarks.results import Row, against_peers
from irc.runtime import GrowableArray

CACHES = 24
LENGTHS = (64, 256, 1024, 4096)
STEPS = 32
"""How many steps of irc's are timed together: a decoder makes many, one takes less than what lies around the clock, and
the first one after others had the processor takes half as long again."""

TURNS = 7

ALLOCATING = 3.0
"""How much more others take where no freed memory of that size is left, which depends on what ran before: noise."""

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]


def model(caches: int = CACHES) -> onnx.ModelProto:
    """A Concat for each cache, from ``past_*`` and ``new`` to ``present_*``."""
    nodes = [helper.make_node("Concat", [f"past_{i}", "new"], [f"present_{i}"], axis=2) for i in range(caches)]
    inputs = [_declared(f"past_{i}", "past") for i in range(caches)] + [_declared("new", 1)]
    graph = helper.make_graph(nodes, "caches", inputs, [_declared(f"present_{i}", "total") for i in range(caches)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _declared(name: str, length: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 12, length, 64])


NEW = {"new": np.ones((1, 12, 1, 64), np.float32)}


def feeds(length: int, caches: int = CACHES) -> dict[str, Array]:
    """Caches of ``length`` positions and what to extend them by."""
    return {f"past_{i}": np.zeros((1, 12, length, 64), np.float32) for i in range(caches)} | NEW


def session(compiled: irc.CompiledModel, given: Feeds) -> irc.Session:
    """A session some steps after ``given``: where its caches have reserve."""
    made = irc.Session(compiled)
    made.run(given, outputs=())
    for _ in range(2):
        made.run(NEW, outputs=())
    return made


def copied(compiled: irc.CompiledModel, given: Feeds) -> int:
    """The bytes that a step of a session copies."""
    made = session(compiled, given)
    made.run(NEW, outputs=())
    return made.counters.copied_bytes


def _steps(made: irc.Session) -> None:
    for _ in range(STEPS):
        made.run(NEW, outputs=())


def _grow(arrays: list[GrowableArray]) -> None:
    for _ in range(STEPS):
        for array in arrays:
            array.append(NEW["new"])


def _numpy(given: Feeds) -> list[Array]:
    return [np.concatenate((array, given["new"]), 2) for name, array in given.items() if name != "new"]


def measure(lengths: tuple[int, ...] = LENGTHS, turns: int = TURNS, caches: int = CACHES) -> list[Row]:
    """Bytes that irc copies a step, by length; microseconds a step of each contender, of the shortest and longest."""
    proto = model(caches)
    compiled = irc.compile(proto)
    runners = peers.runners(proto)
    rows = [Row(f"caches/{n}/copied", copied(compiled, feeds(n, caches)), "bytes/step") for n in lengths]
    return rows + [row for n in (lengths[0], lengths[-1]) for row in _timed(n, compiled, runners, turns, caches)]


def _timed(
    length: int, compiled: irc.CompiledModel, runners: Mapping[str, Callable[[Any], Any]], turns: int, caches: int
) -> list[Row]:
    given = feeds(length, caches)

    def grown() -> list[GrowableArray]:
        return [GrowableArray(array, 2, length + STEPS) for name, array in given.items() if name != "new"]

    several = {"irc": (_steps, lambda: session(compiled, given)), "irc, GrowableArray alone": (_grow, grown)}
    contenders: dict[str, Callable[[Any], Any]] = {name: run for name, (run, _) in several.items()}
    contenders |= {"numpy": _numpy, **runners}
    samples, _ = race(contenders, lambda name: several[name][1]() if name in several else given, turns, warm=True)
    each = {name: [s / (STEPS if name in several else 1) for s in taken] for name, taken in samples.items()}
    rows = against_peers(f"caches/{length}", each, "us/step", scale=1e6)
    return [
        row._replace(noise=row.noise + ALLOCATING * (contender not in several)) for contender, row in zip(each, rows)
    ]
