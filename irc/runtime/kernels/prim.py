"""TorchScript's own operators on values: constructing and taking apart lists, tuples and dictionaries; conversions.

``prim::Constant``, ``prim::If``, ``prim::Loop`` and ``prim::CallFunction`` are not kernels: lowering deals with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.torch_types import tensor

if TYPE_CHECKING:
    from irc.ir import Node


@kernel("prim::ListConstruct")
def list_construct(node: Node) -> Kernel:
    return lambda *elements: list(elements)


@kernel("prim::TupleConstruct")
def tuple_construct(node: Node) -> Kernel:
    return lambda *elements: elements


@kernel("prim::DictConstruct")
def dict_construct(node: Node) -> Kernel:
    return lambda *entries: dict(zip(entries[::2], entries[1::2]))


def _unpack(node: Node) -> Kernel:
    expected = len(node.outputs)

    def run(container: Sequence[Any]) -> Any:
        if len(container) != expected:
            raise Error("IRC421", f"{len(container)} elements cannot be unpacked into {expected}")
        return container[0] if expected == 1 else tuple(container)

    return run


kernel("prim::ListUnpack")(_unpack)
kernel("prim::TupleUnpack")(_unpack)


@kernel("prim::TupleIndex")
def tuple_index(node: Node) -> Kernel:
    def run(container: tuple[Any, ...], index: int) -> Any:
        if not -len(container) <= index < len(container):
            raise Error("IRC423", f"there is no element {index} in a tuple of {len(container)}")
        return container[index]

    return run


@kernel("prim::RaiseException")
def raise_exception(node: Node) -> Kernel:
    def run(message: Any, kind: Any = None) -> None:
        raise Error("IRC435", f"the model raised an exception: {message}")

    return run


def _register(name: str, run: Kernel) -> None:
    kernel(f"prim::{name}")(lambda node: run)


_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "NumToTensor": lambda x: np.array(tensor(x)),  # memory of its own
    "unchecked_cast": lambda x: x,
}
_OTHERS: dict[str, Kernel] = {"Uninitialized": lambda: None, "min": min, "max": max}

for _name, _run in {**_OF_ONE, **_OTHERS}.items():
    _register(_name, _run)
