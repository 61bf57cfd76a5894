"""Operators that ONNX had as experimental ones and dropped; ONNX Runtime still has them, in ``ai.onnx``."""

from __future__ import annotations

import numpy as np

from irc.frontend.onnx.contrib.body import FAR, Body
from irc.frontend.onnx.contrib.table import Row, row


def _affine(b: Body) -> str:
    x, summand = _scaled(b, "X", "alpha"), b.attributes["beta"]
    return b("Identity", x) if summand == 0 else b("Add", x, b.number(summand, "X"))


def _scaled(b: Body, x: str, attribute: str) -> str:
    """``x`` times an attribute."""
    factor = b.attributes[attribute]
    return x if factor == 1 else b("Mul", x, b.number(factor, "X"))


def _parametric_softplus(b: Body) -> str:
    return _scaled(b, b("Softplus", _scaled(b, "X", "beta")), "alpha")


def _scaled_tanh(b: Body) -> str:
    return _scaled(b, b("Tanh", _scaled(b, "X", "beta")), "alpha")


def _image_scaler(b: Body) -> str:
    column = b.constant(np.array(b.attributes["bias"], np.float32).reshape(-1, 1, 1))
    return b("Add", _scaled(b, "X", "scale"), b.cast(column, "X"))


def _crop(b: Body) -> str:
    border, size = b.attributes["border"], b.attributes["scale"]
    if len(border) != 4 or min(border) < 0 or (size and (len(size) != 2 or min(size) < 0)):
        b.wrong("'border' are four sizes (left, top, right, bottom), and 'scale' two, if any (height, width)")
    left, top, right, bottom = border
    ends = [top + size[0], left + size[1]] if size else [-bottom or FAR, -right or FAR]
    return b.slice("X", [top, left], ends, [2, 3])


ROWS: list[Row] = [
    row("Affine(X) -> Y", _affine, "float alpha = 1, float beta = 0", 7, ""),
    row("Crop(X) -> Y", _crop, "ints border, ints scale =", 1, ""),
    row("ImageScaler(X) -> Y", _image_scaler, "floats bias, float scale = 1", 7, ""),
    row("ParametricSoftplus(X) -> Y", _parametric_softplus, "float alpha, float beta", 7, ""),
    row("ScaledTanh(X) -> Y", _scaled_tanh, "float alpha, float beta", 7, ""),
]
