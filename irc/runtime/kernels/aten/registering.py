"""How torch's operators get their kernels.

A kernel takes its arguments in the order of the schema; trailing ones that
have defaults may be left out. Overloads of one operator are told apart by how
many arguments there are and by what they are, so one function serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from inspect import Parameter, signature
from types import FunctionType, ModuleType
from typing import Any

from irc.errors import Error
from irc.ir import Node
from irc.ops import record
from irc.runtime.kernels.aten.element_types import refusing
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array

Shorten = Callable[[Kernel], Kernel]


def aten(
    *names: str, takes: tuple[Kernel, ...] = (), shorten: Shorten | None = None, place: tuple[str, int] | None = None
) -> Callable[[Kernel], Kernel]:
    """Make a function the kernel of ``aten::name`` for each of ``names``.

    Args:
        names: without ``aten::``.
        takes: functions that take the same arguments, if the kernel itself takes any and hands them on.
        shorten: wraps the checked kernel in one that takes a short way for common operands, without its checks.
        place: the module and line of the kernel, if that is not where it is registered.
    """

    def register(run: Kernel) -> Kernel:
        for name in names:
            _register(name, lambda node: _fitting(run, takes or (run,), node), shorten, place)
        return run

    return register


_BINDERS: dict[str, Callable[[Node], Kernel]] = {}
"""By names without ``aten::``."""


def _register(
    name: str,
    binder: Callable[[Node], Kernel],
    shorten: Shorten | None = None,
    place: tuple[str, int] | None = None,
) -> None:
    _BINDERS[name] = binder

    def bind(node: Node) -> Kernel:
        run = refusing(name, binder(node), [v.type for v in node.inputs])
        return run if shorten is None else shorten(run)

    kernel(f"aten::{name}", place=place)(bind)


@cache
def _most_arguments(run: Kernel) -> float:
    """How many arguments a kernel takes at most."""
    try:
        parameters = signature(run).parameters.values()
    except ValueError:  # of a builtin that does not tell
        return float("inf")
    if any(p.kind is Parameter.VAR_POSITIONAL for p in parameters):
        return float("inf")
    return sum(p.kind is not Parameter.KEYWORD_ONLY for p in parameters)


def _fitting(run: Kernel, takes: tuple[Kernel, ...], node: Node) -> Kernel:
    """``run``, or a kernel that refuses an overload with more arguments, such as ``out=``.

    It refuses when it is called: a model with such a node in a branch that is never taken runs.
    """
    given = len(node.inputs)
    if given <= max(map(_most_arguments, takes)):
        return run

    def refuse(*arguments: Any, out: Array | None = None) -> Any:
        raise Error("IRC423", f"irc does not know the overload of {node.kind} that has {given} arguments")

    return refuse


def named(module: ModuleType) -> None:
    """Register the public functions of ``module`` that are called as operators which have no kernel yet."""
    for name, run in list(vars(module).items()):
        is_own = isinstance(run, FunctionType) and run.__module__ == module.__name__ and not name.startswith("_")
        if is_own and name not in _BINDERS and record(f"aten::{name}").rows:
            aten(name, place=(module.__name__, run.__code__.co_firstlineno))(run)


def table(**kernels: Kernel) -> None:
    """Register each of ``kernels`` under its name."""
    for name, run in kernels.items():
        aten(name)(run)


def by_node(*names: str) -> Callable[[Callable[[Node], Kernel]], Any]:
    """Register a binder, for what depends on the node's outputs."""

    def register(binder: Callable[[Node], Kernel]) -> Any:
        for name in names:
            _register(name, binder)
        return binder

    return register


def complete(names: Iterable[str], suffix: str, finish: Callable[[Array, Any], Any]) -> None:
    """Give the forms of ``names`` with ``suffix`` that have no kernel of their own one by that without it.

    ``finish`` makes the result: of the first operand, and of what the kernel of ``name`` gives.
    """
    for name in names:
        if f"{name}{suffix}" not in _BINDERS:
            _register(f"{name}{suffix}", _finished(_BINDERS[name], finish))


def _finished(binder: Callable[[Node], Kernel], finish: Callable[[Array, Any], Any]) -> Callable[[Node], Kernel]:
    def bind(node: Node) -> Kernel:
        compute = binder(node)

        def run(x: Array, *arguments: Any) -> Any:
            return finish(x, compute(x, *arguments))

        return run

    return bind


def copied(_: Array, shown: Array | list[Array]) -> Any:
    """What a view shows, or each of several, laid out row by row."""
    return [part.copy() for part in shown] if isinstance(shown, list) else shown.copy()


def one(run: Callable[[Any], Any]) -> Kernel:
    """A kernel of one argument: gives the type checker what a lambda in a table does not say."""
    return run


def two(run: Callable[[Any, Any], Any]) -> Kernel:
    """A kernel of two arguments."""
    return run


def three(run: Callable[[Any, Any, Any], Any]) -> Kernel:
    """A kernel of three arguments."""
    return run
