"""Target shapes of Reshape, in the form that ONNX Runtime needs for tensors without elements.

A size that a target leaves open (-1) next to sizes that it copies (0) is the product of
all sizes that are not copied, even if there are no elements. ONNX Runtime divides
by their number, and refuses a batch of none: so the size is stated where it is known.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from irc.ir import Tensor
from irc.ir.builder import Builder
from irc.ir.constants import CONSTANT, constant_tensor

if TYPE_CHECKING:
    from irc.ir import Graph, Node


def state_sizes(graph: Graph) -> None:
    """In the targets of ``graph``, replace the -1 next to copied sizes by the size, where types tell it."""
    for node in list(graph.walk()):
        if node.kind != "onnx::Reshape" or (sizes := _sizes(node)) is None:
            continue
        target = node.inputs[1]
        tensor = Tensor.of(np.array(sizes, np.int64))
        stated = Builder.before(node).node(
            CONSTANT, (), [tensor.type], names=[target.name], attributes={"value": tensor}
        )
        node.replace_input(1, stated.output)
        if target.node is not None and not target.has_uses:
            target.node.erase()


def _sizes(node: Node) -> list[int] | None:
    """The target shape of ``node`` without -1, if it has one and copies sizes; None if not, or it is not known."""
    given = constant_tensor(node.inputs[1]) if len(node.inputs) == 2 else None
    type = node.inputs[0].type
    if given is None or node.attributes.get("allowzero") or type.shape is None:
        return None
    target: list[int] = given.numpy().tolist()
    if 0 not in target or -1 not in target:
        return None
    place = target.index(-1)
    left = {i: size for i, size in enumerate(type.shape) if i >= len(target) or target[i]}
    known, stated = prod(n for n in left.values() if isinstance(n, int)), prod(n for n in target if n > 0)
    unknown = [i for i, size in left.items() if not isinstance(size, int)]
    if not unknown and known and known % stated == 0:
        size = known // stated
    elif unknown == [place] and known == stated:
        size = 0  # it stays as it is
    else:
        return None
    return [*target[:place], size, *target[place + 1 :]]
