"""What the sweep leaves out or excuses, each with the reason. Names are without ``aten::``; patterns match starts."""

import math
import re
from typing import Any

import torch

from irc.ir.schema import Schema
from tests.differential.helpers import _tensors
from tests.tables import rows


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
    if name in ("linalg_lstsq", "pinverse", "linalg_pinv") and _has_edges(given):
        return "LAPACK may never end on infinities"
    if name.startswith("linalg_eig") and _has_edges(given):
        return "LAPACK may end the process on NaNs"
    if name in ("split", "rsplit") and given[1] == "":
        return "PyTorch's search for an empty separator never ends"
    if name == "embedding_bag" and given[7] and (given[2].numel() < 2 or given[2].min() < 0):
        return "PyTorch dies of a single offset that is the last"
    if f"{name}.{row.overload}" in _DIVISIONS and (given[1] == 0 or (given[0] == -(2**63) and given[1] == -1)):
        return "PyTorch's process ends when an integer is divided by zero"
    if name == "tensor_split" and _is_number_above(given[1], 1000):
        return "PyTorch makes as many tensors as it is asked for"
    if name == "_weight_norm" and _is_empty(given):
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


def _is_empty(given: list[Any]) -> bool:
    return any(not t.numel() for t in _tensors(given))


def _says(text: str, *words: str) -> bool:
    return any(word in text for word in words)


def _has_edges(given: list[Any]) -> bool:
    return any(
        not torch.isfinite(t.abs()).all() or (t.abs() > 1e15).any()
        for t in _tensors(given)
        if t.dtype.is_floating_point or t.dtype.is_complex
    )


def _mixes_types(given: list[Any]) -> bool:
    return len({t.dtype for t in _tensors(given)}) > 1


def _is_left_of_zero(given: list[Any]) -> bool:
    return any(bool((t <= 0).any()) for t in _tensors(given))


def _is_double(given: list[Any]) -> bool:
    return any(t.dtype == torch.float64 for t in _tensors(given))


def _has_far_integers(given: list[Any]) -> bool:
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


_EXCUSED = r"""
# rows of the table, of which faults, where, and why it is none
. | irc refuses | _is_empty(given) and _says(text, "IRC421", "IRC423", "IRC431") | kinds and ranks are refused of
    tensors without elements, too
. | irc refuses | "into an expanded tensor" in text | irc never writes into elements that lie in one place
linalg|chol|pinv|triangular|lu|det|slogdet|logdet|inverse | irc refuses | "there is no result" in text | of singular
    matrices and of infinities, LAPACK as PyTorch calls it gives infinities and NaNs
_conj|mH|matrix_H|conj | irc refuses | "no conjugate views" in text | NumPy has no conjugate views
view_as_complex | irc refuses | "no complex numbers whose parts" in text | there is no complex type so small
. | irc computes | _mixes_types(given) and _says(text, "type", "did not match") | irc promotes some operands of
    several element types where PyTorch wants one
fake_quantize | irc computes | "Scale must be" in text | irc takes scales of any float type
index(\.Tensor|_put) | irc computes | "at least one index" in text | no index picks everything, as in NumPy
nll_loss|cross_entropy | irc computes | "1D or 2D" in text | irc has one kernel for classes of all ranks
isin | irc computes | "Unsupported input type" in text | irc compares bools and complex numbers as well
linalg_.*norm|norm | irc computes | "dtype" in text | irc also narrows the result, or makes integers of it
conv|_conv | irc refuses | "convert one" in text | PyTorch ignores the type of the bias of integers
_upsample.*_aa|__interpolate | irc refuses | "cannot be interpolated" in text | PyTorch copies if sizes are equal
_upsample|upsample | irc computes | "expected output_size equals" in text | one size stands for all, as elsewhere
__interpolate | irc | _says(text, "[0]", "Byte") | area is averaged by another operator, which has other limits
avg_pool | irc computes | "smaller than kernel" in text | with ceil_mode there is one incomplete window
_convolution_mode | irc computes | "-dimensional input" in text | irc takes samples without a batch here, too
divmod | irc computes | "to integer" in text | Python's quotients of infinities and NaNs are NaN
divmod | differs | math.inf in map(abs, given) or not _are_float32(given) or _is_zero(text) | PyTorch rounds to
    float32, has no remainder by infinity, and no sign of zeros
(exp|expm1|sinh|cosh)\.Scalar | differs | "inf" in text | PyTorch rounds such functions of numbers to float32
lcm | differs | _overflows(given) | least common multiples that integers do not hold
arange | irc refuses | _says(text, "inf", "nan") | a range has finite ends and steps
l(in|og)space | irc refuses | "j) does not fit" in text | PyTorch drops imaginary parts
lerp | irc refuses | "not defined on integers" in text | PyTorch refuses integers but for a 0-d float weight
_transformer_encoder | irc refuses | _is_empty(given) | PyTorch returns tensors without elements before it looks at
    them
cholesky | irc refuses | _is_empty(given) | PyTorch does not look at the shape of tensors without elements
can_cast|promote_types | irc refuses | "no element type" in text | types of which irc has none
fft_(i)?fftshift | irc refuses | "given twice" in text | an axis counts once
fft_r?fftfreq | differs | given[0] == 0 | PyTorch gives a NaN for no frequency
fft_r?fftfreq | irc refuses | given[0] < 0 | PyTorch takes negative numbers of frequencies
grid_sampler | irc refuses | "has no mode" in text | PyTorch takes modes that it does not have for bicubic
embedding_bag | irc refuses | "offsets begin" in text | indices behind the last offset are no bag's
linalg_matrix_power | irc refuses | "bool" in text | there are no powers of matrices of bools but the first
(rnn_tanh|rnn_relu|gru|lstm) | irc refuses | _says(text, "cast", "integers") | PyTorch has gates of floats alone, too
_weight_norm | irc refuses | "lengths are needed" in text | PyTorch broadcasts lengths that are not one a row
_weight_norm | differs | _mixes_types(given) | PyTorch's lengths broadcast
linalg_norm|.*norm | irc computes | "on an empty tensor" in text | the norm of nothing is 0
fft | irc computes | "Inconsistent configuration" in text | oneMKL has no transforms of no vectors
isin|kron | irc computes | "view size" in text | PyTorch fails for this layout
fake_quantize_per_channel | differs | _has_edges(given) | PyTorch converts numbers beyond 64 bits to the lowest
    integer, which of single scales it does not
pow.Scalar_Scalar | irc refuses | "raised to the power" in text | numbers of known types have rows that refuse
angle\. | differs | "irc nan" in text | PyTorch's angle of a number that is NaN is 0
(n)?gcd | differs | any(map(_is_lowest, given)) | the lowest integer has no magnitude
native_group_norm | differs | any((t.ndim == 1 and (not t.is_contiguous()) for t in _tensors(given))) | PyTorch reads
    parameters of channels as if they were dense
_upsample_.*_aa | differs | "at [" in text and _sizes_of(given)[-1] == 1 | of results that are one column wide,
    PyTorch repeats the first row
upsample_nearest|_upsample_nearest | differs | _contradicts(given) | sizes and factors that contradict each other:
    which of them counts differs by memory format
affine_grid_generator | differs | _says(text, "uint8", "int") | coordinates between -1 and 1 are not integers
ldexp | differs | _has_far_integers(given) | PyTorch takes the lowest 32 bits of exponents
addmv | differs | _is_empty(given) | PyTorch's result without rows has the shape of what is added
mode | differs | _has_edges(given) | PyTorch's order of numbers and NaNs is not defined
cov | differs | "afterwards" in text | PyTorch centres a matrix of one element in place
isin | differs | given[2] is True | elements that are said to be unique are not
blackman_window | differs | "at [0]" in text | PyTorch rounds the zeros at both ends to float32
storage_offset|stride | differs | _is_empty(given) | the sweep's arrays without elements are no views
pow | differs | "at [" in text | PyTorch rounds exponents to float32 in vectors, not in what is left of them
pixel_unshuffle|pixel_shuffle | differs | _is_empty(given) | PyTorch returns images without elements as they are
searchsorted | differs | not _is_sorted(given[0]) | the sequence is not sorted
bucketize | differs | not _is_sorted(given[1]) | the sequence is not sorted
linalg_slogdet|slogdet|logdet | differs | _is_singular(given[0]) | matrices that are singular but for rounding
linalg_matrix_exp | differs | _has_edges(given) | exponentials of huge numbers
_weight_norm | differs | given[1].numel() > max(given[0].shape[given[2]], 1) | PyTorch reads as many lengths as it
    needs of those that are given
gru_cell|linalg_cross|nll_loss|native_group_norm|batch_norm|_?adaptive_avg | differs | _has_edges(given) | what huge
    numbers leave
(rnn_tanh|rnn_relu|gru|lstm) | differs | _mixes_types(given) | states of one type, weights of another
ldexp | differs | _mixes_types(given) | PyTorch computes the power in the type of the exponent
pad | differs | given[2] == "circular" and min(given[1]) < 0 | elements not written
einsum | irc refuses | "not defined on bools" in text | PyTorch multiplies bools where nothing is summed
take_along_dim | irc computes | "view size" in text | PyTorch fails for this layout
max_pool3d | irc computes | "memory format" in text | PyTorch fails for this layout
lstm | irc computes | _says(text, "primitive", "itensor", "max_size") | oneDNN has no such layer
cholesky | irc computes | "not positive-definite" in text | matrices that are singular but for rounding
replace | differs | given[1] == "" | PyTorch finds an empty string in what it has put in
r?partition | irc refuses | "separator is empty" in text | Python refuses that as well
complex | irc refuses | "of float16" in text | there is no complex type so small
view_as_complex | irc computes | "storage_offset" in text | NumPy needs no alignment
Int\.Scalar | irc computes | "without overflow" in text | as the row for floats, which PyTorch does not check
pad | irc refuses | "to repeat" in text | PyTorch repeats elements that it has not written
logsumexp | irc computes | "broadcast shape" in text | PyTorch has sums over no axes but of complex numbers
mode|cummax|cummin | irc refuses | given[0].ndim == 0 or _is_empty(given) | 0-d
adaptive_avg_pool | irc refuses | "not defined on" in text | one mean of all is another operator of PyTorch's
(rnn_tanh|rnn_relu|gru|lstm) | irc computes | "hidden states" in text | layers are counted by their weights
(rnn_tanh|rnn_relu|gru|lstm) | irc refuses | "an initial state has" in text | states of one sample broadcast
linalg_lstsq | differs | "result 2" in text | PyTorch tells ranks by another bound, or not at all
fft_i?fftshift | irc computes | "required" in text | no axes to shift along leave a copy
scaled_dot_product_attention | irc refuses | "not both" in text | PyTorch's manual says that it refuses masks that are
    causal, too; one of its kernels does not
native_dropout|unique_consecutive | differs | "result 1" in text | results that nobody asked for
rand.*|random_.* | irc computes | _says(text, "out of bounds", "check_random_bounds") | irc draws integers from any
    range, and makes elements of any type of them
repeat_interleave | irc computes | "Invalid output_size" in text | the size is not needed, nor looked at
view_copy|view | irc refuses | _is_empty(given) | bytes that do not fit are refused without elements, too
binary_cross_entropy | irc computes | "broadcast" in text | targets broadcast
kthvalue|mode|median|nanmedian|topk|sort|argsort|max|min | differs | "int64 [" in text | which of equal ones is open
cholesky_(solve|inverse)|linalg_(solve|inv|lstsq|pinv|matrix_power|eig|svd|qr) | differs | "at [" in text |
    ill-conditioned: PyTorch solves by other steps
normal | differs | "element type" in text | irc draws floats, not numbers rounded to the type of a deviation
trapezoid|trapz | differs | _is_empty(given) | an integral over nothing is a float, too
put_ | differs | _repeats(given[1], given[0].numel()) | of several elements for one place, any may be the last
grid_sampler | differs | "at [" in text | which pixel is nearest to a place that rounding decides
affine_grid_generator | differs | "element type" in text | irc has the coordinates in float32
triplet_margin_loss|sum.float | differs | _says(text, "type", "0.0") | irc's result is of the type that all have in
    common
polygamma | differs | _is_left_of_zero(given) | PyTorch's trigamma has no poles; what it sums of both signs cancels
    out
polygamma | differs | _is_double(given) | PyTorch's series for trigamma in float64 ends after three terms
special_i1 | differs | "nan" in text | of infinities PyTorch gives NaN
(fmod|remainder) | differs | "torch np.float64(nan)" in text | PyTorch has no remainder of quotients beyond 2**53
"""

_EXCUSES = [
    (pattern, what, eval(f"lambda given, text: {holds}"), reason) for pattern, what, holds, reason in rows(_EXCUSED)
]
