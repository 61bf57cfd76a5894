"""Where kernels are found: operator kind and version -> binder.

A *binder* is called once, when a graph is lowered: it reads the node's
attributes and returns the *kernel*, a plain function of arrays that is called
at each run. So running never looks at attributes, names or versions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, TypeVar

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.ir.kinds import CONSTANT, CONTROL_FLOW, SUBGRAPHS
from irc.ops.plugins import check_callable, check_kind, is_foreign
from irc.ops.registry import of_kind, record, records
from irc.ops.scalar import module_line
from irc.runtime.kernels.support import numpy_dtype

Kernel = Callable[..., Any]
"""Takes one argument an input (an ndarray; None for an absent optional input; a
list for a sequence) and returns the node's output, or a tuple of them if the
node does not have exactly one."""

Binder = Callable[["Node"], Kernel]
Reader = Callable[["Node"], Any]
"""Gives what a kernel is to know of a node; error IRC320 if that is not in order."""

F = TypeVar("F", bound=Kernel)

_BINDERS: dict[str, tuple[list[int], list[Binder]]] = {}
_PLACES: dict[tuple[str, int], tuple[str, int]] = {}
"""Kind and ``since`` of irc's own kernels -> module and line that have registered them: most go through a table."""

_LOADED: set[str] = set()

PREPARES = "prepares"
"""Attribute of kernels that can be given something made of several operands instead of the first of these: the numbers
of those operands, and a function of them that makes it, an array or several. It is called once for constants."""


def kernel(kind: str, *, since: int = 1, place: tuple[str, int] | None = None) -> Callable[[Binder], Binder]:
    """Register a binder for ``kind``, for operator versions from ``since`` on.

    It serves every version up to the next registered ``since`` of that kind.
    For ONNX operators versions are ``since_version`` numbers. Of two with the same ``since`` the later one
    counts, and irc's own always come first. ``place`` is the module and line that it is made from, if that is not
    where it is registered. IRC304 if the binder is not a function, ``kind`` not the name of a kind, or
    ``since`` not a positive integer.
    """
    check_kind("a kernel", kind)
    if since.__class__ is not int or since < 1:
        raise Error("IRC304", f"a kernel is for operator versions from a positive integer on, not {since!r}", kind)

    def register(binder: Binder) -> Binder:
        check_callable("a kernel's binder", kind, binder)
        if is_foreign(binder):
            _load(module_of(kind))
            _PLACES.pop((kind, since), None)
        else:
            _PLACES[kind, since] = place or module_line()
        sinces, binders = _BINDERS.setdefault(kind, ([], []))
        at = bisect_right(sinces, since)
        sinces.insert(at, since)
        binders.insert(at, binder)
        return binder

    return register


def computes(*kinds: str, since: int = 1, read: Mapping[str, Reader] | None = None, **more: Reader) -> Callable[[F], F]:
    """Make a function the kernel of ``kinds``, for operator versions from ``since`` on, as `kernel` does.

    Its keyword-only parameters are the node's attributes of these names, of the type of the default if that is a bool
    or a number; those without a default must be given. ``outputs`` is how many results the node has. ``read`` and
    ``more`` give what is not an attribute as it stands.

    They are read once, when the kernel is bound, and become the defaults of a copy of the function: a call of that
    costs no more than one of the function itself.
    """

    def register(run: F) -> F:
        bind = _reading(run, {**(read or {}), **more})
        for kind in kinds:
            kernel(kind, since=since)(bind)
        return run

    return register


def _reading(run: Any, readers: dict[str, Reader]) -> Binder:
    code: CodeType = run.__code__
    defaults: dict[str, Any] = run.__kwdefaults__ or {}
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    read = {
        name: readers.get(name) or _OF_NODES.get(name) or attribute(name, defaults.get(name, _REQUIRED))
        for name in names
        if name != "out"
    }

    def bind(node: Node) -> Kernel:
        return bound(run, **{name: reader(node) for name, reader in read.items()})

    return bind if read else lambda node: run


def bound(run: Any, **given: Any) -> Kernel:
    """A copy of ``run`` with these defaults of keyword-only parameters, as fast to call as ``run``."""
    made = FunctionType(run.__code__, run.__globals__, run.__name__, run.__defaults__, run.__closure__)
    made.__kwdefaults__ = (run.__kwdefaults__ or {}) | given
    made.__dict__.update(run.__dict__)
    return made


_OF_NODES: dict[str, Reader] = {"outputs": lambda node: len(node.outputs)}


_REQUIRED = object()


def attribute(name: str, default: Any = _REQUIRED) -> Reader:
    """Reads an attribute, as an element of the type of ``default`` if that is a bool or a number."""
    convert = type(default) if isinstance(default, (bool, int, float)) else None

    def read(node: Node) -> Any:
        value = node.attributes.get(name, default)
        if value is _REQUIRED:
            raise Error("IRC320", f"the attribute {name} is missing")
        return value if convert is None else convert(value)

    return read


def one_of(name: str, default: Any, choices: Iterable[Any]) -> Reader:
    """Reads an attribute that is one of ``choices``."""
    known = tuple(choices)

    def read(node: Node) -> Any:
        value = node.attributes.get(name, default)
        if value not in known:
            raise Error("IRC320", f"{name} is {value!r}; it must be one of {', '.join(map(repr, known))}")
        return value

    return read


def always(value: Any) -> Reader:
    """Gives ``value``, whatever the node."""
    return lambda node: value


def at_least(name: str, least: int, default: Any = _REQUIRED) -> Reader:
    """Reads an attribute that is an integer from ``least`` on."""
    given = attribute(name, default)

    def read(node: Node) -> int:
        value = given(node)
        if value < least:
            raise Error("IRC320", f"{name} is {value}; it must be at least {least}")
        return value

    return read


def element_type(name: str, default: int | None = None) -> Reader:
    """Reads an attribute that is a number of ONNX's as an element type; None if it may be absent, and is."""

    def read(node: Node) -> np.dtype[Any] | None:
        number = node.attributes.get(name, default)
        return None if number is None else numpy_dtype(number)

    return read


def find_binder(kind: str, version: int | None) -> Binder | None:
    """The binder for ``kind`` at ``version`` (None: the newest), or None if irc has no own kernel."""
    _load(module_of(kind))
    entry = _BINDERS.get(kind)
    if entry is None:
        return None
    sinces, binders = entry
    at = len(sinces) if version is None else bisect_right(sinces, version)
    return binders[at - 1] if at else None


def binders(kind: str) -> dict[int, Binder]:
    """The binders for ``kind`` that are in effect, by the versions that they start at."""
    find_binder(kind, None)
    return dict(zip(*_BINDERS.get(kind, ((), ()))))


def place_of(kind: str, since: int) -> tuple[str, int] | None:
    """Module and line that registered the binder for ``kind`` from ``since`` on; None if not irc's."""
    return _PLACES.get((kind, since))


def registered() -> dict[str, tuple[int, ...]]:
    """Every kind with a kernel of irc's own, and the versions its binders start at."""
    for module in all_modules():
        _load(module)
    return {kind: tuple(sinces) for kind, (sinces, _) in sorted(_BINDERS.items())}


def takes_out(kernel: Kernel) -> bool:
    """Whether ``kernel`` takes ``out=``, an array of the result's shape and type."""
    return isinstance(kernel, FunctionType) and _has(kernel.__code__, "out")


def takes_outs(kernel: Kernel) -> bool:
    """Whether ``kernel`` can be given the arrays for all of its results, as ``outs=``."""
    return isinstance(kernel, FunctionType) and _has(kernel.__code__, "outs")


@cache
def _has(code: CodeType, name: str) -> bool:
    """Whether functions with this code, shared by a binder's kernels, have a parameter of this name."""
    return name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


@of_kind
def module_of(kind: str) -> str:
    """The module of this package that registers the kernels of ``kind``; "" if irc has none.

    It is imported when the first node of the kind is bound: a model uses few of the modules, and importing all of them
    takes longer than compiling a small model.
    """
    namespace = kind.partition("::")[0]
    return record(kind).kernel or (namespace if namespace in _WHOLE and kind not in _LOWERED else "")


_WHOLE = ("aten", "prim")
"""Namespaces with one module for all operators whose records name none."""

_LOWERED = CONTROL_FLOW | SUBGRAPHS | {CONSTANT}
"""Kinds of any model's nodes that have no kernels: lowering deals with them."""


def all_modules() -> list[str]:
    """All modules that register kernels."""
    return sorted({*_WHOLE, *(each.kernel for each in records() if each.kernel)})


def _load(module: str) -> None:
    if module and module not in _LOADED:
        import_module(f"{__package__}.{module}")
        _LOADED.add(module)
