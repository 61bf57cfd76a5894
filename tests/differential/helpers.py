"""One operator, or one graph, through torch's interpreter and through irc's."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irc.frontend.torchscript import copy_into_outs
from irc.ir import parse_module
from irc.passes import PassManager
from irc.runtime.plan import lower

torch: Any = pytest.importorskip("torch")

Array = np.ndarray[Any, Any]

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-11, "complex64": 1e-5}
_AS_INT16 = np.dtype(ml_dtypes.bfloat16)


_NOT_IMPLEMENTED = re.compile("not implemented for|not supported|unsupported|does not support|only supported")


class Typed:
    """A value of which TorchScript must be told the type: an empty list, a None in a list."""

    def __init__(self, value: Any, type: str) -> None:
        self.value = value
        self.type = type


def type_of(value: Any) -> str:
    """The TorchScript type of an argument."""
    if isinstance(value, Typed):
        return value.type
    if isinstance(value, np.ndarray):
        return "Tensor"
    if value is None:
        return "NoneType"
    if isinstance(value, list):
        return f"{type_of(value[0])}[]"
    if isinstance(value, tuple):
        return f"({', '.join(map(type_of, value))})"
    if isinstance(value, dict):
        return f"Dict({type_of(next(iter(value)))}, {type_of(next(iter(value.values())))})"
    return {bool: "bool", int: "int", float: "float", str: "str", complex: "complex"}[type(value)]


def plain(value: Any) -> Any:
    """An argument without the types told."""
    return value.value if isinstance(value, Typed) else value


def to_torch(value: Any, storages: dict[int, Any]) -> Any:
    """The same value for torch; arrays keep their strides, and share memory among each other as they do."""
    if isinstance(value, np.ndarray):
        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if id(owner) not in storages:
            copy = owner.copy(order="K")
            is_bfloat = copy.dtype == _AS_INT16
            made = torch.from_numpy(copy.view(np.int16) if is_bfloat else copy)
            storages[id(owner)] = (owner, made.view(torch.bfloat16) if is_bfloat else made)
        _, storage = storages[id(owner)]
        offset = (address(value) - address(owner)) // value.itemsize
        return storage.as_strided(value.shape, [s // value.itemsize for s in value.strides], offset)
    if isinstance(value, list):
        return [to_torch(v, storages) for v in value]
    if isinstance(value, tuple):
        return tuple(to_torch(v, storages) for v in value)
    if isinstance(value, dict):
        return {k: to_torch(v, storages) for k, v in value.items()}
    return value


def copied(value: Any, owners: dict[int, Array]) -> Any:
    """The same value in memory of its own, sharing as it does."""
    if isinstance(value, np.ndarray):
        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if id(owner) not in owners:
            owners[id(owner)] = owner.copy(order="K")
        fresh = owners[id(owner)]
        at = address(value) - address(owner)
        return np.ndarray(value.shape, value.dtype, fresh, at, value.strides)
    if isinstance(value, list):
        return [copied(v, owners) for v in value]
    if isinstance(value, tuple):
        return tuple(copied(v, owners) for v in value)
    if isinstance(value, dict):
        return {k: copied(v, owners) for k, v in value.items()}
    return value


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def numpy_of(tensor: Any) -> Array:
    """A torch tensor's elements, in the same memory."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def text_of(kind: str, arguments: Sequence[Any], outputs: int, attributes: str = "") -> str:
    """A graph of one operator."""
    params = ", ".join(f"%a{i} : {type_of(a)}" for i, a in enumerate(arguments))
    results = ", ".join(f"%r{i}" for i in range(outputs))
    inputs = ", ".join(f"%a{i}" for i in range(len(arguments)))
    equals = f"{results} = " if outputs else ""
    return f"graph({params}):\n  {equals}{kind}{attributes}({inputs})\n  return ({results})\n"


def one_result(graph: Any) -> Any:
    """A torch graph that returns a tuple (or None) in place of several (or no) results: torch's functions need that."""
    outputs = list(graph.outputs())
    if len(outputs) == 1:
        return graph
    lines = [re.sub("^( *) = ", r"\1", line) for line in str(graph).rstrip().split("\n")]
    names = ", ".join(f"%{v.debugName()}" for v in outputs)
    kinds = ", ".join(v.type().str() for v in outputs)
    last = f"  %all : ({kinds}) = prim::TupleConstruct({names})" if outputs else "  %all : NoneType = prim::Constant()"
    return torch._C.parse_ir("\n".join([*lines[:-1], last, "  return (%all)\n"]))


class Differ(AssertionError):
    """irc and torch give different results."""


def compare(
    kind: str,
    *arguments: Any,
    outputs: int = 1,
    strides: bool = True,
    values: bool = True,
    tolerance: float | None = None,
) -> None:
    """Run one operator both ways and compare results: types, shapes, strides, elements, what shares, what is written.

    Args:
        kind: such as ``aten::add``.
        arguments: arrays and Python values, in the order of the schema.
        outputs: how many results there are.
        strides: whether the results' strides must agree too.
        values: whether their elements must (random ones cannot).
        tolerance: relative; by element type if it is None.
    """
    run_both(text_of(kind, arguments, outputs), arguments, strides=strides, values=values, tolerance=tolerance)


def run_both(
    text: str,
    arguments: Sequence[Any],
    *,
    strides: bool = True,
    values: bool = True,
    tolerance: float | None = None,
    passes: str = "",
) -> None:
    """Run a graph both ways, in irc after ``passes``, and compare as `compare` does."""
    graph = one_result(torch._C.parse_ir(text))
    given = [plain(a) for a in arguments]
    storages: dict[int, Any] = {}
    its = [to_torch(a, storages) for a in given]
    owners: dict[int, Array] = {}
    mine = [copied(a, owners) for a in given]
    check = _Check(_tensors(its), _arrays(mine), strides, values, tolerance)  # before lists change
    function = torch._C._create_function_from_graph("f", graph)
    its_error = mine_error = None
    expected = found = None
    try:
        with torch.no_grad():
            expected = function(*its)
    except Exception as error:
        its_error = error
    module = parse_module(str(graph))
    copy_into_outs(module)
    if passes:
        PassManager(passes).run(module)
    plan = lower(module.main)
    try:
        found = plan.run(mine)
    except Exception as error:
        mine_error = error
    if its_error is not None or mine_error is not None:
        if its_error is not None and _NOT_IMPLEMENTED.search(str(its_error)):
            return  # irc may know more element types
        if its_error is None or mine_error is None:
            raise Differ(f"torch: {its_error or 'fine'}\nirc: {mine_error or 'fine'}")
        return
    assert found is not None
    check(found[0], expected, "result")
    check.values = check.strides = True
    for i, (array, tensor) in enumerate(zip(check.arrays, check.tensors, strict=True)):
        check(array, tensor, f"array {i} afterwards")


def _tensors(value: Any) -> list[Any]:
    return _leaves(value, lambda v: isinstance(v, torch.Tensor))


def _arrays(value: Any) -> list[Array]:
    return _leaves(value, lambda v: isinstance(v, np.ndarray))


def _leaves(value: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    if wanted(value):
        return [value]
    inner = value if isinstance(value, list | tuple) else value.values() if isinstance(value, dict) else ()
    return [leaf for v in inner for leaf in _leaves(v, wanted)]


class _Check:
    def __init__(
        self, tensors: list[Any], arrays: list[Array], strides: bool, values: bool, tolerance: float | None
    ) -> None:
        self.tensors = tensors
        self.arrays = arrays
        self.strides = strides
        self.values = values
        self.tolerance = tolerance

    def __call__(self, mine: Any, its: Any, where: str) -> None:
        if isinstance(its, torch.Tensor):
            self._tensor(mine, its, where)
        elif isinstance(its, list | tuple):
            self._require(isinstance(mine, list | tuple) and len(mine) == len(its), where, mine, its)
            for i, (m, t) in enumerate(zip(mine, its)):
                self(m, t, f"{where}[{i}]")
        elif isinstance(its, dict):
            self._require(isinstance(mine, dict) and list(mine) == list(its), where, mine, its)
            for key in its:
                self(mine[key], its[key], f"{where}[{key!r}]")
        elif isinstance(its, float) and isinstance(mine, float):
            np.testing.assert_allclose(mine, its, rtol=self.tolerance or 1e-12, err_msg=where)
        elif isinstance(its, torch.dtype | torch.device | torch.layout):
            pass  # numbers and strings in irc, which other operators take
        else:
            self._require(type(mine) is type(its) and mine == its, where, mine, its)

    def _require(self, holds: bool, where: str, mine: Any, its: Any) -> None:
        if not holds:
            raise Differ(f"{where}: irc {mine!r:.500}, torch {its!r:.500}")

    def _tensor(self, mine: Any, its: Any, where: str) -> None:
        its = its.resolve_conj().resolve_neg() if its.is_conj() or its.is_neg() else its
        expected = numpy_of(its)
        self._require(type(mine) is np.ndarray, where, mine, its)
        self._require(mine.dtype == expected.dtype, f"{where}, element type", mine.dtype, expected.dtype)
        self._require(mine.shape == expected.shape, f"{where}, shape", mine.shape, expected.shape)
        if self.values:
            _close(mine, expected, self.tolerance, where)
        if not mine.size:
            return
        if self.strides:
            steps = [(a, b) for a, b, n in zip(mine.strides, expected.strides, mine.shape) if n > 1]
            self._require(
                all(a == b for a, b in steps), f"{where}, strides of {mine.shape}", mine.strides, expected.strides
            )
        for i, (array, tensor) in enumerate(zip(self.arrays, self.tensors, strict=True)):
            if not array.size:
                continue
            shares = its.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
            if shares:
                distance = address(expected) - address(numpy_of(tensor))
                self._require(address(mine) - address(array) == distance, f"{where} is a view of {i}", "not", distance)
            else:
                self._require(not np.may_share_memory(mine, array), f"{where} shares with {i}", "so", "not so")


def _close(mine: Array, its: Array, tolerance: float | None, where: str) -> None:
    if mine.dtype.kind in "biu":
        np.testing.assert_array_equal(mine, its, err_msg=where)
        return
    rtol = TOLERANCE.get(mine.dtype.name, 1e-11) if tolerance is None else tolerance
    wide = np.complex128 if mine.dtype.kind == "c" else np.float64
    a, b = mine.astype(wide), its.astype(wide)
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * min(scale, 1.0) + 1e-30, err_msg=where)
