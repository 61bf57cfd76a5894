"""Contradictions between the types that a model declares for its outputs and those that its graph gives."""

from __future__ import annotations

from irc.errors import Error
from irc.ir import Module
from irc.ir.declared_outputs import declared_type
from irc.ir.kinds import CONSTANT
from irc.ir.types import ListType, OptionalType, TensorType, Type


def check_outputs(module: Module) -> list[str]:
    """Notes about outputs with wrongly declared shapes, which do no harm.

    As ONNX Runtime does, irc refuses wrong element types, but not wrong sizes, which real models have: most often a
    batch size that has been changed since. Outputs that are inputs or weights are not checked.

    Raises:
        Error: IRC135 if the model declares another kind of value, or another element type, than a node gives.
    """
    found: list[str] = []
    for value in module.main.outputs:
        declared = declared_type(value, module.metadata)
        if declared is None or value.node is None or value.node.kind == CONSTANT:
            continue
        wrong = contradiction(value.type, declared)
        if wrong == "types":
            message = f"the model declares it as {declared}, but its node gives {value.type}: correct the declaration"
            raise Error("IRC135", message, f"output {value.name!r}")
        if wrong:
            found.append(f"the model declares its output {value.name!r} as {declared}; it is {value.type}")
    return found


def contradiction(type: Type, declared: Type) -> str | None:
    """How ``type`` and ``declared`` contradict each other: in "types", or only in "shapes"; None if they do not.

    What is not known contradicts nothing, and whether a value is optional does not matter.
    """
    while isinstance(type, OptionalType):
        type = type.elem
    while isinstance(declared, OptionalType):
        declared = declared.elem
    if isinstance(type, ListType) and isinstance(declared, ListType):
        return contradiction(type.elem, declared.elem)
    if not (isinstance(type, TensorType) and isinstance(declared, TensorType)):
        known = [t for t in (type, declared) if isinstance(t, ListType) or (isinstance(t, TensorType) and t.dtype)]
        return "types" if len(known) == 2 else None
    if type.dtype is not None and declared.dtype not in (None, type.dtype):
        return "types"
    if type.shape is None or declared.shape is None:
        return None
    sizes = [{a, b} for a, b in zip(type.shape, declared.shape) if isinstance(a, int) and isinstance(b, int)]
    return "shapes" if len(type.shape) != len(declared.shape) or any(len(pair) > 1 for pair in sizes) else None
