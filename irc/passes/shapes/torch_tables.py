"""Types of TorchScript's less common operators: tables where a few words suffice, then rules for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.ir import types
from irc.ir.polynomials import product
from irc.ir.types import Dim, DType, ListType, OptionalType, Shape, TensorType, Type
from irc.passes.shapes.torch_call import UNKNOWN, Call, torch_rule
from irc.passes.shapes.torch_nn import reduced
from irc.passes.shapes.torch_pointwise import element_type, together
from irc.passes.shapes.torch_types import COMPLEX, as_float, if_float

_PARTS = {**{whole: part for part, whole in COMPLEX.items()}, DType.FLOAT: DType.FLOAT, DType.DOUBLE: DType.DOUBLE}

# -- element types by the first operand ----------------------------------------


def _float_of(x: TensorType) -> DType | None:
    return if_float(x.dtype)


def _complex_of(x: TensorType) -> DType | None:
    """The element type of a spectrum: integers are treated as float32."""
    dtype = as_float(x.dtype)
    return dtype if dtype in _PARTS and dtype not in COMPLEX else COMPLEX.get(dtype) if dtype else None


_KEPT: dict[Callable[[TensorType], DType | None], str] = {
    lambda x: x.dtype: """
        _conj conj conj_physical alpha_dropout feature_alpha_dropout cpu cuda data lift_fresh
        resolve_conj resolve_neg channel_shuffle fft_fftshift fft_ifftshift flip fliplr flipud roll tril triu
        renorm diagonal_scatter slice_scatter select_scatter scatter scatter_add scatter_reduce index_add index_copy
        index_fill index_put index_reduce put as_strided_scatter fill
        linalg_matrix_exp linalg_inv linalg_cholesky cholesky linalg_matrix_power
        """,
    _float_of: """
        rrelu fake_quantize_per_tensor_affine fake_quantize_per_channel_affine _softmax _log_softmax bernoulli poisson
        """,
    lambda x: DType.INT64: "argsort",
}
"""Element types of results that have the shape of the first operand."""


def _same_shape(dtype_of: Callable[[TensorType], DType | None]) -> Callable[[Call], Type]:
    def rule(c: Call) -> Type:
        x, given = c.tensor(0), c.arg("dtype")
        return TensorType(dtype_of(x) if given is None else element_type(given), x.shape)

    return rule


for _dtype_of, _names in _KEPT.items():
    torch_rule(*_names.split())(_same_shape(_dtype_of))


@torch_rule("polygamma")
def polygamma(c: Call) -> Type:
    return TensorType(as_float(c.tensor("self").dtype), c.tensor("self").shape)


@torch_rule("sort", "frexp")
def with_others(c: Call) -> tuple[Type, ...]:
    if c.is_number() or len(c.node.outputs) != 2:
        return ()
    x = c.tensor(0)
    return x, TensorType(DType.INT64 if c.schema.name == "aten::sort" else DType.INT32, x.shape)


# -- several operands ------------------------------------------------------------


@torch_rule("isclose")
def is_close(c: Call) -> Type:
    return TensorType(DType.BOOL, c.broadcast([c.tensor("self").shape, c.tensor("other").shape]))


# -- reductions ------------------------------------------------------------------


@torch_rule("logsumexp")
def logsumexp(c: Call) -> Type:
    return TensorType(as_float(c.tensor(0).dtype), reduced(c))


@torch_rule("any", "all")
def some(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    x = c.tensor(0)
    kept = None if x.dtype is None else x.dtype if x.dtype is DType.UINT8 else DType.BOOL
    is_whole = c.has("dim") and c.dims("dim") == []  # of no dimensions, each element by itself
    return TensorType(kept, None if is_whole else reduced(c))


@torch_rule("count_nonzero", "argmax", "argmin")
def reduced_to_int(c: Call) -> Type:
    return TensorType(DType.INT64, reduced(c))


@torch_rule("median", "nanmedian", "mode", "kthvalue")
def chosen(c: Call) -> Type | tuple[Type, ...]:
    x = c.tensor(0)
    if len(c.node.outputs) == 1:
        return TensorType(x.dtype, ())
    shape = reduced(c) if isinstance(c.arg("dim"), int) else None
    return TensorType(x.dtype, shape), TensorType(DType.INT64, shape)


@torch_rule("std_mean", "var_mean", "aminmax")
def two(c: Call) -> tuple[Type, ...]:
    found = TensorType(if_float(c.tensor(0).dtype), reduced(c))
    return found, found


@torch_rule("topk")
def topk(c: Call) -> tuple[Type, ...]:
    x, k = c.tensor(0), c.number("k")
    at = None if not x.shape else c.axis(c.arg("dim"), len(x.shape))
    shape = None if x.shape is None or at is None else _with(x.shape, at, k)
    return TensorType(x.dtype, shape), TensorType(DType.INT64, shape)


def _with(shape: Shape, at: int, *sizes: Dim) -> Shape:
    """``shape`` with ``sizes`` in place of the size of axis ``at``."""
    return (*shape[:at], *sizes, *shape[at + 1 :])


_LOSSES = (
    "mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits "
    "soft_margin_loss hinge_embedding_loss poisson_nll_loss cross_entropy_loss nll_loss nll_loss_nd"
).split()


@torch_rule(*_LOSSES)
def loss(c: Call) -> Type:
    """A mean or sum has no dimensions."""
    return TensorType(None, () if c.arg("reduction") in (1, 2) else None)


# -- places ----------------------------------------------------------------------


@torch_rule("gather", "take")
def gather(c: Call) -> Type:
    return TensorType(c.tensor(0).dtype, c.tensor("index").shape)


@torch_rule("index_select")
def index_select(c: Call) -> Type:
    x, index = c.tensor(0), c.tensor("index").shape
    at = None if not x.shape else c.axis(c.arg("dim"), len(x.shape))
    if not x.shape or at is None or index is None:
        return TensorType(x.dtype, x.shape if x.shape == () else None)
    return TensorType(x.dtype, _with(x.shape, at, product(index)))


@torch_rule("nonzero", "argwhere")
def nonzero(c: Call) -> Type:
    x = c.tensor(0).shape
    return TensorType(DType.INT64, None if x is None else (None, len(x)))


@torch_rule("masked_select")
def masked_select(c: Call) -> Type:
    return TensorType(c.tensor(0).dtype, (None,))


@torch_rule("index")
def index(c: Call) -> Type:
    """Indexing with a single tensor of integers among slices; the size of a result of masks is unknown."""
    x, places = c.tensor(0), c.value("indices")
    node = places.made_by("prim::ListConstruct") if places is not None and c.types.is_fixed(places) else None
    if x.shape is None or node is None:
        return TensorType(x.dtype)
    given = [(i, v.type) for i, v in enumerate(node.inputs) if v.type != types.NONE]
    tensors = [(i, t.elem if isinstance(t, OptionalType) else t) for i, t in given]
    if len(tensors) != 1 or tensors[0][0] >= len(x.shape):
        return TensorType(x.dtype)
    at, found = tensors[0]
    if found.dtype not in (DType.INT64, DType.INT32) or found.shape is None:
        return TensorType(x.dtype)
    return TensorType(x.dtype, _with(x.shape, at, *found.shape))


@torch_rule("one_hot")
def one_hot(c: Call) -> Type:
    x, classes = c.tensor(0).shape, c.number("num_classes")
    size = classes if classes is not None and classes > 0 else None
    return TensorType(DType.INT64, None if x is None else (*x, size))


# -- shapes ----------------------------------------------------------------------


def _turned(c: Call) -> Type:
    """A result with the last two axes exchanged."""
    x = c.tensor(0)
    if x.shape is None or len(x.shape) < 2:
        return TensorType(x.dtype)
    return TensorType(x.dtype, (*x.shape[:-2], x.shape[-1], x.shape[-2]))


torch_rule("mT", "mH", "matrix_H")(_turned)


@torch_rule("ravel")
def ravel(c: Call) -> Type:
    x = c.tensor(0)
    return TensorType(x.dtype, (None if x.shape is None else product(x.shape),))


@torch_rule("repeat", "tile")
def repeat(c: Call) -> Type:
    x, times = c.tensor(0), c.dims("repeats") or c.dims("dims")
    if x.shape is None or not times:
        return TensorType(x.dtype)
    rank = max(len(times), len(x.shape))
    sizes = (1,) * (rank - len(x.shape)) + x.shape
    factors = [1] * (rank - len(times)) + times
    return TensorType(x.dtype, tuple(product((n, m)) for n, m in zip(sizes, factors, strict=True)))


@torch_rule("pad", "constant_pad_nd", *(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def pad(c: Call) -> Type:
    x, widths = c.tensor(0), c.dims("pad") or c.dims("padding")
    if x.shape is None or not widths or len(widths) % 2 or len(widths) > 2 * len(x.shape):
        return TensorType(x.dtype, None if x.shape is None else (None,) * len(x.shape))
    sizes = list(x.shape)
    for i in range(len(widths) // 2):
        parts = [sizes[-1 - i], widths[2 * i], widths[2 * i + 1]]
        whole = [p for p in parts if isinstance(p, int)]
        sizes[-1 - i] = sum(whole) if len(whole) == 3 else None
    return TensorType(x.dtype, tuple(sizes))


@torch_rule("broadcast_to")
def broadcast_to(c: Call) -> Type:
    sizes = c.dims("size")
    known = None if sizes is None else tuple(None if n == -1 else n for n in sizes)
    return TensorType(c.tensor(0).dtype, known)


@torch_rule("view_as_real", "view_as_complex", "real", "imag")
def parts(c: Call) -> Type:
    x, name = c.tensor(0), c.schema.name
    if name == "aten::view_as_complex":
        return TensorType(None if x.dtype is None else COMPLEX.get(x.dtype), None if x.shape is None else x.shape[:-1])
    shape = (*x.shape, 2) if name == "aten::view_as_real" and x.shape is not None else x.shape
    return TensorType(None if x.dtype is None else _PARTS.get(x.dtype), shape)


@torch_rule("complex", "polar")
def of_parts(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    found = together(c, [v.type for v in c.node.inputs])
    return TensorType(None if found.dtype is None else COMPLEX.get(found.dtype), found.shape)


@torch_rule(*(f"fft_{way}{dims}" for way in ("fft", "ifft") for dims in ("", "2", "n")), "fft_rfft")
def spectrum(c: Call) -> Type:
    x, dtype = c.tensor(0), _complex_of(c.tensor(0))
    if x.shape is None or c.has("n") or c.has("s"):
        return TensorType(dtype, None if x.shape is None else (None,) * len(x.shape))
    if c.schema.name != "aten::fft_rfft":
        return TensorType(dtype, x.shape)
    at = c.axis(c.arg("dim"), len(x.shape))
    if at is None:
        return TensorType(dtype, (None,) * len(x.shape))
    size = x.shape[at]
    return TensorType(dtype, _with(x.shape, at, size // 2 + 1 if isinstance(size, int) else None))


@torch_rule("outer")
def outer(c: Call) -> Type:
    a, b = c.tensor(0), c.tensor(1)
    return TensorType(None, (*a.shape, *b.shape) if a.shape is not None and b.shape is not None else None)


@torch_rule("glu")
def glu(c: Call) -> Type:
    x = c.tensor(0)
    at = None if not x.shape else c.axis(c.arg("dim"), len(x.shape))
    if x.shape is None or at is None:
        return TensorType(x.dtype)
    size = x.shape[at]
    return TensorType(x.dtype, _with(x.shape, at, size // 2 if isinstance(size, int) else None))


@torch_rule("pixel_shuffle", "pixel_unshuffle")
def pixels(c: Call) -> Type:
    x = c.tensor(0)
    up = c.schema.name == "aten::pixel_shuffle"
    r = c.arg("upscale_factor" if up else "downscale_factor")
    if x.shape is None or len(x.shape) < 3 or not isinstance(r, int) or r < 1:
        return TensorType(x.dtype)
    *rest, channels, height, width = x.shape
    sizes: list[Dim] = [None] * 3
    if isinstance(channels, int):
        sizes[0] = channels // (r * r) if up else channels * r * r
    for i, n in ((1, height), (2, width)):
        sizes[i] = None if not isinstance(n, int) else n * r if up else n // r
    return TensorType(x.dtype, (*rest, *sizes))


# -- layers ----------------------------------------------------------------------


@torch_rule("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(c: Call) -> Type:
    x, grid = c.tensor(0), c.tensor(1)
    if x.shape is None or grid.shape is None or len(x.shape) != len(grid.shape) or len(x.shape) < 4:
        return TensorType(x.dtype)
    return TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:-1]))


@torch_rule("scaled_dot_product_attention")
def attention(c: Call) -> Type:
    q, k, v = (c.tensor(name) for name in ("query", "key", "value"))
    shares = c.arg("enable_gqa", False)  # whether heads of the query share those of key and value
    if q.shape is None or k.shape is None or v.shape is None or shares is UNKNOWN:
        return TensorType(q.dtype)
    others = ((*x[:-3], 1) if shares else x[:-2] for x in (k.shape, v.shape))
    batch = c.broadcast([q.shape[:-2], *others])  # which a mask does not change
    return TensorType(q.dtype, None if batch is None else (*batch, q.shape[-2], v.shape[-1]))


@torch_rule("native_layer_norm", "native_group_norm")
def native_norm(c: Call) -> Type:
    x = c.tensor(0)
    return TensorType(if_float(x.dtype), x.shape)


@torch_rule("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(c: Call) -> tuple[Type, ...]:
    """The last axis of the output is that of the states, twice if bidirectional; the last states are as the first."""
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


@torch_rule("gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "lstm_cell")
def cell(c: Call) -> tuple[Type, ...]:
    states = c.elements("hx") if isinstance(c.node.inputs[1].type, ListType) else [c.tensor("hx")]
    return tuple(states or ())


# -- made ------------------------------------------------------------------------


@torch_rule("new_zeros", "new_ones", "new_empty", "new_full")
def made(c: Call) -> Type:
    sizes, given = c.dims("size"), c.arg("dtype")
    dtype = c.tensor(0).dtype if given is None else element_type(given)
    return TensorType(dtype, None if sizes is None else tuple(sizes))


@torch_rule("linspace", "logspace")
def evenly(c: Call) -> Type:
    given = c.arg("dtype")
    dtype = DType.FLOAT if given is None and _is_real(c) else element_type(given)
    return TensorType(dtype, (c.number("steps"),))


def _is_real(c: Call) -> bool:
    return all(v.type in (types.INT, types.FLOAT) for v in c.node.inputs[:2])


@torch_rule("eye", "randint", "randperm")
def filled(c: Call) -> Type:
    given: Any = c.arg("dtype")
    if c.schema.name == "aten::eye":
        n = c.arg("n")
        m = c.arg("m", n)
        sizes: list[Any] | None = [n, m]
    else:
        sizes = [c.arg("n")] if c.schema.name == "aten::randperm" else c.dims("size")
    default = {"aten::eye": DType.FLOAT, "aten::randperm": DType.INT64}.get(c.schema.name)
    shape = None if sizes is None else tuple(n if isinstance(n, int | str) else None for n in sizes)
    return TensorType(default if given is None else element_type(given), shape)
