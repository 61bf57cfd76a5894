"""The attributes of the objects that a graph is given: a tree for each input of a class type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from irc.errors import Error
from irc.ir import Array, Module, Node, Tensor, Value, with_subgraphs
from irc.ir.objects import EnumMember, Object, map_leaves, named_tensors, with_members
from irc.ir.types import NONE, ClassType, ListType, OptionalType, Type
from irc.support.formatting import count

Read = Callable[[tuple[str, ...], Type], Any]
"""``(path, type)``: the attribute at a path from the object that a graph is given: an array, a Python value, or
lists, tuples and dicts of them; raises KeyError if there is none."""

READERS = ("prim::GetAttr", "prim::SetAttr")

_Place = tuple[Value, tuple[str, ...]]
"""An input of the graph, and the names that lead from there to an object."""


def bind_attributes(module: Module, read: Read) -> None:
    """Enter into ``module.objects`` every attribute that its graphs read or set.

    Raises:
        Error: IRC141 lists the attributes that are missing; IRC142 a value that cannot be an attribute; IRC143 a
            tensor that irc cannot hold.
    """
    reader = _Reader(read)
    for value in module.main.inputs:
        if isinstance(value.type, ClassType):
            module.objects[value.name] = reader.objects[value, ()] = Object(value.type)
    reader.module(module)
    if reader.missing:
        shown = ", ".join(list(reader.missing)[:8]) + (", ..." if len(reader.missing) > 8 else "")
        attributes = count(len(reader.missing), "attribute")
        message = f"no value is given for {attributes} that the graph reads: {shown}"
        raise Error("IRC141", f"{message}; add them to weights=", module.main.name)
    tensors = named_tensors(reader.arrays, module.weights)
    for object in reader.objects.values():
        object.attributes = map_leaves(object.attributes, lambda v: tensors[v.name] if isinstance(v, _Slot) else v)


@dataclass(frozen=True)
class _Slot:
    """Stands for a tensor until it is known which tensors share memory."""

    name: str


@dataclass
class _Reader:
    read: Read
    objects: dict[_Place, Object] = field(default_factory=dict[Any, Object])
    arrays: dict[str, Array] = field(default_factory=dict[str, Array])
    missing: dict[str, None] = field(default_factory=dict[str, None])
    converted: dict[int, tuple[Any, Array]] = field(default_factory=dict[int, Any])
    """By identity, what was given and its array: what is given twice is one tensor."""

    def module(self, module: Module) -> None:
        """Nodes come after those whose results they use: an object is known before its attributes are read."""
        place: dict[Value, _Place] = {v: (v, ()) for v, path in self.objects if not path}
        asked: dict[Type, dict[str, Node]] = {}
        loose: dict[Type, None] = {}
        for node in (node for node in with_subgraphs(*module.graphs.values()) if node.kind in READERS):
            owner, name = node.inputs[0], _name(node)
            if node.outputs or name not in asked.get(owner.type, ()):
                asked.setdefault(owner.type, {})[name] = node
            if owner not in place:
                loose[owner.type] = None
                continue
            inner = self._enter(node, place[owner])
            if inner is not None:
                place[node.output] = inner
            elif not node.outputs and isinstance(node.inputs[1].type, ClassType):
                loose[node.inputs[1].type] = None
        if loose:
            self._loose(asked, list(loose))

    def _loose(self, asked: Mapping[Type, Mapping[str, Node]], classes: list[Type]) -> None:
        """Read attributes of objects whose paths are not known from all objects of these classes.

        Such an object was, for example, set, chosen by a branch, or given to a function. Missing attributes are left
        out.
        """
        for type in classes:
            held = [node.output.type for node in asked.get(type, {}).values() if node.outputs]
            classes += [t for t in held if isinstance(t, ClassType) and t not in classes]
        places = list(self.objects)
        for root, path in places:
            within = [self.objects[root, path[:i]].type for i in range(len(path) + 1)]
            for node in asked.get(within[-1], {}).values() if within[-1] in classes else ():
                if not node.outputs or node.output.type not in within:  # or else there is no end of them
                    known = len(self.objects)
                    inner = self._enter(node, (root, path), is_needed=False)
                    places += [inner] if inner is not None and len(self.objects) > known else []

    def _enter(self, node: Node, place: _Place, *, is_needed: bool = True) -> _Place | None:
        """Enter the object attribute that ``node`` reads or sets; the attribute's place if it is an object."""
        root, path = place
        inner = (*path, _name(node))
        owner = self.objects[place].attributes
        type = node.outputs[0].type if node.outputs else node.inputs[1].type
        if isinstance(type, ClassType):
            if not node.outputs:
                return None  # its earlier value, if any, is entered by the node that reads it
            if (root, inner) not in self.objects:
                owner[inner[-1]] = self.objects[root, inner] = Object(type)
            return root, inner
        if inner[-1] not in owner:
            is_read = is_needed and bool(node.outputs)  # and not set before it is read, or never read
            self._attribute(owner, inner, type, is_read)
        return None

    def _attribute(self, owner: dict[str, Any], path: tuple[str, ...], type: Type, is_read: bool) -> None:
        dotted = ".".join(path)
        try:
            value = self.read(path, type)
        except KeyError:
            if isinstance(type, OptionalType) or type == NONE:
                value = None
            else:
                if is_read:
                    self.missing[dotted] = None
                return
        owner[path[-1]] = self._value(with_members(value, type), type, dotted)

    def _value(self, value: Any, type: Type, path: str) -> Any:
        """``value`` as an attribute holds it, with slots for tensors."""
        if is_plain(value):
            return value
        if isinstance(value, np.generic):
            return cast("Any", value).item()
        if hasattr(value, "__array__") or isinstance(value, Tensor):
            if id(value) not in self.converted:
                self.converted[id(value)] = value, _array(value, path)
            self.arrays[path] = self.converted[id(value)][1]
            return _Slot(path)
        elem = type.elem if isinstance(type, ListType) else type
        if isinstance(value, list | tuple):
            items = [self._value(v, elem, f"{path}.{i}") for i, v in enumerate(cast("list[Any]", value))]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, Mapping):
            entries = cast("Mapping[Any, Any]", value).items()
            return {k: self._value(v, elem, f"{path}.{k}") for k, v in entries}
        raise Error("IRC142", f"irc cannot hold an attribute of {value.__class__}", f"attribute {path!r}")


def is_plain(value: Any) -> bool:
    """Whether ``value`` is a number, a string, a member of an enumeration or None."""
    return value is None or isinstance(value, bool | int | float | complex | str | EnumMember)


def _name(node: Node) -> str:
    """The attribute that ``node`` reads or sets."""
    return str(node.attributes.get("name", ""))


def _array(value: Any, path: str) -> Array:
    try:
        return value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses tensors that need gradients, say
        raise Error("IRC143", f"NumPy cannot read it: {error}", f"attribute {path!r}") from None
