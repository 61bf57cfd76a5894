"""Arguments of operators that random ones hardly ever fit."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import torch

_rand = torch.rand


def _conv(n: int) -> Callable[[], list[Any]]:
    return lambda: [_rand(1, 2, *[4] * n), _rand(2, 2, *[1] * n), _rand(2), [1] * n, [0] * n, [1] * n, 1]


def _conv_padding(n: int) -> Callable[[], list[Any]]:
    return lambda: [_rand(1, 2, *[4] * n), _rand(2, 2, *[1] * n), _rand(2), [1] * n, "same", [1] * n, 1]


def _conv_transpose(n: int) -> Callable[[], list[Any]]:
    return lambda: [_rand(1, 2, *[4] * n), _rand(2, 2, *[1] * n), _rand(2), [1] * n, [0] * n, [0] * n, 1, [1] * n]


def _convolution(*more: Any) -> Callable[[], list[Any]]:
    x, w = (1, 2, 4, 4), (2, 2, 1, 1)
    return lambda: [_rand(x), _rand(w), _rand(2), [1, 1], [0, 0], [1, 1], False, [0, 0], 1, *more]


def _rnn(gates: int, packed: bool, pair: bool = False) -> Callable[[], list[Any]]:
    def arguments() -> list[Any]:
        state = _rand(1, 2, 3)
        data = [_rand(4, 3), torch.tensor([2, 2])] if packed else [_rand(2, 2, 3)]
        params = [_rand(gates * 3, 3), _rand(gates * 3, 3), _rand(gates * 3), _rand(gates * 3)]
        switches = [True, 1, 0.0, False, False, *([] if packed else [False])]
        return [*data, [state, state.clone()] if pair else state, params, *switches]

    return arguments


def _cell(gates: int, pair: bool) -> Callable[[], list[Any]]:
    def arguments() -> list[Any]:
        state = _rand(2, 3)
        weights = [_rand(gates * 3, 3), _rand(gates * 3, 3), _rand(gates * 3), _rand(gates * 3)]
        return [_rand(2, 3), [state, state.clone()] if pair else state, *weights]

    return arguments


def _bag(*more: Any) -> Callable[[], list[Any]]:
    return lambda: [_rand(4, 3), torch.tensor([0, 1, 2]), torch.tensor([0, 2]), False, 0, False, None, False, *more]


def _attention() -> Callable[[], list[Any]]:
    settings = cycle([(None, True), (None, False), (_rand(2, 4, 3, 5), True), (_rand(2, 4, 3, 5) > 0.5, False)])

    def arguments() -> list[Any]:
        mask, shares = next(settings)
        heads = 2 if shares else 4
        operands = [_rand(2, 4, 3, 6), _rand(2, heads, 5, 6), _rand(2, heads, 5, 7)]
        return [*operands, mask, 0.0, False, None, shares]

    return arguments


def _normalise(n: int) -> Callable[[], list[Any]]:
    training = cycle([True, False])
    return lambda: [_rand(n, 2, 4), _rand(2), _rand(2), _rand(2), _rand(2), next(training), 0.1, 1e-5, False]


def _diff() -> Callable[[], list[Any]]:
    """Of an empty tensor, the difference is that tensor itself."""
    sizes, orders = cycle([(2, 3), (0, 3), (3, 4), (2, 0), (3, 0)]), cycle([1, 0, 2, 1])
    return lambda: [_rand(next(sizes)), next(orders), -1, None, None]


def _to(*device: Any) -> Callable[[], list[Any]]:
    """To the same element type, or to another: types are integers here."""
    dtypes = cycle([None, 6, 7])
    return lambda: [_rand(2, 3), *device, next(dtypes), False, False]


def recipes() -> dict[str, Callable[[], list[Any]]]:
    """What makes arguments, by operator and overload.

    Some take turns: whoever asks begins with the first, whatever others have asked before.
    """
    return {
        **{f"aten::conv{n}d": _conv(n) for n in (1, 2, 3)},
        **{f"aten::conv{n}d.padding": _conv_padding(n) for n in (1, 2, 3)},
        "aten::conv_transpose1d": _conv_transpose(1),
        "aten::conv_transpose2d.input": _conv_transpose(2),
        "aten::conv_transpose3d.input": _conv_transpose(3),
        "aten::convolution": _convolution(),
        "aten::_convolution": _convolution(False, False, False, False),
        "aten::_convolution.deprecated": _convolution(False, False, False),
        "aten::batch_norm": _normalise(2),
        "aten::instance_norm": _normalise(1),
        "aten::_weight_norm": lambda: [_rand(3, 4), _rand(3, 1), 0],  # PyTorch dies of operands that do not fit
        "aten::diff": _diff(),
        "aten::narrow.Tensor": lambda: [_rand(4), 0, torch.tensor(1), 2],
        "aten::to.prim_Device": _to(torch.device("cpu")),
        "aten::to.prim_dtype": _to(),
        "aten::view_as_complex": lambda: [_rand(3, 2)],
        "aten::view_as_complex_copy": lambda: [_rand(3, 2)],
        "aten::upsample_nearest1d": lambda: [_rand(1, 2, 4), [4], None],
        "aten::upsample_nearest2d": lambda: [_rand(1, 2, 4, 4), [4, 4], None, None],
        "aten::upsample_nearest2d.vec": lambda: [_rand(1, 2, 4, 4), [4, 4], None],
        "aten::upsample_nearest3d": lambda: [_rand(1, 2, 4, 4, 4), [4, 4, 4], None, None, None],
        "aten::upsample_nearest3d.vec": lambda: [_rand(1, 2, 4, 4, 4), [4, 4, 4], None],
        "aten::_upsample_nearest_exact3d": lambda: [_rand(1, 2, 4, 4, 4), [4, 4, 4], None, None, None],
        "aten::_upsample_nearest_exact3d.vec": lambda: [_rand(1, 2, 4, 4, 4), [4, 4, 4], None],
        "aten::_native_multi_head_attention": lambda: (
            [*[_rand(2, 3, 4)] * 3, 4, 2, _rand(12, 4), _rand(12), _rand(4, 4), _rand(4), None, True, True, None]
        ),
        "aten::upsample_bilinear2d": lambda: [_rand(1, 2, 4, 4), [4, 4], False, None, None],
        "aten::upsample_bilinear2d.vec": lambda: [_rand(1, 2, 4, 4), [4, 4], False, None],
        **dict.fromkeys(  # of scales that the sizes do not have, PyTorch gives memory that nothing was written to
            [f"aten::_upsample_{mode}2d_aa" for mode in ("bilinear", "bicubic", "lanczos")],
            lambda: [_rand(1, 2, 4, 4), [4, 4], False, None, None],
        ),
        "aten::upsample_trilinear3d": lambda: [_rand(1, 2, 4, 4, 4), [4, 4, 4], False, None, None, None],
        "aten::upsample_trilinear3d.vec": lambda: [_rand(1, 2, 4, 4, 4), [4, 4, 4], False, None],
        **dict.fromkeys(
            ("aten::grid_sampler", "aten::grid_sampler_2d"), lambda: [_rand(1, 2, 4, 4), _rand(1, 4, 4, 2), 0, 0, True]
        ),
        "aten::grid_sampler_3d": lambda: [_rand(1, 2, 3, 3, 3), _rand(1, 2, 3, 3, 3), 0, 0, True],
        **{f"aten::{name}_pad3d": lambda: [_rand(2, 3, 4, 3), [1, 0] * 3] for name in ("reflection", "replication")},
        "aten::affine_grid_generator": lambda: [_rand(1, 2, 3), [1, 2, 4, 4], True],
        "aten::fake_quantize_per_tensor_affine": lambda: [_rand(2, 3), 0.1, 0, 0, 255],
        "aten::fake_quantize_per_tensor_affine.tensor_qparams": lambda: (
            [_rand(2, 3), _rand(1), torch.zeros(1, dtype=torch.int32), 0, 255]
        ),
        "aten::fake_quantize_per_channel_affine": lambda: (
            [_rand(2, 3), _rand(3), torch.zeros(3, dtype=torch.int32), 1, 0, 255]
        ),
        "aten::polygamma": lambda: [1, _rand(2, 3)],
        "aten::polygamma_": lambda: [_rand(2, 3), 1],
        "aten::istft": lambda: (
            [torch.randn(5, 4, dtype=torch.complex64), 8, 2, 8, None, True, False, None, None, False]
        ),
        "aten::_pack_padded_sequence": lambda: [_rand(3, 2), torch.tensor([3, 1]), False],
        "aten::_pad_packed_sequence": lambda: [_rand(4), torch.tensor([2, 1, 1]), False, 0.0, -1],
        "aten::segment_reduce": lambda: [_rand(4), "sum", torch.tensor([3, 1]), None, None, 0, False, None],
        **dict.fromkeys(
            ("aten::index_reduce", "aten::index_reduce_"),
            lambda: [_rand(3, 3), 0, torch.tensor([0, 2]), _rand(2, 3), "mean", True],
        ),
        "aten::embedding_renorm_": lambda: [_rand(4, 3), torch.tensor([0, 2]), 0.1, 2.0],
        "aten::multilabel_margin_loss": lambda: [_rand(2, 3), torch.tensor([[0, -1, 1], [2, 1, -1]]), 1],
        "aten::embedding_bag": _bag(),
        "aten::multi_margin_loss": lambda: [_rand(2, 3), torch.tensor([0, 1]), 1, 1, None, 1],
        "aten::ctc_loss.Tensor": lambda: (
            [_rand(4, 1, 3), torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2]), 0, 1, False]
        ),
        "aten::embedding_bag.padding_idx": _bag(None),
        "aten::lstm.data": _rnn(4, packed=True, pair=True),
        "aten::lstm.input": _rnn(4, packed=False, pair=True),
        "aten::gru.data": _rnn(3, packed=True),
        "aten::gru.input": _rnn(3, packed=False),
        "aten::rnn_tanh.data": _rnn(1, packed=True),
        "aten::rnn_tanh.input": _rnn(1, packed=False),
        "aten::rnn_relu.data": _rnn(1, packed=True),
        "aten::rnn_relu.input": _rnn(1, packed=False),
        "aten::lstm_cell": _cell(4, pair=True),
        "aten::gru_cell": _cell(3, pair=False),
        "aten::bilinear": lambda: [_rand(2, 3), _rand(2, 3), _rand(4, 3, 3), _rand(4)],
        "aten::scaled_dot_product_attention": _attention(),
        "aten::col2im": lambda: [_rand(1, 4, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]],
        **dict.fromkeys(("aten::addbmm", "aten::addbmm_"), lambda: [_rand(3, 3), _rand(2, 3, 3), _rand(2, 3, 3), 1, 1]),
        **dict.fromkeys(("aten::addmv", "aten::addmv_"), lambda: [_rand(3), _rand(3, 3), _rand(3), 1, 1]),
        "aten::addr_": lambda: [_rand(2, 3), _rand(2), _rand(3), 1, 1],
        "aten::float_power_.Scalar": lambda: [_rand(2, 3).double(), 2],
        "aten::float_power_.Tensor": lambda: [_rand(2, 3).double(), _rand(3)],
        "aten::index_add_": lambda: [_rand(3, 3), 0, torch.tensor([0, 2]), _rand(2, 3), 1],
        "aten::index.list_Tensor": lambda: [[torch.tensor(1)], torch.tensor(1)],
        "aten::remove.Tensor": lambda: [[torch.tensor(1)], torch.tensor(1)],
    }
