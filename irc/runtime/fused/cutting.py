"""How the tail of a group is cut into blocks, for inputs of certain kinds, and where each operator writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir.ops.pointwise import SHAPED_LIKE_FIRST
from irc.ir.ops.torch_pointwise import POWERS, TORCH_POINTWISE
from irc.ir.types import has_shape
from irc.runtime.binding import interrupts
from irc.runtime.fused import geometry
from irc.runtime.fused.blocks import Block, Cut, Operation, Tiling
from irc.runtime.fused.geometry import Shape
from irc.runtime.kernels.support import broadcast_shape
from irc.runtime.layouts import c_strides, lies_as_new
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.runtime.fused.tiles import Tail

TILE_BYTES = 1 << 18
"""Of one operand in one block, on one thread. Measured on chains of 40 operators: half or double of it make little
difference, a quarter costs a fifth."""

SHARED_TILE_BYTES = 1 << 20
"""The same at most where several threads take blocks: whenever one returns from NumPy while another holds the GIL, it
sleeps, and waking up takes 15 to 38 µs. Measured on two threads, operands of 1 to 16 MiB, chains of 4, 12 and 40: half
takes a twentieth to an eighth longer, a quarter a third to a half; twice as much makes no difference."""


class KernelError(Exception):
    """A kernel refuses the operands, numbers among them: others of their kinds, it may take."""


def find_tiling(tail: Tail, inputs: Sequence[Any], threads: int) -> Tiling | None:
    """How to run ``tail`` on ``inputs`` and others of their kinds; None if it cannot, or need not, run in blocks.

    Raises:
        KernelError: this cannot be said of these inputs, on which running the operators will fail.
    """
    values = _kinds_of_values(tail, inputs)
    if values is None or not _lie_in_order(tail, inputs):
        return None
    shape = max((values[o.out].shape for o in tail.operations), key=math.prod)
    widest = max(x.itemsize for x in values if x is not None)
    if math.prod(shape) * widest <= TILE_BYTES:
        return None
    within = [o for o in tail.operations if values[o.out].shape == shape]
    full = {o.out for o in within}
    before = [o for o in tail.operations if o.out not in full]
    if any(r in full for o in before for r in o.ins):
        return None
    strides = [x.strides if is_array(x) else () for x in inputs]
    strides += [c_strides(x.shape, x.itemsize) for x in values[len(inputs) :]]
    if not all(_may_be_cut(o, values, strides, shape) for o in within):
        return None
    read = [r for r in dict.fromkeys(r for o in within for r in o.ins) if r not in full and values[r] is not None]
    results = [r for r in dict.fromkeys(tail.outputs) if r in full]
    merged = _cut([r for r in read if values[r].size != 1] + results, within, values, strides, shape)
    if merged is None:
        return None
    space, cut = merged
    forms = list(dict.fromkeys([c.shape for c in cut]))
    places = geometry.blocks(space, max(4, tile_bytes(math.prod(shape) * widest, threads) // widest))
    arrays = [r for r in tail.spare if is_array(inputs[r])]
    spare = [r for r in arrays if lies_as_new(inputs[r]) and inputs[r].flags.writeable]
    operations, buffers, taken = _assign(tail, within, values, results, spare)
    return Tiling(
        tail=tail,
        shape=shape,
        values=values,
        before=before,
        operations=operations,
        scalars=[r for r in read if values[r].size == 1],
        cut=cut,
        taken=taken,
        buffers=buffers,
        blocks=[Block(geometry.extents(place), [geometry.within(place, form) for form in forms]) for place in places],
    )


def tile_bytes(whole: int, threads: int) -> int:
    """How many bytes a block has of an operand of ``whole`` bytes; there is at least one block for each thread."""
    if threads == 1:
        return TILE_BYTES
    return max(TILE_BYTES, min(SHARED_TILE_BYTES, whole // threads))


def _kinds_of_values(tail: Tail, inputs: Sequence[Any]) -> list[Any] | None:
    """For each register an array of the shape and type that it will have, or None for an input that is no array.

    Types are found by calling the kernels on a few ones. None if something is not a number, or the shapes do not fit
    together: running the operators on whole arrays will then raise the error. `KernelError` if a kernel raises.
    """
    if any(is_array(x) and x.dtype.hasobject for x in inputs):
        return None  # strings
    ones = few_ones(inputs)
    shapes: list[Any] = [x.shape if is_array(x) else None for x in inputs]
    for operation in tail.operations:
        ones.append(asked(operation, [ones[r] for r in operation.ins]))
        try:
            shapes.append(result_shape(operation.node.kind, [shapes[r] for r in operation.ins]))
        except ValueError:
            return None
        if not is_array(ones[-1]) or ones[-1].dtype.hasobject:
            return None
        if not has_shape(shapes[-1], operation.node.output.type.shape):
            return None
    return [np.broadcast_to(np.empty((), x.dtype), s) if is_array(x) else None for x, s in zip(ones, shapes)]


def few_ones(inputs: Sequence[Any]) -> list[Any]:
    """``inputs`` with small arrays of ones for arrays, which kernels take, or refuse, as they do those.

    They have all axes: PyTorch's tensors without axes have less of a say in the type of a result. And where there are
    several elements, they have two: where an operator takes numbers, it takes tensors of one element, too.
    """
    return [np.ones([min(n, 2) for n in x.shape], x.dtype) if is_array(x) else x for x in inputs]


def asked(operation: Operation, operands: Sequence[Any]) -> Any:
    """What ``operation`` makes of ``operands`` that stand for others; `KernelError` if it raises."""
    try:
        return operation.kernel(*operands)
    except Exception as error:
        if interrupts(error, operation.node):
            raise
        raise KernelError from error


def _lie_in_order(tail: Tail, inputs: Sequence[Any]) -> bool:
    """Whether results may be in C order: PyTorch's lie as their operands do, which views of them show."""
    if not any(operation.node.kind in TORCH_POINTWISE for operation in tail.operations):
        return True
    return all(x.flags.c_contiguous for x in inputs if is_array(x))


def result_shape(kind: str, shapes: Sequence[Shape | None]) -> Shape:
    """The shape of the result of a pointwise operator; ValueError if there is none."""
    if kind not in SHAPED_LIKE_FIRST:
        return broadcast_shape(*[s for s in shapes if s is not None])
    if any(s is not None and math.prod(s) != 1 for s in shapes[1:]):
        raise ValueError("a bound has several elements")
    return shapes[0] or ()


def _may_be_cut(operation: Operation, values: Sequence[Any], strides: Sequence[Shape], shape: Shape) -> bool:
    """Whether the kernel does the same on a block as on the whole.

    Pow's kernels, and NumPy's function in them, treat an exponent of one element in ways of their own: cutting must not
    make such exponents. Numbers, of which there are no arrays, stay what they are.
    """
    if operation.node.kind not in POWERS:
        return True
    base, exponent = (values[r] for r in operation.ins)
    if exponent is None:
        return True
    if exponent.size == 1:
        return base is None or exponent.ndim <= base.ndim
    return exponent.shape == shape and 0 not in strides[operation.ins[1]]


def _cut(
    registers: Sequence[int],
    operations: Sequence[Operation],
    values: Sequence[Any],
    strides: Sequence[Shape],
    shape: Shape,
) -> tuple[Shape, list[Cut]] | None:
    """How ``registers`` are cut, which ``operations`` with results of ``shape`` read and write.

    Returns:
        The space of ``shape`` with its axes merged, and a `Cut` of each register; registers of the same shape in that
        space share a place. None if blocks of some register would be slow to read.
    """
    layouts = [geometry.layout(values[r].shape, strides[r], values[r].itemsize, shape) for r in registers]
    merged = geometry.merge_axes(shape, layouts)
    if merged is None:
        return None
    space, forms = merged
    form_of = {o.out: space for o in operations} | dict(zip(registers, forms))
    # What is repeated is cut without its repetitions, unless a kernel would then see nothing as large as its result.
    whole: set[int] = set()
    for o in operations:
        given = [None if values[r] is None else form_of.get(r, ()) for r in o.ins]
        if result_shape(o.node.kind, given) != space:
            whole.update(o.ins)
    places: dict[Shape, int] = {}
    cut: list[Cut] = []
    for r in registers:
        form = space if r in whole else form_of[r]
        once = None if r in whole else tuple([slice(0, 1) if stride == 0 else slice(None) for stride in strides[r]])
        cut.append(Cut(r, once, form, places.setdefault(form, len(places))))
    return space, cut


def _assign(
    tail: Tail, operations: Sequence[Operation], values: Sequence[Any], results: Sequence[int], spare: Sequence[int]
) -> tuple[list[Operation], list[np.dtype[Any]], dict[int, int | None]]:
    """Decide where each operator writes: to a result, or to a scratch buffer that is free.

    Returns:
        The operators, with positions for registers; the element types of the buffers; each result and the input whose
        memory it takes, or None.
    """
    last = {r: i for i, o in enumerate(operations) for r in o.ins}
    placed: list[Operation] = []
    where: dict[int, int] = {}  # register -> position of its buffer
    free: dict[np.dtype[Any], list[int]] = {}
    buffers: list[np.dtype[Any]] = []
    taken: dict[int, int | None] = {}
    for i, (node, kernel, ins, out) in enumerate(operations):
        positions = tuple([where.get(r, r) for r in ins])
        for r in dict.fromkeys(ins):
            if r in where and last[r] == i:
                free[values[r].dtype].append(where[r])  # so the operator may write over it
        kind = values[out]
        if out in results:
            fitting = (
                r
                for r in spare
                if r not in taken.values()
                and last.get(r, -1) <= i
                and (values[r].shape, values[r].dtype) == (kind.shape, kind.dtype)
            )
            taken[out] = next(fitting, None)
        else:
            known = free.setdefault(kind.dtype, [])
            if not known:
                known.append(tail.size + len(buffers))
                buffers.append(kind.dtype)
            where[out] = known.pop()
            if out not in last:
                known.append(where[out])  # it is never read
        placed.append(Operation(node, kernel, positions, where.get(out, out)))
    return placed, buffers, taken
