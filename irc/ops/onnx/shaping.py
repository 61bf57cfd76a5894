"""Operators that tell or change shapes, and move elements: views, concatenation, padding.

Kernels follow the rows: results that a row does not declare to share are copied. Whether they do share depends on
strides at run time, so none of them is a must.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from irc.ir import MAX_RANK, Dim, DType, Shape, TensorType, Type
from irc.ir.polynomials import is_positive, plus, product, quotient, times
from irc.ops import Family, Movement, checks, regions
from irc.ops.inference import MAX_CONTENTS, Contents, NodeTypes, dims_array
from irc.ops.shape_rules import bounds, same_as_first, sliced

FAMILY = Family(
    "onnx",
    """
    onnx::Identity(t(a) input) -> t(a==)
    onnx::Reshape(Tensor(a) data, Tensor? shape=None) -> Tensor(a)
    onnx::Squeeze(Tensor(a) data, Tensor? axes=None) -> Tensor(a)
    onnx::Unsqueeze(Tensor(a) data, Tensor? axes=None) -> Tensor(a)
    onnx::Flatten(Tensor(a) input) -> Tensor(a)
    onnx::Transpose(Tensor(a) data) -> Tensor(a)
    onnx::Slice(Tensor(a) data, Tensor? bounds=None, ...) -> Tensor(a)
    onnx::Expand(Tensor(a) input, Tensor shape) -> Tensor(a)
    onnx::Split(Tensor(a) input, Tensor? split=None) -> (Tensor(a) output, ...)
    """,
)
FAMILY.each("Shape Size", contents_from="shapes", kernel="shape")
FAMILY.each("Flatten", movement=Movement.IN_ORDER, kernel="shape")
FAMILY.each("Identity", shape=same_as_first, movement=Movement.IN_ORDER, region=regions.same, kernel="shape")
FAMILY.each("Reshape Squeeze Unsqueeze", movement=Movement.IN_ORDER, value_operands=(1,), kernel="shape")
FAMILY.each("Transpose", movement=Movement.PERMUTED, region=regions.onnx_transpose, kernel="shape")
FAMILY.each(
    "DepthToSpace SpaceToDepth", movement=Movement.PERMUTED, attributes={"mode": ("DCR", "CRD")}, kernel="shape"
)
FAMILY.each("Reshape", region=regions.onnx_reshape)
FAMILY.each("Flatten", region=regions.onnx_flatten)
FAMILY.each("Squeeze", region=regions.squeeze)
FAMILY.each("Unsqueeze", region=regions.onnx_unsqueeze)
FAMILY.each("Expand", region=regions.repeated)
FAMILY.each("Slice", movement=Movement.SELECTED, region=regions.onnx_slice, value_operands=(1, 2, 3, 4), kernel="shape")
# Without sizes, an attribute must say how many parts there are.
FAMILY.each("Split", region=regions.onnx_split, changes_meaning=(18,))
FAMILY.each("Expand Split Tile", movement=Movement.SELECTED, value_operands=(1,), kernel="shape")
FAMILY.each("Concat", movement=Movement.GATHERED, kernel="shape")
FAMILY.each(
    "Pad",
    value_operands=(1, 3),
    attributes={"mode": ("constant", "reflect", "edge", "wrap")},
    requires=(checks.rank("pads", 1, 1),),
    kernel="shape",
)
FAMILY.each("CenterCropPad", expanded=True, value_operands=(1,), requires=(checks.rank("shape", 1, 1),))


@FAMILY.shape("Shape")
def shape(c: NodeTypes) -> Type:
    x = c.shape(0)
    if x is None:
        return TensorType(DType.INT64, (None,))
    return TensorType(DType.INT64, (len(x[c.attr("start", 0) : c.attr("end")]),))


@FAMILY.contents("Shape")
def shape_contents(c: NodeTypes) -> Contents | None:
    x = c.shape(0)
    return None if x is None else dims_array(list(x[c.attr("start", 0) : c.attr("end")]))


@FAMILY.shape("Size")
def size(c: NodeTypes) -> Type:
    return TensorType(DType.INT64, ())


@FAMILY.contents("Size")
def size_contents(c: NodeTypes) -> Contents | None:
    x = c.shape(0)
    return None if x is None else dims_array(product(x))


FAMILY.contents("Identity")(lambda c: c.contents_of(0))


def unknown_sizes(c: NodeTypes, rank: Dim) -> Shape | None:
    """A shape of which only the rank is known; None if not even that; IRC310 if the rank is too high."""
    if not isinstance(rank, int):
        return None
    if rank > MAX_RANK:
        c.fail(f"a tensor cannot have {rank} dimensions")
    return (None,) * rank


@FAMILY.shape("Reshape")
def reshape(c: NodeTypes) -> Type:
    target = list(c.attr("shape", ())) if c.version < 5 else c.dims(1)
    if target is None:
        count = c.shape(1)
        rank = count[0] if count else None
        return TensorType(c.dtype(0), unknown_sizes(c, rank))
    return TensorType(c.dtype(0), reshaped(c, c.shape(0), target, bool(c.attr("allowzero", 0))))


@FAMILY.contents("Reshape")
def reshaped_contents(c: NodeTypes) -> Contents | None:
    x, target = c.contents_of(0), c.ints(1)
    if x is None or target is None or len(target) > 1 or (target and target[0] not in (-1, x.size)):
        return None
    return x.reshape(target)


def reshaped(c: NodeTypes, x: Shape | None, target: list[Dim], allow_zero: bool) -> Shape:
    """Resolve 0 (copy) and -1 (rest) in a target shape."""
    out = list(target)
    if not allow_zero:
        for i, d in enumerate(target):
            if d == 0:
                if x is not None and i >= len(x):
                    c.fail(f"the 0 at position {i} of the new shape {target} has no dimension to copy")
                out[i] = None if x is None else x[i]
        for i, d in enumerate(target):
            if not isinstance(d, int) and not _is_size(out, i, x):
                out[i] = None
    if any(isinstance(d, int) and d < -1 for d in out) or out.count(-1) > 1:
        c.fail(f"{target} is not a shape: at most one -1, otherwise sizes")
    if -1 in out:
        at = out.index(-1)
        out[at] = None if x is None else _rest(c, x, out)
    elif x is not None:
        have, want = product(x), product(out)
        if isinstance(have, int) and isinstance(want, int) and have != want:
            c.fail(f"{have} elements cannot be reshaped to {target}")
    return tuple(out)


def _is_size(target: list[Dim], at: int, x: Shape | None) -> bool:
    """Whether the symbolic ``target[at]`` surely is the new size: a 0 would copy the size of ``x``.

    Suppose it is 0 and a size other than 0 is copied. The result then has no elements only if yet another size is 0.
    Such a tensor is empty whatever this size is, so its shape need not be known.
    """
    if x is None:
        return False
    size = target[at]
    if at >= len(x) or is_positive(size):  # there is nothing to copy
        return True
    if quotient(x[at], size) is not None or is_positive(quotient(size, x[at])):  # 0 copies 0
        return True
    have = product(x)
    if have not in (None, 0) and have == product(target):
        return True
    copied = product([x[at] if i == at else d for i, d in enumerate(target)])
    return isinstance(copied, int) and isinstance(have, int) and copied != have and -1 not in target


def _rest(c: NodeTypes, x: Shape, target: Sequence[Dim]) -> Dim:
    """The size that a -1 in ``target`` stands for: what is left of ``x`` divided by the sizes given."""
    left, others = list(x), list[Dim]()
    for i, size in enumerate(target):
        if size is not None and size in x[i : i + 1]:
            left.remove(size)
        elif size != -1:
            others.append(size)
    if not all(isinstance(size, int) or is_positive(size) for size in others):
        return None  # they may be 0, and nothing is left to be told from
    whole, part = product(left), product(others)
    if isinstance(whole, int) and isinstance(part, int) and part and whole % part:
        c.fail(f"{whole} elements cannot be reshaped to {list(target)}")
    return quotient(whole, part)


@FAMILY.shape("Flatten")
def flatten(c: NodeTypes) -> Type:
    x = c.shape(0)
    if x is None:
        return TensorType(c.dtype(0), (None, None))
    axis = c.axis(c.attr("axis", 1), len(x), end=True)
    return TensorType(c.dtype(0), (product(x[:axis]), product(x[axis:])))


@FAMILY.reshapes("Squeeze")
def squeeze(c: NodeTypes, x: Shape) -> Shape | None:
    axes = c.axes(1)
    if axes is None:
        known = not c.has(1) and all(isinstance(d, int) for d in x)
        return tuple(d for d in x if d != 1) if known else None
    gone = {c.axis(a, len(x)) for a in axes}
    for a in gone:
        if isinstance(x[a], int) and x[a] != 1:
            c.fail(f"axis {a} of size {x[a]} cannot be squeezed")
    return tuple(d for i, d in enumerate(x) if i not in gone)


@FAMILY.contents("Squeeze")
def squeezed_contents(c: NodeTypes) -> Contents | None:
    x = c.contents_of(0)
    return x.reshape(()) if x is not None and x.size == 1 and (c.axes(1) or not c.has(1)) else None


@FAMILY.reshapes("Unsqueeze")
def unsqueeze(c: NodeTypes, x: Shape) -> Shape | None:
    axes = c.axes(1)
    if axes is None:
        return None
    rank = len(x) + len(axes)
    new = {c.axis(a, rank) for a in axes}
    if len(new) < len(axes):
        c.fail(f"axes {axes} name a dimension twice")
    rest = iter(x)
    return tuple(1 if i in new else next(rest) for i in range(rank))


@FAMILY.contents("Unsqueeze")
def unsqueezed_contents(c: NodeTypes) -> Contents | None:
    x = c.contents_of(0)
    return x.reshape(1) if x is not None and x.ndim == 0 and len(c.axes(1) or ()) == 1 else None


@FAMILY.reshapes("Transpose")
def transpose(c: NodeTypes, x: Shape) -> Shape:
    perm = c.attr("perm") or list(range(len(x)))[::-1]
    if sorted(perm) != list(range(len(x))):
        c.fail(f"perm {perm} is not a permutation of {len(x)} dimensions")
    return tuple(x[p] for p in perm)


@FAMILY.shape("Expand")
def expand(c: NodeTypes) -> Type:
    target = c.dims(1)
    if target is None:
        count = c.shape(1)
        x = c.shape(0)
        if count and isinstance(count[0], int) and x is not None:
            return TensorType(c.dtype(0), unknown_sizes(c, max(count[0], len(x))))
        return TensorType(c.dtype(0))
    return TensorType(c.dtype(0), c.broadcast([c.shape(0), tuple(target)]))


@FAMILY.contents("Expand")
def expanded_contents(c: NodeTypes) -> Contents | None:
    x, target = c.contents_of(0), c.ints(1)
    if x is None or target is None or len(target) > 1 or (target and not 0 <= target[0] <= MAX_CONTENTS):
        return None
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(target)))


@FAMILY.reshapes("Tile")
def tile(c: NodeTypes, x: Shape) -> Shape:
    repeats = c.dims(1)
    if c.version < 6 or repeats is None:
        return (None,) * len(x)
    if len(repeats) != len(x):
        c.fail(f"{len(repeats)} repeats for {len(x)} dimensions")
    return tuple(product([d, r]) for d, r in zip(x, repeats, strict=True))


@FAMILY.requires("Tile")
def check_tile(c: NodeTypes) -> None:
    if c.version >= 6:  # before, there is one axis, and a number for it
        checks.rank("repeats", 1, 1)(c)
        checks.at_least("repeats", 1, 0)(c)


@FAMILY.shape("Concat")
def concat(c: NodeTypes) -> Type:
    shapes = [c.shape(i) for i in range(len(c.node.inputs))]
    known = [s for s in shapes if s is not None]
    dtype = next((d for d in map(c.dtype, range(len(shapes))) if d is not None), None)
    if not known:
        return TensorType(dtype)
    rank = len(known[0])
    if any(len(s) != rank for s in known):
        c.fail("inputs of Concat must have one rank")
    axis = c.axis(c.attr("axis", 1), rank)
    sizes = [s[axis] for s in known]
    joined = reduce(plus, sizes) if len(known) == len(shapes) else None
    # What turns out to have no positions along the axis need not fit in its other sizes: it settles none of them.
    sure = [s for s in known if isinstance(d := s[axis], int) and d > 0]

    def other(i: int) -> Dim:
        if sure:
            return c.same_dim([s[i] for s in sure], f"sizes of dimension {i}")
        first = known[0][i]
        return first if len(known) == len(shapes) and all(s[i] == first for s in known) else None

    return TensorType(dtype, tuple([joined if i == axis else other(i) for i in range(rank)]))


@FAMILY.contents("Concat")
def concatenated_contents(c: NodeTypes) -> Contents | None:
    parts = [c.contents_of(i) for i in range(len(c.node.inputs))]
    known = [p for p in parts if p is not None and p.ndim == 1]
    return np.concatenate(known) if len(known) == len(parts) else None


@FAMILY.shape("Split")
def split(c: NodeTypes) -> list[Type]:
    x, count = c.shape(0), len(c.node.outputs)
    if x is None:
        return [TensorType(c.dtype(0))] * count
    told = c.attr("num_outputs", count)
    if told != count:
        c.fail(f"num_outputs is {told}, but the node has {count} outputs")
    axis = c.axis(c.attr("axis", 0), len(x))
    whole = x[axis]
    parts = _parts(c, whole, count)
    if len(parts) != count:
        c.fail(f"{len(parts)} sizes for {count} outputs")
    numbers = [p for p in parts if isinstance(p, int)]
    if isinstance(whole, int) and len(numbers) == count and sum(numbers) != whole:
        c.fail(f"parts {parts} do not add up to {whole}")
    return [TensorType(c.dtype(0), (*x[:axis], p, *x[axis + 1 :])) for p in parts]


def _parts(c: NodeTypes, whole: Dim, count: int) -> list[Dim]:
    given: list[Dim] | None = c.attr("split") or (c.dims(1) if c.has(1) else None)
    if given is not None:
        return list(given)
    if c.has(1) or not isinstance(whole, int):
        return [None for _ in range(count)]
    each = -(-whole // count)
    if each * count != whole and c.version < 18:
        c.fail(f"size {whole} cannot be split in {count} equal parts")
    return [max(0, min(each, whole - each * i)) for i in range(count)]


@FAMILY.reshapes("Slice")
def slice_(c: NodeTypes, x: Shape) -> Shape:
    starts, ends, axes, steps = c.slices()
    if axes is None and starts is not None and not c.has(3):
        axes = range(len(starts))
    if axes is None or steps is None:
        return (None,) * len(x)
    out = list(x)
    for i, a in enumerate(axes):
        axis, step = c.axis(a, len(x)), steps[i]
        if step == 0:
            c.fail("a slice cannot have step 0")
        out[axis] = None if starts is None or ends is None else sliced(x[axis], starts[i], ends[i], step)
    return tuple(out)


@FAMILY.contents("Slice")
def slice_contents(c: NodeTypes) -> Contents | None:
    x = c.contents_of(0)
    if x is None or x.ndim != 1:
        return None
    starts, ends, _, steps = c.slices()
    if starts is None or ends is None or steps is None or len(starts) != 1:
        return None
    start, end = starts[0], ends[0]
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    return x[bounds(start, end, steps[0] or 1, len(x))]


@FAMILY.reshapes("Pad")
def pad(c: NodeTypes, x: Shape) -> Shape:
    pads = c.pads()
    axes = c.ints(3) if c.version >= 18 and c.has(3) else list(range(len(x)))
    if pads is None or axes is None:
        return (None,) * len(x)
    if len(pads) != 2 * len(axes):
        c.fail(f"{len(pads)} pads for {len(axes)} axes")
    out = list(x)
    for i, a in enumerate(axes):
        axis = c.axis(a, len(x))
        size = out[axis] = reduce(plus, [x[axis], pads[i], pads[i + len(axes)]])
        if isinstance(size, int) and size < 0:
            c.fail(f"pads {pads} remove more than dimension {axis} has")
    return tuple(out)


@FAMILY.requires("Pad")
def check_pad(c: NodeTypes) -> None:
    x = c.shape(0)
    if x is not None and c.has(3):
        checks.axes(c, c.ints(3), len(x))


@FAMILY.requires("CenterCropPad")
def check_center_crop_pad(c: NodeTypes) -> None:
    x, axes = c.shape(0), c.attr("axes")
    if x is None:
        return
    checks.axes(c, axes, len(x))
    count = len(x) if axes is None else len(axes)
    checks.size(c, "shape", 1, count, f"{count} axes")


def _over(size: Dim, factor: int) -> Dim:
    return size // factor if isinstance(size, int) else quotient(size, factor)


@FAMILY.reshapes("DepthToSpace", "SpaceToDepth")
def depth_and_space(c: NodeTypes, x: Shape) -> Shape | None:
    block = c.attr("blocksize", 1)
    if block < 1:
        c.fail(f"blocksize must be positive, is {block}")
    if len(x) != 4:
        return None
    depth, space = (_over, times) if c.node.kind == "onnx::DepthToSpace" else (times, _over)
    return (x[0], depth(x[1], block * block), space(x[2], block), space(x[3], block))
