"""Steps that append ``aten`` operators: arithmetic, views, writes in place."""

from collections.abc import Callable

from irc.ir.types import TENSOR, ListType
from tests.programs.kinds import BOOL, FLOAT, LONG, Num, Tens
from tests.programs.maker import Maker, broadcast, broadcasts_to, small

Step = Callable[[Maker], object]


def unary(m: Maker) -> None:
    x = m.numeric()
    k = m.kind(x)
    m.emit(m.pick(["aten::relu", "aten::neg", "aten::abs", "aten::clone"]), [x], Tens(k.dtype, k.shape))


def binary(m: Maker) -> None:
    x = m.numeric()
    k = m.kind(x)
    y = m.tensor(lambda o: o.dtype is k.dtype and broadcast(o.shape, k.shape) is not None)
    shape = broadcast(k.shape, m.kind(y).shape)
    more = [m.number(m.between(1, 2))] if m.flip() else []
    name = m.pick(["add", "sub", "mul"])
    m.emit(f"aten::{name}", [x, y, *(more if name != "mul" else [])], Tens(k.dtype, shape))


def with_number(m: Maker) -> None:
    x = m.numeric()
    k = m.kind(x)
    m.emit(m.pick(["aten::add", "aten::sub", "aten::mul"]), [x, an_int(m)], Tens(k.dtype, k.shape))


def an_int(m: Maker):
    """A small Python number, known or not until the program runs."""
    if m.flip():
        found = m.find(lambda k: isinstance(k, Num) and k.low >= -4 and k.high <= 4)
        if found is not None:
            return found
    return m.number(m.between(-2, 2))


def comparison(m: Maker) -> None:
    x = m.numeric()
    k = m.kind(x)
    y = m.like(k, broadcast=True)
    m.emit(m.pick(["aten::gt", "aten::le", "aten::eq"]), [x, y], Tens(BOOL, k.shape))


def size(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank > 0)
    dim = m.below(m.kind(x).rank)
    n = m.kind(x).shape[dim]
    m.emit("aten::size", [x, m.number(dim)], Num(n, n))


def number_arithmetic(m: Maker) -> None:
    a = m.find(lambda k: isinstance(k, Num))
    if a is not None:
        by = m.between(-1, 1)
        k = m.kind(a)
        m.emit("aten::add", [a, m.number(by)], Num(k.low + by, k.high + by))


# -- views ---------------------------------------------------------------------


def _view(m: Maker, kind: str, x, arguments, shape, frozen: bool = False) -> None:
    k = m.kind(x)
    m.emit(kind, [x, *arguments], Tens(k.dtype, tuple(shape), k.frozen or frozen))


def t(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank == 2)
    _view(m, "aten::t", x, [], m.kind(x).shape[::-1])


def transpose(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 2)
    shape = list(m.kind(x).shape)
    a, b = m.below(len(shape)), m.below(len(shape))
    shape[a], shape[b] = shape[b], shape[a]
    _view(m, "aten::transpose", x, [m.number(a), m.number(b - len(shape))], shape)


def permute(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 2)
    order = m.order(m.kind(x).rank)
    _view(m, "aten::permute", x, [m.ints(order)], [m.kind(x).shape[i] for i in order])


def select(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 1 and all(k.shape))
    shape = list(m.kind(x).shape)
    dim = m.below(len(shape))
    index = m.between(-shape[dim], shape[dim] - 1)
    _view(m, "aten::select", x, [m.number(dim), m.number(index)], shape[:dim] + shape[dim + 1 :])


def slice_(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 1)
    shape = list(m.kind(x).shape)
    dim = m.below(len(shape))
    bounds = m.below(shape[dim] + 1), m.between(-shape[dim], shape[dim] + 1), m.between(1, 2)
    shape[dim] = len(range(*slice(*bounds).indices(shape[dim])))
    if shape[dim] or m.below(8) == 7:  # empty tensors, but not many
        _view(m, "aten::slice", x, [m.number(v) for v in (dim, *bounds)], shape)


def unsqueeze(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank <= 3)
    shape = list(m.kind(x).shape)
    dim = m.below(len(shape) + 1)
    _view(m, "aten::unsqueeze", x, [m.number(dim)], [*shape[:dim], 1, *shape[dim:]])


def squeeze(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 1)
    shape = m.kind(x).shape
    if m.flip():
        _view(m, "aten::squeeze", x, [], [n for n in shape if n != 1])
    else:
        dim = m.below(len(shape))
        _view(m, "aten::squeeze", x, [m.number(dim)], [n for i, n in enumerate(shape) if i != dim or n != 1])


def expand(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank <= 3 and small((2, *k.shape)))
    shape = [m.between(1, 2), *m.kind(x).shape]
    sizes = [n if n != 1 else m.pick([1, 2]) for n in shape]
    if small(sizes):
        _view(m, "aten::expand", x, [m.ints(sizes)], sizes, frozen=True)


def reshape(m: Maker) -> None:
    x = m.tensor(lambda k: all(k.shape))
    count = 1
    for n in m.kind(x).shape:
        count *= n
    shapes = [s for s in ((count,), (1, count), (count, 1), (2, count // 2), (count // 3, 3)) if _count(s) == count]
    shape = m.pick(shapes)
    sizes = [-1 if i == 0 and m.flip() else n for i, n in enumerate(shape)]
    _view(m, "aten::reshape", x, [m.ints(sizes)], shape)


def turn_and_reshape(m: Maker) -> None:
    """A copy, but for tensors of one row or column: no stride leads from each element to the next."""
    t(m)
    rows, columns = m.kind(m.scope[-1]).shape
    if rows and columns:
        _view(m, "aten::reshape", m.scope[-1], [m.ints([-1])], (rows * columns,))


def view(m: Maker) -> None:
    """With dimensions of 1 more or less: a view of whatever strides."""
    x = m.tensor(lambda k: k.rank <= 3 and k.shape != ())
    shape = [n for n in m.kind(x).shape if n != 1 or m.flip()]
    shape.insert(m.below(len(shape) + 1), 1)
    _view(m, "aten::view", x, [m.ints(shape)], shape)


def _count(shape) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


# -- writes --------------------------------------------------------------------


def _target(m: Maker, numeric: bool = True):
    return m.tensor(lambda k: not k.frozen and not (numeric and k.dtype is BOOL))


def unary_(m: Maker) -> None:
    x = _target(m)
    m.emit(m.pick(["aten::neg_", "aten::relu_", "aten::abs_", "aten::zero_"]), [x], m.kind(x))


def binary_(m: Maker) -> None:
    x = _target(m)
    y = m.like(m.kind(x), broadcast=True)
    m.emit(m.pick(["aten::add_", "aten::sub_", "aten::mul_"]), [x, y], m.kind(x))


def number_(m: Maker) -> None:
    x = _target(m)
    kind = m.pick(["aten::add_", "aten::sub_", "aten::mul_", "aten::fill_"])
    m.emit(kind, [x, an_int(m)], m.kind(x))


def copy_(m: Maker) -> None:
    x = _target(m, numeric=False)
    k = m.kind(x)
    y = m.tensor(
        lambda o: broadcasts_to(o.shape, k.shape) and (o.dtype is k.dtype or {o.dtype, k.dtype} == {FLOAT, LONG})
    )
    m.emit("aten::copy_", [x, y], k)


# -- shapes and strides in place ------------------------------------------------


def _turnable(k: Tens) -> bool:
    """Whether two dimensions are equal, so that the tensor can be transposed and keep its shape."""
    return not k.frozen and _equal_dims(k.shape) is not None


def _equal_dims(shape) -> tuple[int, int] | None:
    pairs = ((i, j) for j, n in enumerate(shape) for i in range(j) if shape[i] == n > 1)
    return next(pairs, None)


def turn_(m: Maker) -> None:
    _turn(m, m.tensor(_turnable))


def _turn(m: Maker, x) -> None:
    k = m.kind(x)
    dims = _equal_dims(k.shape)
    if k.rank == 2 and m.flip():
        m.emit("aten::t_", [x], k)
    else:
        m.emit("aten::transpose_", [x, *map(m.number, dims)], k)


def two_views(m: Maker) -> None:
    """The same view twice, one of which is turned; or the tensor itself, or both."""
    x = m.tensor(_turnable)
    k = m.kind(x)
    kind, *more = m.pick(
        [("aten::detach",), ("aten::alias",), ("aten::transpose", *_equal_dims(k.shape)), ("aten::data",)]
    )
    views = [m.emit(kind, [x, *map(m.number, more)], k) for _ in range(2)]
    _turn(m, m.pick([*views, x]))


def further_dimension_(m: Maker) -> None:
    """One dimension more, and less again."""
    x = m.tensor(lambda k: not k.frozen and k.rank <= 3)
    k = m.kind(x)
    dim = m.below(k.rank + 1)
    taller = m.emit("aten::unsqueeze_", [x, m.number(dim)], Tens(k.dtype, (*k.shape[:dim], 1, *k.shape[dim:])))
    m.emit("aten::squeeze_", [taller, m.number(dim)], k)
    m.scope.remove(taller)  # its type says what it was


def itself(m: Maker) -> None:
    """What is the operand itself, or may be."""
    x = m.numeric()
    kind, *more = m.pick(
        [("aten::positive",), ("aten::contiguous", m.number(0)), ("aten::type_as", x), ("aten::to", x)]
    )
    m.emit(kind, [x, *more], m.kind(x))


def broadcast_together(m: Maker) -> None:
    """Operands that have the shape already are returned themselves."""
    x = m.tensor()
    k = m.kind(x)
    tensors = m.builder.op("prim::ListConstruct", x, m.like(k, broadcast=True), type=ListType(TENSOR))
    found = m.builder.op("aten::broadcast_tensors", tensors, type=ListType(TENSOR))
    m.emit_many("prim::ListUnpack", [found], [k, Tens(k.dtype, k.shape, frozen=True)])


METADATA = "torch metadata"

STEPS: dict[str, tuple[Step, ...]] = {
    "torch": (unary, binary, with_number, comparison),
    "numbers": (size, number_arithmetic),
    "torch views": (t, transpose, permute, select, slice_, unsqueeze, squeeze, expand, reshape, turn_and_reshape, view),
    "torch writes": (unary_, binary_, number_, copy_),
    METADATA: (turn_, turn_, two_views, two_views, further_dimension_, itself, broadcast_together),
}
