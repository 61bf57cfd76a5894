"""Random programs that run, as a hypothesis strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from irc.ir import Graph, Module, Value, types
from tests.programs import (
    any_steps,
    container_steps,
    control_steps,
    heavy_steps,
    layout_steps,
    list_steps,
    onnx_steps,
    opaque_steps,
    slice_steps,
    torch_steps,
    union_steps,
)
from tests.programs.kinds import BOOL, FLOAT, LONG, Bag, Boxed, Kind, Seq, Tens, ir_type
from tests.programs.maker import Maker

FEATURES = {
    **torch_steps.STEPS,
    **onnx_steps.STEPS,
    **heavy_steps.STEPS,
    **layout_steps.STEPS,
    **slice_steps.STEPS,
    **opaque_steps.STEPS,
    **container_steps.STEPS,
    **list_steps.STEPS,
    **control_steps.STEPS,
    **any_steps.STEPS,
    **union_steps.STEPS,
}
"""Families of steps; each program uses a few, so that it is deep in what it is about."""

STEADY = tuple(feature for feature in FEATURES if feature not in opaque_steps.STEPS)
"""Those whose results do not depend on what ran before."""

USUAL = tuple(f for f in STEADY if f != torch_steps.METADATA)
"""Those that leave shapes and strides of tensors alone: passes do little for programs that do not."""

Functions = list[tuple[str, tuple[Kind, ...], tuple[Kind, ...]]]


class ProgramMaker(Maker):
    """A maker that knows all steps."""

    def __init__(self, *arguments: Any, features: list[str], functions: Functions) -> None:
        super().__init__(*arguments)
        self.functions = functions
        self._steps = [FEATURES[feature] for feature in features]

    def steps(self, count: int) -> None:
        for _ in range(count):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.pick(self.pick(self._steps))(self)


@dataclass(repr=False)
class Program:
    """A module and what to feed it.

    Attributes:
        module: its main graph takes tensors.
        buffers: the memory that the inputs lie in; several may lie in one buffer.
        views: for each input its buffer, offset, shape, and whether it lies there transposed.
    """

    module: Module
    buffers: list[np.ndarray[Any, Any]]
    views: list[tuple[int, int, tuple[int, ...], bool]]

    @property
    def graph(self) -> Graph:
        return self.module.main

    def memory(self) -> list[np.ndarray[Any, Any]]:
        """A fresh copy of all buffers."""
        return [b.copy() for b in self.buffers]

    def inputs(self, memory: list[np.ndarray[Any, Any]] | None = None) -> list[np.ndarray[Any, Any]]:
        """The inputs, as views of ``memory``."""
        memory = self.memory() if memory is None else memory
        found = []
        for buffer, offset, shape, turned in self.views:
            flat = memory[buffer][offset : offset + int(np.prod(shape))]
            found.append(flat.reshape(shape[::-1]).T if turned else flat.reshape(shape))
        return found

    def refilled(self, seed: int) -> Program:
        """The same on inputs of other contents: branches may go other ways."""
        rng = np.random.default_rng(seed)
        return replace(self, buffers=[rng.integers(-3, 4, b.shape).astype(b.dtype) for b in self.buffers])

    def __repr__(self) -> str:
        inputs = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.inputs())
        return f"Program with inputs {inputs}\n{self.module}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows a program."""
        printer.text(repr(self))


INPUTS = (
    Tens(FLOAT, (2, 3)),
    Tens(FLOAT, (3,)),
    Tens(FLOAT, (3, 2)),
    Tens(FLOAT, (1, 2, 3, 3)),
    Tens(LONG, (2, 2)),
    Tens(BOOL, ()),
    Tens(FLOAT, (1, 3)),
)


@st.composite
def programs(draw: st.DrawFn, features: tuple[str, ...] = USUAL, size: int = 40, dense: bool = False) -> Program:
    """A program of up to about ``size`` steps, which verifies.

    Args:
        draw: hypothesis'.
        features: the families of steps to choose from.
        size: how many steps all its graphs have together, at most.
        dense: take all of the families, and many steps rather than few.
    """
    module = Module()
    functions: Functions = []
    chooser = Maker(draw, module.main, module, 0)
    chosen = [f for f in features if dense or not chooser.below(3)] or list(features)
    least = size // 3 if dense else 1
    wide = tuple(t for feature in chosen for t in any_steps.WIDE.get(feature, ()))
    if "calls" in chosen:
        for i in range(chooser.between(1, 2)):
            maker = ProgramMaker(
                draw, module.add_graph(f"f{i}"), module, max(6, least), features=chosen, functions=list(functions)
            )
            maker.wide = wide
            functions.append(_function(maker))
    maker = ProgramMaker(draw, module.main, module, size, features=chosen, functions=functions)
    maker.wide = wide
    buffers, views = _inputs(maker)
    maker.trusted = maker.below(3) != 2
    maker.steps(maker.between(least, size))
    _outputs(maker)
    module.verify()
    return Program(module, buffers, views)


_DENSE = (
    "torch",
    "torch views",
    "torch writes",
    "onnx",
    "onnx",
    "onnx views",
    "constants",
    "shapes",
    "lists",
    "branches",
    "loops",
    "onnx loops",
    "calls",
    "groups",
    "again",
)

dense = programs(_DENSE, size=24, dense=True)
"""Programs of many steps, of all of a few families: what shares, writes, branches and calls, close together."""

joins = programs(
    ("joins", "joins", "torch", "torch views", "torch writes", torch_steps.METADATA, "lists", "branches", "loops"),
    size=24,
    dense=True,
)
"""Programs that concatenate and stack much."""

lasting = programs((*opaque_steps.STEPS, *_DENSE), size=24, dense=True)
"""The same with operators that are unknown, whose results depend on what ran before."""

turning = programs(
    (
        torch_steps.METADATA,
        torch_steps.METADATA,
        "torch",
        "torch views",
        "torch writes",
        "lists",
        "branches",
        "loops",
        "calls",
        "again",
    ),
    size=24,
    dense=True,
)
"""Programs that change shapes and strides in place."""


def _function(m: ProgramMaker) -> tuple[str, tuple[Kind, ...], tuple[Kind, ...]]:
    choices: tuple[Kind, ...] = (INPUTS[0], Tens(FLOAT, (2, 3), frozen=True), INPUTS[1], INPUTS[5], Seq(INPUTS[0], 1))
    choices += tuple(Boxed(INPUTS[:1], wide) for wide in m.wide)
    lists = (Seq(INPUTS[0], 1), *(Bag(INPUTS[:1], wide) for wide in m.wide))
    keeps = not m.below(2 if m.wide else 3)
    kinds = [INPUTS[0], m.pick(lists)] if keeps else [m.pick(choices) for _ in range(m.between(1, 3))]
    m.define([m.graph.add_input(ir_type(k, False), f"p{i}") for i, k in enumerate(kinds)], kinds)
    if keeps:  # the caller's list is given something, which is taken out again
        if isinstance(kinds[1], Bag):
            torch_steps.unary(m)
            any_steps.put_and_take(m)
        else:
            if m.flip():
                torch_steps.unary(m)
            m.pick(list_steps.STORES)(m)
            container_steps.get_item(m)
    m.steps(m.between(1, m.budget))
    returns = [m.choose(m.newest_first()) for _ in range(m.between(0, 4))]
    if not m.below(4):  # of three that are equal, the caller gets two, and may write into either
        control_steps.thrice(m)
        returns = [*returns[:2], *m.scope[-2:]]
    m.graph.set_outputs(returns)
    return m.graph.name, tuple(kinds), tuple(m.kind(v) for v in returns)


def _inputs(m: Maker) -> tuple[list[np.ndarray[Any, Any]], list[tuple[int, int, tuple[int, ...], bool]]]:
    """Inputs with known, named or unknown sizes; some lie in the same memory, some are transposed."""
    buffers: list[np.ndarray[Any, Any]] = []
    views: list[tuple[int, int, tuple[int, ...], bool]] = []
    says = m.below(3)
    for i in range(m.between(1, 4)):
        kind = m.pick(INPUTS)
        shape: tuple[Any, ...] = kind.shape
        if says == 1:
            shape = tuple(_SIZES[n] if m.flip() else n for n in shape)
        of_type = types.tensor(kind.dtype, shape) if says < 2 else types.tensor(kind.dtype)
        if m.wide and not m.below(3):
            boxed = Boxed((kind,), m.pick(m.wide))
            m.define([m.graph.add_input(boxed.type, f"x{i}")], [boxed])
        else:
            m.define([m.graph.add_input(of_type, f"x{i}")], [kind])
        shared = [j for j, b in enumerate(buffers) if b.dtype == kind.dtype.numpy]
        together = m.flip() if m.wide else m.below(3) == 2
        buffer = m.pick(shared) if shared and together else len(buffers)
        if buffer == len(buffers):
            buffers.append(m.array((24,), kind.dtype))
        offset = m.below(24 - int(np.prod(kind.shape)) + 1)
        views.append((buffer, offset, kind.shape, m.below(4) == 3))
    return buffers, views


_SIZES = {1: "one", 2: "two", 3: "three"}
"""Names of sizes, as in a model with named dimensions."""


def _outputs(m: Maker) -> None:
    """Return some values: results mostly, but inputs and lists of tensors too."""
    candidates: list[Value] = m.candidates(
        lambda k: isinstance(k, Tens) or (isinstance(k, Seq) and isinstance(k.elem, Tens))
    )
    unused = [v for v in candidates if not v.has_uses]
    found = [*unused[: m.between(1, 12)], *m.some(candidates[:3])] or [m.tensor()]
    m.graph.set_outputs(dict.fromkeys(found))
    for i, value in enumerate(m.graph.outputs):
        if value.node is not None and m.below(3):
            value.name = f"out {i}"
