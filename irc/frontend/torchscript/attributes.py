"""What the attributes of the objects that a graph is given are: one tree for each input of a class type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from irc.errors import Error
from irc.frontend.torchscript.storages import named_tensors
from irc.ir import Graph, Module, Node, Value
from irc.ir.objects import Object, is_enumeration
from irc.ir.tensor import Array, Tensor
from irc.ir.types import NONE, ClassType, ListType, OptionalType, Type
from irc.wording import count

Read = Callable[[tuple[str, ...], Type], Any]
"""``(path, type)``: the attribute at a path from the object that a graph is given: an array, a Python value, or
lists, tuples and dicts of them; raises KeyError if there is none."""

READERS = ("prim::GetAttr", "prim::SetAttr")


def bind_attributes(module: Module, read: Read) -> None:
    """Enter into ``module.objects`` every attribute that its main graph reads or sets.

    Raises:
        Error: IRC141 lists the attributes that there are not; IRC142 a value that cannot be an attribute; IRC143 a
            tensor that irc cannot hold.
    """
    reader = _Reader(read)
    for value in module.main.inputs:
        if isinstance(value.type, ClassType) and not is_enumeration(value.type):
            module.objects[value.name] = reader.objects[value, ()] = Object(value.type)
    reader.graph(module.main)
    if reader.missing:
        shown = ", ".join(list(reader.missing)[:8]) + (", ..." if len(reader.missing) > 8 else "")
        attributes = count(len(reader.missing), "attribute")
        message = f"no value is given for {attributes} that the graph reads: {shown}"
        raise Error("IRC141", f"{message}; add them to weights=", module.main.name)
    tensors = named_tensors(reader.arrays, module.weights)
    for object in reader.objects.values():
        object.attributes = {name: _with_tensors(v, tensors) for name, v in object.attributes.items()}


@dataclass(frozen=True)
class _Slot:
    """Stands for a tensor until it is known which tensors share memory."""

    name: str


@dataclass
class _Reader:
    read: Read
    objects: dict[tuple[Value, tuple[str, ...]], Object] = field(default_factory=dict[Any, Object])
    arrays: dict[str, Array] = field(default_factory=dict[str, Array])
    missing: dict[str, None] = field(default_factory=dict[str, None])

    def graph(self, graph: Graph) -> None:
        """Nodes come after those whose results they use: an object is known before its attributes are read."""
        place: dict[Value, tuple[Value, tuple[str, ...]]] = {v: (v, ()) for v, path in self.objects if not path}
        for node in graph.walk():
            if node.kind not in READERS or node.inputs[0] not in place:
                continue
            root, path = place[node.inputs[0]]
            name = str(node.attributes.get("name", ""))
            inner = (*path, name)
            if node.outputs and is_enumeration(node.output.type):
                raise Error("IRC142", f"irc has no enumerations, such as {node.output.type}", f"attribute {name!r}")
            if node.kind == "prim::GetAttr" and isinstance(node.output.type, ClassType):
                place[node.output] = root, inner
                self._object(node, root, path, name)
            elif name not in self.objects[root, path].attributes:
                self._attribute(node, self.objects[root, path], inner)

    def _object(self, node: Node, root: Value, path: tuple[str, ...], name: str) -> None:
        type = node.output.type
        assert isinstance(type, ClassType)
        if (root, (*path, name)) not in self.objects:
            made = self.objects[root, (*path, name)] = Object(type)
            self.objects[root, path].attributes[name] = made

    def _attribute(self, node: Node, owner: Object, path: tuple[str, ...]) -> None:
        type = node.outputs[0].type if node.outputs else node.inputs[1].type
        dotted = ".".join(path)
        try:
            value = self.read(path, type)
        except KeyError:
            if isinstance(type, OptionalType) or type == NONE:
                value = None
            elif node.kind == "prim::SetAttr":
                return  # set before it is read, or never read
            else:
                self.missing[dotted] = None
                return
        owner.attributes[path[-1]] = self._value(value, type, dotted)

    def _value(self, value: Any, type: Type, path: str) -> Any:
        """``value`` as an attribute holds it, with slots for tensors."""
        if isinstance(value, Tensor):
            value = value.numpy()
        if value is None or isinstance(value, bool | int | float | complex | str):
            return value
        if isinstance(value, np.generic):
            return cast("Any", value).item()
        if hasattr(value, "__array__"):
            self.arrays[path] = _array(value, path)
            return _Slot(path)
        elem = type.elem if isinstance(type, ListType) else type
        if isinstance(value, list | tuple):
            items = [self._value(v, elem, f"{path}.{i}") for i, v in enumerate(cast("list[Any]", value))]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, Mapping):
            entries = cast("Mapping[Any, Any]", value).items()
            return {k: self._value(v, elem, f"{path}.{k}") for k, v in entries}
        raise Error("IRC142", f"irc cannot hold an attribute of {value.__class__}", f"attribute {path!r}")


def _array(value: Any, path: str) -> Array:
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses tensors that need gradients, say
        raise Error("IRC143", f"NumPy cannot read it: {error}", f"attribute {path!r}") from None


def _with_tensors(value: Any, tensors: Mapping[str, Any]) -> Any:
    if isinstance(value, _Slot):
        return tensors[value.name]
    if isinstance(value, list | tuple):
        items = [_with_tensors(v, tensors) for v in cast("list[Any]", value)]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {k: _with_tensors(v, tensors) for k, v in cast("dict[Any, Any]", value).items()}
    return value
