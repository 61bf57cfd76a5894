"""Losses and optimisers."""

from __future__ import annotations

from irc.ops import checks
from irc.ops.inference import NodeTypes
from irc.ops.record import Family

FAMILY = Family("onnx")
FAMILY.each(
    "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    expanded=True,
    attributes={"reduction": ("none", "sum", "mean")},
)
for _name in ("Adagrad", "Adam", "Momentum"):
    FAMILY.each(f"ai.onnx.preview.training::{_name}", kernel="optimizers")


@FAMILY.requires("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def check_classes(c: NodeTypes) -> None:
    """Losses of classes: (N, C, d...) scores, (N, d...) classes, (C) weights."""
    x, target = c.shape(0), c.shape(1)
    if x is None or len(x) < 2:
        return
    checks.rank("the weights", 2, 1)(c)
    checks.size(c, "the weights", 2, x[1], f"{x[1]} classes")
    if target is None:
        return
    if len(target) != len(x) - 1:
        c.fail(f"the classes must have {len(x) - 1} dimensions, not {len(target)}")
    for a, b in zip((x[0], *x[2:]), target):
        c.same_dim([a, b], "sizes of scores and classes")
