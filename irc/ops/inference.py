"""A shape rule's view of its node, during type inference and when a run asks for result sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final, NamedTuple, NoReturn, cast

import numpy as np

from irc.errors import Error
from irc.ir import CONSTANT, Node, Tensor, Value, constant_tensor
from irc.ir.polynomials import Polynomial, is_size, unknown_size
from irc.ir.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    Dim,
    DType,
    ListType,
    OptionalType,
    Shape,
    TensorType,
    Type,
    without_facts,
    without_names,
)

Contents = np.ndarray[Any, Any]
"""The elements of a small integer tensor, as an object array of ``Dim`` (0-d or 1-d)."""

_MAX_SPLAT = 1 << 16
"""A splat may stand for more elements than there is memory for."""

_LARGEST_FACTOR = 1 << 31
"""With larger factors, and larger numbers beside them, sums of sizes may wrap around."""

MAX_CONTENTS = 64
"""Tensors with more elements are not tracked: shapes are shorter."""


UNKNOWN: Final = object()
"""An argument that the graph does not tell."""


def _never(value: Value) -> bool:
    return False


@dataclass
class Known:
    """What is known of values besides their types.

    Attributes:
        changes: whether something may give the tensors of a value other shapes or element types, after it was made.
        is_fixed: whether a list or tuple surely stays as it was made; its items may change inside.
        contents: of small integer tensors.
        symbolic: the types of tensors with sizes that have no name; see `type_of`.
    """

    changes: Callable[[Value], bool] = _never
    is_fixed: Callable[[Value], bool] = _never
    contents: dict[Value, Contents] = field(default_factory=dict["Value", Contents])
    symbolic: dict[Value, TensorType] = field(default_factory=dict["Value", TensorType])

    def type_of(self, value: Value) -> Type:
        """The type of ``value``; if the rank is known, unnamed sizes are polynomials, none is left open.

        So unknown sizes can be found equal; for nodes that a loop repeats, within one iteration.
        """
        found, type = self.symbolic.get(value), self.plain_type(value)
        if found is not None:
            return found
        if type.shape is None or None not in type.shape:
            return type
        return self._keep(value, type.shape)

    def plain_type(self, value: Value) -> Type:
        """The type of ``value``, as far as it holds whenever that is used."""
        return without_facts(value.type) if self.changes(value) else value.type

    def tell(self, value: Value, type: Type) -> None:
        """Record that ``value``, whose own type stays, is of ``type``, which has polynomials as sizes."""
        told, own = type.shape, value.type.shape
        if told and own and not self.changes(value):
            pairs = zip(told, own, strict=True)
            self._keep(value, [a if isinstance(a, Polynomial) and not isinstance(b, int) else b for a, b in pairs])

    def _keep(self, value: Value, shape: Sequence[Dim]) -> TensorType:
        sizes = tuple([unknown_size(value, i) if d is None else d for i, d in enumerate(shape)])
        type = self.symbolic[value] = TensorType(value.type.dtype, sizes)
        return type


class Slices(NamedTuple):
    """The arguments of an ONNX Slice, None for unknown ones; ``steps`` default to 1, ``axes`` to None."""

    starts: Sequence[Dim] | None
    ends: Sequence[Dim] | None
    axes: Sequence[int] | None
    steps: Sequence[int] | None


class NodeTypes:
    """Types and known contents of one node's inputs, with what rules share."""

    __slots__ = ("known", "node")

    def __init__(self, node: Node, known: Known) -> None:
        self.node = node
        self.known = known

    @property
    def contents(self) -> dict[Value, Contents]:
        return self.known.contents

    def is_fixed(self, value: Value) -> bool:
        """Whether ``value`` surely stays as it was made; see `Known`."""
        return self.known.is_fixed(value)

    # -- the node --------------------------------------------------------

    @property
    def version(self) -> int:
        """The operator version; the newest is a large number."""
        return 1 << 30 if self.node.version is None else self.node.version

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        return self.node.attributes.get(name, default)

    def has(self, index: int) -> bool:
        """Whether input ``index`` is present (an absent optional one is None)."""
        inputs = self.node.inputs
        return index < len(inputs) and inputs[index].type != NONE

    def fail(self, message: str) -> NoReturn:
        """Raise IRC310, naming the node."""
        label = f"{self.node.kind}{f' {self.node.name!r}' if self.node.name else ''}"
        outs = ", ".join(f"%{v.name}" for v in self.node.outputs)
        ins = ", ".join(f"%{v.name}: {v.type}" for v in self.node.inputs)
        raise Error("IRC310", f"{message} (inputs {ins})", f"{outs} = {label}")

    # -- inputs ----------------------------------------------------------

    def type(self, index: int) -> Type:
        """The type of input ``index``; ``Tensor`` if it is absent."""
        return self.known.type_of(self.node.inputs[index]) if self.has(index) else TENSOR

    def tensor(self, index: int) -> TensorType:
        """The type of input ``index`` as a tensor type (an unknown one if it is none)."""
        found = self.type(index)
        if isinstance(found, OptionalType):
            found = found.elem
        return found if isinstance(found, TensorType) else TENSOR

    def dtype(self, index: int) -> DType | None:
        """Element type of input ``index``, if known."""
        return self.tensor(index).dtype

    def shape(self, index: int) -> Shape | None:
        """Shape of input ``index``, if its rank is known."""
        return self.tensor(index).shape

    def element(self, index: int) -> Type:
        """Element type of a sequence input, without named sizes: a name may differ between elements."""
        found = self.type(index)
        elem = found.elem if isinstance(found, ListType) else TENSOR
        return without_names(elem)

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        """The contents of input ``index`` if it is a constant tensor, and no splat of very many elements."""
        if not self.has(index):
            return None
        value = constant_tensor(self.node.inputs[index])
        if value is None or (value.is_splat and value.numel > _MAX_SPLAT):
            return None
        return value.numpy()

    def dims(self, index: int) -> list[Dim] | None:
        """The elements of a small integer input (a shape, axes...): numbers, sizes, None for unknown ones."""
        found = self.numbers(index)
        return None if found is None else [d if isinstance(d, int) or is_size(d) else None for d in found]

    def numbers(self, index: int) -> list[Dim] | None:
        """The elements of a small integer input, differences of sizes included, which may be negative."""
        found = self.contents_of(index)
        if found is None or any(isinstance(d, bool) for d in found.flat):  # truth values are tracked, too
            return None
        return list(found.flat)

    def ints(self, index: int) -> list[int] | None:
        """The elements of a small integer input if all are known."""
        found = self.dims(index)
        if found is None:
            return None
        known = [d for d in found if isinstance(d, int)]
        return known if len(known) == len(found) else None

    def contents_of(self, index: int) -> Contents | None:
        """The tracked contents of input ``index``, if any."""
        if not self.has(index):
            return None
        value = self.node.inputs[index]
        found = self.contents.get(value)
        if found is None:
            tensor = constant_tensor(value)
            if tensor is not None and trackable(tensor.type):
                found = as_contents(tensor.numpy())
                self.contents[value] = found
        return found

    def axes(self, index: int) -> list[int] | None:
        """The axes in attribute ``axes`` (older versions) or input ``index``; None if absent or unknown."""
        given = self.attr("axes")
        if given is not None:
            return [given] if isinstance(given, int) else list(given)
        return self.ints(index) if self.has(index) else None

    def slices(self) -> Slices:
        """What a Slice is told: by attributes before version 10, by inputs since."""
        if self.version < 10:
            starts, ends, axes = self.attr("starts"), self.attr("ends"), self.attr("axes")
        else:
            starts, ends, axes = self.numbers(1), self.numbers(2), self.ints(3)
        once = [1] * max(len(starts or ()), len(axes or ()))
        return Slices(starts, ends, axes, self.ints(4) if self.has(4) else once)

    def pads(self) -> Sequence[Dim] | None:
        """What a Pad adds: an attribute before version 11, an input since; None if that is not known."""
        return self.attr("pads", self.attr("paddings")) if self.version < 11 else self.dims(1)

    def axis(self, axis: int, rank: int, *, end: bool = False) -> int:
        """``axis`` counted from the front; IRC310 if it is out of range (``end``: ``rank`` itself is allowed)."""
        if not -rank <= axis < rank + end:
            self.fail(f"axis {axis} is out of range for rank {rank}")
        return axis + rank if axis < 0 else axis

    # -- Python's values, which TorchScript's operators take -------------

    def plain_type(self, index: int) -> Type:
        """The type of input ``index`` as it is stated, without polynomials."""
        return self.known.plain_type(self.node.inputs[index])

    def item(self, index: int) -> Any:
        """The constant number, string or None that input ``index`` is, or UNKNOWN."""
        return self._item(self.node.inputs[index])

    def _item(self, value: Value) -> Any:
        if value.type == NONE:
            return None
        tracked = self.contents.get(value)
        if tracked is not None and tracked.ndim == 0 and not isinstance(value.type, TensorType):
            return tracked.item() if isinstance(tracked.item(), int) else UNKNOWN
        source = value.made_by(CONSTANT)
        found = UNKNOWN if source is None else source.attributes.get("value", UNKNOWN)
        return found if isinstance(found, bool | int | float | str) else UNKNOWN

    def items(self, index: int) -> list[Any] | None:
        """The elements of the list input ``index``, None for unknown ones; None if it is not a known list."""
        value = self.node.inputs[index]
        if not self.is_fixed(value):
            return None
        # Contents before constants: arithmetic on sizes is tracked for lists that no constant holds.
        tracked = self.contents.get(value)
        if tracked is not None:
            return list(tracked)
        given = None if (source := value.made_by(CONSTANT)) is None else source.attributes.get("value")
        if isinstance(given, list | tuple):
            return list(cast("Sequence[Any]", given))
        made = value.made_by("prim::ListConstruct")
        return None if made is None else [None if (d := self._element(v)) is UNKNOWN else d for v in made.inputs]

    def _element(self, value: Value) -> Any:
        tracked = self.contents.get(value)
        return tracked.item() if tracked is not None and tracked.ndim == 0 else self._item(value)

    def element_types(self, index: int) -> list[Type] | None:
        """The types of what the list that input ``index`` is holds, if it is made on the spot."""
        value = self.node.inputs[index]
        made = value.made_by("prim::ListConstruct") if self.is_fixed(value) else None
        return None if made is None else list(map(self.known.plain_type, made.inputs))

    # -- dimensions ------------------------------------------------------

    def broadcast(self, shapes: Sequence[Shape | None]) -> Shape | None:
        """NumPy's broadcasting over shapes with named and unknown sizes."""
        known = [s for s in shapes if s is not None]
        # An operand of unknown rank may have more axes than all others.
        if len(known) < len(shapes):
            return None
        rank = max(map(len, known), default=0)
        out: list[Dim] = []
        for i in range(rank):
            dims = [s[i - rank + len(s)] for s in known if i - rank + len(s) >= 0]
            out.append(self._broadcast_dims(dims))
        return tuple(out)

    def _broadcast_dims(self, dims: Sequence[Dim]) -> Dim:
        sizes = {d for d in dims if isinstance(d, int) and d != 1}
        if len(sizes) > 1:
            self.fail(f"sizes {' and '.join(map(str, sorted(sizes)))} cannot be broadcast together")
        if sizes:
            return sizes.pop()
        open_dims = {d for d in dims if d != 1}
        if not open_dims:
            return 1
        # One named size against ones is that size; two different ones may turn out either.
        return open_dims.pop() if len(open_dims) == 1 else None

    def same_dim(self, dims: Sequence[Dim], what: str) -> Dim:
        """The one size that all of ``dims`` must have: a number before a name, and a name before other sizes."""
        sizes = {d for d in dims if isinstance(d, int)}
        if len(sizes) > 1:
            self.fail(f"{what} must agree, but are {' and '.join(map(str, sorted(sizes)))}")
        if sizes:
            return sizes.pop()
        open_dims = [d for d in dims if d is not None]
        # A name says more to readers than a polynomial, and other types may have it.
        names = [d for d in open_dims if isinstance(d, str)]
        return next(iter(names or open_dims), None)


class OperandTypes(NodeTypes):
    """Types and contents of the operands of a node in a run: arrays, constant tensors, Python values.

    Args:
        node: the node.
        operands: as a kernel gets them.

    Attributes:
        looked: whether contents of arrays have been asked for.
    """

    __slots__ = ("looked", "operands")

    def __init__(self, node: Node, operands: Sequence[Any]) -> None:
        super().__init__(node, Known(is_fixed=lambda value: True))
        self.operands, self.looked = operands, False

    def has(self, index: int) -> bool:
        return index < len(self.operands) and self.operands[index] is not None

    def type(self, index: int) -> Type:
        return self.plain_type(index) if self.has(index) else TENSOR

    def plain_type(self, index: int) -> Type:
        found = type_of_operand(self.operands[index])
        return self.node.inputs[index].type if found is None else found

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        found = self.operands[index] if self.has(index) else None
        self.looked |= found is not None
        found = found.numpy() if isinstance(found, Tensor) else found
        return cast("Contents", found) if isinstance(found, np.ndarray) and found.size <= _MAX_SPLAT else None

    def contents_of(self, index: int) -> Contents | None:
        array = self.constant(index)
        is_shape = array is not None and array.ndim < 2 and array.size <= MAX_CONTENTS and array.dtype.kind in "iub"
        return as_contents(array) if is_shape else None

    def item(self, index: int) -> Any:
        found = self.operands[index]
        return found if found is None or isinstance(found, bool | int | float | str) else UNKNOWN

    def items(self, index: int) -> list[Any] | None:
        found = self.operands[index]
        return list(cast("Sequence[Any]", found)) if isinstance(found, list | tuple) else None

    def element_types(self, index: int) -> list[Type] | None:
        return [type_of_operand(x) or TENSOR for x in self.items(index) or ()]


_PYTHON: dict[Any, Type] = {bool: BOOL, int: INT, float: FLOAT, str: STR, NoneType: NONE}


def type_of_operand(operand: Any) -> Type | None:
    """The type of an array, a constant tensor, number, string or None; None for anything else."""
    if isinstance(operand, np.ndarray):
        array = cast("np.ndarray[Any, Any]", operand)
        return TensorType(DType.from_numpy(array.dtype), array.shape)
    return operand.type if isinstance(operand, Tensor) else _PYTHON.get(operand.__class__)


def trackable(type: Type) -> bool:
    """Whether contents of tensors of this type are tracked: integers, at most a shape's worth."""
    if type.dtype is None:
        return False
    if not (type.dtype.is_integer or type.dtype is DType.BOOL) or type.dtype.bits < 8:
        return False
    sizes = type.static_shape
    return sizes is not None and len(sizes) <= 1 and (not sizes or sizes[0] <= MAX_CONTENTS)


def fit(contents: Contents, type: Type) -> bool:
    """Whether ``contents`` may belong to a tensor of ``type``: its shape fits, nothing has wrapped around."""
    if type.static_shape != contents.shape:
        return False
    dtype = type.dtype
    if dtype is None or not dtype.is_integer:
        return True
    element: Any = dtype.numpy
    limits = np.iinfo(element)

    def is_possible(size: Dim) -> bool:
        if isinstance(size, Polynomial):
            return dtype.bits == 64 and size.largest <= _LARGEST_FACTOR and (element.kind == "i" or is_size(size))
        return not isinstance(size, int) or limits.min <= size <= limits.max

    return all(map(is_possible, contents.flat))


def as_contents(values: Any) -> Contents:
    """An object array of Python ints, names and None."""
    array = np.asarray(values)
    out = np.empty(array.shape, object)
    out.reshape(-1)[:] = array.reshape(-1).tolist()
    return out


def dims_array(values: Any) -> Contents:
    """An array of a list of sizes, or of a single one."""
    if isinstance(values, list):
        out = np.empty(len(values), object)  # type: ignore[reportUnknownArgumentType]
        out[:] = values
        return out
    out = np.empty((), object)
    out[()] = values
    return out


def elementwise(apply: Callable[..., Any], *arrays: Contents) -> Contents:
    """What ``apply`` makes of the elements of ``arrays``, which broadcast."""
    spread = np.broadcast_arrays(*arrays)
    flat = [apply(*items) for items in zip(*(a.reshape(-1) for a in spread), strict=True)]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(spread[0].shape)
