"""The present state of objects, in a module's own terms, so that a saved file continues from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from irc.errors import Error
from irc.ir.objects import Object
from irc.ir.storages import named_tensors
from irc.runtime.values import Array, Instance, is_array, is_mapping, is_sequence, is_tuple


def snapshot(instances: Mapping[str, Instance]) -> dict[str, Object]:
    """The objects that ``instances`` are now. Their arrays are copied; those that share memory still do.

    Raises:
        Error: IRC142 an object or a list is the attribute of several, which no module can say; IRC143 an array that it
            cannot hold.
    """
    arrays: dict[str, Array] = {}
    _objects(instances, lambda path, array: arrays.setdefault(path, array))
    tensors = named_tensors(arrays)
    return _objects(instances, lambda path, _: tensors[path])


def _objects(instances: Mapping[str, Instance], change: Callable[[str, Array], Any]) -> dict[str, Object]:
    """The objects with what ``change`` gives for the path of each array and the array."""
    seen: set[int] = set()

    def rebuilt(value: Any, path: str) -> Any:
        if is_array(value):
            return change(path, value)
        if is_mapping(value) or isinstance(value, Instance) or (is_sequence(value) and not is_tuple(value)):
            if id(value) in seen:
                what = f"object {value}" if isinstance(value, Instance) else "dict" if is_mapping(value) else "list"
                raise Error("IRC142", f"the {what} is an attribute more than once", f"attribute {path!r}")
            seen.add(id(value))
        if isinstance(value, Instance):
            return Object(value.type, {name: rebuilt(v, f"{path}.{name}") for name, v in value.attributes.items()})
        if is_sequence(value):
            items = [rebuilt(v, f"{path}.{i}") for i, v in enumerate(value)]
            return tuple(items) if is_tuple(value) else items
        if is_mapping(value):
            return {k: rebuilt(v, f"{path}.{k!r}") for k, v in value.items()}
        return value

    return {name: rebuilt(instance, name) for name, instance in instances.items()}
