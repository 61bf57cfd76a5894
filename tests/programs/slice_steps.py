"""Steps that take parts of tensors, by constant and computed bounds, and write to them."""

from collections.abc import Callable

from irc.ir import Value, types
from irc.ir.types import TENSOR, ListType
from tests.programs.control_steps import MAX_DEPTH
from tests.programs.kinds import BOOL, FLOAT, Num, Tens
from tests.programs.maker import Maker
from tests.programs.torch_steps import select, slice_

Step = Callable[[Maker], object]


def _known(m: Maker, low: int, high: int) -> tuple[Value, int]:
    """A number that is known now, as a constant or computed, from ``low`` to ``high``; and what it is."""
    found = m.find(lambda k: isinstance(k, Num) and low <= k.low == k.high <= high) if m.flip() else None
    at = m.between(low, high) if found is None else m.kind(found).low
    return (m.number(at) if found is None else found), at


def _along(m: Maker, least: int = 1) -> tuple[Value, Tens, int]:
    """A tensor, its kind and one of its dimensions, of so many places."""
    x = m.tensor(lambda k: any(n >= least for n in k.shape))
    k = m.kind(x)
    return x, k, m.pick([i for i, n in enumerate(k.shape) if n >= least])


def _dim(m: Maker, k: Tens, dim: int) -> Value:
    """A dimension, counted from the first or from the last one."""
    return m.number(dim if m.below(3) else dim - k.rank)


def _of(k: Tens, dim: int, size: int | None) -> Tens:
    middle = () if size is None else (size,)
    return Tens(k.dtype, (*k.shape[:dim], *middle, *k.shape[dim + 1 :]), k.frozen)


def _written(m: Maker, x: Value) -> None:
    """Write to ``x``, perhaps."""
    k = m.kind(x)
    if not k.frozen and k.dtype is not BOOL and m.below(3):
        m.emit(m.pick(["aten::neg_", "aten::relu_", "aten::zero_"]), [x], Tens(k.dtype, k.shape))


def _read(m: Maker, x: Value) -> None:
    k = m.kind(x)
    m.emit("aten::clone", [x], Tens(k.dtype, k.shape))


def halves(m: Maker) -> None:
    """What is before a place, and what is from it on: one is read before and after the other is written."""
    x, k, dim = _along(m)
    size = k.shape[dim]
    bound, at = _known(m, -size, size)
    at = at if at >= 0 else size + at
    none, one, along = m.number(), m.number(1), _dim(m, k, dim)
    parts = [
        m.emit("aten::slice", [x, along, none, bound, one], _of(k, dim, at)),
        m.emit("aten::slice", [x, along, bound, none, one], _of(k, dim, size - at)),
    ]
    first = m.below(2)
    _read(m, parts[first])
    _written(m, parts[1 - first])
    _read(m, parts[first])


def narrow(m: Maker) -> None:
    x, k, dim = _along(m)
    start, at = _known(m, -k.shape[dim], k.shape[dim] - 1)
    length, count = _known(m, 0, k.shape[dim] - at if at >= 0 else -at)
    _written(m, m.emit("aten::narrow", [x, _dim(m, k, dim), start, length], _of(k, dim, count)))


def at(m: Maker) -> None:
    """One place, with an index that may be computed; a counter of iterations, too."""
    x, k, dim = _along(m)
    size = k.shape[dim]
    counter = m.find(lambda k: isinstance(k, Num) and k.low >= 0 and k.high < size)
    index = counter if counter is not None and m.flip() else _known(m, -size, size - 1)[0]
    _written(m, m.emit("aten::select", [x, _dim(m, k, dim), index], _of(k, dim, None)))


def neighbours(m: Maker) -> None:
    """A loop that reads one place of a tensor before and after it writes the next one, or the last one."""
    if m.depth >= MAX_DEPTH:
        return
    x = m.fresh(Tens(FLOAT, (5,)))
    part = Tens(FLOAT, ())
    node = m.node_with_blocks("prim::Loop", [m.number(m.between(1, 4)), m.number(True)])
    block = node.add_block()
    number = block.add_param(types.INT)
    with m.inside(block):
        m.define([number], [Num(0, 3)])
        after = m.emit("aten::add", [number, m.number(1)], Num(1, 4))
        places = [number, after] if m.flip() else [after, number]
        read, other = (m.emit("aten::select", [x, m.number(0), at], part) for at in places)
        _read(m, read)
        _written(m, other)
        _read(m, read)
        block.set_returns([m.number(True)])
    m.finish(node, [])


def pieces(m: Maker) -> None:
    """Pieces side by side, two of which are taken out of their list."""
    x, k, dim = _along(m, 2)
    size = k.shape[dim]
    kind = m.pick(["aten::chunk", "aten::split", "aten::tensor_split", "aten::unbind"])
    count = m.between(2, min(size, 3))
    length = -(-size // count)
    by = {"aten::chunk": [m.number(count)], "aten::split": [m.number(length)], "aten::unbind": []}
    cut = [m.number(count)] if m.flip() else [m.ints([length])]
    found = m.builder.op(kind, x, *by.get(kind, cut), _dim(m, k, dim), type=ListType(TENSOR))
    if kind == "aten::unbind":
        sizes: list[int | None] = [None] * size
    elif kind == "aten::tensor_split" and cut[0].type == ListType(m.number(0).type):
        sizes = [length, size - length]
    elif kind == "aten::tensor_split":
        sizes = [size // count + (i < size % count) for i in range(count)]
    else:
        sizes = [min(length, size - i) for i in range(0, size, length)]
    taken = [m.below(len(sizes)) for _ in range(2)]
    parts = [m.emit("aten::__getitem__", [found, m.number(i)], _of(k, dim, sizes[i])) for i in taken]
    _read(m, parts[0])
    _written(m, parts[1])
    _read(m, parts[0])


def diagonal(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 2 and all(k.shape))
    k = m.kind(x)
    offset = m.between(0, k.shape[1] - 1)
    count = min(k.shape[0], k.shape[1] - offset)
    made = Tens(k.dtype, (*k.shape[2:], count), k.frozen)
    _written(m, m.emit("aten::diagonal", [x, m.number(offset), m.number(0), m.number(1)], made))


def windows(m: Maker) -> None:
    """Places that are in several windows."""
    x, k, dim = _along(m, 2)
    size, step = m.between(1, 2), m.between(1, 2)
    count = (k.shape[dim] - size) // step + 1
    made = Tens(k.dtype, (*k.shape[:dim], count, *k.shape[dim + 1 :], size), frozen=True)
    found = m.emit("aten::unfold", [x, m.number(dim), m.number(size), m.number(step)], made)
    for place in range(min(count, 2)):
        m.emit("aten::select", [found, m.number(dim), m.number(place)], _of(made, dim, None))


def turned(m: Maker) -> None:
    """A place along a dimension of a tensor, and one along a dimension of the same tensor transposed."""
    x = m.tensor(lambda k: k.rank >= 2 and all(k.shape))
    k = m.kind(x)
    shape = (k.shape[1], k.shape[0], *k.shape[2:])
    kind, more = m.pick(
        [("aten::transpose", [m.number(0), m.number(1)]), ("aten::permute", None), ("aten::unsqueeze", [])]
    )
    if kind == "aten::unsqueeze":
        more, shape = [m.number(0)], (1, *k.shape)
    elif more is None:
        more = [m.ints([1, 0, *range(2, k.rank)])]
    y = m.emit(kind, [x, *more], Tens(k.dtype, shape, k.frozen))
    for of in (x, y):
        dim = m.below(2)
        place = m.below(m.kind(of).shape[dim])
        _written(m, m.emit("aten::select", [of, _dim(m, m.kind(of), dim), m.number(place)], _of(m.kind(of), dim, None)))


def flat(m: Maker) -> None:
    """Places in the storage of a new tensor, and perhaps of what is a part of it."""
    x = m.tensor(lambda k: k.rank > 0 and all(k.shape))
    k = m.kind(x)
    whole = m.emit("aten::clone", [x, m.number(0)], Tens(k.dtype, k.shape))
    m.scope.remove(whole)
    of = (
        m.emit("aten::select", [whole, m.number(0), m.number(m.below(k.shape[0]))], _of(k, 0, None))
        if m.flip()
        else whole
    )
    total = 1
    for n in k.shape:
        total *= n
    step = m.between(1, 2)
    offset = m.below(total)
    count = m.between(1, (total - 1 - offset) // step + 1)
    arguments = [m.ints([count]), m.ints([step]), m.number(offset)]
    _written(m, m.emit("aten::as_strided", [of, *arguments], Tens(k.dtype, (count,))))
    m.scope.append(whole)


def beyond(m: Maker) -> None:
    """Read all of the storage through a part of a new tensor, before and after a write to another part."""
    whole = m.emit("aten::clone", [m.fresh(Tens(FLOAT, (3, 2))), m.number(0)], Tens(FLOAT, (3, 2)))
    m.scope.remove(whole)
    places = [m.below(3), m.below(3)]
    part, other = (m.emit("aten::select", [whole, m.number(0), m.number(at)], Tens(FLOAT, (2,))) for at in places)
    arguments = [m.ints([4]), m.ints([1]), m.number(m.below(3))]
    for _ in range(2):
        m.emit("aten::as_strided_copy", [part, *arguments], Tens(FLOAT, (4,)))
        _written(m, other)
    m.scope.append(whole)


STEPS: dict[str, tuple[Step, ...]] = {
    "slices": (
        halves,
        halves,
        narrow,
        at,
        at,
        neighbours,
        neighbours,
        pieces,
        pieces,
        diagonal,
        windows,
        turned,
        flat,
        beyond,
        select,
        slice_,
    )
}
