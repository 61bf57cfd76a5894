# ruff: noqa: E501 - a row is one line
"""Layers: convolutions, pooling, normalisation, dropout, embeddings, attention, recurrence, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from irc.ir import Dim, DType, ListType, Node, Shape, TensorType, Type
from irc.ops import Effects, sizes
from irc.ops.aten.call import Call, TorchFamily, common_type, like_first, like_first_if_float
from irc.ops.axes import static
from irc.ops.inference import UNKNOWN
from irc.ops.shape_rules import for_each_element

ROWS = """
    aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0], int[1] dilation=[1], int groups=1) -> Tensor | takes=uifc out=none
    aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], str padding="valid", int[1] dilation=[1], int groups=1) -> Tensor
    aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], int[2] padding=[0, 0], int[2] dilation=[1, 1], int groups=1) -> Tensor | takes=uifc out=none
    aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], str padding="valid", int[2] dilation=[1, 1], int groups=1) -> Tensor
    aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1], int[3] padding=[0, 0, 0], int[3] dilation=[1, 1, 1], int groups=1) -> Tensor | takes=uifc out=none
    aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1], str padding="valid", int[3] dilation=[1, 1, 1], int groups=1) -> Tensor
    aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0], int[1] output_padding=[0], int groups=1, int[1] dilation=[1]) -> Tensor | takes=ifc out=none
    aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], int[2] padding=[0, 0], int[2] output_padding=[0, 0], int groups=1, int[2] dilation=[1, 1]) -> Tensor | takes=ifc out=none
    aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1], int[3] padding=[0, 0, 0], int[3] output_padding=[0, 0, 0], int groups=1, int[3] dilation=[1, 1, 1]) -> Tensor | takes=ifc out=none
    aten::convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor | takes=uif
    aten::_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor | takes=uif
    aten::_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor
    aten::_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, int[] dilation, int groups) -> Tensor | takes=uif out=none
    aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor | takes=f out=none
    aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor | takes=f out=none
    aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor | takes=f out=none
    aten::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor | takes=f out=none
    aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor | takes=f out=none
    aten::rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor | takes=fc out=none
    aten::native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor) | takes=f
    aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor) | takes=f
    aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor | takes=f out=none
    aten::max_pool{2 3}d(Tensor self, int[{}] kernel_size, int[{}] stride=[], int[{}] padding=0, int[{}] dilation=1, bool ceil_mode=False) -> Tensor | takes=uif out=none
    aten::max_pool{2 3}d_with_indices(Tensor self, int[{}] kernel_size, int[{}] stride=[], int[{}] padding=0, int[{}] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor) | takes=uif
    aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor) | takes=uif
    aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor | takes=if
    aten::avg_pool{2 3}d(Tensor self, int[{}] kernel_size, int[{}] stride=[], int[{}] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor | takes=if
    aten::adaptive_avg_pool{1 3}d(Tensor self, int[{}] output_size) -> Tensor | takes=fc
    aten::{adaptive_avg_pool2d _adaptive_avg_pool2d}(Tensor self, int[2] output_size) -> Tensor | takes=f
    aten::adaptive_max_pool{2 1 3}d(Tensor self, int[{}] output_size) -> (Tensor, Tensor) | takes=f
    aten::_adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor | takes=f
    aten::{upsample_nearest1d _upsample_nearest_exact1d}(Tensor self, int[1] output_size, float? scales=None) -> Tensor | takes=uf
    aten::{upsample_nearest2d _upsample_nearest_exact2d}(Tensor self, int[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::{upsample_nearest3d _upsample_nearest_exact3d}(Tensor self, int[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::{upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d}.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
    aten::upsample_linear1d(Tensor self, int[1] output_size, bool align_corners, float? scales=None) -> Tensor | takes=f
    aten::{upsample_bilinear2d upsample_bicubic2d}(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::upsample_trilinear3d(Tensor self, int[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor | takes=f
    aten::__interpolate(Tensor input, int? size=None, float? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor | takes=uf out=none
    aten::__interpolate.scale_list(Tensor input, int? size=None, float[]? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
    aten::__interpolate.size_list(Tensor input, int[]? size=None, float? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
    aten::__interpolate.size_list_scale_list(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
    aten::{_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa}(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
    aten::{upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa}.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    aten::max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor
    aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor | takes=f out=none
    aten::{grid_sampler_2d grid_sampler_3d}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor | takes=f
    aten::affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor | takes=uifc
    aten::{dropout feature_dropout alpha_dropout feature_alpha_dropout}(Tensor(a) input, float p, bool train) -> Tensor(a) | out=none
    aten::{dropout_ feature_dropout_ feature_alpha_dropout_ alpha_dropout_}(Tensor(a!) self, float p, bool train) -> Tensor(a!)
    aten::native_dropout(Tensor(a) input, float p, bool? train) -> (Tensor(a), Tensor)
    aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor
    aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor | out=none
    aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.) -> Tensor | out=none
    aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor | takes-both=f
    aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor | takes=f
    aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor | takes=f
    aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor | takes=uifc out=none
    aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor | takes-both=f
    aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor | takes-both=f
    aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor | takes-both=f out=none
    aten::embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor | layout=contiguous
    aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)
    aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)
    aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)
    aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
    aten::{gru rnn_tanh rnn_relu}.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)
    aten::{gru rnn_tanh rnn_relu}.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
    aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)
    aten::{rnn_tanh_cell rnn_relu_cell gru_cell}(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor | out=none
    aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor | takes=f out=none layout=anew
    aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor) | takes=f
    aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor
    aten::_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor
    aten::_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool
    aten::to_padded_tensor(Tensor self, float padding, int[]? output_size=None) -> Tensor
    aten::pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor | out=none
    aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor
    aten::{reflection_pad1d replication_pad1d}(Tensor self, int[2] padding) -> Tensor | takes=uifc
    aten::{reflection_pad2d replication_pad2d}(Tensor self, int[4] padding) -> Tensor | takes=uifc
    aten::{reflection_pad3d replication_pad3d}(Tensor self, int[6] padding) -> Tensor | takes=uifc
    aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor
    aten::col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor | takes=bfc
    aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor | takes-both=f out=none
    aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor | takes=uifc out=none
    aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor | takes=f out=none
    aten::pdist(Tensor self, float p=2.) -> Tensor | takes=f out=none
    aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor | takes=fc in-place
    aten::one_hot(Tensor self, int num_classes=-1) -> Tensor | takes=i out=none layout=contiguous
    aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor
    aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor | out=none
    aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor
    aten::{margin_ranking_loss cosine_embedding_loss}(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor | out=none
    aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor | takes=uif out=none
    aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
    aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor | takes=fc
    aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor | out=none
    aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor | out=none
    aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)
    aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each(  # also where they sum or average what the operands, spread to one shape, give
    "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity hinge_embedding_loss "
    "huber_loss kl_div l1_loss margin_ranking_loss mse_loss pairwise_distance poisson_nll_loss smooth_l1_loss "
    "soft_margin_loss triplet_margin_loss",
    size=sizes.broadcast,
)
FAMILY.each(
    "dropout dropout_ feature_dropout feature_dropout_ alpha_dropout "
    "alpha_dropout_ feature_alpha_dropout feature_alpha_dropout_ native_dropout "
    "lstm gru rnn_tanh rnn_relu",
    effects=Effects.RANDOM,
    random_switch="train",
)
FAMILY.each(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "convolution _convolution _convolution_mode",
    widened=(1, 2),
    value_operands=tuple(range(3, 12)),
)
FAMILY.each(
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d",
    value_operands=tuple(range(1, 6)),
)
FAMILY.each("max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d", value_operands=tuple(range(1, 7)))
FAMILY.each("scaled_dot_product_attention", effects=Effects.RANDOM, random_switch="dropout_p")


# -- normalisation ------------------------------------------------------------

FAMILY.shape("alpha_dropout", "dropout", "feature_alpha_dropout", "feature_dropout", "renorm")(like_first)


FAMILY.shape(*"batch_norm instance_norm layer_norm group_norm rms_norm native_layer_norm native_group_norm".split())(
    like_first_if_float
)
FAMILY.shape("_weight_norm")(lambda c: c.tensor("v"))


# -- windows ------------------------------------------------------------------


def _windows(sizes: Shape, n: int, *settings: Sequence[Dim] | None) -> list[Dim]:
    """Sizes after windows: kernel, stride, padding, dilation; each per axis or None if unknown."""
    if any(s is None or len(s) != n for s in settings):
        return [None] * n
    rows = [s for s in settings if s is not None]
    return [_window(size, *row) for size, *row in zip(sizes, *rows, strict=True)]


def _window(size: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim) -> Dim:
    numbers = [d for d in (size, kernel, stride, padding, dilation) if isinstance(d, int)]
    if len(numbers) < 5 or numbers[2] <= 0:
        return size if (kernel, stride, padding) == (1, 1, 0) else None
    whole, k, s, p, d = numbers
    found = (whole + 2 * p - d * (k - 1) - 1) // s + 1
    return found if found > 0 else None


@FAMILY.shape("conv1d", "conv2d", "conv3d", "_convolution", "_convolution_mode", "convolution")
def convolution(c: Call) -> Type:
    x, weight = c.tensor("input"), c.tensor("weight")
    dtype = common_type(x, weight)
    if x.shape is None or weight.shape is None or len(x.shape) != len(weight.shape) or len(x.shape) < 3:
        return TensorType(dtype)
    if c.arg("transposed", False) is not False:
        return TensorType(dtype, (x.shape[0], *[None] * (len(x.shape) - 1)))
    n = len(x.shape) - 2
    padding, stride, how = c.dims("padding", n), c.dims("stride", n), c.arg("padding")
    if how == "same":
        return TensorType(dtype, (x.shape[0], weight.shape[0], *x.shape[2:]))
    if how == "valid":
        padding = [0] * n
    spatial = _windows(x.shape[2:], n, list(weight.shape[2:]), stride, padding, c.dims("dilation", n))
    return TensorType(dtype, (x.shape[0], weight.shape[0], *spatial))


@FAMILY.macs(*(f"conv{n}d" for n in (1, 2, 3)), "convolution", "_convolution", "_convolution_mode")
def _window_products(c: Call, elements: int) -> int:
    if c.arg("transposed", False) is not False:
        return _transposed_window_products(c, elements)
    return elements * math.prod(c.sizes("weight")[1:])


@FAMILY.macs("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _transposed_window_products(c: Call, elements: int) -> int:
    return math.prod(c.sizes("input")) * math.prod(c.sizes("weight")[1:])


@FAMILY.shape("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(c: Call) -> Type:
    x, weight = c.tensor("input"), c.tensor("weight")
    if x.shape is None or weight.shape is None or len(x.shape) != len(weight.shape):
        return TensorType(common_type(x, weight))
    return TensorType(common_type(x, weight), (x.shape[0], *[None] * (len(x.shape) - 1)))


@FAMILY.reshapes(*(f"{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)))
def pool(c: Call, x: Shape) -> Shape | None:
    n = int(c.schema.name[-2])
    if len(x) not in (n + 1, n + 2):
        return None
    kernel, stride = c.dims("kernel_size", n), c.dims("stride", n)
    dilation = c.dims("dilation", n) if c.schema.name.startswith("aten::max") else [1] * n
    spatial: list[Dim] = [None] * n
    if c.arg("ceil_mode", False) is False:
        stride = stride or (kernel if stride == [] else None)
        spatial = _windows(x[-n:], n, kernel, stride, c.dims("padding", n), dilation)
    return (*x[:-n], *spatial)


@FAMILY.reshapes(*(f"adaptive_avg_pool{n}d" for n in (1, 2, 3)))
def adaptive_pool(c: Call, x: Shape) -> Shape | None:
    n = int(c.schema.name[-2])
    sizes = c.dims("output_size", n)
    spatial = sizes if sizes is not None and len(sizes) == n else [None] * n
    return (*x[:-n], *spatial) if len(x) in (n + 1, n + 2) else None


@FAMILY.reshapes(
    *(f"upsample_nearest{n}d" for n in (1, 2, 3)), "upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d",
    "upsample_trilinear3d",
)  # fmt: skip
def upsample(c: Call, x: Shape) -> Shape | None:
    n = int(c.schema.name[-2])
    if len(x) != n + 2:
        return None
    sizes, factors = c.dims("output_size", n), c.factors("scale_factors")
    spatial: list[Dim] = [None] * n
    if sizes is not None and len(sizes) == n:
        spatial = sizes
    elif not c.has("output_size") and factors is not None and len(factors) == n:
        spatial = [s * f if isinstance(s, int) else None for s, f in zip(x[2:], factors, strict=True)]
    return (*x[:2], *spatial)


@FAMILY.reshapes("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(c: Call, x: Shape) -> Shape | None:
    grid = c.tensor(1).shape
    return None if grid is None or len(x) != len(grid) or len(x) < 4 else (*x[:2], *grid[1:-1])


@FAMILY.reshapes(
    "pad", "constant_pad_nd", *(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3))
)
def pad(c: Call, x: Shape) -> Shape:
    widths = c.dims("pad") or c.dims("padding")
    if not widths or len(widths) % 2 or len(widths) > 2 * len(x):
        return (None,) * len(x)
    sizes = list(x)
    for i in range(len(widths) // 2):
        parts = [sizes[-1 - i], widths[2 * i], widths[2 * i + 1]]
        whole = [p for p in parts if isinstance(p, int)]
        sizes[-1 - i] = sum(whole) if len(whole) == 3 else None
    return tuple(sizes)


# -- others -------------------------------------------------------------------


@FAMILY.shape("embedding")
def embedding(c: Call) -> Type:
    weight, indices = c.tensor("weight"), c.tensor("indices")
    if weight.shape is None or indices.shape is None or len(weight.shape) != 2:
        return TensorType(weight.dtype)
    return TensorType(weight.dtype, (*indices.shape, weight.shape[1]))


@FAMILY.shape("one_hot")
def one_hot(c: Call) -> Type:
    x, classes = c.tensor(0).shape, c.number("num_classes")
    size = classes if classes is not None and classes > 0 else None
    return TensorType(DType.INT64, None if x is None else (*x, size))


@FAMILY.shape("scaled_dot_product_attention")
def attention(c: Call) -> Type:
    q, k, v = (c.tensor(name) for name in ("query", "key", "value"))
    shares = c.arg("enable_gqa", False)  # whether heads of the query share those of key and value
    if q.shape is None or k.shape is None or v.shape is None or shares is UNKNOWN:
        return TensorType(q.dtype)
    others = ((*x[:-3], 1) if shares else x[:-2] for x in (k.shape, v.shape))
    batch = c.broadcast([q.shape[:-2], *others])  # which a mask does not change
    return TensorType(q.dtype, None if batch is None else (*batch, q.shape[-2], v.shape[-1]))


@FAMILY.macs("scaled_dot_product_attention")
def _attention_products(c: Call, elements: int) -> int:
    query, keys, width = c.sizes("query"), c.sizes("key")[-2], c.sizes("value")[-1]
    return math.prod(query[:-1]) * keys * (query[-1] + width)


@FAMILY.shape("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(c: Call) -> tuple[Type, ...]:
    """Result types of recurrent layers: the output's last axis is the states', twice if bidirectional."""
    x = c.tensor("input")
    if c.schema.overload != "input":
        return ()
    states = c.elements("hx") if isinstance(c.node.inputs[1].type, ListType) else [c.tensor("hx")]
    both = c.arg("bidirectional")
    if not states or any(s.shape is None for s in states) or x.shape is None or len(x.shape) != 3:
        return ()
    width = states[0].shape[-1] if states[0].shape else None
    size = None if not isinstance(width, int) or both is UNKNOWN else width * (2 if both else 1)
    return TensorType(x.dtype, (*x.shape[:-1], size)), *(TensorType(s.dtype, s.shape) for s in states)


@FAMILY.shape("gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "lstm_cell")
def cell(c: Call) -> tuple[Type, ...]:
    states = c.elements("hx") if isinstance(c.node.inputs[1].type, ListType) else [c.tensor("hx")]
    return tuple(states or ())


@FAMILY.shape(
    *"""
    binary_cross_entropy binary_cross_entropy_with_logits cross_entropy_loss hinge_embedding_loss huber_loss kl_div l1_loss
    mse_loss nll_loss nll_loss_nd poisson_nll_loss smooth_l1_loss soft_margin_loss
    """.split()
)
def loss(c: Call) -> Type:
    """A mean or sum has no dimensions."""
    return TensorType(None, () if c.arg("reduction") in (1, 2) else None)


FAMILY.each("softmax _softmax log_softmax _log_softmax", flops=for_each_element(5))
FAMILY.each("layer_norm native_layer_norm group_norm instance_norm", flops=for_each_element(7))
FAMILY.each("rms_norm", flops=for_each_element(4))
FAMILY.each("batch_norm", flops=for_each_element(2), value_operands=())


@FAMILY.reduces("softmax", "_softmax", "log_softmax", "_log_softmax")
def softmax_axes(node: Node, rank: int) -> Sequence[int] | None:
    axis, dtype = static(node, 1), static(node, 2)
    return (axis,) if isinstance(axis, int) and not dtype else None


@FAMILY.reduces("layer_norm", "native_layer_norm")
def normalized_axes(node: Node, rank: int) -> Sequence[int] | None:
    shape = static(node, 1)
    if not isinstance(shape, list | tuple):
        return None
    size = len(cast("Sequence[int]", shape))
    return range(rank - size, rank) if 0 < size <= rank else None


@FAMILY.reduces("group_norm")
def group_axes(node: Node, rank: int) -> Sequence[int] | None:
    count = static(node, 1)
    return range(1, rank) if rank > 1 and isinstance(count, int) and count > 0 else None


@FAMILY.reduces("batch_norm")
def batch_axes(node: Node, rank: int) -> Sequence[int] | None:
    """At inference, when nothing is reduced: the axes along which a channel has one factor and one shift."""
    is_training = static(node, 5)
    return range(2, rank) if rank > 1 and is_training is False else None
