"""How torch's operators get their kernels.

A kernel takes its arguments in the order of the schema; trailing ones that
have defaults may be left out. Overloads of one operator are told apart by how
many arguments there are and by what they are, so one function serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from irc.runtime.kernels.registry import Kernel, kernel

if TYPE_CHECKING:
    from irc.ir import Node


def aten(*names: str) -> Callable[[Kernel], Kernel]:
    """Make a function the kernel of ``aten::name`` for each of ``names``."""

    def register(run: Kernel) -> Kernel:
        for name in names:
            kernel(f"aten::{name}")(lambda node: run)
        return run

    return register


def table(kernels: Mapping[str, Kernel]) -> None:
    """Register each of ``kernels`` under its name."""
    for name, run in kernels.items():
        aten(name)(run)


def by_node(*names: str) -> Callable[[Callable[[Node], Kernel]], Any]:
    """Register a binder, for what depends on the node's outputs."""

    def register(binder: Callable[[Node], Kernel]) -> Any:
        for name in names:
            kernel(f"aten::{name}")(binder)
        return binder

    return register


def one(run: Callable[[Any], Any]) -> Kernel:
    """A kernel of one argument: gives the type checker what a lambda in a table does not say."""
    return run


def two(run: Callable[[Any, Any], Any]) -> Kernel:
    """A kernel of two arguments."""
    return run


def three(run: Callable[[Any, Any, Any], Any]) -> Kernel:
    """A kernel of three arguments."""
    return run
