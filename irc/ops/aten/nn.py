# ruff: noqa: E501 - a row is one line
"""Layers: convolutions, pooling, normalisation, attention, losses, products of matrices."""

from __future__ import annotations

from irc.ops import tags
from irc.ops.record import Effects, Family, each

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
    aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor | out=none
    aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor | takes=f out=none
    aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor | takes=f out=none
    aten::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor | takes=f out=none
    aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor | takes=f out=none
    aten::rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor | takes=fc out=none
    aten::native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor) | takes=f
    aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor) | takes=f
    aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor | takes=f out=none
    aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor | takes=uif out=none
    aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor | takes=uif out=none
    aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor) | takes=uif
    aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor) | takes=uif
    aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor) | takes=uif
    aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor | takes=if
    aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor | takes=if
    aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor | takes=if
    aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor | takes=fc
    aten::adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor | takes=f
    aten::adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor | takes=fc
    aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor) | takes=f
    aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor) | takes=f
    aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor) | takes=f
    aten::_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor | takes=f
    aten::_adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor | takes=f
    aten::upsample_nearest1d(Tensor self, int[1] output_size, float? scales=None) -> Tensor | takes=uf
    aten::upsample_nearest1d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
    aten::upsample_nearest2d(Tensor self, int[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::upsample_nearest2d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
    aten::upsample_nearest3d(Tensor self, int[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::upsample_nearest3d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
    aten::upsample_linear1d(Tensor self, int[1] output_size, bool align_corners, float? scales=None) -> Tensor | takes=f
    aten::upsample_linear1d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    aten::upsample_bilinear2d(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::upsample_bilinear2d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    aten::upsample_trilinear3d(Tensor self, int[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor | takes=f
    aten::upsample_trilinear3d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    aten::upsample_bicubic2d(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::upsample_bicubic2d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    aten::__interpolate(Tensor input, int? size=None, float? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor | takes=uf out=none
    aten::__interpolate.scale_list(Tensor input, int? size=None, float[]? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
    aten::__interpolate.size_list(Tensor input, int[]? size=None, float? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
    aten::__interpolate.size_list_scale_list(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
    aten::_upsample_nearest_exact1d(Tensor self, int[1] output_size, float? scales=None) -> Tensor | takes=uf
    aten::_upsample_nearest_exact1d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
    aten::_upsample_nearest_exact2d(Tensor self, int[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::_upsample_nearest_exact2d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
    aten::_upsample_nearest_exact3d(Tensor self, int[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor | takes=uf
    aten::_upsample_nearest_exact3d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
    aten::_upsample_bilinear2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
    aten::_upsample_bilinear2d_aa.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    aten::_upsample_bicubic2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
    aten::_upsample_bicubic2d_aa.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    aten::_upsample_lanczos2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
    aten::_upsample_lanczos2d_aa.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    aten::max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor
    aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor | takes=f in-place out=none
    aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor | takes=f out=none
    aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor | takes=f
    aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor | takes=f
    aten::affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor | takes=uifc
    aten::dropout(Tensor(a) input, float p, bool train) -> Tensor(a) | out=none
    aten::dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
    aten::feature_dropout(Tensor(a) input, float p, bool train) -> Tensor(a) | out=none
    aten::feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
    aten::alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a) | out=none
    aten::native_dropout(Tensor(a) input, float p, bool? train) -> (Tensor(a), Tensor)
    aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
    aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
    aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor | takes=f
    aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor | takes=f
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
    aten::embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor
    aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)
    aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)
    aten::glu(Tensor self, int dim=-1) -> Tensor | takes=f out=any
    aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)
    aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
    aten::gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)
    aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
    aten::rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)
    aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
    aten::rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)
    aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
    aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)
    aten::rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor | out=none
    aten::rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor | out=none
    aten::gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor | out=none
    aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor | takes=uifc
    aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor | takes=uifc out=none
    aten::matmul(Tensor self, Tensor other) -> Tensor | takes=uifc
    aten::mm(Tensor self, Tensor mat2) -> Tensor | takes=uifc
    aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor
    aten::bmm(Tensor self, Tensor mat2) -> Tensor | takes=uifc
    aten::bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor
    aten::mv(Tensor self, Tensor vec) -> Tensor | takes=uifc
    aten::dot(Tensor self, Tensor tensor) -> Tensor | takes=uifc
    aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor | takes=uifc in-place
    aten::addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor | takes=uifc in-place
    aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor | takes=uifc in-place
    aten::baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor | takes=uifc in-place
    aten::einsum(str equation, Tensor(a)[] tensors, *, int[]? path=None) -> Tensor(a) | out=none
    aten::outer(Tensor self, Tensor vec2) -> Tensor | out=any
    aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor | takes=uifc
    aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor | takes=f out=none
    aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor) | takes=f
    aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor
    aten::_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor
    aten::_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool
    aten::to_padded_tensor(Tensor self, float padding, int[]? output_size=None) -> Tensor
    aten::pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor | out=none
    aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor
    aten::reflection_pad1d(Tensor self, int[2] padding) -> Tensor | takes=uifc
    aten::reflection_pad2d(Tensor self, int[4] padding) -> Tensor | takes=uifc
    aten::reflection_pad3d(Tensor self, int[6] padding) -> Tensor | takes=uifc
    aten::replication_pad1d(Tensor self, int[2] padding) -> Tensor | takes=uifc
    aten::replication_pad2d(Tensor self, int[4] padding) -> Tensor | takes=uifc
    aten::replication_pad3d(Tensor self, int[6] padding) -> Tensor | takes=uifc
    aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor
    aten::col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor | takes=bfc
    aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor | takes-both=f out=none
    aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor | takes=uifc out=none
    aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor | takes=f out=none
    aten::pdist(Tensor self, float p=2.) -> Tensor | takes=f out=none
    aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor | in-place
    aten::one_hot(Tensor self, int num_classes=-1) -> Tensor | takes=i out=none
    aten::inner(Tensor self, Tensor other) -> Tensor | takes=uifc
    aten::vdot(Tensor self, Tensor other) -> Tensor | takes=uifc
    aten::kron(Tensor self, Tensor other) -> Tensor | out=any
    aten::linalg_inv(Tensor A) -> Tensor
    aten::linalg_det(Tensor A) -> Tensor
    aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor
    aten::cholesky(Tensor self, bool upper=False) -> Tensor
    aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor
    aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)
    aten::linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)
    aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor
    aten::linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)
    aten::linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor
    aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)
    aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)
    aten::logdet(Tensor self) -> Tensor | out=none
    aten::linalg_matrix_power(Tensor self, int n) -> Tensor
    aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor
    aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor
    aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor
    aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor
    aten::pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor | out=none
    aten::linalg_multi_dot(Tensor[] tensors) -> Tensor
    aten::linalg_eigvals(Tensor self) -> Tensor
    aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor
    aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)
    aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor | in-place out=any
    aten::block_diag(Tensor[] tensors) -> Tensor
    aten::diagflat(Tensor self, int offset=0) -> Tensor | out=none
    aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor
    aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor | out=none
    aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor
    aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor | out=none
    aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor | out=none
    aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
    aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor | out=none
    aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor | out=none
    aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor | out=none
    aten::linalg_matrix_exp(Tensor self) -> Tensor
    aten::chain_matmul(Tensor[] matrices) -> Tensor
    aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)
    aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)
    aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)
    aten::feature_alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a) | out=none
    aten::feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
    aten::alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
    aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
    aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)
    aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)
    aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)
    aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor
    aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor
    aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor
    aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor
    """

FAMILY = Family("aten", tags.statements(ROWS))
FAMILY.add(
    each(
        "aten::dropout aten::dropout_ aten::feature_dropout aten::feature_dropout_ aten::alpha_dropout aten::alpha_dropout_ aten::feature_alpha_dropout aten::feature_alpha_dropout_ aten::native_dropout aten::lstm aten::gru aten::rnn_tanh aten::rnn_relu",
        effects=Effects.RANDOM,
        random_switch="train",
    )
)
FAMILY.add(each("aten::rrelu aten::rrelu_", effects=Effects.RANDOM, random_switch="training"))
FAMILY.add(each("aten::scaled_dot_product_attention", effects=Effects.RANDOM, random_switch="dropout_p"))
