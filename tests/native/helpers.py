"""Loop bodies of tests, compiled for each target and called without any layer in between."""

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irc.native.cache import ObjectCache
from irc.native.jit import Code, Jit
from irc.native.lanes import Lanes, computed
from irc.native.loops import Space, space_of
from irc.native.nests import Access, Shape, Step, emit
from irc.native.primitives import PRIMITIVES
from irc.native.programs import Domain, Leaf, Program, Result, schedule
from irc.native.target import CPU, named
from irc.ops.algebra import Apply, Operand, Primitive

Array = np.ndarray[Any, Any]
CPUS = ("", "x86-64")
"""The machine's processor, and one with neither AVX nor FMA."""

THIS = os.environ.get(CPU, "")
"""What tests compile for unless they say otherwise."""

_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@cache
def jit(cpu: str) -> Jit:
    """Compiles for ``cpu`` without a cache."""
    return Jit(ObjectCache(None), named(cpu))


class Function:
    """Primitives that ``compute`` emits: lanes of the operands -> lanes of the results."""

    def __init__(self, compute: Callable[..., Sequence[Lanes]]) -> None:
        self._compute = compute

    def results(self, operands: Sequence[np.dtype[Any]], dtypes: Sequence[np.dtype[Any]]) -> list[Result]:
        """Each result as a primitive of its own, entered into the emitters of primitives."""
        leaves = tuple(Operand(i, computed(dtype)) for i, dtype in enumerate(operands))
        found: list[Result] = []
        for i, dtype in enumerate(dtypes):
            name = f"test.{id(self)}.{i}"
            PRIMITIVES[name] = lambda *lanes, number=i: list(self._compute(*lanes))[number]
            found.append(Result(Apply(Primitive(name, len(leaves)), leaves, computed(dtype)), dtype, ()))
        return found


def run_loop(code: Code, space: Space, arrays: Sequence[Array], begin: int = 0, end: int | None = None) -> None:
    """Call a loop function."""
    pointers = np.array([x.ctypes.data for x in arrays], np.int64)
    layout = np.array([*space.sizes, 0, 0, *(n for each in space.strides for n in each)], np.int64)
    stop = space.sizes[0] if end is None else end
    _LOOP(code.address)(pointers.ctypes.data, layout.ctypes.data, begin, stop)


def compiled(body: Function, space: Space, arrays: Sequence[Array], results: int, cpu: str = THIS) -> Code:
    """The code of ``body`` over ``space`` for operands and results like ``arrays``, made once for each kind of them."""
    accesses: list[Access] = []
    for i, (x, strides) in enumerate(zip(arrays, space.strides, strict=True)):
        is_dense = strides[-1] == x.itemsize or i >= len(arrays) - results  # also where there is one element
        accesses.append(Access(x.dtype, Step.DENSE if is_dense else Step.APART if strides[-1] else Step.NONE))
    return _code(body, tuple(accesses), results, len(space.sizes), cpu)


@lru_cache(maxsize=256)
def _code(body: Function, accesses: tuple[Access, ...], results: int, depth: int, cpu: str) -> Code:
    operands, made = accesses[: len(accesses) - results], accesses[len(accesses) - results :]
    found = body.results([x.dtype for x in operands], [x.dtype for x in made])
    leaves = [Leaf(i, x.dtype, ((0, -1),)) for i, x in enumerate(operands)]
    program = Program(Domain(1, (-1,)), leaves, found, list(range(results)))
    lanes = named(cpu).lanes(max(x.dtype.itemsize for x in accesses))
    form = Shape(accesses, False, 0, depth, 0, lanes, False)
    text, needs = emit("irc.test", program, schedule(program, lambda _: False), form, named(cpu))
    return jit(cpu).load("irc.test", text, lambda: (text, needs))


def compute(
    body: Callable[..., Sequence[Lanes]], operands: Sequence[Array], dtypes: Sequence[np.dtype[Any]], cpu: str = THIS
) -> list[Array]:
    """The results of types ``dtypes`` that ``body`` makes of operands whose shapes broadcast."""
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    arrays = [*operands, *(np.empty(shape, dtype) for dtype in dtypes)]
    space = space_of(shape, [(x.shape, x.strides) for x in arrays])
    run_loop(compiled(Function(body), space, arrays, len(dtypes), cpu), space, arrays)
    return arrays[len(operands) :]


class Pacing:
    """A guard of a run without limits, which counts how often long work asks for the time."""

    def __init__(self) -> None:
        self.times = 0

    def pace(self) -> None:
        self.times += 1

    def allocate(self, size: int) -> None:
        pass

    def work(self, products: int) -> None:
        pass

    def keeps(self, size: int) -> bool:
        return True
