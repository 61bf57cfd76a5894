"""Objects at run time: what a model keeps from run to run.

A TorchScript module may change itself when it runs: statistics in training
mode, a cache, a counter. The copy of its attributes that a compiled model holds
changes likewise, one run at a time; the module that was compiled does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.ir.objects import UNKNOWN, Object, Strided, is_enumeration, known_attribute, storage_of, tensors_in
from irc.ir.tensor import Tensor
from irc.ir.types import ClassType
from irc.runtime.values import Array, is_array, is_mapping, is_sequence

if TYPE_CHECKING:
    from irc.ir import Graph, Module


class Instance:
    """An object: its attributes by name."""

    __slots__ = ("attributes", "type")

    def __init__(self, type: ClassType, attributes: dict[str, Any] | None = None) -> None:
        self.type = type
        self.attributes: dict[str, Any] = {} if attributes is None else attributes

    def __repr__(self) -> str:
        return f"<{self.type}>"


class State:
    """The objects of one model.

    Args:
        module: says what they are before the first run.
        graph: the main graph.

    Attributes:
        objects: by the name of the graph input that each is.
        changes: whether running may change them.
    """

    def __init__(self, module: Module, graph: Graph) -> None:
        known = module.objects if graph is module.main else {}
        self.changes, written = _writes(module, graph) if known else (False, frozenset[str]())
        self._storages: dict[str, Array] = {}
        self.objects = {name: self._instance(value, written) for name, value in known.items()}
        self._weights = {id(array) for array in self._storages.values() if not array.flags.writeable}
        self._lock = RLock()
        self._before: list[_Contents] | None = None  # what a run that is going on goes back to

    def running(self) -> AbstractContextManager[Any]:
        """To be held during a run: runs that change the objects go one after the other.

        If it ends before they have settled, they are again what they were.

        Raises:
            Error: IRC436 this very thread is in the middle of another run: it would wait for itself.
        """
        return self._turn() if self.changes else nullcontext()

    @contextmanager
    def _turn(self) -> Generator[None]:
        with self._lock:
            if self._before is not None:
                raise Error("IRC436", "a run of this model, which changes it, is going on in this very thread")
            self._before = self._contents(_copied)
            try:
                yield
            finally:
                try:
                    _put(self._before)
                finally:
                    self._before = None

    def arrays(self) -> list[Array]:
        """All arrays that may be written to and that the next run will see."""
        if not self.changes:
            return []
        return [a for o in self.objects.values() for a in _arrays(o) if a.flags.writeable]

    def settle(self) -> None:
        """After a run: copy what the objects were given and the caller, or the model, keeps."""
        if self.changes:
            copies: dict[Any, Array] = {}
            _put(self._contents(lambda value: self._settled(value, copies)))
            self._before = []

    def _contents(self, change: Callable[[Any], Any]) -> list[_Contents]:
        """All objects, each with its attributes changed as `change` says, which is asked for no objects."""
        found: dict[int, _Contents] = {}
        pending = list(self.objects.values())
        while pending:
            value = pending.pop()
            if isinstance(value, Instance):
                if id(value) not in found:
                    attributes = value.attributes
                    found[id(value)] = value, {name: change(v) for name, v in attributes.items()}
                    pending.extend(attributes.values())
            elif is_sequence(value):
                pending.extend(value)
            elif is_mapping(value):
                pending.extend(value.values())
        return list(found.values())

    def _settled(self, value: Any, copies: dict[Any, Array]) -> Any:
        if not is_array(value):
            return _rebuilt(value, lambda item: self._settled(item, copies))
        if value.flags.writeable or id(value) in self._weights:
            return value
        key = (value.__array_interface__["data"], value.shape, value.strides, value.dtype)
        if key not in copies:
            try:
                copies[key] = value.copy(order="K")
            except MemoryError as error:
                raise Error("IRC403", f"out of memory: {error}") from None
        return copies[key]

    def _instance(self, value: Any, written: Collection[str]) -> Any:
        if isinstance(value, Object):
            return Instance(value.type, {name: self._instance(v, written) for name, v in value.attributes.items()})
        if isinstance(value, Tensor | Strided):
            storage = self._storage(storage_of(value), written)
            return value.of(storage) if isinstance(value, Strided) else storage
        return _rebuilt(value, lambda item: self._instance(item, written))

    def _storage(self, tensor: Tensor, written: Collection[str]) -> Array:
        found = self._storages.get(tensor.name)
        if found is None:
            array = tensor.numpy()
            found = self._storages[tensor.name] = array.copy(order="K") if tensor.name in written else array
        return found


_Contents = tuple[Instance, dict[str, Any]]
"""An object, and what its attributes are to be."""


def _put(contents: list[_Contents]) -> None:
    for instance, attributes in contents:
        instance.attributes = attributes


def _copied(value: Any) -> Any:
    """``value`` with lists and the like of its own, of the same arrays and objects."""
    return _rebuilt(value, _copied)


def check_known(module: Module, graph: Graph) -> None:
    """Error IRC141 if an input is an object of unknown attributes, IRC142 if it is a member of an enumeration."""
    known = module.objects if graph is module.main else {}
    for value in graph.inputs:
        if isinstance(value.type, ClassType) and value.name not in known:
            if is_enumeration(value.type):
                raise Error("IRC142", f"%{value.name} is of {value.type}; irc has no enumerations", graph.name)
            raise Error(
                "IRC141",
                f"%{value.name} is an object of {value.type}, whose attributes are not known: "
                "import_torchscript(text, weights={'path.of.attribute': ...}) tells them",
                graph.name,
            )


def _writes(module: Module, graph: Graph) -> tuple[bool, frozenset[str]]:
    """Whether a run may change the objects at all, and the storages that it may write to."""
    from irc.alias import analyze

    db = analyze(graph, module)
    objects = [value for value in graph.inputs if value.name in module.objects]
    if not db.has_writers(objects):
        return False, frozenset()
    written: set[str] = set()
    for node in graph.walk():
        known = known_attribute(node.output, module) if node.kind == "prim::GetAttr" else UNKNOWN
        if known is not UNKNOWN and not isinstance(known, Object) and db.has_writers(node.output):
            written.update(storage_of(t).name for t in tensors_in(known))
    return True, frozenset(written)


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A list, tuple or dict with its items changed; anything else as it is."""
    if is_sequence(value):
        items = [change(v) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if is_mapping(value):
        return {k: change(v) for k, v in value.items()}
    return value


def _arrays(value: Any) -> list[Array]:
    """All arrays in an object or value."""
    found: list[Array] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if is_array(item):
            found.append(item)
        elif isinstance(item, Instance):
            stack.extend(item.attributes.values())
        elif is_sequence(item):
            stack.extend(item)
        elif is_mapping(item):
            stack.extend(item.values())
    return found
