"""Which kinds of element types torch's operators take. On the others torch raises, and NumPy may compute nonsense.

Operators that are not in the tables take all kinds, or their kernels tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.errors import Error
from irc.ir.types import Type
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import AnyDType, is_array

# Kinds are NumPy's characters: b of bool, u and i of integers, f of floats (V of bfloat16 and smaller), c of complex.
_FLOATS = "fV"
_FIRST = {
    "c": "view_as_real",
    "i": "one_hot",
    "ui": "bincount",
    _FLOATS: """
        _adaptive_avg_pool2d _adaptive_avg_pool3d _log_softmax _native_multi_head_attention _softmax
        adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d batch_norm
        binary_cross_entropy binary_cross_entropy_with_logits cdist celu elu exponential_ frac gelu glu grid_sampler
        grid_sampler_2d grid_sampler_3d group_norm hardshrink hardsigmoid hardswish histc instance_norm layer_norm
        leaky_relu log_sigmoid max_pool1d mish multinomial nanmean native_group_norm native_layer_norm pdist poisson
        prelu rrelu scaled_dot_product_attention selu softplus softshrink upsample_linear1d upsample_trilinear3d
        view_as_complex
        """,
    f"{_FLOATS}c": "adaptive_avg_pool1d adaptive_avg_pool3d lerp normal_ rms_norm silu uniform_",
    f"i{_FLOATS}": "avg_pool1d avg_pool2d avg_pool3d",
    f"i{_FLOATS}c": "conv_transpose1d conv_transpose2d conv_transpose3d",
    f"u{_FLOATS}": """
        __interpolate _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bicubic2d
        upsample_bilinear2d upsample_nearest1d upsample_nearest2d upsample_nearest3d
        """,
    f"ui{_FLOATS}": """
        _convolution _convolution_mode abs_ argmax argmin ceil convolution floor hardtanh kthvalue
        max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices median relu relu6
        round threshold topk trunc
        """,
    f"ui{_FLOATS}c": """
        abs addbmm addmm addmv affine_grid_generator baddbmm bilinear bmm conv1d conv2d conv3d cross cumprod_ cumsum_
        dot inner l1_loss linear matmul mm mv pairwise_distance positive reflection_pad1d reflection_pad2d
        reflection_pad3d replication_pad1d replication_pad2d replication_pad3d tensordot trace vdot
        """,
    f"bui{_FLOATS}": """
        _unique2 amax amin aminmax argsort bernoulli clamp clamp_max clamp_min cummax cummin deg2rad digamma erf
        erfc erfinv heaviside i0 isneginf isposinf lgamma logit mode msort nansum rad2deg sign signbit sort special_entr
        unique_consecutive
        """,
    f"b{_FLOATS}c": "col2im",
}
"""By the kinds taken: operators of which the first operand must be of one."""

_COMMON = {
    "ui": "gcd lcm",
    _FLOATS: "cosine_similarity huber_loss hypot kl_div logaddexp2 mse_loss smooth_l1_loss",
    f"{_FLOATS}c": "logaddexp",
    f"bui{_FLOATS}": """
        atan2 bucketize copysign fmax fmin ge gt le lt max maximum min minimum searchsorted xlogy
        """,
}
"""Likewise, operators of which the type that their two operands have in common must be of one."""


def _refused(table: dict[str, str]) -> dict[str, str]:
    return {name: "".join(set("buifVc") - set(taken)) for taken, names in table.items() for name in names.split()}


REFUSED_FIRST = _refused(_FIRST)
REFUSED_COMMON = _refused(_COMMON)

_RANKS = {kind: rank for rank, kinds in enumerate(("b", "ui", "fV", "c")) for kind in kinds}
_WORDS = {"b": "bools", **dict.fromkeys("ui", "integers"), **dict.fromkeys("fV", "floats"), "c": "complex numbers"}
_NUMBERS: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}


def refusing(name: str, run: Kernel, types: Sequence[Type] = ()) -> Kernel:
    """``run``, or if torch's operator ``name`` or its functional twin refuses kinds, a kernel that does so, too.

    Nothing needs to be looked at in a run where ``types``, those of the arguments, tell that the kinds are taken.
    """
    for table, count, checked in ((REFUSED_FIRST, 1, _refusing_first), (REFUSED_COMMON, 2, _refusing_common)):
        refused = table.get(name) or table.get(name.removesuffix("_"))
        if refused:
            is_known = types and all(_is_taken(type, refused) for type in types[:count])
            return run if is_known else checked(name, refused, run)
    return run


def _is_taken(type: Type, refused: str) -> bool:
    return type.dtype is not None and type.dtype.numpy.kind not in refused


def check_kind(name: str, dtype: AnyDType) -> None:
    """Error IRC423 if torch's operator ``name`` refuses a first operand of ``dtype``."""
    if dtype.kind in REFUSED_FIRST[name]:
        raise _error(name, dtype.kind)


def _refusing_first(name: str, refused: str, run: Kernel) -> Kernel:
    def checked(*arguments: Any) -> Any:
        dtype = getattr(arguments[0], "dtype", None)
        if dtype is not None and dtype.kind in refused:
            raise _error(name, dtype.kind)
        return run(*arguments)

    return checked


def _refusing_common(name: str, refused: str, run: Kernel) -> Kernel:
    def checked(*arguments: Any) -> Any:
        for x in arguments[:2]:
            dtype = getattr(x, "dtype", None)
            if dtype is not None and dtype.kind in refused:
                common = max(map(_kind, arguments[:2]), key=_RANKS.__getitem__)
                if common in refused:
                    raise _error(name, common)
        return run(*arguments)

    return checked


def _kind(x: Any) -> str:
    return x.dtype.kind if is_array(x) else _NUMBERS.get(type(x), "b")


def _error(name: str, kind: str) -> Error:
    return Error("IRC423", f"aten::{name} is not defined on {_WORDS[kind]}; convert them first")
