"""Operators from other packages, loaded when a node of their namespace is first met."""

from __future__ import annotations

from threading import RLock

from irc.errors import Error, error_text, last_line, misfit, package_of
from irc.ir.kinds import DOMAINS
from irc.support.plugins import OPERATORS, entry_points, load

_PACKAGE = package_of(__name__)
_OWN = ("aten", "irc", "prim", *DOMAINS)

_CALLED_WITH = {"a shape rule": ("types",), "an alias rule": ("rec", "node"), "a kernel's binder": ("node",)}
"""The arguments of what is registered for operators."""

_done: set[str] = set(_OWN)
_loading: set[str] = set()
_lock = RLock()


def load_for(kind: str) -> None:
    """Load the packages that provide the namespace of ``kind``, if any; IRC304 if one cannot be loaded."""
    namespace = kind.rpartition("::")[0]
    if namespace in _done:
        return
    with _lock:
        if namespace in _done or namespace in _loading:  # its own import asks for what it registers
            return
        _loading.add(namespace)
        try:
            _load(namespace)
            _done.add(namespace)
        finally:
            _loading.discard(namespace)


def load_all() -> dict[str, Error]:
    """Load all that packages provide; for each namespace that cannot be loaded, the error."""
    broken: dict[str, Error] = {}
    for namespace in dict.fromkeys(entry.name for entry in entry_points(OPERATORS)):
        try:
            load_for(f"{namespace}::")
        except Error as error:
            broken[namespace] = error
    return broken


def check_kind(what: str, kind: object, default: str = "") -> str:
    """``kind``, to be registered for ``what``, with namespace or else ``default``; IRC304 if malformed."""
    if isinstance(kind, str):
        namespace, _, name = kind.rpartition("::")
        if (namespace or (default and "::" not in kind)) and name:
            return f"{namespace or default}::{name}"
    raise Error("IRC304", f"{what} is registered for a kind such as 'com.example::Scale', not for {kind!r}")


def check_callable(what: str, kind: str, function: object) -> None:
    """IRC304 unless ``function``, registered for ``kind``, can be called as such are."""
    if callable(function) and not is_foreign(function):  # irc's own are many, and in order
        return
    wrong = misfit(what, function, *_CALLED_WITH[what])
    if wrong:
        raise Error("IRC304", wrong, kind)


def is_foreign(function: object) -> bool:
    """Whether ``function`` is not irc's own."""
    return package_of(getattr(function, "__module__", "")) != _PACKAGE


def origin(function: object) -> tuple[str, str]:
    """The module that defines ``function``, and its name there."""
    return str(getattr(function, "__module__", function)), str(getattr(function, "__qualname__", ""))


def name_of(function: object) -> str:
    """The module and name of a function, for messages."""
    return (
        f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function.__class__.__qualname__)}"
    )


def fault_of(error: BaseException, function: object) -> str:
    """The message of ``error``, and the last line in the package of ``function`` that ran before it."""
    package = package_of(getattr(function, "__module__", ""))
    place = last_line(error, lambda frame: package_of(frame.f_globals.get("__name__")) == package)
    return f"{error_text(error)}{place and f' ({place})'}"


def _load(namespace: str) -> None:
    for entry in entry_points(OPERATORS):
        if entry.name == namespace:
            load(entry, f"the plug-in of the operators {namespace}::")
