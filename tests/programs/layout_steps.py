"""Steps that see how tensors lie in memory, and writes whose functional forms lay out results in another way."""

from collections.abc import Callable

from irc.ir import types
from tests.programs.kinds import BOOL, FLOAT, LONG, Num, Seq, Tens
from tests.programs.maker import Maker

Step = Callable[[Maker], object]

_FAR = 1 << 20
"""More than any stride of a program."""


def _whole(m: Maker):
    """A tensor whose memory holds at least as many elements, from its first one on, as it has."""
    return m.tensor(lambda k: not k.frozen and k.rank > 0 and all(k.shape))


def stride(m: Maker) -> None:
    """Along a dimension of several positions: of others, irc does not keep the stride."""
    x = m.tensor(lambda k: not k.frozen and k.rank > 0 and all(k.shape) and max(k.shape) > 1)
    wide = [i for i, n in enumerate(m.kind(x).shape) if n > 1]
    _show(m, m.emit("aten::stride", [x, m.number(m.pick(wide))], Num(0, _FAR)))


def is_contiguous(m: Maker) -> None:
    x = _whole(m)
    found = m.builder.op("aten::is_contiguous", x, m.number(0), type=types.BOOL)
    _show(m, m.emit("aten::Int", [found], Num(0, 1)))


def storage_offset(m: Maker, of: str = "aten::relu") -> None:
    """Of a result of a part of a larger tensor: of what a program is given, it depends on the caller."""
    x = m.tensor(lambda k: k.dtype is FLOAT and k.rank > 0 and all(k.shape) and k.shape[0] > 1)
    k = m.kind(x)
    part = Tens(k.dtype, (k.shape[0] - 1, *k.shape[1:]))
    whole = m.emit("aten::neg", [x], Tens(k.dtype, k.shape))
    y = m.emit("aten::slice", [whole, m.number(0), m.number(1), m.number(None), m.number(1)], part)
    made = m.emit(of, [y], part)
    _show(m, m.emit("aten::storage_offset", [made], Num(0, _FAR)))


def _show(m: Maker, number) -> None:
    """Let a tensor depend on ``number``: programs return tensors."""
    y = m.numeric()
    m.emit("aten::add", [y, number], Tens(m.kind(y).dtype, m.kind(y).shape))


def as_strided(m: Maker) -> None:
    x = _whole(m)
    k = m.kind(x)
    count = 1
    for n in k.shape:
        count *= n
    size, step = (count, 1) if m.flip() else (1 + (count - 1) // 2, 2)
    arguments = [m.ints([size]), m.ints([step]), m.number(None)]
    m.emit("aten::as_strided", [x, *arguments], Tens(k.dtype, (size,)))


def flatten(m: Maker) -> None:
    x = _whole(m)
    k = m.kind(x)
    count = 1
    for n in k.shape:
        count *= n
    m.emit("aten::flatten", [x, m.number(0), m.number(-1)], Tens(k.dtype, (count,)))


def contiguous(m: Maker) -> None:
    x = _whole(m)
    m.emit("aten::contiguous", [x, m.number(0)], m.kind(x))


def clone_in_order(m: Maker) -> None:
    x = m.tensor()
    k = m.kind(x)
    m.emit("aten::clone", [x, m.number(0)], Tens(k.dtype, k.shape))


def split(m: Maker) -> None:
    x = _whole(m)
    k = m.kind(x)
    dim = m.below(k.rank)
    size = m.between(1, k.shape[dim])
    rest = k.shape[:dim], k.shape[dim + 1 :]
    if k.shape[dim] % size == 0:
        elem = Tens(k.dtype, (*rest[0], size, *rest[1]))
        pieces = m.emit("aten::split", [x, m.number(size), m.number(dim)], Seq(elem, k.shape[dim] // size))
    else:
        elem = Tens(k.dtype, (*rest[0], *rest[1]))
        pieces = m.emit("aten::unbind", [x, m.number(dim)], Seq(elem, k.shape[dim]))
    m.emit("aten::__getitem__", [pieces, m.number(m.below(m.kind(pieces).least))], elem)


def masked_fill_(m: Maker) -> None:
    x = _whole(m)
    k = m.kind(x)
    if k.dtype is not BOOL:
        m.emit("aten::masked_fill_", [x, m.like(Tens(BOOL, k.shape), broadcast=True), m.number(m.between(-2, 2))], k)


def triangle_(m: Maker) -> None:
    x = m.tensor(lambda k: not k.frozen and k.rank >= 2 and all(k.shape))
    m.emit(m.pick(["aten::tril_", "aten::triu_"]), [x, m.number(m.between(-1, 1))], m.kind(x))


def scatter_(m: Maker) -> None:
    x = m.tensor(lambda k: not k.frozen and k.rank >= 1 and all(k.shape) and k.dtype is FLOAT)
    k = m.kind(x)
    index = m.emit("aten::zeros_like", [x, m.number(4), *[m.number(None)] * 4], Tens(LONG, k.shape))
    m.emit(m.pick(["aten::scatter_add_", "aten::scatter_"]), [x, m.number(m.below(k.rank)), index, m.like(k)], k)


def onnx_storage_offset(m: Maker) -> None:
    """The same of an operator that PyTorch does not know."""
    storage_offset(m, "onnx::Relu")


STEPS: dict[str, tuple[Step, ...]] = {
    "onnx layouts": (onnx_storage_offset,),
    "layouts": (stride, is_contiguous, storage_offset, as_strided, flatten, contiguous, clone_in_order, split),
    "layout writes": (masked_fill_, triangle_, scatter_),
}
