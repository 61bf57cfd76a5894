"""The present state of objects, in a module's own terms, so that a saved file continues from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irc.errors import Error
from irc.ir.objects import Object
from irc.ir.storages import named_tensors
from irc.runtime.objects import mapped
from irc.runtime.values import Array, is_array, is_mapping, is_sequence, is_tuple


def snapshot(instances: Mapping[str, Object]) -> dict[str, Object]:
    """The objects that ``instances`` are now. Their arrays are copied; those that share memory still do.

    Raises:
        Error: IRC142 an object or a list is the attribute of several, which no module can say; IRC143 an array that it
            cannot hold.
    """
    arrays: dict[str, Array] = {}
    seen: set[int] = set()

    def noted(value: Any, path: str) -> Any:
        if is_array(value):
            arrays[path] = value
        elif isinstance(value, Object) or is_mapping(value) or (is_sequence(value) and not is_tuple(value)):
            if id(value) in seen:
                what = f"object {value}" if isinstance(value, Object) else "dict" if is_mapping(value) else "list"
                raise Error("IRC142", f"the {what} is an attribute more than once", f"attribute {path!r}")
            seen.add(id(value))
        return value

    for name, each in instances.items():
        mapped(each, noted, name)
    tensors = named_tensors(arrays)
    return {
        name: mapped(each, lambda v, path: tensors[path] if is_array(v) else v, name)
        for name, each in instances.items()
    }
