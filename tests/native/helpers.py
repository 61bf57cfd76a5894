"""Loop bodies of tests, compiled for each target and called without any layer in between."""

from __future__ import annotations

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
from irc.native.lanes import Emitter, Lanes
from irc.native.loops import Access, Body, Space, Step, emit, space_of
from irc.native.target import CPU, named

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


class Function(Body):
    """The body that ``compute`` emits: lanes of the operands -> lanes of the results."""

    def __init__(self, compute: Callable[..., Sequence[Lanes]]) -> None:
        self._compute = compute

    def compute(self, emitter: Emitter, operands: Sequence[Lanes]) -> list[Lanes]:
        return list(self._compute(*operands))


def run_loop(code: Code, space: Space, arrays: Sequence[Array], begin: int = 0, end: int | None = None) -> None:
    """Call a loop function."""
    pointers = np.array([x.ctypes.data for x in arrays], np.int64)
    layout = np.array(space.layout, np.int64)
    stop = space.sizes[0] if end is None else end
    _LOOP(code.address)(pointers.ctypes.data, layout.ctypes.data, begin, stop)


def compiled(body: Body, space: Space, arrays: Sequence[Array], results: int, cpu: str = THIS) -> Code:
    """The code of ``body`` over ``space`` for operands and results like ``arrays``, made once for each kind of them."""
    accesses = list(space.accesses([x.dtype for x in arrays]))
    for i in range(len(arrays) - results, len(arrays)):
        accesses[i] = Access(arrays[i].dtype, Step.DENSE)  # also where there is one element
    return _code(body, tuple(accesses), results, len(space.sizes), cpu)


@lru_cache(maxsize=256)
def _code(body: Body, accesses: tuple[Access, ...], results: int, depth: int, cpu: str) -> Code:
    text, needs = emit("irc.test", body, accesses, results, depth, named(cpu))
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
