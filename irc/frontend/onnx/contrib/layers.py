"""Activations, normalizations and products that ONNX Runtime's optimisers make of several operators."""

from __future__ import annotations

import numpy as np

from irc.frontend.onnx.contrib.body import FAR, Body, Row, row

_PARAMETERS = ("alpha", "beta")

_LIMITS_ARE_INPUTS = 11
"""The first opset in which the limits of Clip are inputs."""

_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Clip": ("alpha", "beta"),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}
"""What may be fused with a product, and its parameters."""


def _fast_gelu(b: Body) -> str:
    return b("Gelu", b("Add", "X", "bias") if b.has("bias") else "X", approximate="tanh")


def _quick_gelu(b: Body) -> str:
    return b("Mul", "X", b("Sigmoid", b("Mul", "X", b.number(b.attributes["alpha"], "X"))))


def _matmul(b: Body) -> str:
    a, b_ = (_transposed(b, name) for name in "AB")
    alpha = b.attributes["alpha"]
    product = b("MatMul", a, b_)
    return product if alpha == 1 else b("Mul", product, b.number(alpha, "A"))


def _transposed(b: Body, name: str) -> str:
    """An operand of FusedMatMul, whose rank need not be known: its rows, columns and batches where MatMul has them."""
    of_last, of_batch = (bool(b.attributes.get(f"{what}{name}", 0)) for what in ("trans", "transBatch"))
    if not of_last and not of_batch:
        return name
    rank = b.rank(name)
    if rank is None:
        given = ("i" if of_batch else "...i") + ("..." if of_batch else "") + "j"
        equation = f"{given}->...{'ji' if of_last else 'ij'}"
        is_vector = b("Less", b("Size", b("Shape", name)), 2)
        return b.choose(is_vector, lambda: [b("Identity", name)], lambda: [b("Einsum", name, equation=equation)])[0]
    if rank < 2:
        return name  # a vector has nothing to transpose
    order = [*range(1, rank - 1), 0, rank - 1] if of_batch else [*range(rank)]
    return b("Transpose", name, perm=[*order[:-2], *(order[:-3:-1] if of_last else order[-2:])])


def _gemm(b: Body) -> str:
    kept = {key: b.attributes[key] for key in ("alpha", "beta", "transA", "transB")}
    product = b("Gemm", "A", "B", *(["C"] if b.has("C") else []), **kept)
    given = [b.attributes[f"activation_{key}"] for key in _PARAMETERS]
    return _activated(b, product, {key: value for key, value in zip(_PARAMETERS, given) if value != ()})


def _conv(b: Body) -> str:
    words = ("kernel_shape", "pads", "strides", "dilations")
    kept = {key: list(value) for key in words if (value := b.attributes[key])}
    operands = ["X", "W", *(["B"] if b.has("B") else [])]
    made = b("Conv", *operands, group=b.attributes["group"], auto_pad=b.attributes["auto_pad"], **kept)
    parameters = b.attributes["activation_params"]
    return _activated(b, b("Add", made, "Z") if b.has("Z") else made, dict(zip(_PARAMETERS, parameters)))


def _activated(b: Body, x: str, given: dict[str, float]) -> str:
    """``x`` after the activation that a product is fused with. Raises IRC127."""
    name = b.attributes["activation"]
    if not name:
        return x
    wanted = _ACTIVATIONS.get(name)
    if wanted is None:
        b.wrong(f"attribute 'activation' is one of {', '.join(_ACTIVATIONS)}, not {name!r}")
    if not given.keys() >= set(wanted):
        b.wrong(f"the activation {name} needs {len(wanted)} parameters")
    if name == "Clip" and b.opset < _LIMITS_ARE_INPUTS:
        return b("Clip", x, min=given["alpha"], max=given["beta"])
    if name == "Clip":
        return b("Clip", x, *(b.number(given[key], next(iter(b.types))) for key in wanted))
    return b(name, x, **{key: given[key] for key in wanted})


def _bias_add(b: Body) -> str:
    return b("Add", b("Add", "X", "bias"), "skip")


def _rms(b: Body) -> tuple[str, ...]:
    kept = {key: b.attributes[key] for key in ("axis", "epsilon", "stash_type")}
    made = b("RMSNormalization", "X", "scale", **kept)
    if "inv_std_var" in b.outputs:
        b.refuse("output inv_std_var")
    return (made,)


def _skip(b: Body) -> str:
    """The sum that is normalized."""
    for name in ("mean", "inv_std_var"):
        if name in b.outputs:
            b.refuse(f"output {name}")
    both = b("Add", "input", "skip")
    return b("Add", both, "bias") if b.has("bias") else both


def _skip_layer(b: Body) -> tuple[str, ...]:
    total = _skip(b)
    made = b(
        "LayerNormalization", total, "gamma", *(["beta"] if b.has("beta") else []), epsilon=b.attributes["epsilon"]
    )
    return (made, "", "", total)


def _skip_rms(b: Body) -> tuple[str, ...]:
    total = _skip(b)
    return (b("RMSNormalization", total, "gamma", epsilon=b.attributes["epsilon"]), "", "", total)


def _embed(b: Body) -> tuple[str, ...]:
    """The sum of embeddings, normalized; how much of each sample is no padding, if masks end with it."""
    ids = "input_ids"
    at = "position_ids"
    if not b.has(at):
        length = b("Squeeze", b("Shape", ids, start=1, end=2))
        at = b("Unsqueeze", b("Range", 0, length, 1), [0])
    total = b("Add", b("Gather", "word_embedding", ids), b("Gather", "position_embedding", at))
    if b.has("segment_ids") != b.has("segment_embedding"):
        b.wrong("of inputs segment_ids and segment_embedding, one is absent")
    if b.has("segment_ids"):
        total = b("Add", total, b("Gather", "segment_embedding", "segment_ids"))
    made = b("LayerNormalization", total, "gamma", "beta", epsilon=b.attributes["epsilon"])
    rows = b("Shape", ids, end=1)
    zeros = b("Expand", b.integers(0, np.int32), rows)
    ends = b("ReduceSum", "mask", [1], keepdims=0) if b.has("mask") else zeros
    return made, ends, total


_SKIP_OUTPUTS = "output, mean?, inv_std_var?, input_skip_bias_sum?"
_TRANSPOSED = "float alpha = 1, int transA = 0, int transB = 0"


# Operators that ONNX had as experimental ones and dropped; ONNX Runtime still has them, in ``ai.onnx``.


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
    row("BiasAdd(X, bias, skip) -> Y", _bias_add, lowest=7),
    row("BiasGelu(A, B) -> C", lambda b: b("Gelu", b("Add", "A", "B")), since=20, lowest=7),
    row(
        "EmbedLayerNormalization(input_ids, segment_ids?, word_embedding, position_embedding, segment_embedding?,"
        "gamma, beta, mask?, position_ids?) -> output, mask_index?, embedding_sum?",
        _embed,
        "float epsilon = 1e-12, int mask_index_type = 0",
    ),
    row("FastGelu(X, bias?) -> Y", _fast_gelu, since=20, lowest=7),
    row("Gelu(X) -> Y", lambda b: b("Gelu", "X"), since=20, lowest=7),
    row(
        "FusedConv(X, W, B?, Z?) -> Y",
        _conv,
        "string activation =, floats activation_params =, string auto_pad = NOTSET, int group = 1, ints dilations =,"
        "ints kernel_shape =, ints pads =, ints strides =",
        lowest=7,
    ),
    row(
        "FusedGemm(A, B, C?) -> Y",
        _gemm,
        f"{_TRANSPOSED}, float beta = 1, string activation =, float activation_alpha =, float activation_beta =,"
        "float activation_gamma =",
        lowest=7,
    ),
    row("QuickGelu(X) -> Y", _quick_gelu, "float alpha = 1.702", lowest=7),
    row("FusedMatMul(A, B) -> Y", _matmul, f"{_TRANSPOSED}, int transBatchA = 0, int transBatchB = 0", lowest=7),
    row("TransposeMatMul(A, B) -> Y", _matmul, _TRANSPOSED, lowest=7),
    row(
        "SimplifiedLayerNormalization(X, scale) -> Y, inv_std_var?",
        _rms,
        "int axis = -1, float epsilon = 1e-5, int stash_type = 1",
        since=23,
        lowest=7,
        domain="",
    ),
    row(
        f"SkipLayerNormalization(input, skip, gamma, beta?, bias?) -> {_SKIP_OUTPUTS}",
        _skip_layer,
        "float epsilon = 1e-12",
        lowest=7,
    ),
    row(
        f"SkipSimplifiedLayerNormalization(input, skip, gamma, bias?) -> {_SKIP_OUTPUTS}",
        _skip_rms,
        "float epsilon = 1e-12",
        since=23,
        lowest=7,
    ),
    row("Affine(X) -> Y", _affine, "float alpha = 1, float beta = 0", 7, ""),
    row("Crop(X) -> Y", _crop, "ints border, ints scale =", 1, ""),
    row("ImageScaler(X) -> Y", _image_scaler, "floats bias, float scale = 1", 7, ""),
    row("ParametricSoftplus(X) -> Y", _parametric_softplus, "float alpha, float beta", 7, ""),
    row("ScaledTanh(X) -> Y", _scaled_tanh, "float alpha, float beta", 7, ""),
]
