"""The one table of passes: name -> class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from irc.errors import Error, did_you_mean
from irc.passes.options import fault
from irc.support.lazy import import_deferred
from irc.support.plugins import PASSES, entry_points, load

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from irc.passes.base import Pass

_PASSES: dict[str, type[Pass]] = {}

_LATE = {"fuse": "irc.fuser.fuse.Fuse"}
"""Passes of layers above, which enter them when they are imported: the names are theirs from the beginning."""

_UNFUSED = "inline,(freeze,canonicalize,constant-fold)*4,conv-bn-fold,cse,dce,constant-pool,growable"

PIPELINES = {"none": "", "unfused": _UNFUSED, "default": f"{_UNFUSED},fuse,dce"}
"""Pipelines with a name of their own, usable wherever a pass is: ``default,in-place``."""

P = TypeVar("P", bound="type[Pass]")


def register(pass_class: P) -> P:
    """Enter a pass class under its ``name``; usable as a decorator. IRC304 if it is no pass class or the name is taken.

    A class of the same module and name replaces the earlier one: the definition has been run again.
    """
    wrong = fault(pass_class)
    if wrong:
        raise Error("IRC304", f"this cannot be registered as a pass: {wrong}", getattr(pass_class, "__qualname__", ""))
    name, path = pass_class.name, _path(pass_class)
    if name in PIPELINES:
        raise Error("IRC304", f"a pass cannot be called {name!r}: a pipeline is", path)
    first = _LATE.get(name) or (_path(_PASSES[name]) if name in _PASSES else path)
    if first != path:
        raise Error("IRC304", f"two passes are called {name!r}: {first} and {path}", name)
    _PASSES[name] = pass_class
    return pass_class


def find(name: str) -> type[Pass] | None:
    """The class of the pass called ``name``, loaded from its entry point if need be; None if there is none."""
    if name not in _PASSES:
        import_deferred()
    found = _PASSES.get(name)
    if found is None:
        for offer in entry_points(PASSES):
            if offer.name == name:
                return _load(offer)
    return found


def names() -> list[str]:
    """The names of all passes, installed plug-ins included, sorted."""
    import_deferred()
    return sorted({*_PASSES, *(offer.name for offer in entry_points(PASSES))})


def create(name: str, options: dict[str, Any] | None = None) -> Pass:
    """The pass called ``name`` with its fields set from ``options``; IRC301 if there is no pass of that name."""
    found = find(name)
    if found is None:
        raise Error("IRC301", unknown(name))
    return found(**(options or {}))


def unknown(name: str) -> str:
    """The error message for a pass that does not exist."""
    if name in PIPELINES:
        return f"{name!r} is a pipeline, not a pass; parse_pipeline gives its passes"
    known = names()
    hint = suggest(name, [*known, *PIPELINES])
    return f"no pass is called {name!r}{hint}; passes are: {', '.join(known)}; pipelines: {', '.join(PIPELINES)}"


def suggest(name: str, known: list[str]) -> str:
    """``" (did you mean 'x'?)"`` for the known name closest to ``name``, or ""."""
    hint = did_you_mean(name, known)
    return hint and f" ({hint})"


def _load(offer: EntryPoint) -> type[Pass]:
    loaded = load(offer, f"the plug-in pass {offer.name!r}")
    wrong = fault(loaded) or (f"its name is {loaded.name!r}" if loaded.name != offer.name else "")
    if wrong:
        raise Error("IRC304", f"the plug-in must be a pass class whose name is {offer.name!r}: {wrong}", offer.value)
    return register(cast("type[Pass]", loaded))


def _path(pass_class: type[Pass]) -> str:
    return f"{pass_class.__module__}.{pass_class.__qualname__}"
