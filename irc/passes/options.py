"""Options of passes: the fields of their dataclasses, and how pipelines spell names and values."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from typing import Any, NoReturn, Union, cast, get_args, get_origin, get_type_hints

from irc.errors import misfit

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
