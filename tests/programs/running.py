"""Running programs and comparing what they compute."""

from typing import Any, NamedTuple

import numpy as np

from irc.ir import Block, Graph
from irc.runtime.plan import lower
from tests.programs import opaque_steps
from tests.programs.generator import Program
from tests.programs.interpreter import Env, Observer, arrays, interpret

EXACT = 1 << 22
"""Sums and products of integers below are exact in float32, in whatever order they are computed."""


class Run(NamedTuple):
    """What a run gave: its outputs, copied, the memory that the inputs lie in afterwards, and the opaque nodes run."""

    outputs: list[Any]
    memory: list[np.ndarray[Any, Any]]
    calls: list[str]


def copied(value: Any) -> Any:
    """``value`` with memory of its own, in which arrays lie as they did: views of them are then views again."""
    if isinstance(value, np.ndarray):
        return value.copy("K")
    if isinstance(value, dict):
        return {k: copied(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [*map(copied, value)] if isinstance(value, list) else tuple(map(copied, value))
    return value


def run(program: Program, graph: Graph | None = None) -> Run:
    """Run the plan of ``graph``, by default the program's own, on the program's inputs."""
    memory = program.memory()
    plan = lower(graph or program.graph)
    opaque_steps.reset()
    outputs = plan.run(program.inputs(memory))
    return Run(copied(outputs), memory, list(opaque_steps.calls))


class _Largest(Observer):
    """Keeps the largest absolute value that occurs."""

    def __init__(self) -> None:
        self.value = 0.0

    def left(self, block: Block, env: Env) -> None:
        for value in env.values():
            for array in arrays(value):
                if array.size and array.dtype.kind == "f":
                    largest = np.abs(array).max()
                    self.value = max(self.value, largest if np.isfinite(largest) else np.inf)


class Expected(NamedTuple):
    """What a program computes, by the interpreter, and how exact any other way to compute it must be."""

    run: Run
    largest: float

    def check(self, found: Run) -> None:
        """Fail unless ``found`` is the same."""
        for what, wanted, got in (
            ("outputs", self.run.outputs, found.outputs),
            ("inputs", self.run.memory, found.memory),
        ):
            check_same(wanted, got, what, self.largest)
        assert self.run.calls == found.calls, "opaque nodes"


def expected(program: Program, apart: bool = False) -> Expected:
    """Interpret ``program``; ``apart``: on inputs with memory of their own, which is how models see them."""
    memory, largest = program.memory(), _Largest()
    inputs = program.inputs(memory)
    opaque_steps.reset()
    outputs = interpret(program.graph, copied(inputs) if apart else inputs, largest)
    return Expected(Run(copied(outputs), memory, list(opaque_steps.calls)), largest.value)


def check_same(wanted: Any, got: Any, where: str = "", largest: float = 0) -> None:
    """Fail unless the values are equal: exactly, if no number in the run was larger than ``EXACT``."""
    if isinstance(wanted, list | tuple):
        assert len(wanted) == len(got), where
        for i, (a, b) in enumerate(zip(wanted, got)):
            check_same(a, b, f"{where}[{i}]", largest)
        return
    if not isinstance(wanted, np.ndarray):
        assert wanted == got, where
        return
    assert (wanted.dtype, wanted.shape) == (got.dtype, got.shape), where
    if largest < EXACT or wanted.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted, err_msg=where)
    elif largest < np.inf:  # what is left after infinities depends on the order of everything
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6 * largest, err_msg=where)
