"""Activations, normalizations and products, also quantized ones, that ONNX Runtime's optimisers fuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irc.frontend.onnx.contrib.attention import COMMON, of_one
from irc.frontend.onnx.contrib.body import FAR, Body, TooOldError, operator
from irc.ir.types import DType

_SKIP_OUTPUTS = "output, mean?, inv_std_var?, input_skip_bias_sum?"
_TRANSPOSED = "float alpha = 1, int transA = 0, int transB = 0"
_PAIR = "A, A_scale, A_zero_point?, B, B_scale, B_zero_point?, C_scale, C_zero_point?"
_ONE = "X, X_scale, X_zero_point?, Y_scale, Y_zero_point?"
_WINDOWS = "string auto_pad = NOTSET, ints pads =, ints strides =, int channels_last = 0"

_PARAMETERS = ("alpha", "beta")

_LIMITS_ARE_INPUTS = 11
"""The first opset in which the limits of Clip are inputs."""

_ACTIVATIONS = {"Clip": 2, "HardSigmoid": 2, "LeakyRelu": 1, "Relu": 0, "Sigmoid": 0, "Tanh": 0}
"""What may be fused with a product, and how many of `_PARAMETERS` it has."""


operator("BiasAdd(X, bias, skip) -> Y", lowest=7)(lambda b: b("Add", b("Add", "X", "bias"), "skip"))
operator("BiasGelu(A, B) -> C", since=20, lowest=7)(lambda b: b("Gelu", b("Add", "A", "B")))
operator("Gelu(X) -> Y", since=20, lowest=7)(lambda b: b("Gelu", "X"))


@operator("FastGelu(X, bias?) -> Y", since=20, lowest=7)
def _fast_gelu(b: Body) -> str:
    return b("Gelu", b("Add", "X", "bias") if b.has("bias") else "X", approximate="tanh")


@operator("QuickGelu(X) -> Y", "float alpha = 1.702", lowest=7)
def _quick_gelu(b: Body) -> str:
    return b("Mul", "X", b("Sigmoid", b("Mul", "X", b.number(b.attributes["alpha"], "X"))))


@operator("FusedMatMul(A, B) -> Y", f"{_TRANSPOSED}, int transBatchA = 0, int transBatchB = 0", lowest=7)
@operator("TransposeMatMul(A, B) -> Y", _TRANSPOSED, lowest=7)
def _matmul(b: Body) -> str:
    a, b_ = (_transposed(b, name) for name in "AB")
    alpha = b.attributes["alpha"]
    product = b("MatMul", a, b_)
    return product if alpha == 1 else b("Mul", product, b.number(alpha, "A"))


def _transposed(b: Body, name: str) -> str:
    """An operand of FusedMatMul of any rank, with rows, columns and batches in MatMul's order."""
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


@operator(
    "FusedGemm(A, B, C?) -> Y",
    f"{_TRANSPOSED}, float beta = 1, string activation =, float activation_alpha =, float activation_beta =,"
    "float activation_gamma =",
    lowest=7,
)
def _gemm(b: Body) -> str:
    kept = {key: b.attributes[key] for key in ("alpha", "beta", "transA", "transB")}
    product = b("Gemm", "A", "B", b.optional("C"), **kept)
    given = [b.attributes[f"activation_{key}"] for key in _PARAMETERS]
    return _activated(b, product, {key: value for key, value in zip(_PARAMETERS, given) if value != ()})


@operator(
    "FusedConv(X, W, B?, Z?) -> Y",
    "string activation =, floats activation_params =, string auto_pad = NOTSET, int group = 1, ints dilations =,"
    "ints kernel_shape =, ints pads =, ints strides =",
    lowest=7,
)
def _conv(b: Body) -> str:
    words = ("kernel_shape", "pads", "strides", "dilations")
    kept = {key: list(value) for key in words if (value := b.attributes[key])}
    made = b("Conv", "X", "W", b.optional("B"), group=b.attributes["group"], auto_pad=b.attributes["auto_pad"], **kept)
    parameters = b.attributes["activation_params"]
    return _activated(b, b("Add", made, "Z") if b.has("Z") else made, dict(zip(_PARAMETERS, parameters)))


def _activated(b: Body, x: str, given: dict[str, float]) -> str:
    """``x`` after the activation that a product is fused with. Raises IRC127."""
    name = b.attributes["activation"]
    if not name:
        return x
    if name not in _ACTIVATIONS:
        b.wrong(f"attribute 'activation' is one of {', '.join(_ACTIVATIONS)}, not {name!r}")
    wanted = _PARAMETERS[: _ACTIVATIONS[name]]
    if not given.keys() >= set(wanted):
        b.wrong(f"the activation {name} needs {len(wanted)} parameters")
    if name == "Clip" and b.opset < _LIMITS_ARE_INPUTS:
        return b("Clip", x, min=given["alpha"], max=given["beta"])
    if name == "Clip":
        return b("Clip", x, *(b.number(given[key], next(iter(b.types))) for key in wanted))
    return b(name, x, **{key: given[key] for key in wanted})


@operator(
    "SimplifiedLayerNormalization(X, scale) -> Y, inv_std_var?",
    "int axis = -1, float epsilon = 1e-5, int stash_type = 1",
    since=23,
    lowest=7,
    domain="",
    lenient=True,
)
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


@operator(
    f"SkipLayerNormalization(input, skip, gamma, beta?, bias?) -> {_SKIP_OUTPUTS}", "float epsilon = 1e-12", lowest=7
)
def _skip_layer(b: Body) -> tuple[str, ...]:
    total = _skip(b)
    return (b("LayerNormalization", total, "gamma", b.optional("beta"), epsilon=b.attributes["epsilon"]), "", "", total)


@operator(
    f"SkipSimplifiedLayerNormalization(input, skip, gamma, bias?) -> {_SKIP_OUTPUTS}",
    "float epsilon = 1e-12",
    since=23,
    lowest=7,
)
def _skip_rms(b: Body) -> tuple[str, ...]:
    total = _skip(b)
    return (b("RMSNormalization", total, "gamma", epsilon=b.attributes["epsilon"]), "", "", total)


@operator(
    "EmbedLayerNormalization(input_ids, segment_ids?, word_embedding, position_embedding, segment_embedding?,"
    "gamma, beta, mask?, position_ids?) -> output, mask_index?, embedding_sum?",
    "float epsilon = 1e-12, int mask_index_type = 0",
)
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


# Operators that ONNX had as experimental ones and dropped; ONNX Runtime still has them, in ``ai.onnx``.


@operator("Affine(X) -> Y", "float alpha = 1, float beta = 0", 7, "")
def _affine(b: Body) -> str:
    x, summand = _scaled(b, "X", "alpha"), b.attributes["beta"]
    return b("Identity", x) if summand == 0 else b("Add", x, b.number(summand, "X"))


def _scaled(b: Body, x: str, attribute: str) -> str:
    """``x`` times an attribute."""
    factor = b.attributes[attribute]
    return x if factor == 1 else b("Mul", x, b.number(factor, "X"))


@operator("ParametricSoftplus(X) -> Y", "float alpha, float beta", 7, "")
def _parametric_softplus(b: Body) -> str:
    return _scaled(b, b("Softplus", _scaled(b, "X", "beta")), "alpha")


@operator("ScaledTanh(X) -> Y", "float alpha, float beta", 7, "")
def _scaled_tanh(b: Body) -> str:
    return _scaled(b, b("Tanh", _scaled(b, "X", "beta")), "alpha")


@operator("ImageScaler(X) -> Y", "floats bias, float scale = 1", 7, "")
def _image_scaler(b: Body) -> str:
    column = b.constant(np.array(b.attributes["bias"], np.float32).reshape(-1, 1, 1))
    return b("Add", _scaled(b, "X", "scale"), b.cast(column, "X"))


@operator("Crop(X) -> Y", "ints border, ints scale =", 1, "")
def _crop(b: Body) -> str:
    border, size = b.attributes["border"], b.attributes["scale"]
    if len(border) != 4 or min(border) < 0 or (size and (len(size) != 2 or min(size) < 0)):
        b.wrong("'border' are four sizes (left, top, right, bottom), and 'scale' two, if any (height, width)")
    left, top, right, bottom = border
    ends = [top + size[0], left + size[1]] if size else [-bottom or FAR, -right or FAR]
    return b.slice("X", [top, left], ends, [2, 3])


# Products with quantized weights, and lookups of a few of them.


# Operators that dequantize their inputs, compute, and quantize the result: ``QLinear...``, ``QGemm``.


Compute = Callable[..., str]
"""From a body and the names of real operands to that of the result."""


def _by_numbers(compute: Compute, operands: str = "X", result: str = "Y") -> Callable[[Body], str]:
    """A body that computes with the real numbers that the operands stand for."""

    def body(b: Body) -> str:
        return _quantized(b, compute(b, *(_real(b, x, f"{x}_scale", f"{x}_zero_point") for x in operands)), result)

    return body


def _real(b: Body, x: str, scale: str, zero: str) -> str:
    return b("DequantizeLinear", x, scale, b.optional(zero))


def _quantized(b: Body, made: str, result: str) -> str:
    """``made`` quantized to the type of the zero point of ``result``, by default that of the first input."""
    zero = f"{result}_zero_point"
    if not b.has(zero):
        zero = b.cast(b.integers(0, np.uint8), next(iter(b.types)))
    return b("QuantizeLinear", made, f"{result}_scale", zero)


def _kept(b: Body, *words: str) -> dict[str, object]:
    """The attributes ``words``, which the standard operator has too, if they are given."""
    return {word: value for word in words if (value := b.attributes[word]) != ()}


def _same(op_type: str, *words: str) -> Compute:
    """The standard operator of this name, with these attributes of the node's."""

    def compute(b: Body, *operands: str) -> str:
        return b(op_type, *operands, **_kept(b, *words))

    return compute


def _in_order(b: Body, x: str, compute: Callable[[str], str]) -> str:
    """``compute`` applied to the input X with channels moved to where standard operators have them."""
    if not b.attributes["channels_last"]:
        return compute(x)
    rank = b.rank("X")
    if rank is None:
        b.refuse("channels come last (channels_last) in an input whose rank is not known")
    made = compute(b("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)]))
    return b("Transpose", made, perm=[0, *range(2, rank), 1])


def _average(b: Body, x: str) -> str:
    words = _kept(b, "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
    return _in_order(b, x, lambda x: b("AveragePool", x, **words))


def _global_average(b: Body, x: str) -> str:
    return _in_order(b, x, lambda x: b("GlobalAveragePool", x))


def _softmax(b: Body, x: str) -> str:
    axis, is_along_one = b.attributes["axis"], b.attributes["opset"] >= 13
    if b.opset < 13 and (axis != -1 or not is_along_one):
        raise TooOldError  # before, it is along all axes that follow
    if is_along_one:
        return b("Softmax", x, axis=axis)
    return b("Reshape", b("Softmax", b("Flatten", x, axis=axis), axis=1), b("Shape", x))


def _where(b: Body, x: str, y: str) -> str:
    return b("Where", "condition", x, y)


@operator("QLinearConcat(Y_scale, Y_zero_point, inputs...) -> Y", "int axis")
def _concat(b: Body) -> str:
    """A concatenation of inputs that each have a scale and a zero point."""
    names = [name for name in b.types if name.startswith("inputs")]
    if not names or len(names) % 3:
        b.wrong("inputs are numbers, a scale and a zero point each")
    real = [_real(b, *names[i : i + 3]) for i in range(0, len(names), 3)]
    made = b("Concat", *real, axis=b.attributes["axis"])
    return b("QuantizeLinear", made, "Y_scale", "Y_zero_point")


@operator(
    "QLinearConv(X, X_scale, X_zero_point, W, W_scale, W_zero_point, Y_scale, Y_zero_point, B?) -> Y",
    f"ints kernel_shape =, ints dilations =, int group = 1, {_WINDOWS}",
)
def _integer_conv(b: Body) -> str:
    words = _kept(b, "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    rest: Sequence[str] = [name for name in b.types if name != "X"]
    return _in_order(b, "X", lambda x: b("QLinearConv", x, *rest, **words))


@operator(
    "QGemm(A, A_scale, A_zero_point, B, B_scale, B_zero_point, C?, Y_scale?, Y_zero_point?) -> Y",
    "float alpha = 1, int transA = 0, int transB = 0",
)
def _integer_gemm(b: Body) -> str:
    """A product of integers; the bias has the scale of the product."""
    a, c = (b("Transpose", x, perm=[1, 0]) if b.attributes[f"trans{x}"] else x for x in "AB")
    product = b("MatMulInteger", a, c, "A_zero_point", "B_zero_point")
    if b.has("C"):
        product = b("Add", product, "C")
    scale = b("Mul", b("Mul", "A_scale", b.number(b.attributes["alpha"], "A_scale")), "B_scale")
    made = b("Mul", b.cast(product, "A_scale"), scale)
    return _quantized(b, made, "Y") if b.has("Y_scale") else made


def _alone(op_type: str) -> Callable[[Body], str]:
    """The standard operator itself, whose later versions take all types that this one does."""
    return lambda b: _same(op_type, "axis")(b, *b.types)


# -- quantized -----------------------------------------------------------------


_BITS = 18
"""The first opset that has operators on bits."""


@operator(
    "MatMulNBits(A, B, scales, zero_points?, g_idx?, bias?) -> Y",
    "int K, int N, int block_size, int bits = 4, int accuracy_level = 0, int weight_prepacked = 0",
)
def _of_few_bits(b: Body) -> str:
    """A product with weights of few bits in scaled blocks; constant weights are unpacked only once."""
    bits, block, n, k = (b.attributes[name] for name in ("bits", "block_size", "N", "K"))
    _check_bits(b)
    if n < 1 or k < 1:
        b.wrong(f"N is {n} and K is {k}")
    if b.has("g_idx"):
        b.refuse("input g_idx")
    if b.attributes["weight_prepacked"]:
        b.refuse("weight_prepacked is not 0")
    blocks = -(-k // block)
    apart = [n, blocks, 1, 1]  # what is unpacked has one more axis than what is packed
    weights = b.cast(_unpacked(b, b("Reshape", "B", [n, blocks, block * bits // 8]), bits), "scales")
    if b.has("zero_points"):
        zeros = "zero_points"
        if b.dtype(zeros) is None:
            b.refuse("input zero_points is of a type that is not known")
        if b.dtype(zeros) is DType.UINT8:
            zeros = _first(b, b("Reshape", zeros, [n, _bytes(blocks, bits)]), bits, blocks)
        zeros = b("Reshape", b.cast(zeros, "scales"), apart)
    else:
        zeros = b.number(1 << (bits - 1), "scales")
    real = b("Mul", b("Sub", weights, zeros), b("Reshape", "scales", apart))
    rows = b("Reshape", real, [n, blocks * block])
    if k != blocks * block:
        rows = b("Slice", rows, [0], [k], [1])
    product = b("MatMul", "A", b("Transpose", rows, perm=[1, 0]))
    return b("Add", product, "bias") if b.has("bias") else product


@operator(
    "GatherBlockQuantized(data, indices, scales, zero_points?) -> output",
    "int bits = 4, int block_size = 128, int gather_axis = 0, int quantize_axis = 1",
)
def _rows_of_few_bits(b: Body) -> str:
    """Some rows of a table of few bits, in blocks that have a scale each: only these rows are unpacked."""
    bits, block = b.attributes["bits"], b.attributes["block_size"]
    _check_bits(b)
    width = b.size("data", 1)
    if b.dtype("data") is not DType.UINT8 or b.rank("data") != 2 or width is None:
        b.refuse("input data is not a matrix of uint8 whose width is known")
    if b.attributes["gather_axis"] not in (0, -2) or b.attributes["quantize_axis"] not in (1, -1):
        b.refuse("an axis is not that of rows (gather_axis) or columns (quantize_axis)")
    width = width * 8 // bits
    if width % block:
        b.refuse(f"the last block of {width} columns has less than {block}")
    apart = [-1, width // block, 1]
    packed, scales = (b("Gather", name, "indices") for name in ("data", "scales"))
    codes = b.cast(b("Reshape", _unpacked(b, packed, bits), [-1, width // block, block]), "scales")
    if b.has("zero_points"):
        zeros = b("Gather", "zero_points", "indices")
        zeros = b("Reshape", zeros, [-1, _bytes(width // block, bits)])
        zeros = b("Reshape", b.cast(_first(b, zeros, bits, width // block), "scales"), apart)
    else:
        zeros = b.number(1 << (bits - 1), "scales")
    real = b("Mul", b("Sub", codes, zeros), b("Reshape", scales, apart))
    return b("Reshape", real, b("Concat", b("Shape", "indices"), [width], axis=0))


def _check_bits(b: Body) -> None:
    bits, block = b.attributes["bits"], b.attributes["block_size"]
    if bits not in (2, 4, 8):
        b.wrong(f"bits is {bits}, but must be 2, 4 or 8")
    if block < 16 or block & (block - 1):
        b.wrong(f"block_size is {block}, but must be a power of two, and 16 or more")


def _bytes(count: int, bits: int) -> int:
    return -(-count * bits // 8)


def _first(b: Body, x: str, bits: int, count: int) -> str:
    """The first ``count`` numbers of each row of bytes."""
    numbers = b("Reshape", _unpacked(b, x, bits), [-1, _bytes(count, bits) * 8 // bits])
    return b("Slice", numbers, [0], [count], [1])


def _unpacked(b: Body, x: str, bits: int) -> str:
    """The numbers of ``bits`` bits in bytes, the lowest ones first, along one more axis."""
    shifts = b.integers(range(0, 8, bits), np.uint8)
    apart = b("Unsqueeze", x, [-1])
    if bits == 8:
        return apart
    shifted = b("BitShift", apart, shifts, direction="RIGHT")
    if b.opset < _BITS:
        return b("Mod", shifted, b.integers(1 << bits, np.uint8))
    return b("BitwiseAnd", shifted, b.integers((1 << bits) - 1, np.uint8))


@operator("DynamicQuantizeMatMul(A, B, b_scale, b_zero_point?, bias?) -> Y")
def _dynamic(b: Body) -> str:
    """A product with weights in 8 bits, for which the other operand is quantized as a whole."""
    a, scale, zero = b.several(3, "DynamicQuantizeLinear", "A")
    product = b("MatMulInteger", a, "B", zero, b.optional("b_zero_point"))
    return _of_scale(b, product, b("Mul", scale, "b_scale"), "b_scale")


@operator("MatMulIntegerToFloat(A, B, a_scale, b_scale, a_zero_point?, b_zero_point?, bias?) -> Y")
def _to_float(b: Body) -> str:
    return _of_scale(b, _of_integers(b, "A", "B", "a", "b"), b("Mul", "a_scale", "b_scale"), "a_scale")


@operator(
    "QAttention(input, weight, bias, input_scale, weight_scale, mask_index?, input_zero_point?, weight_zero_point?,"
    "past?) -> output, present?",
    f"{COMMON}, int do_rotary = 0, int past_present_share_buffer = 0",
)
def _attention(b: Body) -> tuple[str, ...]:
    product = _of_integers(b, "input", "weight", "input", "weight")
    return of_one(b, _of_scale(b, product, b("Mul", "input_scale", "weight_scale"), "input_scale"), "input_scale")


def _of_integers(b: Body, left: str, right: str, *names: str) -> str:
    """A product of integers, from which the zero points named after ``names`` are subtracted first."""
    return b("MatMulInteger", left, right, *(b.optional(f"{name}_zero_point") for name in names))


def _of_scale(b: Body, product: str, scale: str, like: str) -> str:
    """``product`` in the type of the input ``like``, times ``scale``."""
    made = b("Mul", b.cast(product, like), scale)
    return b("Add", made, "bias") if b.has("bias") else made


operator(f"QLinearAdd({_PAIR}) -> C")(_by_numbers(_same("Add"), "AB", "C"))
operator(f"QLinearMul({_PAIR}) -> C")(_by_numbers(_same("Mul"), "AB", "C"))
operator(f"QLinearGlobalAveragePool({_ONE}) -> Y", "int channels_last = 0")(_by_numbers(_global_average))
operator(f"QLinearLeakyRelu({_ONE}) -> Y", "float alpha = 0.01")(_by_numbers(_same("LeakyRelu", "alpha")))
operator(f"QLinearSigmoid({_ONE}) -> Y")(_by_numbers(_same("Sigmoid")))
operator(f"QLinearSoftmax({_ONE}) -> Y", "int opset, int axis = -1")(_by_numbers(_softmax))
operator(
    f"QLinearAveragePool({_ONE}) -> Y",
    f"ints kernel_shape, int ceil_mode = 0, int count_include_pad = 0, {_WINDOWS}",
    since=19,
)(_by_numbers(_average))
operator("QLinearWhere(condition, X, X_scale, X_zero_point, Y, Y_scale, Y_zero_point, Z_scale, Z_zero_point) -> Z")(
    _by_numbers(_where, "XY", "Z")
)
for _name in ("DequantizeLinear", "QuantizeLinear"):
    operator(f"{_name}(x, scale, zero_point?) -> y", "int axis =", since=21)(_alone(_name))
