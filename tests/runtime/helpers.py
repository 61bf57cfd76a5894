"""Building graphs from IR text and running them."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.ir import Graph, Module
from irc.ir.text.parser import parse_module
from irc.runtime.execution import Counters
from irc.runtime.model import CompiledModel
from irc.runtime.plan import lower


def module_of(text: str, weights: dict[str, np.ndarray], verify: bool = True) -> Module:
    module = parse_module(text, weights)
    if verify:
        module.verify()
    return module


def graph_of(text: str, *, verify: bool = True) -> Graph:
    return module_of(text, {}, verify).main


def model_of(text: str, **weights: np.ndarray) -> CompiledModel:
    return CompiledModel(module_of(text, weights))


def run(text: str, *inputs: Any, counters: Counters | None = None, verify: bool = True) -> list[Any]:
    """The outputs of the graph in ``text``, by its plan alone: no checks of inputs, no boundary."""
    return lower(graph_of(text, verify=verify)).run(list(inputs), counters)


def f32(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def i64(value: Any) -> np.ndarray:
    return np.array(value, np.int64)


def boolean(value: bool) -> np.ndarray:
    return np.array(value)
