"""What a model takes and gives: names, types, checks of arguments, and results by name.

Nothing is cast silently: an array must have the element type that the model
states. Python numbers and lists have none of their own; they are converted if
that loses nothing (Python floats round to the model's floating-point type).
Where the model takes a number that is not a tensor, NumPy's scalars are numbers.

Kernels expect what the operator allows, which models that pass the importer's checks and
the verifier respect. Other models, and files that were changed, may give a kernel numbers of a
wrong type, a sequence, or fewer operands than it expects, and Python then fails somewhere inside
the kernel. Checking all operands before each call would slow down every run, so they are checked after a failure.

What kernels of other packages return is checked in each call, so that a mistake is not blamed on the next operator.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.ma import MaskedArray  # not by need: a signal handler that runs models may come while NumPy imports it

from irc.errors import Error, misfit, suggestion
from irc.ir import Node, Value, types
from irc.ir.limits import MAX_INTEGER, MAX_RANK, MIN_INTEGER
from irc.ir.objects import EnumMember, with_members
from irc.ir.tensor import python_strings
from irc.ir.types import DType, Shape, TensorType, TupleType, Type
from irc.ops.onnx_signatures import check_form, onnx_name
from irc.ops.onnx_signatures import misfit as type_misfit
from irc.ops.plugins import name_of
from irc.ops.signatures import resolve, schemas, takes
from irc.runtime.values import OF_PYTHON, Array, describe, is_array, is_mapping, is_sequence, is_tuple
from irc.support.formatting import count

if TYPE_CHECKING:
    from irc.ir.schema import Schema
    from irc.runtime.kernels.registry import Binder, Kernel

Sizes = dict[str, tuple[int, str]]
"""The sizes of named dimensions, and the input that each was first seen in."""


@dataclass(frozen=True)
class Argument:
    """An input or output of a model.

    Attributes:
        name: its name.
        type: its IR type.
        optional: whether a caller may leave it out, because the model has a default for it.
    """

    name: str
    type: Type
    optional: bool = False

    @cached_property
    def dtype(self) -> np.dtype[Any] | None:
        """Element type of a tensor; None for anything else, or if it is not known."""
        tensor = self.type
        return tensor.dtype.numpy if tensor.dtype else None

    @cached_property
    def shape(self) -> Shape | None:
        """Sizes of a tensor: numbers, names, or None where unknown; None for anything else."""
        return self.type.shape

    @cached_property
    def where(self) -> str:
        """How messages name it."""
        return f"input {self.name!r}"


def accept(value: Any, argument: Argument, sizes: Sizes) -> Any:
    """``value`` as the plan takes it: arrays of exactly the stated type; not copied unless converted.

    Args:
        value: what the caller passed.
        argument: the input it is for.
        sizes: the named dimensions seen so far; those of this input are checked against it and added.

    Raises:
        Error: IRC403 not enough memory to convert it, IRC412 wrong type, IRC413 wrong shape, IRC414 a named dimension
            with two sizes, IRC415 a Python value that the type cannot hold.
    """
    where = argument.where
    if type(value) is np.ndarray and value.dtype is argument.dtype and not value.dtype.hasobject:  # as most are
        check_shape(value.shape, argument.type, where, sizes)
        return value
    try:
        return as_type(value, argument.type, where, sizes)
    except MemoryError as error:  # to convert it takes a copy
        raise Error("IRC403", f"out of memory: {error}", where) from None


def as_type(value: Any, type: Type, where: str, sizes: Sizes | None = None, is_strict: bool = False) -> Any:
    """``value`` as a ``type``: tensors as arrays, NumPy's scalars as numbers, enumerations as members.

    Args:
        value: what a caller, or a kernel of another package, gives.
        type: its declared type; classes, unions and Any take everything.
        where: how messages name it.
        sizes: as of `accept`; None: names fit any size.
        is_strict: whether tensors must be arrays or NumPy's scalars, and tuples tuples. Lists and dicts in which
            nothing is converted then stay the same objects, as others may hold them too.

    Raises:
        Error: IRC412 to IRC415, as `accept`.
    """

    def inside(value: Any, type: Type, what: str, sizes: Sizes | None = None) -> Any:
        return as_type(value, type, f"{where}, {what}" if where else what, sizes, is_strict)

    if isinstance(type, TensorType):
        if is_strict and not isinstance(value, np.ndarray | np.generic):
            raise _wrong_type("a tensor", value, where)
        array = _array(value, type, where)
        check_shape(array.shape, type, where, sizes)
        return array
    if isinstance(type, types.OptionalType):
        return None if value is None else as_type(value, type.elem, where, sizes, is_strict)
    if isinstance(type, types.ListType):
        if not is_sequence(value):
            raise _wrong_type("a list", value, where)
        # Elements may differ in shape, so a name stands for another size in each.
        items = [inside(v, type.elem, f"element {i}") for i, v in enumerate(value)]
        return value if is_strict and all(map(is_, items, value)) else items
    if isinstance(type, types.TupleType):
        is_one = is_tuple(value) or (not is_strict and is_sequence(value))
        if not is_one or len(value) != len(type.elems):
            raise _wrong_type(f"a tuple of {len(type.elems)}", value, where)
        return tuple([inside(v, t, f"element {i}", sizes) for i, (v, t) in enumerate(zip(value, type.elems))])
    if isinstance(type, types.DictType):
        if not is_mapping(value):
            raise _wrong_type("a dict", value, where)
        keys = [inside(k, type.key, f"key {k!r}") for k in value]
        held = [inside(v, type.value, f"entry {k!r}") for k, v in value.items()]
        is_same = is_strict and all(map(is_, (*keys, *held), (*value, *value.values())))
        return value if is_same else dict(zip(keys, held))
    if isinstance(type, types.EnumType):
        return _member(value, type, where)
    is_scalar, scalar = isinstance(value, np.generic), value
    if is_scalar and scalar.dtype.kind in "biufcU":
        value = scalar.item()
    python = _PYTHON.get(type)
    if python is not None and (not isinstance(value, python) or (isinstance(value, bool) and type != types.BOOL)):
        raise _wrong_type(f"a Python {type}", value, where)
    return value


def _member(value: Any, type: types.EnumType, where: str) -> EnumMember:
    """``value`` as a member of ``type``; also from a Python enum of that name in any module."""
    if isinstance(value, enum.Enum) and value.__class__.__name__ == type.name.rpartition(".")[2]:
        value = with_members(value, type)
    if not isinstance(value, EnumMember) or value.type != type:
        raise _wrong_type(f"a member of {type}", value, where)
    return value


_NUMBERS = (int, float, complex)

_WIDER: dict[Type, tuple[type, ...]] = {types.FLOAT: _NUMBERS[:2], types.COMPLEX: _NUMBERS, types.SCALAR: _NUMBERS}

_PYTHON = {type: (python,) for python, type in OF_PYTHON.items()} | _WIDER


def _wrong_type(expected: str, value: Any, where: str) -> Error:
    return Error("IRC412", f"expected {expected}, got {describe(value)}", where)


# -- tensors -------------------------------------------------------------------


def _array(value: Any, type: TensorType, where: str) -> Array:
    if is_array(value) or hasattr(value, "__array__"):
        return typed_array(value, type, where)
    arrays = [as_array(item, where) for item in arrays_in(value, where)]
    array = _from_python(value, where)
    dtype = type.dtype
    # Arrays in a list have an element type, which must be right; what is beside them are Python's numbers.
    if dtype is None or array.dtype == dtype.numpy or any(item.dtype != dtype.numpy for item in arrays):
        return typed_array(array, type, where)
    converted = _convert(array, dtype)
    if converted is None:
        raise Error("IRC415", f"{value!r:.60} does not fit into {dtype.numpy_name} elements", where)
    return converted


def typed_array(value: Any, type: TensorType, where: str) -> Array:
    """An array, or what converts to one, in native byte order; Error unless it has ``type``."""
    array = as_array(value, where)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    expected = type.dtype
    if expected is None:
        try:
            expected = DType.from_numpy(array.dtype)
        except KeyError:
            raise Error("IRC412", f"NumPy's {array.dtype} is not an element type of tensors", where) from None
    if expected is DType.STRING:
        try:
            return python_strings(array)
        except ValueError as error:
            raise Error("IRC412", str(error), where) from None
    if array.dtype != expected.numpy:
        name = expected.numpy_name
        hint = f"convert with astype({name!r}) if that is meant"
        raise Error("IRC412", f"expected elements of type {name}, got {array.dtype.name}; {hint}", where)
    return array


def as_array(value: Any, where: str) -> Array:
    """``value``, an array or an object that converts to one, as an array."""
    if isinstance(value, MaskedArray):
        raise Error("IRC412", "masked arrays are not supported: fill them first", where)
    try:
        return np.asarray(value)
    except (Error, MemoryError):
        raise
    except Exception as error:  # whatever an object of another package raises: a tensor of PyTorch that requires grad
        raise Error("IRC412", f"{type(value).__name__} gives no array: {error}", where) from None


def arrays_in(value: Any, where: str) -> list[Any]:
    """The arrays, or what can be one, in nested lists ``value``; Error if no tensor can nest so."""
    found: list[Any] = []
    level = [value]
    for _ in range(MAX_RANK + 1):
        found += [item for item in level if hasattr(item, "__array__")]
        lists = {id(item): item for item in level if is_sequence(item)}  # each once: lists may hold each other
        if not lists:
            return found
        level = [item for items in lists.values() for item in items]
    raise Error("IRC415", f"lists are nested more than {MAX_RANK} deep, or hold themselves", where)


def _from_python(value: Any, where: str) -> Array:
    try:
        array: Array = np.array(value)
    except (ValueError, OverflowError, TypeError) as error:
        raise Error("IRC415", f"not a tensor: {error}", where) from None
    items = array.flat if array.dtype.hasobject else ()
    if any(isinstance(item, int) and not MIN_INTEGER <= item <= MAX_INTEGER for item in items):
        raise Error("IRC415", "an integer does not fit into 64 bits", where)
    if array.dtype.kind not in "biufcU":
        raise Error("IRC415", f"expected a tensor, got {describe(value)}", where)
    if array.dtype.kind == "U":  # NumPy writes out numbers that stand beside strings
        for item in np.array(value, object).flat:
            if np.asarray(item).dtype.kind != "U":
                raise Error("IRC415", f"strings are mixed with {item!r:.40}", where)
    return array


_SATURATING = {DType.FLOAT4E2M1: 7.0, DType.FLOAT6E2M3: 7.75, DType.FLOAT6E3M2: 30.0}
"""Types without infinities, in which NumPy makes the largest number of all that is larger; and where those begin
that do not round to it: halfway to the number that would follow it."""


def _convert(array: Array, dtype: DType) -> Array | None:
    """Python numbers (or strings) as elements of ``dtype``, or None if that would change them."""
    kind = array.dtype.kind
    if array.size == 0:
        return np.empty(array.shape, dtype.numpy)
    if dtype is DType.STRING:
        return array.astype(object) if kind == "U" else None
    if kind in "bU" or dtype is DType.BOOL:
        return None
    is_complex = dtype in (DType.COMPLEX64, DType.COMPLEX128)
    with np.errstate(over="ignore", invalid="ignore"):
        if (dtype.is_float and kind == "f") or (is_complex and kind in "fc"):
            converted = array.astype(dtype.numpy)
            same = (np.isnan(converted) == np.isnan(array)) & (np.isinf(converted) == np.isinf(array))
            if dtype in _SATURATING:
                same &= np.abs(array) < _SATURATING[dtype]
            return converted if same.all() else None
        if kind in "iu" and (dtype.is_integer or dtype.is_float or is_complex):
            converted = array.astype(dtype.numpy)
            return converted if converted.astype(object).tolist() == array.tolist() else None
    return None


def check_shape(shape: tuple[int, ...], type: Type, where: str, sizes: Sizes | None) -> None:
    """Errors as of `accept` unless ``shape`` fits ``type``; without ``sizes``, names fit any size."""
    declared = type.shape
    if declared is None:
        return
    if len(shape) != len(declared):
        raise Error("IRC413", f"expected {len(declared)} dimensions, {type}; got shape {list(shape)}", where)
    for axis, (size, dim) in enumerate(zip(shape, declared)):
        if size == dim or dim is None:
            continue
        if isinstance(dim, int):
            raise Error("IRC413", f"expected {dim} on axis {axis}, {type}; got shape {list(shape)}", where)
        if isinstance(dim, str) and sizes is not None:
            first, seen = sizes.setdefault(dim, (size, where))
            if first != size:
                raise Error("IRC414", f"dimension {dim!r} is {size} here (axis {axis}), but {first} in {seen}", where)


# -- operands and results of nodes ---------------------------------------------


_SHOWN = 3
"""Overloads that a message names."""


def what_is_wrong(node: Node, inputs: Sequence[Any]) -> Error | None:
    """What is wrong with ``node`` or its operands' types, ``inputs``; None if nothing is known to be."""
    malformed = fault_of_form(node)
    if malformed is not None:
        return malformed
    if node.kind.startswith("irc::"):  # made by passes, from what takes tensors only
        odd = next((value for value in inputs if not is_array(value)), None)
        return None if odd is None else Error("IRC421", f"{node.kind} takes tensors, not {describe(odd)}")
    wrong = type_misfit(node.kind, node.version, tuple(map(onnx_type, inputs)))
    return None if wrong is None else Error("IRC421", wrong)


def fault_of_form(node: Node) -> Error | None:
    """What is wrong with attributes of ``node``, or operands' number and declared types, if known."""
    try:
        check_form(node)
        _check_operands(node)
    except Error as error:
        return Error(error.code, error.message.partition("\n")[0])  # without the node's text, which runs have not shown
    return None


def _check_operands(node: Node) -> None:
    """Error IRC213 if no overload of ``node`` takes this number of arguments, of types like these.

    (IRC423: of open types, nothing is said.)
    """
    rows, given = schemas(node.kind), [value.type for value in node.inputs]
    shown = " or ".join(map(str, rows[:_SHOWN])) + (" or others" if len(rows) > _SHOWN else "")
    needed = [sum(not argument.has_default for argument in row.arguments) for row in rows]
    found = len(given)
    if rows and not any(n <= found and (row.is_vararg or found <= len(row.arguments)) for n, row in zip(needed, rows)):
        raise Error("IRC213", f"{node.kind} does not take {count(found, 'argument')}: it is {shown}")
    if rows and not any(type.is_open for type in given) and not takes(node.kind, given):
        arguments = ", ".join(map(str, given))
        raise Error("IRC423", f"{node.kind} does not take arguments of the types ({arguments}): it is {shown}")


def onnx_type(value: Any) -> str | None:
    """A run-time value's type as ONNX, or else Python, writes it; None if unknown, or absent."""
    if is_array(value):
        try:
            return onnx_name(TensorType(DType.from_numpy(value.dtype)))
        except KeyError:
            return None
    if is_sequence(value):
        element = onnx_type(value[0]) if value else None
        return "seq(" if element is None else f"seq({element})"
    return "map(" if is_mapping(value) else None if value is None else type(value).__name__


def checked(kernel: Kernel, node: Node, binder: Binder, takes_out: bool = False) -> Kernel:
    """``kernel``, made by ``binder`` for ``node``, with results checked and NumPy scalars converted.

    A scalar becomes an array or a number, by the type of the result. Trailing inputs that the kernel requires and the
    node does not have are given as None. The node may have fewer results than the operator's schema row promises.

    It raises IRC401 if a result is not of the type that the node promises or their number differs; with ``takes_out``,
    also if the kernel is given the array for its result and returns another.

    Raises:
        Error: IRC304 if it cannot be called with the inputs of the node, IRC213 if these fit no schema row.
    """
    types = [output.type for output in node.outputs]
    name = name_of(binder)
    schema = resolve(node)
    promised = len(types) if schema is None or schema.is_varret else max(len(schema.returns), len(types))
    kernel = _called(kernel, node, f"the kernel that {name} makes", schema)

    def one(value: Any, type: Type) -> Any:
        try:
            return as_type(value, type, "", is_strict=True)
        except Error as error:
            what = f"its kernel, by {name}, returns {describe(value)} where {type} is promised"
            raise Error("IRC401", ": ".join(filter(None, (what, error.where, error.message)))) from None

    def run_one(*inputs: Any) -> Any:
        return one(kernel(*inputs), types[0])

    def run_into(*inputs: Any, out: Any = None) -> Any:
        if out is None:
            return one(kernel(*inputs), types[0])
        result = kernel(*inputs, out=out)
        if result is not out:
            raise Error("IRC401", f"its kernel, by {name}, returns {describe(result)}, not what it is given as out")
        return out if types[0].shape is None else one(out, types[0])

    def run_many(*inputs: Any) -> Any:
        results = kernel(*inputs)
        if not is_tuple(results) or len(results) not in (promised, len(types)):
            raise Error("IRC401", f"its kernel, by {name}, returns {describe(results)}, not a tuple of {promised}")
        found = tuple(map(one, results, types))
        return found if len(types) > 1 else found[0]

    if not types:
        return kernel  # called for its effects
    if promised > 1:
        return run_many
    return run_into if takes_out else run_one


def _called(kernel: Kernel, node: Node, what: str, schema: Schema | None) -> Kernel:
    """``kernel`` called with ``node``'s inputs, and None for missing trailing arguments of ``schema``."""
    names = [value.name for value in node.inputs]
    wrong = misfit(what, kernel, *names)
    if not wrong:
        return kernel
    rows = schemas(node.kind)
    if rows and schema is None:
        raise Error("IRC213", f"the inputs do not fit {' or '.join(map(str, rows))}")
    formals = () if schema is None else schema.arguments[len(names) :]
    left_out = (None,) * len(formals)
    if not formals or misfit(what, kernel, *names, *(formal.name for formal in formals)):
        raise Error("IRC304", wrong)

    def run(*inputs: Any, **given: Any) -> Any:
        return kernel(*inputs, *left_out, **given)

    return run


# -- results by name -----------------------------------------------------------

Path = tuple[int, ...]
"""The position of an output; of an element of it that is a tuple, then the position in that, and so on."""

_TUPLE = "prim::TupleConstruct"


T = TypeVar("T")


def named(code: str, name: str, among: Mapping[str, T], what: str) -> T:
    """What the model has called ``name``, a ``what``; Error ``code`` if there is none ``among`` these."""
    if name not in among:
        raise Error(code, f"the model has no {what} {name!r}; {suggestion(name, among)}")
    return among[name]


class Result(NamedTuple):
    """An output, or an element of one.

    Attributes:
        argument: its name and type.
        path: where it is.
    """

    argument: Argument
    path: Path


def results_of(outputs: Sequence[Argument]) -> dict[str, Result]:
    """Every result by name: outputs, and elements of tuples as ``output.0`` unless that is taken."""
    found = {output.name: Result(output, (i,)) for i, output in enumerate(outputs)}
    pending = list(reversed(found.values()))
    while pending:
        whole, path = result = pending.pop()
        found.setdefault(whole.name, result)
        elements = enumerate(whole.type.elems if isinstance(whole.type, TupleType) else ())
        pending += reversed([Result(Argument(f"{whole.name}.{i}", type), (*path, i)) for i, type in elements])
    return found


def element(values: Any, path: Iterable[int]) -> Any:
    """What is at ``path`` among the values that a run returns."""
    for place in path:
        values = values[place]
    return values


def value_at(outputs: Sequence[Value], path: Path) -> Value:
    """The value at ``path`` among a graph's outputs, or the innermost tuple that is not constructed there."""
    value = outputs[path[0]]
    for place in path[1:]:
        made = value.made_by(_TUPLE)
        if made is None:
            return value
        value = made.inputs[place]
    return value


def values_at(outputs: Iterable[Value]) -> Iterable[Value]:
    """All values that `value_at` may return for any path."""
    found: dict[Value, None] = {}
    pending = list(outputs)
    while pending:
        value = pending.pop()
        if value not in found:
            found[value] = None
            made = value.made_by(_TUPLE)
            if made is not None:
                pending.extend(made.inputs)
    return found
