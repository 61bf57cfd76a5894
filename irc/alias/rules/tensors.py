"""Tensor operators whose effect no annotation can express."""

from __future__ import annotations

from irc.alias.recorder import Recorder, Steps
from irc.alias.rules.calls import opaque
from irc.alias.rules.entry import Entry, always
from irc.ir.kinds import CONSTANT
from irc.ir.node import Node
from irc.ir.tensor import Tensor


def _is_odd(node: Node) -> bool:
    """Whether ``node`` has other inputs or outputs than the rules here expect: then nothing is known of it."""
    if node.kind in STATISTICS:
        return not TRAINING < len(node.inputs) <= STATISTICS[node.kind]  # further ones may be what results go to
    return not node.inputs or len(node.outputs) != 1


def _normalise(rec: Recorder, node: Node) -> Steps | None:
    """Batch and instance norm write the running statistics unless they are told, by a constant, not to train."""
    if _is_odd(node):
        return opaque(rec, node)
    training = node.inputs[TRAINING].made_by(CONSTANT)
    trains = True if training is None else training.attributes.get("value")
    if isinstance(trains, Tensor) or trains:
        for statistics in node.inputs[3:5]:
            rec.write(node, rec.element(statistics))
    for output in node.outputs:
        rec.fresh(output)
    return None


def _set_storage(rec: Recorder, node: Node) -> Steps | None:
    """``set_``: the tensor, and all its views, take over the storage of another.

    From then on neither memory is what it was made as: both are unknown.
    """
    if _is_odd(node):
        return opaque(rec, node)
    for value in node.inputs[:2]:
        rec.become_unknown(rec.element(value))
    rec.write(node, rec.element(node.inputs[0]))
    rec.bind(node.output, rec.element(node.inputs[0]))
    return None


STATISTICS = {"aten::batch_norm": 9, "aten::instance_norm": 9, "aten::native_batch_norm": 8}
"""Operators whose running statistics are written or not as an argument says, and how many arguments each takes."""

TRAINING = 5
"""The position of that argument."""

RULES: dict[str, Entry] = {
    **dict.fromkeys(STATISTICS, Entry(_normalise, writes=True, keeps=_is_odd)),
    "aten::set_": Entry(_set_storage, writes=True, keeps=always),
}
