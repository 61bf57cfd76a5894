"""Steps that append ``onnx`` operators, their in-place variants among them."""

import numpy as np

from irc.ir import Value
from tests.programs.kinds import BOOL, FLOAT, LONG, Tens, ir_type
from tests.programs.maker import Maker, broadcast, broadcasts_to, small
from tests.programs.torch_steps import Step

UNARY = ("Relu", "Neg", "Abs", "Floor", "Sign")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")


def _is_float(k: Tens) -> bool:
    return k.dtype is FLOAT


# -- pointwise -----------------------------------------------------------------


def unary(m: Maker) -> None:
    x = m.tensor(_is_float)
    k = m.kind(x)
    if m.below(3):
        m.emit(f"onnx::{m.pick(UNARY)}", [x], Tens(FLOAT, k.shape))
    else:
        m.emit("onnx::LeakyRelu", [x], Tens(FLOAT, k.shape), alpha=0.5)


def binary(m: Maker) -> None:
    x = m.numeric()
    k = m.kind(x)
    y = m.tensor(lambda o: o.dtype is k.dtype and broadcast(o.shape, k.shape) is not None)
    m.emit(f"onnx::{m.pick(BINARY)}", [x, y], Tens(k.dtype, broadcast(k.shape, m.kind(y).shape)))


def with_constant(m: Maker) -> None:
    """With a bias of one number a channel, a splat, or the number that changes nothing."""
    x = m.tensor(_is_float)
    k = m.kind(x)
    shape = m.pick([(), (1,), k.shape, k.shape[-1:]])
    values = m.array(shape) if m.flip() else np.full(shape, m.between(0, 1), np.float32)
    inputs = [x, m.tensor_constant(values, weight=m.flip())]
    kind = m.pick(["onnx::Mul", "onnx::Add", "onnx::Sub", "onnx::PRelu"])
    if kind in ("onnx::Mul", "onnx::Add") and m.flip():
        inputs.reverse()
    m.emit(kind, inputs, Tens(FLOAT, broadcast(shape, k.shape)))


def clip(m: Maker) -> None:
    x = m.tensor(_is_float)
    low, high = (m.tensor_constant(np.float32(v)) for v in (-m.between(1, 2), m.between(1, 2)))
    m.emit("onnx::Clip", [x, *m.pick([[low, high], [low], [m.number(), high], []])], Tens(FLOAT, m.kind(x).shape))


def several(m: Maker) -> None:
    x = m.tensor(_is_float)
    k = m.kind(x)
    others = [m.like(Tens(FLOAT, k.shape)) for _ in range(m.below(3))]
    m.emit(f"onnx::{m.pick(['Sum', 'Max', 'Min'])}", [x, *others], Tens(FLOAT, k.shape))


def compare(m: Maker) -> None:
    x = m.numeric()
    k = m.kind(x)
    m.emit(f"onnx::{m.pick(['Greater', 'Less', 'Equal'])}", [x, m.like(k, broadcast=True)], Tens(BOOL, k.shape))


def logic(m: Maker) -> None:
    x = m.tensor(lambda k: k.dtype is BOOL)
    k = m.kind(x)
    if m.flip():
        m.emit("onnx::Not", [x], Tens(BOOL, k.shape))
    else:
        m.emit(m.pick(["onnx::And", "onnx::Or", "onnx::Xor"]), [x, m.like(k, broadcast=True)], Tens(BOOL, k.shape))


def where(m: Maker) -> None:
    x = m.numeric()
    k = m.kind(x)
    y = m.like(k, broadcast=True)
    condition = m.tensor(lambda o: o.dtype is BOOL and broadcasts_to(o.shape, k.shape)) if m.below(3) else None
    if condition is None or not broadcasts_to(m.kind(condition).shape, k.shape):
        condition = m.tensor_constant(np.full(k.shape, m.flip()))
    m.emit("onnx::Where", [condition, *m.pick([[x, y], [y, x]])], Tens(k.dtype, k.shape))


def cast(m: Maker) -> None:
    x = m.tensor()
    to = m.pick([FLOAT, LONG, BOOL])
    m.emit("onnx::Cast", [x], Tens(to, m.kind(x).shape), to=to.onnx)


def constant(m: Maker) -> None:
    """A constant that is held, handed on and returned as any tensor."""
    shape = m.pick([(2, 3), (3,), (), (2, 2)])
    values = m.array(shape) if m.flip() else np.full(shape, m.between(-2, 2), np.float32)
    m.scope.append(m.tensor_constant(values, weight=m.flip()))


def random(m: Maker) -> None:
    """Random integers, the same in every run, sometimes made so in place."""
    x = m.tensor(_is_float)
    k = m.kind(x)
    drawn = m.builder.op(
        "onnx::RandomNormalLike", x, type=ir_type(k, m.trusted), attributes={"seed": float(m.below(4))}
    )
    m.emit(m.pick(["onnx::Floor", "onnx::Floor_"]), [drawn], Tens(FLOAT, k.shape))


# -- in place ------------------------------------------------------------------


def unary_(m: Maker) -> None:
    x = m.tensor(lambda k: _is_float(k) and not k.frozen)
    m.emit(f"onnx::{m.pick(UNARY)}_", [x], m.kind(x))


def binary_(m: Maker) -> None:
    x = m.tensor(lambda k: k.dtype is not BOOL and not k.frozen)
    m.emit(f"onnx::{m.pick(BINARY)}_", [x, m.like(m.kind(x), broadcast=True)], m.kind(x))


# -- views ---------------------------------------------------------------------


def _view(m: Maker, kind: str, x: Value, inputs: list[Value], shape, frozen: bool = False, **attributes) -> None:
    k = m.kind(x)
    m.emit(f"onnx::{kind}", [x, *inputs], Tens(k.dtype, tuple(shape), k.frozen or frozen), **attributes)


def identity(m: Maker) -> None:
    x = m.tensor()
    if m.below(3):
        _view(m, "Identity", x, [], m.kind(x).shape)
    elif _is_float(m.kind(x)):
        _view(m, "Dropout", x, [], m.kind(x).shape)


def transpose(m: Maker) -> None:
    x = m.tensor()
    shape = m.kind(x).shape
    if m.flip():
        _view(m, "Transpose", x, [], shape[::-1])
    else:
        perm = m.order(len(shape))
        _view(m, "Transpose", x, [], [shape[i] for i in perm], perm=perm)


def reshape(m: Maker) -> None:
    x = m.tensor(lambda k: all(k.shape))
    shape = m.kind(x).shape
    n = int(np.prod(shape))
    new = list(m.pick([s for s in (shape, (n,), (1, n), (2, n // 2), (n // 3, 3), (n, 1, 1)) if np.prod(s) == n]))
    given = [-1 if i == 0 and m.flip() else d for i, d in enumerate(new)]
    if len(new) > 1 and len(shape) > 1 and new[-1] == shape[len(new) - 1 : len(new)] and m.flip():
        given[-1] = 0
    _view(m, "Reshape", x, [m.shape_constant(given)], new)


def flatten(m: Maker) -> None:
    x = m.tensor()
    shape = m.kind(x).shape
    axis = m.below(len(shape) + 1)
    _view(m, "Flatten", x, [], (int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))), axis=axis)


def squeeze(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank <= 3)
    shape = list(m.kind(x).shape)
    if 1 in shape and m.flip():
        axis = shape.index(1)
        _view(m, "Squeeze", x, [m.shape_constant([axis - len(shape)])], shape[:axis] + shape[axis + 1 :])
    elif shape and m.flip():
        _view(m, "Squeeze", x, [], [n for n in shape if n != 1])
    else:
        axis = m.below(len(shape) + 1)
        _view(m, "Unsqueeze", x, [m.shape_constant([axis])], [*shape[:axis], 1, *shape[axis:]])


def slice_(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 1 and all(k.shape))
    shape = list(m.kind(x).shape)
    axis = m.below(len(shape))
    n = shape[axis]
    whole = [(0, n, 1), (0, 1 << 40, 1), (-n, 1 << 62, 1), (-1, -(1 << 40), -1)]
    start, end, step = m.pick(whole) if m.flip() else (m.below(n), m.between(-n, n + 1), m.between(1, 2))
    shape[axis] = len(range(*slice(start, None if step < 0 else end, step).indices(n)))
    if shape[axis]:  # what lies backwards has too few elements behind its first one for views by strides
        bounds = [m.shape_constant([v]) for v in (start, end, axis, step)]
        _view(m, "Slice", x, bounds, shape, frozen=step < 0)


def expand(m: Maker) -> None:
    x = m.tensor()
    shape = m.kind(x).shape
    sizes = [m.between(1, 2) for _ in range(m.below(2))] + [n if n != 1 else m.pick([1, 2]) for n in shape]
    if small(sizes):
        given = [1 if n == d and m.flip() else n for n, d in zip(sizes, (*[1] * (len(sizes) - len(shape)), *shape))]
        _view(m, "Expand", x, [m.shape_constant(given)], sizes, frozen=True)


def split(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 1 and all(k.shape))
    k = m.kind(x)
    axis = m.below(k.rank)
    n = k.shape[axis]
    parts = [n] if n == 1 or not m.below(4) else [1, n - 1]
    results = [Tens(k.dtype, (*k.shape[:axis], p, *k.shape[axis + 1 :]), k.frozen) for p in parts]
    m.emit_many("onnx::Split", [x, m.shape_constant(parts)], results, axis=axis)


STEPS: dict[str, tuple[Step, ...]] = {
    "onnx": (unary, unary, binary, binary, with_constant, with_constant, clip, several),
    "onnx logic": (compare, logic, where, cast),
    "onnx views": (identity, transpose, reshape, flatten, squeeze, slice_, expand, split),
    "onnx writes": (unary_, binary_),
    "constants": (constant, random),
}
