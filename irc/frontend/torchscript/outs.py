"""Overloads of operators that write their result into a tensor given as ``out=``.

Each becomes the operator without it, and ``irc::overwrite_``: a thousand more rows would say the same, and whatever
goes by kinds would have to know them. PyTorch would change the size of a tensor that does not fit, which is refused
when it runs.
"""

from __future__ import annotations

from irc.ir import Builder, Module, Node
from irc.ir.constants import is_none
from irc.ir.functions import with_subgraphs
from irc.ir.ops import resolve, schemas
from irc.ir.ops.resolution import takes
from irc.ir.schema import Schema
from irc.ir.types import INT, TENSOR, TensorType

IN_TYPE_OF_OUT = frozenset(
    f"aten::{row}"
    for row in (
        "arange arange.start arange.start_step cumprod cumsum eye eye.m full linspace logspace mean.dim nanmean nansum "
        "ones prod.dim_int rand randint randint.low randn randperm sum.dim_IntList zeros"
    ).split()
)
"""Rows whose argument ``dtype`` is the element type of ``out`` if it is not given."""

CONVERTING = frozenset(
    f"aten::{row}"
    for row in (
        "acos acosh add.Tensor addcdiv addcmul addr angle asin asinh atan atan2 atanh bitwise_and.Scalar "
        "bitwise_and.Tensor bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_or.Scalar "
        "bitwise_or.Tensor bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar "
        "bitwise_xor.Tensor cat clamp.Tensor clamp_max.Tensor clamp_min.Tensor column_stack copysign.Scalar "
        "copysign.Tensor cos cosh deg2rad digamma div.Tensor div.Tensor_mode dstack eq.Scalar eq.Tensor erf erfc "
        "erfinv exp exp2 expm1 floor_divide fmax fmin fmod.Scalar fmod.Tensor gcd ge.Scalar ge.Tensor glu gt.Scalar "
        "gt.Tensor hstack hypot i0 kron lcm le.Scalar le.Tensor lerp.Scalar lgamma log log10 log1p log2 "
        "logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit lt.Scalar lt.Tensor max.other "
        "maximum min.other minimum mul.Tensor ne.Scalar ne.Tensor nextafter outer polygamma "
        "pow.Tensor_Scalar pow.Tensor_Tensor rad2deg reciprocal remainder.Scalar remainder.Tensor rsqrt sigmoid sin "
        "sinc sinh special_entr special_i0e special_i1 special_i1e sqrt square stack sub.Tensor tan tanh threshold "
        "vstack xlogy.Scalar_Other xlogy.Scalar_Self xlogy.Tensor"
    ).split()
)
"""Rows whose result is converted to the element type of ``out`` if results in place are: no float into integers. Those
of others must have it."""

WITHOUT = frozenset(
    f"aten::{name}"
    for name in (
        "__and__ __iand__ __ilshift__ __interpolate __ior__ __irshift__ __ixor__ __or__ __xor__ _conj "
        "_convolution_mode _weight_norm alias alpha_dropout argwhere as_strided as_tensor atleast_1d atleast_2d "
        "atleast_3d batch_norm bilinear broadcast_to cartesian_prod cdist combinations conj contiguous conv1d "
        "conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d corrcoef cosine_embedding_loss "
        "cosine_similarity cov cpu cross_entropy_loss ctc_loss cuda data detach diagflat diagonal dropout einsum "
        "expand expand_as fake_quantize_per_channel_affine fake_quantize_per_tensor_affine feature_alpha_dropout "
        "feature_dropout fft_fftshift fft_ifftshift flatten fliplr flipud grid_sampler group_norm gru_cell "
        "hinge_embedding_loss imag indices instance_norm isclose isfinite isreal istft kl_div l1_loss layer_norm "
        "lift_fresh linalg_diagonal logdet mH mT margin_ranking_loss matrix_H max_pool1d max_pool2d max_pool3d "
        "movedim narrow nll_loss_nd numpy_T one_hot pad pairwise_distance pdist permute pinverse poisson_nll_loss "
        "positive prelu ravel real relu6 reshape reshape_as resolve_conj resolve_neg rms_norm rnn_relu_cell "
        "rnn_tanh_cell rrelu scaled_dot_product_attention select selu slice squeeze stft t tensor tile to "
        "transpose trapezoid trapz triplet_margin_loss type_as unflatten unfold unsqueeze values vander view "
        "view_as view_as_complex view_as_real"
    ).split()
)
"""Operators that give one tensor, and have no ``out``. Nor have those in place."""


def copy_into_outs(module: Module) -> None:
    """Write out where results go that ``out=`` is given for."""
    for node in list(with_subgraphs(*module.graphs.values())):
        if _has_out(node):
            _copy_into_out(node)


def _has_out(node: Node) -> bool:
    """Whether an overload takes all arguments but the last one, which is a tensor, and none takes all."""
    if not node.kind.startswith("aten::") or len(node.inputs) < 2 or len(node.outputs) != 1:
        return False
    kinds = [v.type for v in node.inputs]
    if not isinstance(kinds[-1], TensorType) or takes(node.kind, kinds):
        return False
    return may_have_out(node.kind) and takes(node.kind, kinds[:-1])


def may_have_out(kind: str) -> bool:
    """Whether an operator of torch's has overloads with one ``out``."""
    if kind in WITHOUT or (kind.endswith("_") and not kind.endswith("__")):
        return False
    return any([formal.type for formal in row.returns] == [TENSOR] for row in schemas(kind))


def _copy_into_out(node: Node) -> None:
    out = node.inputs[-1]
    node.erase_inputs([len(node.inputs) - 1])
    _complete(node)
    row = resolve(node)
    name = "" if row is None else _name(row)
    if row is not None and name in IN_TYPE_OF_OUT:
        dtype = next(i for i, argument in enumerate(row.arguments) if argument.name == "dtype")
        if dtype < len(node.inputs) and is_none(node.inputs[dtype]):
            node.replace_input(dtype, Builder.before(node).op("prim::dtype", out, type=INT))
    attributes = {} if name in CONVERTING else {"same_type": True}
    result = node.output
    written = node.graph.create("irc::overwrite_", [out, result], (result.type,), attributes=attributes)
    written.insert_after(node)
    for user in result.users:
        if user is not written:
            user.replace_uses(result, written.output)
    written.output.name = result.name
    result.type = TENSOR  # what was said of it is said of what it becomes


def _complete(node: Node) -> None:
    """Give what makes tensors its options, which it has not if it has ``out``: then one row takes all arguments."""
    for row in schemas(node.kind):
        options = [a for a in row.arguments if a.keyword_only]
        if _name(row) in IN_TYPE_OF_OUT and len(node.inputs) == len(row.arguments) - len(options):
            none = Builder.before(node).constant()
            for _ in options:
                node.append_input(none)
            return


def _name(row: Schema) -> str:
    return f"{row.name}.{row.overload}".removesuffix(".")
