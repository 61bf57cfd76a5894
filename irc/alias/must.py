"""Which values certainly share memory.

Schema rows mark results that always are, or lie within, an argument (``t``,
``select``, in-place operators). Such results are followed up to where the
memory comes from.
"""

from __future__ import annotations

from irc.alias.memory_types import has_memory
from irc.ir.constants import constant_value
from irc.ir.ops import resolve, schemas
from irc.ir.tensor import Tensor
from irc.ir.value import Value

_SAME = frozenset({"prim::unchecked_cast", "prim::unchecked_unwrap_optional", "prim::Guard", "prim::profile"})


def must_alias(a: Value, b: Value) -> bool:
    """Whether ``a`` and ``b``, where both are defined, certainly share memory (if they have any elements at all).

    Two parts of one tensor need not: only a part and the whole do.
    """
    if not has_memory(a.type) or not has_memory(b.type):
        return False
    # From both at once: what is made of one value meets soon, however long the chain that this came by is.
    above: tuple[dict[object, bool], dict[object, bool]] = {}, {}
    ends: list[tuple[Value, bool] | None] = [(a, True), (b, True)]
    while any(ends):
        for i, end in enumerate(ends):
            if end is None:
                continue
            value, whole = end
            memory = _memory(value)
            above[i][memory] = whole
            other = above[1 - i].get(memory)
            if other is not None:
                return other or whole
            step = _source(value)
            ends[i] = None if step is None else (step[0], whole and step[1])
    return False


def _memory(value: Value) -> object:
    """A key for the memory of a value that is no view: the name of its weight if it is a constant, else the value."""
    tensor = constant_value(value)
    return tensor.name if isinstance(tensor, Tensor) and tensor.name else value


def _source(value: Value) -> tuple[Value, bool] | None:
    """The value whose memory ``value`` certainly shares, and whether it covers all of that; None if there is none."""
    node = value.node
    if node is None:
        return None
    if node.kind in _SAME:
        return (node.inputs[0], True) if value.index == 0 else None
    if not schemas(node.kind):
        return None
    schema = resolve(node)
    result = schema and schema.result(value.index)
    info = result and result.alias
    if schema is None or not info or len(info.before) != 1 or not (info.must or info.write):
        return None
    sources = [
        node.inputs[i]
        for i, argument in enumerate(schema.arguments[: len(node.inputs)])
        if argument.alias is not None and argument.alias.before == info.before
    ]
    return (sources[0], info.must != "<") if len(sources) == 1 else None
