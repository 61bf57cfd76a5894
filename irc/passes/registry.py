"""The one table of passes, and their options: the fields of their dataclasses."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from irc.errors import Error, did_you_mean, misfit
from irc.support.lazy import import_deferred
from irc.support.plugins import PASSES, entry_points, load

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from irc.passes.base import Pass


# Options of passes: the fields of their dataclasses, and how pipelines spell names and values.


_WORD = r"[^\s,={}()*\"]+"
_NAME = rf"\w(?:{_WORD})?"


def fault(pass_class: object) -> str:
    """What keeps ``pass_class`` from being the class of a pass; "" if nothing does."""
    if not isinstance(pass_class, type):
        return f"{pass_class!r} is no class"
    name = getattr(pass_class, "name", None)
    if not isinstance(name, str) or re.fullmatch(_NAME, name) is None:
        return f"its name is {name!r}, which a pipeline cannot spell"
    if not callable(getattr(pass_class, "run", None)):
        return "it has no method run"
    if not dataclasses.is_dataclass(pass_class) or pass_class.__hash__ is None:
        return "it is not decorated with @dataclass(frozen=True)"
    try:
        hints = get_type_hints(pass_class)
    except Exception as e:  # the hints are code of the pass's author
        return f"the types of its options cannot be read: {e}"
    for option, field in fields_of(pass_class).items():
        if not READERS.keys() >= set(alternatives(hints[field.name])):
            return f"its option {option!r} is of type {field.type}, not bool, int, float or str, or None besides"
    return _misfit(pass_class)


def _misfit(pass_class: type) -> str:
    """Why an object of this class cannot be made of its options, or ``run`` not be called; "" if both work."""
    options = [field.name for field in fields_of(pass_class).values()]
    try:
        takes = inspect.signature(pass_class)
        takes.bind(**dict.fromkeys(options))
    except TypeError as e:
        return f"it cannot be made of its options: {e}"
    methods: dict[str, tuple[str, ...]] = {"run": ("graph", "ctx")}
    if takes.parameters.keys() <= set(options):  # else these may be for __post_init__
        methods["__post_init__"] = ()
    functions = {name: inspect.getattr_static(pass_class, name, None) for name in methods}
    wrong = (misfit(n, f, "self", *methods[n]) for n, f in functions.items() if isinstance(f, types.FunctionType))
    return next(filter(None, wrong), "")


def fields_of(pass_class: type) -> dict[str, dataclasses.Field[Any]]:
    """The options of a pass, by the names that pipelines use."""
    return {kebab(f.name): f for f in dataclasses.fields(cast(Any, pass_class))}


def has_default(field: dataclasses.Field[Any]) -> bool:
    """Whether an option may be left out."""
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def defaults(pass_class: type) -> str:
    """The options of a pass with their defaults, as pipelines spell them: `` {max-size=64}``; "" without options."""
    options = [
        name if field.default is dataclasses.MISSING else f"{name}={print_value(field.default)}"
        for name, field in fields_of(pass_class).items()
    ]
    return f" {{{','.join(options)}}}" if options else ""


def check_not_negative(options: object) -> None:
    """ValueError if a number among the options of a pass is negative."""
    for name, field in fields_of(type(options)).items():
        value = getattr(options, field.name)
        if value < 0:
            raise ValueError(f"{name} must not be negative, but it is {value}")


def kebab(name: str) -> str:
    """A field's name as pipelines spell it."""
    return name.replace("_", "-")


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The types a hint allows, None first, so that ``str | None`` reads ``none`` as None."""
    found = get_args(hint) if get_origin(hint) in (types.UnionType, Union) else (hint,)
    return tuple(sorted(found, key=lambda t: t is not types.NoneType))


def print_value(value: object) -> str:
    """The value of an option as pipelines spell it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, str):
        return value if re.fullmatch(_WORD, value) and value != "none" else json.dumps(value)
    return repr(value)


def _read_bool(text: str) -> bool:
    return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse(text)


def _read_none(text: str) -> None:
    return None if text == "none" else _refuse(text)


def _read_str(text: str) -> str:
    return json.loads(text) if text.startswith('"') else text


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


READERS: dict[Any, Any] = {bool: _read_bool, int: int, float: float, str: _read_str, types.NoneType: _read_none}
"""Functions that read the values of options, by type; ValueError if a text is not of that type."""

NOUNS: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a word or string",
    types.NoneType: "none",
}


# The one table of passes: name -> class.


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
