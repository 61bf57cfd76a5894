"""Objects at run time: what a model keeps from run to run, and its present state, for files.

A TorchScript module may change itself when it runs: statistics in training
mode, a cache, a counter. The copy of its attributes that a compiled model holds
changes likewise, one run at a time; the module that was compiled does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from threading import RLock
from typing import Any, TypeVar

from irc.alias import AliasDb, Analyses
from irc.errors import Error
from irc.ir import Graph, Module, Tensor, with_subgraphs
from irc.ir.objects import Object, Strided, named_tensors, storage_of
from irc.ir.types import ClassType, Type, parts
from irc.runtime.values import (
    Array,
    TypedDict,
    TypedList,
    arrays_once,
    containers,
    is_array,
    is_mapping,
    is_sequence,
    is_tuple,
    rebuild,
)


class State:
    """The objects of one model.

    A run of a model that changes them starts with the attributes that the last whole run left: one that ends in an
    error, or is interrupted, changes none. What it wrote to arrays in place until then stays written.

    Args:
        module: says what they are before the first run.
        graph: the main graph.
        analyses: of the module's graphs.

    Attributes:
        objects: by the name of the graph input that each is.
        changes: whether running may change them.
    """

    def __init__(self, module: Module, graph: Graph, analyses: Analyses) -> None:
        known = module.objects_of(graph)
        writes = _writes(module, analyses.of(graph)) if known else None
        self.changes = writes is not None
        self._changing, written = writes or (frozenset[str](), frozenset[str]())
        self._tensors: dict[str | int, Array] = {}
        """By the name of a storage, or the identity of a `Strided`."""
        self.objects = {name: mapped(v, lambda v, _: self._array(v, written), name) for name, v in known.items()}
        self._weights = {id(array) for array in self._tensors.values() if not array.flags.writeable}
        self._lock = RLock()
        self._is_running = False
        self._owners: list[Object] = []
        self._arrays: list[Array] = []  # in attributes that do not change
        if self.changes:
            instances = _instances(self.objects.values())
            self._owners = [i for i in instances if not self._changing.isdisjoint(i.attributes)]
            rest = [v for i in instances for name, v in i.attributes.items() if name not in self._changing]
            self._arrays = _writable(rest)
        self._kept = self._contents(lambda array: array)

    def turn(self, action: Callable[..., T], *arguments: Any) -> T:
        """The result of ``action``, a run, on ``arguments``. Runs that change the objects take turns.

        Raises:
            Error: IRC436 this very thread is in the middle of another run: it would wait for itself.
        """
        if not self.changes:
            return action(*arguments)
        with self._lock:
            if self._is_running:
                raise Error("IRC436", "a run of this model, which changes it, is going on in this very thread")
            self._is_running = True
            try:
                self._begin()
                return action(*arguments)
            finally:
                self._is_running = False

    def _begin(self) -> None:
        """Set the objects to what the last run left. (`turn` has no loop: see `irc.runtime.threads`.)"""
        for instance, kept in _changed(self._kept, lambda array: array):
            others = {name: v for name, v in instance.attributes.items() if name not in self._changing}
            instance.attributes = {**others, **kept}

    def settled(self) -> list[_Contents]:
        """At the end of a run: what the objects are now, with copies of what the caller, or the model, keeps."""
        copies: dict[Any, Array] = {}
        return self._contents(lambda array: self._settled(array, copies))

    def arrays(self, contents: Iterable[_Contents]) -> list[Array]:
        """All arrays that may be written to and that the next run would see, if ``contents`` were kept."""
        return self._arrays + _writable(v for _, attributes in contents for v in attributes.values())

    def keep(self, contents: list[_Contents]) -> None:
        """The run has ended well: the next one starts with ``contents``."""
        self._kept = contents

    def _contents(self, change: Callable[[Array], Array]) -> list[_Contents]:
        """Objects with attributes that may change, and copies of these, with arrays as `change` says."""
        objects = _instances(self._owners, self._changing)
        contents = [(i, {name: v for name, v in i.attributes.items() if name in self._changing}) for i in objects]
        return _changed(contents, change)

    def _settled(self, value: Array, copies: dict[Any, Array]) -> Array:
        if value.flags.writeable or id(value) in self._weights:
            return value
        found = copies.get(id(value))
        if found is None:
            key = (value.__array_interface__["data"], value.shape, value.strides, value.dtype)
            try:
                found = copies[key].view() if key in copies else value.copy(order="K")  # another tensor of its memory
            except MemoryError as error:
                raise Error("IRC403", f"out of memory: {error}") from None
            copies.setdefault(key, found)
            copies[id(value)] = found
        return found

    def _array(self, value: Any, written: Collection[str]) -> Any:
        """What a run sees of ``value``: of a tensor, its array."""
        if not isinstance(value, Tensor | Strided):
            return value
        storage = storage_of(value)
        if storage.name not in self._tensors:
            array = storage.written_out() if isinstance(value, Strided) else storage.numpy()
            self._tensors[storage.name] = array.copy(order="K") if storage.name in written else array
        array = self._tensors[storage.name]
        return self._tensors.setdefault(id(value), value.of(array)) if isinstance(value, Strided) else array


T = TypeVar("T")

_Contents = tuple[Object, dict[str, Any]]
"""An object, and the values for those of its attributes that may change."""


def _changed(contents: list[_Contents], change: Callable[[Array], Array]) -> list[_Contents]:
    """``contents`` with new lists but the same objects; all at once, so that shared ones stay shared."""
    values = rebuild([attributes for _, attributes in contents], change, objects=False)
    return [(instance, attributes) for (instance, _), attributes in zip(contents, values)]


def check_known(module: Module, graph: Graph) -> None:
    """Error IRC141 if an input is an object of unknown attributes."""
    known = module.objects_of(graph)
    for value in graph.inputs:
        if isinstance(value.type, ClassType) and value.name not in known:
            remedy = "import_torchscript(text, weights={'path.of.attribute': ...}) tells them"
            what = f"%{value.name} is an object of {value.type}, whose attributes are not known"
            raise Error("IRC141", f"{what}: {remedy}", graph.name)


def _writes(module: Module, db: AliasDb) -> tuple[frozenset[str], frozenset[str]] | None:
    """Attributes that a run may change, and storages that it may write; None if it changes nothing.

    Attributes are told apart by name alone: the object that they belong to is not always known.
    """
    graph = db.graph
    objects = [value for value in graph.inputs if value.name in module.objects]
    if not db.has_writers(objects):
        return None
    accesses = [n for n in with_subgraphs(*module.graphs.values()) if n.kind in ("prim::GetAttr", "prim::SetAttr")]
    names = {
        node.attributes.get("name", "")
        for node in accesses
        if node.kind == "prim::SetAttr" or node.graph is not graph or db.has_writers(node.output)
    }
    writers = [node for node in db.writers(objects) if node.kind != "prim::SetAttr"]
    if any(_may_hold_objects(value.type) for node in writers for value in node.inputs):
        names.update(name for each in _instances(module.objects.values()) for name in each.attributes)
    return frozenset(names), db.written_weights()


def _may_hold_objects(type: Type) -> bool:
    return any(p.is_any or isinstance(p, ClassType) or any(map(_may_hold_objects, p.inner)) for p in parts(type))


def mapped(value: Any, change: Callable[[Any, str], Any], path: str) -> Any:
    """``value``, a tree at ``path``, with ``change`` applied from outside in; containers are new.

    Args:
        value: an object, list, tuple, dict or leaf. What is in it twice becomes two.
        change: gives what stands for a value and its path; of a holder, what is in that is then mapped.
        path: of ``value``.
    """
    value = change(value, path)
    if isinstance(value, Object):
        return Object(value.type, {name: mapped(v, change, f"{path}.{name}") for name, v in value.attributes.items()})
    if is_mapping(value):
        return TypedDict(None, [(k, mapped(v, change, f"{path}.{k!r}")) for k, v in value.items()])
    if not is_sequence(value) or isinstance(value, Strided):
        return value
    items = [mapped(v, change, f"{path}.{i}") for i, v in enumerate(value)]
    return tuple(items) if is_tuple(value) else TypedList(None, items)  # what gets it declares its type


def _instances(values: Iterable[Any], names: Collection[str] | None = None) -> list[Object]:
    """All objects in ``values`` and in their attributes, those of ``names`` or all."""

    def inside(instance: Object) -> list[Any]:
        return [v for name, v in instance.attributes.items() if names is None or name in names]

    return [container for container, _ in containers(list(values), inside) if isinstance(container, Object)]


def _writable(values: Iterable[Any]) -> list[Array]:
    """All arrays in ``values`` that may be written to; objects are not looked into."""
    return [array for array in arrays_once(values) if array.flags.writeable]


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
