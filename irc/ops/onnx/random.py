"""Operators that draw random numbers."""

from __future__ import annotations

from irc.ops.record import Effects, Family, Operator, each

FAMILY = Family(
    "onnx",
    each(
        "onnx::Bernoulli onnx::Multinomial onnx::RandomNormal onnx::RandomNormalLike onnx::RandomUniform "
        "onnx::RandomUniformLike",
        effects=Effects.RANDOM,
    ),
)
FAMILY.add(Operator("onnx::Dropout", effects=Effects.RANDOM, random_switch="training_mode"))
