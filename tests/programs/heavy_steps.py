"""Steps that append ``onnx`` operators on whole tensors: products, convolutions, reductions, shape arithmetic."""

import numpy as np

from irc.ir import Tensor, Value
from tests.programs.kinds import BOOL, FLOAT, LONG, Tens
from tests.programs.maker import Maker, broadcasts_to, small
from tests.programs.torch_steps import Step


def _is_float(k: Tens) -> bool:
    return k.dtype is FLOAT


# -- products ------------------------------------------------------------------


def matmul(m: Maker) -> None:
    x = m.tensor(lambda k: _is_float(k) and k.rank >= 2 and all(k.shape))
    shape = m.kind(x).shape
    y = _operand(m, (shape[-1], m.between(1, 3)))
    m.emit("onnx::MatMul", [x, y], Tens(FLOAT, (*shape[:-1], m.kind(y).shape[1])))


def gemm(m: Maker) -> None:
    x = m.tensor(lambda k: _is_float(k) and k.rank == 2 and all(k.shape))
    (rows, inner), out = m.kind(x).shape, m.between(1, 3)
    turned = m.flip()
    y = _operand(m, (out, inner) if turned else (inner, out))
    bias = [m.tensor_constant(m.array((out,)), weight=True)] if m.flip() else []
    m.emit("onnx::Gemm", [x, y, *bias], Tens(FLOAT, (rows, out)), transB=int(turned), alpha=1.0, beta=1.0)


def _operand(m: Maker, shape: tuple[int, ...]) -> Value:
    return m.like(Tens(FLOAT, shape)) if m.flip() else m.tensor_constant(m.array(shape), weight=True)


def conv(m: Maker) -> None:
    x = m.tensor(lambda k: _is_float(k) and k.rank == 4 and all(k.shape))
    n, channels, h, w = m.kind(x).shape
    out, kernel, pad = m.between(1, 2), m.pick([1, 2]), m.below(2)
    size = [h + 2 * pad - kernel + 1, w + 2 * pad - kernel + 1]
    if min(size) < 1 or not small((n, out, *size)):
        return
    weight = m.tensor_constant(m.array((out, channels, kernel, kernel)), weight=True)
    bias = [m.tensor_constant(m.array((out,)), weight=True)] if m.flip() else []
    result = m.emit("onnx::Conv", [x, weight, *bias], Tens(FLOAT, (n, out, *size)), pads=[pad] * 4)
    if m.below(4):
        batch_norm(m, result)


def batch_norm(m: Maker, x: Value | None = None) -> None:
    x = x or m.tensor(lambda k: _is_float(k) and k.rank >= 2)
    channels = m.kind(x).shape[1]
    scale, bias, mean = (m.array((channels,)) for _ in range(3))
    variance = np.float32(m.pick([1, 4, 0.25])) * np.ones(channels, np.float32)
    parameters = [m.tensor_constant(p, weight=True) for p in (scale, bias, mean, variance)]
    m.emit("onnx::BatchNormalization", [x, *parameters], Tens(FLOAT, m.kind(x).shape), epsilon=0.0)


def pool(m: Maker) -> None:
    x = m.tensor(lambda k: _is_float(k) and k.rank == 4 and all(k.shape) and min(k.shape[2:]) >= 2)
    n, c, h, w = m.kind(x).shape
    m.emit("onnx::MaxPool", [x], Tens(FLOAT, (n, c, h - 1, w - 1)), kernel_shape=[2, 2])


# -- along axes ----------------------------------------------------------------


def reduce(m: Maker) -> None:
    x = m.tensor(lambda k: _is_float(k) and all(k.shape))
    shape = m.kind(x).shape
    axes, keep = m.some(range(len(shape))), m.below(2)
    gone = axes or range(len(shape))
    out = [1 if i in gone else n for i, n in enumerate(shape) if keep or i not in gone]
    kind = m.pick(["ReduceSum", "ReduceMax", "ReduceMin"])
    inputs = [m.shape_constant(axes)] if axes else []
    m.emit(f"onnx::{kind}", [x, *inputs], Tens(FLOAT, tuple(out)), keepdims=keep)


def arg_max(m: Maker) -> None:
    x = m.tensor(lambda k: _is_float(k) and k.rank >= 1 and all(k.shape))
    shape = m.kind(x).shape
    axis = m.below(len(shape))
    m.emit("onnx::ArgMax", [x], Tens(LONG, (*shape[:axis], *shape[axis + 1 :])), axis=axis, keepdims=0)


def concat(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 1)
    k = m.kind(x)
    axis = m.below(k.rank)
    parts = [x] if not m.below(4) else [x, *(m.like(k) for _ in range(m.between(1, 2)))]
    if k.dtype is FLOAT:  # some are made for it: they may be made where the result has them
        parts = [m.emit("onnx::Neg", [part], Tens(FLOAT, k.shape)) if m.flip() else part for part in parts]
    shape = tuple(n * len(parts) if i == axis else n for i, n in enumerate(k.shape))
    if shape[axis] and not m.below(4):  # with a dummy, as decoders begin with
        sizes = tuple(0 if i == axis else m.below(3) for i in range(k.rank))
        parts.insert(m.below(len(parts) + 1), m.like(Tens(k.dtype, sizes)))
    if small(shape):
        m.emit("onnx::Concat", parts, Tens(k.dtype, shape), axis=axis - m.below(2) * k.rank)


def pad_or_tile(m: Maker) -> None:
    x = m.tensor(lambda k: _is_float(k) and 1 <= k.rank <= 3)
    shape = m.kind(x).shape
    if m.flip():
        before, after = ([m.below(2) for _ in shape] for _ in range(2))
        out = tuple(a + n + b for a, n, b in zip(before, shape, after))
        inputs, kind = [m.shape_constant([*before, *after])], "onnx::Pad"
    else:
        repeats = [m.between(1, 2) for _ in shape]
        out = tuple(n * r for n, r in zip(shape, repeats))
        inputs, kind = [m.shape_constant(repeats)], "onnx::Tile"
    if small(out):
        m.emit(kind, [x, *inputs], Tens(FLOAT, out))


def gather(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 1 and all(k.shape))
    k = m.kind(x)
    axis = m.below(k.rank)
    n = k.shape[axis]
    indices = m.pick([np.array(m.below(n)), np.array([m.below(n), -1])])
    shape = (*k.shape[:axis], *indices.shape, *k.shape[axis + 1 :])
    if small(shape):
        m.emit("onnx::Gather", [x, m.tensor_constant(indices)], Tens(k.dtype, shape), axis=axis)


def scatter_box(m: Maker) -> None:
    """``x[:, start::step] = y``, with the index of every row, twice sometimes."""
    x = m.tensor(lambda k: k.dtype is not BOOL and k.rank >= 1 and all(k.shape))
    k = m.kind(x)
    rows = list(range(m.below(k.shape[0]), k.shape[0], m.between(1, 2)))
    indices = m.tensor_constant(np.array(rows)[:, None])
    for _ in range(m.between(1, 2)):
        y = m.like(Tens(k.dtype, (len(rows), *k.shape[1:])))
        x = m.emit("onnx::ScatterND", [x, indices, y], Tens(k.dtype, k.shape))


# -- shape arithmetic ----------------------------------------------------------


def shape_of(m: Maker) -> None:
    x = m.tensor()
    m.emit("onnx::Shape", [x], Tens(LONG, (m.kind(x).rank,)))


def count(m: Maker) -> None:
    """A tensor times the sum of another one's sizes."""
    y, x = m.tensor(), m.tensor(_is_float)
    shape = m.emit("onnx::Shape", [y], Tens(LONG, (m.kind(y).rank,)))
    total = m.emit("onnx::ReduceSum", [shape], Tens(LONG, ()), keepdims=0)
    number = m.emit("onnx::Cast", [total], Tens(FLOAT, ()), to=FLOAT.onnx)
    m.emit("onnx::Mul", [x, number], Tens(FLOAT, m.kind(x).shape))


def reshape_by_shape(m: Maker) -> None:
    """``Reshape(x, Concat(Gather(Shape(x), 0), -1))``, as exporters write it."""
    x = m.tensor(lambda k: k.rank >= 1 and all(k.shape))
    k = m.kind(x)
    shape = m.emit("onnx::Shape", [x], Tens(LONG, (k.rank,)))
    first = m.emit("onnx::Gather", [shape, m.shape_constant([0])], Tens(LONG, (1,)), axis=0)
    target = m.emit("onnx::Concat", [first, m.shape_constant([-1])], Tens(LONG, (2,)), axis=0)
    rest = int(np.prod(k.shape[1:]))
    m.emit("onnx::Reshape", [x, target], Tens(k.dtype, (k.shape[0], rest), k.frozen))


def expand_by_shape(m: Maker) -> None:
    """``Expand(x, Where(Equal(s, -1), ConstantOfShape(1), s))``, as exporters write it."""
    y = m.tensor()
    shape = m.kind(y).shape
    x = m.tensor(lambda k: broadcasts_to(k.shape, shape)) if m.flip() else y
    k = m.kind(x)
    wanted = m.emit("onnx::Shape", [y], Tens(LONG, (len(shape),)))
    if m.flip():
        given = m.shape_constant([-1 if m.flip() else n for n in k.shape]) if x is y else wanted
        count = m.emit("onnx::Shape", [given], Tens(LONG, (1,)))
        ones = m.emit(
            "onnx::ConstantOfShape", [count], Tens(LONG, (len(shape),)), value=Tensor.of(np.array([1], np.int64))
        )
        unset = m.emit("onnx::Equal", [given, m.tensor_constant(np.array(-1))], Tens(BOOL, (len(shape),)))
        wanted = m.emit("onnx::Where", [unset, ones, given], Tens(LONG, (len(shape),)))
    m.emit("onnx::Expand", [x, wanted], Tens(k.dtype, shape, frozen=True))


def filled(m: Maker) -> None:
    y = m.tensor()
    shape = m.kind(y).shape
    wanted = m.emit("onnx::Shape", [y], Tens(LONG, (len(shape),)))
    value = Tensor.of(np.array([m.below(3)], np.float32))
    m.emit("onnx::ConstantOfShape", [wanted], Tens(FLOAT, shape), value=value)


STEPS: dict[str, tuple[Step, ...]] = {
    "products": (matmul, gemm, conv, conv, batch_norm, pool),
    "axes": (reduce, arg_max, concat, pad_or_tile, gather, scatter_box),
    "concats": (concat,),
    "shapes": (shape_of, count, reshape_by_shape, expand_by_shape, filled),
}
