"""What the sweep leaves out or excuses, each with the reason. Names are without ``aten::``; patterns match starts."""

import math
import re
from collections.abc import Callable
from typing import Any

import torch

from irc.ir.schema import Schema
from tests.differential.helpers import _tensors


def ungenerated(row: Schema) -> str:
    """Why no arguments are generated for ``row``; "" if they are."""
    name = f"{row.name}.{row.overload}".rstrip(".").removeprefix("aten::")
    if row.is_vararg:
        return "any number of arguments of any type"
    if name in _UNCALLED:
        return _UNCALLED[name]
    of_types = " ".join(str(a.type) for a in row.arguments)
    if re.search(r"Dict\(|\bt[12]?\b|AnyEnumType|Any\[|\(", of_types):
        return "containers and enumerations, of which other tests have programs"
    return ""


_UNCALLED = {
    "cuda": "there is no such device",
    "warn": "PyTorch warns only in its interpreter",
    "detach_": "PyTorch refuses views, which the sweep's tensors are",
    "values": "of sparse tensors, which irc has not",
    "device": "a device is a string in irc",
    "device.with_index": "a device is a string in irc",
    "eq.device": "a device is a string in irc",
    "ne.device": "a device is a string in irc",
    **dict.fromkeys(("mm.dtype", "bmm.dtype", "addmm.dtype", "baddbmm.dtype"), "PyTorch has them on GPUs alone"),
    **dict.fromkeys(("resize_", "resize_as_"), "irc resizes in place only what grows or shrinks along its memory"),
    "requires_grad_": "irc has no gradients",
    **dict.fromkeys(
        ("to.prim_other", "to.prim_dtype", "to.prim_Device"),
        "PyTorch's binding takes flags for numbers of element types",
    ),
    "pow.int_to_int": "PyTorch gives a float, although the row says an integer",
}

STRIDES = dict.fromkeys(
    "linalg_lstsq _weight_norm float_power.Scalar float_power.Tensor_Scalar float_power.Tensor_Tensor fft_irfft "
    "fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn linalg_matrix_power "
    "native_dropout poisson_nll_loss kl_div soft_margin_loss hinge_embedding_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits stft stft.center unique_consecutive copy select_scatter slice_scatter "
    "diagonal_scatter dropout feature_dropout alpha_dropout feature_alpha_dropout".split(),
    "PyTorch's order in memory follows from the steps by which it computes, irc's is that of rows or of the operand",
)
"""Rows whose results may lie in another order in memory."""

SIGNS = dict.fromkeys(
    "maximum minimum fmax fmin clamp clamp_min clamp_max amax amin softshrink heaviside copysign".split(),
    "of two zeros of different signs, PyTorch gives one in vectors and the other in what is left of them",
)
"""Operators whose zeros may have any sign."""

ULPS: dict[str, int] = {
    "lgamma": 8,
    "polygamma": 64,  # PyTorch's factor is exp(lgamma(n + 1))
}
"""How much more than `sweep.ULPS` results may be apart."""

RELATIVE_TO_OPERANDS = dict.fromkeys(
    "gelu logaddexp logaddexp2 lerp addcmul addcdiv add sub rsub mish silu xlogy log_sigmoid softplus hardswish "
    "digamma".split(),
    "sums of numbers of different signs, of which PyTorch rounds the parts in another order or not at all",
)
"""Pointwise operators whose errors are small relative to their operands, not always to their results."""

ROUNDED = {
    f"{name}.{overload}": "PyTorch rounds such functions of Python's numbers to float32"
    for name in (
        "acos acosh angle asin asinh atan atanh cos cosh degrees erf erfc exp expm1 fabs lgamma log log10 log1p neg "
        "radians sin sinh sqrt tan tanh abs ceil floor round divmod"
    ).split()
    for overload in ("Scalar", "float", "float_int", "int_float")
}


def mixes_infinities(row: Schema, given: list[Any]) -> bool:
    """Whether results may be infinite or not numbers in other places than PyTorch's.

    Sums of products of infinities, NaNs and huge numbers depend on their order, and on whether what has the weight 0
    takes part; complex functions of them on the formula.
    """
    tensors = [t for t in _tensors(given) if t.is_floating_point() or t.is_complex()]
    if not any((~torch.isfinite(t)).any() or (t.abs() > 1e15).any() for t in tensors if t.numel()):
        return False
    name = row.name.removeprefix("aten::")
    return bool(_PRODUCTS.match(name)) or (any(t.is_complex() for t in tensors))


_PRODUCTS = re.compile(
    "conv|_conv|.*pool|upsample|_upsample|__interpolate|grid_sampler|batch_norm|instance_norm|layer_norm|group_norm|"
    "rms_norm|native_|fft|stft|istft|linalg|chol|pinverse|matmul|mm|bmm|mv|addmm|addmv|baddbmm|addbmm|addr|linear|"
    "bilinear|einsum|tensordot|scaled_dot|_native|_transformer|lstm|gru|rnn|var|std|cov|corr|cumsum|cumprod|sum|mean|"
    "prod|nansum|nanmean|logsumexp|logcumsumexp|softmax|log_softmax|_softmax|.*loss|kl_div|binary_cross|cosine|"
    "pairwise|cdist|pdist|dist|norm|renorm|_weight|lerp|addcmul|addcdiv|trapz|trapezoid|quantile|nanquantile|inner|"
    "dot|vdot|cross|trace|embedding_bag|scatter|index_add|index_reduce|segment|slogdet|logdet"
)
"""Operators that sum products, or interpolate."""


def skipped(row: Schema, given: list[Any]) -> str:
    """Why a call is not made; "" if it is."""
    name = row.name.removeprefix("aten::")
    if name in ("linalg_lstsq", "pinverse", "linalg_pinv") and _has_edges(given, ""):
        return "LAPACK may never end on infinities"
    if name.startswith("linalg_eig") and _has_edges(given, ""):
        return "LAPACK may end the process on NaNs"
    if name in ("split", "rsplit") and given[1] == "":
        return "PyTorch's search for an empty separator never ends"
    if name == "embedding_bag" and given[7] and (given[2].numel() < 2 or given[2].min() < 0):
        return "PyTorch dies of a single offset that is the last"
    if f"{name}.{row.overload}" in _DIVISIONS and (given[1] == 0 or (given[0] == -(2**63) and given[1] == -1)):
        return "PyTorch's process ends when an integer is divided by zero"
    if name == "tensor_split" and _is_number_above(given[1], 1000):
        return "PyTorch makes as many tensors as it is asked for"
    if name == "_weight_norm" and _is_empty(given, ""):
        return "PyTorch's process ends when there are no columns"
    if name.removesuffix("_") in ("remainder", "fmod", "floor_divide", "div") and any(map(_is_lowest, given)):
        return "PyTorch's process ends when the lowest integer is divided by -1"
    return ""


_DIVISIONS = (
    *("remainder.int", "remainder.", "floordiv.int", "__round_to_zero_floordiv.int", "divmod.int", "fmod.int"),
    "gcd.int",
)


def _is_number_above(value: Any, most: int) -> bool:
    is_number = isinstance(value, torch.Tensor) and value.ndim == 0 and value.dtype == torch.int64
    return is_number and bool(value > most)


def _is_lowest(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.is_complex() or not value.numel():
        return False
    return (
        value.dtype != torch.bool and bool((value == torch.iinfo(value.dtype).min).any()) and value.dtype != torch.uint8
    )


def excused(row: Schema, given: list[Any], what: str, text: str) -> str:
    """Why a fault is none; "" if it is one."""
    name = f"{row.name}.{row.overload}".rstrip(".").removeprefix("aten::")
    for pattern, of_what, holds, reason in _EXCUSES:
        if re.match(pattern, name) and re.match(of_what, what) and holds(given, text):
            return reason
    return ""


def _is_empty(given: list[Any], text: str) -> bool:
    return any(not t.numel() for t in _tensors(given))


def _says(*words: str) -> Callable[[list[Any], str], bool]:
    return lambda given, text: any(word in text for word in words)


def _has_edges(given: list[Any], text: str) -> bool:
    return any(
        not torch.isfinite(t.abs()).all() or (t.abs() > 1e15).any()
        for t in _tensors(given)
        if t.dtype.is_floating_point or t.dtype.is_complex
    )


_Holds = Callable[[list[Any], str], bool]


def _mixes_types(given: list[Any], text: str) -> bool:
    return len({t.dtype for t in _tensors(given)}) > 1


def _is_left_of_zero(given: list[Any], text: str) -> bool:
    return any(bool((t <= 0).any()) for t in _tensors(given))


def _is_double(given: list[Any], text: str) -> bool:
    return any(t.dtype == torch.float64 for t in _tensors(given))


def _has_far_integers(given: list[Any], text: str) -> bool:
    return any(
        t.dtype == torch.int64 and bool((t.abs() >= 2**31).any() or (t == -(2**63)).any()) for t in _tensors(given)
    )


def _is_sorted(sequence: torch.Tensor) -> bool:
    is_number = sequence == sequence
    return bool((sequence[..., 1:] >= sequence[..., :-1]).all() and is_number.all())


def _are_float32(given: list[Any]) -> bool:
    """Whether the numbers among ``given`` are some of float32."""
    return all(v != v or float(torch.tensor(v, dtype=torch.float32)) == v for v in given)


def _is_zero(text: str) -> bool:
    """Whether the two numbers that are told apart are zeros."""
    told = re.search(r"irc (\S+), torch (\S+)", text)
    return told is not None and float(told[1]) == float(told[2]) == 0


def _overflows(given: list[Any]) -> bool:
    """Whether some least common multiple does not fit into the integers' common type."""
    a, b = (torch.as_tensor(t) for t in given[:2])
    largest = torch.iinfo(torch.promote_types(a.dtype, b.dtype)).max
    pairs = zip(*(t.flatten().tolist() for t in torch.broadcast_tensors(a, b)))
    return any(math.lcm(x, y) > largest for x, y in pairs)


def _is_singular(matrices: torch.Tensor) -> bool:
    """Whether some matrix is not finite, or singular but for what its type rounds."""
    exact = matrices.double() if not matrices.is_complex() else matrices.to(torch.complex128)
    if not bool(torch.isfinite(exact.abs()).all()):
        return True
    values = torch.linalg.svdvals(exact)
    precision = torch.finfo(matrices.dtype).eps if matrices.is_floating_point() or matrices.is_complex() else 1e-7
    return not values.numel() or bool((values[..., -1] <= 4096 * precision * values[..., 0]).any())


def _repeats(indices: torch.Tensor, size: int) -> bool:
    """Whether some element of ``size`` is meant twice."""
    places = (indices.flatten() % max(size, 1)).tolist()
    return len(set(places)) < len(places)


def _factors(given: list[Any]) -> list[float | None]:
    """The factors of the axes of an image, by which it is resized; None where none is given."""
    lists = [v for v in given[1:] if isinstance(v, list) and v and all(isinstance(f, float) for f in v)]
    if lists:
        return list(lists[0])
    numbers = [v for v in given[2:] if v is None or (isinstance(v, float) and not isinstance(v, bool))]
    axes = given[0].ndim - 2
    return ([None] * axes + numbers)[-axes:]


def _sizes_of(given: list[Any]) -> list[int]:
    """The sizes of the axes of an image that is resized."""
    if given[1] is not None:
        return list(given[1])
    sizes = given[0].shape[2:]
    return [int(size * factor) for size, factor in zip(sizes, _factors(given)) if factor is not None]


def _contradicts(given: list[Any]) -> bool:
    """Whether an image is to be resized to sizes that its factors do not give."""
    if given[1] is None:
        return False
    triples = zip(given[0].shape[2:], _factors(given), given[1])
    return any(f is not None and (not math.isfinite(f) or int(n * f) != size) for n, f, size in triples)


_EXCUSES: tuple[tuple[str, str, _Holds, str], ...] = (
    (
        "",
        "irc refuses",
        lambda given, text: _is_empty(given, text) and any(code in text for code in ("IRC421", "IRC423", "IRC431")),
        "kinds and ranks are refused of tensors without elements, too",
    ),
    ("", "irc refuses", _says("into an expanded tensor"), "irc never writes into elements that lie in one place"),
    (
        "linalg|chol|pinv|triangular|lu|det|slogdet|logdet|inverse",
        "irc refuses",
        _says("there is no result"),
        "of singular matrices and of infinities, LAPACK as PyTorch calls it gives infinities and NaNs",
    ),
    ("_conj|mH|matrix_H|conj", "irc refuses", _says("no conjugate views"), "NumPy has no conjugate views"),
    ("view_as_complex", "irc refuses", _says("no complex numbers whose parts"), "there is no complex type so small"),
    (
        "",
        "irc computes",
        lambda given, text: _mixes_types(given, text) and bool(re.search("dtype|type|did not match", text)),
        "irc promotes some operands of several element types where PyTorch wants one",
    ),
    ("fake_quantize", "irc computes", _says("Scale must be"), "irc takes scales of any float type"),
    ("index(\\.Tensor|_put)", "irc computes", _says("at least one index"), "no index picks everything, as in NumPy"),
    ("nll_loss|cross_entropy", "irc computes", _says("1D or 2D"), "irc has one kernel for classes of all ranks"),
    ("isin", "irc computes", _says("Unsupported input type"), "irc compares bools and complex numbers as well"),
    ("linalg_.*norm|norm", "irc computes", _says("dtype"), "irc also narrows the result, or makes integers of it"),
    ("conv|_conv", "irc refuses", _says("convert one"), "PyTorch ignores the type of the bias of integers"),
    (
        "_upsample.*_aa|__interpolate",
        "irc refuses",
        _says("cannot be interpolated"),
        "PyTorch copies if sizes are equal",
    ),
    (
        "_upsample|upsample",
        "irc computes",
        _says("expected output_size equals"),
        "one size stands for all, as elsewhere",
    ),
    ("__interpolate", "irc", _says("[0]", "Byte"), "area is averaged by another operator, which has other limits"),
    ("avg_pool", "irc computes", _says("smaller than kernel"), "with ceil_mode there is one incomplete window"),
    ("_convolution_mode", "irc computes", _says("-dimensional input"), "irc takes samples without a batch here, too"),
    ("divmod", "irc computes", _says("to integer"), "Python's quotients of infinities and NaNs are NaN"),
    (
        "divmod",
        "differs",
        lambda given, text: math.inf in map(abs, given) or not _are_float32(given) or _is_zero(text),
        "PyTorch rounds to float32, has no remainder by infinity, and no sign of zeros",
    ),
    ("(exp|expm1|sinh|cosh)\\.Scalar", "differs", _says("inf"), "PyTorch rounds such functions of numbers to float32"),
    ("lcm", "differs", lambda given, text: _overflows(given), "least common multiples that integers do not hold"),
    ("arange", "irc refuses", _says("inf", "nan"), "a range has finite ends and steps"),
    ("l(in|og)space", "irc refuses", _says("j) does not fit"), "PyTorch drops imaginary parts"),
    ("lerp", "irc refuses", _says("not defined on integers"), "PyTorch refuses integers but for a 0-d float weight"),
    (
        "_transformer_encoder",
        "irc refuses",
        _is_empty,
        "PyTorch returns tensors without elements before it looks at them",
    ),
    ("cholesky", "irc refuses", _is_empty, "PyTorch does not look at the shape of tensors without elements"),
    ("can_cast|promote_types", "irc refuses", _says("no element type"), "types of which irc has none"),
    ("fft_(i)?fftshift", "irc refuses", _says("given twice"), "an axis counts once"),
    ("fft_r?fftfreq", "differs", lambda given, text: given[0] == 0, "PyTorch gives a NaN for no frequency"),
    ("fft_r?fftfreq", "irc refuses", lambda given, text: given[0] < 0, "PyTorch takes negative numbers of frequencies"),
    ("grid_sampler", "irc refuses", _says("has no mode"), "PyTorch takes modes that it does not have for bicubic"),
    ("embedding_bag", "irc refuses", _says("offsets begin"), "indices behind the last offset are no bag's"),
    ("linalg_matrix_power", "irc refuses", _says("bool"), "there are no powers of matrices of bools but the first"),
    (
        "(rnn_tanh|rnn_relu|gru|lstm)",
        "irc refuses",
        _says("cast", "integers"),
        "PyTorch has gates of floats alone, too",
    ),
    ("_weight_norm", "irc refuses", _says("lengths are needed"), "PyTorch broadcasts lengths that are not one a row"),
    ("_weight_norm", "differs", _mixes_types, "PyTorch's lengths broadcast"),
    ("linalg_norm|.*norm", "irc computes", _says("on an empty tensor"), "the norm of nothing is 0"),
    ("fft", "irc computes", _says("Inconsistent configuration"), "oneMKL has no transforms of no vectors"),
    ("isin|kron", "irc computes", _says("view size"), "PyTorch fails for this layout"),
    (
        "fake_quantize_per_channel",
        "differs",
        _has_edges,
        "PyTorch converts numbers beyond 64 bits to the lowest integer, which of single scales it does not",
    ),
    ("pow.Scalar_Scalar", "irc refuses", _says("raised to the power"), "numbers of known types have rows that refuse"),
    ("angle\\.", "differs", _says("irc nan"), "PyTorch's angle of a number that is NaN is 0"),
    ("(n)?gcd", "differs", lambda given, text: any(map(_is_lowest, given)), "the lowest integer has no magnitude"),
    (
        "native_group_norm",
        "differs",
        lambda given, text: any(t.ndim == 1 and not t.is_contiguous() for t in _tensors(given)),
        "PyTorch reads parameters of channels as if they were dense",
    ),
    (
        "_upsample_.*_aa",
        "differs",
        lambda given, text: "at [" in text and _sizes_of(given)[-1] == 1,
        "of results that are one column wide, PyTorch repeats the first row",
    ),
    (
        "upsample_nearest|_upsample_nearest",
        "differs",
        lambda given, text: _contradicts(given),
        "sizes and factors that contradict each other: which of them counts differs by memory format",
    ),
    ("affine_grid_generator", "differs", _says("uint8", "int"), "coordinates between -1 and 1 are not integers"),
    ("ldexp", "differs", _has_far_integers, "PyTorch takes the lowest 32 bits of exponents"),
    ("addmv", "differs", _is_empty, "PyTorch's result without rows has the shape of what is added"),
    ("mode", "differs", _has_edges, "PyTorch's order of numbers and NaNs is not defined"),
    ("cov", "differs", _says("afterwards"), "PyTorch centres a matrix of one element in place"),
    ("isin", "differs", lambda given, text: given[2] is True, "elements that are said to be unique are not"),
    ("blackman_window", "differs", _says("at [0]"), "PyTorch rounds the zeros at both ends to float32"),
    ("storage_offset|stride", "differs", _is_empty, "the sweep's arrays without elements are no views"),
    ("pow", "differs", _says("at ["), "PyTorch rounds exponents to float32 in vectors, not in what is left of them"),
    ("pixel_unshuffle|pixel_shuffle", "differs", _is_empty, "PyTorch returns images without elements as they are"),
    ("searchsorted", "differs", lambda given, text: not _is_sorted(given[0]), "the sequence is not sorted"),
    ("bucketize", "differs", lambda given, text: not _is_sorted(given[1]), "the sequence is not sorted"),
    (
        "linalg_slogdet|slogdet|logdet",
        "differs",
        lambda given, text: _is_singular(given[0]),
        "matrices that are singular but for rounding",
    ),
    ("linalg_matrix_exp", "differs", _has_edges, "exponentials of huge numbers"),
    (
        "_weight_norm",
        "differs",
        lambda given, text: given[1].numel() > max(given[0].shape[given[2]], 1),
        "PyTorch reads as many lengths as it needs of those that are given",
    ),
    (
        "gru_cell|linalg_cross|nll_loss|native_group_norm|batch_norm|_?adaptive_avg",
        "differs",
        _has_edges,
        "what huge numbers leave",
    ),
    ("(rnn_tanh|rnn_relu|gru|lstm)", "differs", _mixes_types, "states of one type, weights of another"),
    ("ldexp", "differs", _mixes_types, "PyTorch computes the power in the type of the exponent"),
    ("pad", "differs", lambda given, text: given[2] == "circular" and min(given[1]) < 0, "elements not written"),
    ("einsum", "irc refuses", _says("not defined on bools"), "PyTorch multiplies bools where nothing is summed"),
    ("take_along_dim", "irc computes", _says("view size"), "PyTorch fails for this layout"),
    ("max_pool3d", "irc computes", _says("memory format"), "PyTorch fails for this layout"),
    ("lstm", "irc computes", _says("primitive", "itensor", "max_size"), "oneDNN has no such layer"),
    ("cholesky", "irc computes", _says("not positive-definite"), "matrices that are singular but for rounding"),
    ("replace", "differs", lambda given, text: given[1] == "", "PyTorch finds an empty string in what it has put in"),
    ("r?partition", "irc refuses", _says("separator is empty"), "Python refuses that as well"),
    ("complex", "irc refuses", _says("of float16"), "there is no complex type so small"),
    ("view_as_complex", "irc computes", _says("storage_offset"), "NumPy needs no alignment"),
    ("Int\\.Scalar", "irc computes", _says("without overflow"), "as the row for floats, which PyTorch does not check"),
    ("pad", "irc refuses", _says("to repeat"), "PyTorch repeats elements that it has not written"),
    ("logsumexp", "irc computes", _says("broadcast shape"), "PyTorch has sums over no axes but of complex numbers"),
    ("mode|cummax|cummin", "irc refuses", lambda given, text: given[0].ndim == 0 or _is_empty(given, text), "0-d"),
    ("adaptive_avg_pool", "irc refuses", _says("not defined on"), "one mean of all is another operator of PyTorch's"),
    ("(rnn_tanh|rnn_relu|gru|lstm)", "irc computes", _says("hidden states"), "layers are counted by their weights"),
    ("(rnn_tanh|rnn_relu|gru|lstm)", "irc refuses", _says("an initial state has"), "states of one sample broadcast"),
    ("linalg_lstsq", "differs", _says("result 2"), "PyTorch tells ranks by another bound, or not at all"),
    ("fft_i?fftshift", "irc computes", _says("required"), "no axes to shift along leave a copy"),
    (
        "scaled_dot_product_attention",
        "irc refuses",
        _says("not both"),
        "PyTorch's manual says that it refuses masks that are causal, too; one of its kernels does not",
    ),
    ("native_dropout|unique_consecutive", "differs", _says("result 1"), "results that nobody asked for"),
    (
        "rand.*|random_.*",
        "irc computes",
        _says("out of bounds", "check_random_bounds"),
        "irc draws integers from any range, and makes elements of any type of them",
    ),
    ("repeat_interleave", "irc computes", _says("Invalid output_size"), "the size is not needed, nor looked at"),
    ("view_copy|view", "irc refuses", _is_empty, "bytes that do not fit are refused without elements, too"),
    ("binary_cross_entropy", "irc computes", _says("broadcast"), "targets broadcast"),
    (
        "kthvalue|mode|median|nanmedian|topk|sort|argsort|max|min",
        "differs",
        _says("int64 ["),
        "which of equal ones is open",
    ),
    (
        "cholesky_(solve|inverse)|linalg_(solve|inv|lstsq|pinv|matrix_power|eig|svd|qr)",
        "differs",
        _says("at ["),
        "ill-conditioned: PyTorch solves by other steps",
    ),
    ("normal", "differs", _says("element type"), "irc draws floats, not numbers rounded to the type of a deviation"),
    (
        "trapezoid|trapz",
        "differs",
        lambda given, text: _is_empty(given, text),
        "an integral over nothing is a float, too",
    ),
    (
        "put_",
        "differs",
        lambda given, text: _repeats(given[1], given[0].numel()),
        "of several elements for one place, any may be the last",
    ),
    ("grid_sampler", "differs", _says("at ["), "which pixel is nearest to a place that rounding decides"),
    ("affine_grid_generator", "differs", _says("element type"), "irc has the coordinates in float32"),
    (
        "triplet_margin_loss|sum.float",
        "differs",
        _says("type", "0.0"),
        "irc's result is of the type that all have in common",
    ),
    (
        "polygamma",
        "differs",
        _is_left_of_zero,
        "PyTorch's trigamma has no poles; what it sums of both signs cancels out",
    ),
    ("polygamma", "differs", _is_double, "PyTorch's series for trigamma in float64 ends after three terms"),
    ("special_i1", "differs", _says("nan"), "of infinities PyTorch gives NaN"),
    (
        "(fmod|remainder)",
        "differs",
        _says("torch np.float64(nan)"),
        "PyTorch has no remainder of quotients beyond 2**53",
    ),
)
