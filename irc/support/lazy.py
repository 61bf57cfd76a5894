"""Imports that are postponed until they are needed."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_PROVIDERS: dict[str, str] = {}


def provide(name: str, module: str) -> None:
    """Let ``module``, of a higher layer, be what a lower one asks for as ``name``."""
    _PROVIDERS[name] = module


def provided(name: str) -> "Any":
    """The module that provides ``name``, imported when it is first asked for."""
    from importlib import import_module

    return import_module(_PROVIDERS[name])


def lazy_getattr(package: str, names: "Mapping[str, str]") -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """``__getattr__`` and ``__dir__`` of a package whose names are imported on first use.

    Args:
        package: its name.
        names: each with the module that defines it; "" for the package's own modules.
    """

    def find(name: str) -> "Any":
        from importlib import import_module

        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not names[name]:
            return import_module(f"{package}.{name}")
        found = vars(sys.modules[package])[name] = getattr(import_module(names[name]), name)
        return found

    return find, lambda: sorted({*vars(sys.modules[package]), *names})
