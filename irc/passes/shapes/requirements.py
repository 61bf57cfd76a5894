"""What the specification requires of attributes, and of operands' ranks, sizes and constants, beyond their types.

It is checked before the shape rule of a node, as far as it is known then: a run finds the rest. Other runtimes refuse
models with such nodes when they load them. (Attributes that must be one of a few words or element types are checked by
the importer.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from irc.ir.limits import MAX_RANK
from irc.ops.inference import NodeTypes

Check = Callable[[NodeTypes], None]
"""Raises IRC310 if the node does not have what it requires."""


# -- attributes ------------------------------------------------------------------


def _attributes(allowed: Callable[[int], bool], words: str, *names: str) -> Check:
    """Each of the attributes, a number or a list of numbers, is ``allowed``; those that are left out are."""

    def check(c: NodeTypes) -> None:
        for name in names:
            value: Any = c.attr(name)
            numbers = cast("list[int]", [] if value is None else value if isinstance(value, list) else [value])
            for number in numbers:
                if not allowed(number):
                    c.fail(f"{name} must be {words}, not {value}")

    return check


def _flags(*names: str) -> Check:
    return _attributes((0, 1).__contains__, "0 or 1", *names)


def _positive(*names: str) -> Check:
    return _attributes(lambda n: n > 0, "positive", *names)


def _not_negative(*names: str) -> Check:
    return _attributes(lambda n: n >= 0, "0 or more", *names)


# -- operands --------------------------------------------------------------------


def _rank(name: str, at: int, *ranks: int) -> Check:
    """Operand ``at``, called ``name``, has one of these numbers of dimensions."""

    def check(c: NodeTypes) -> None:
        shape = c.shape(at)
        if shape is not None and len(shape) not in ranks:
            c.fail(f"{name} must have {' or '.join(map(str, ranks))} dimensions, not {len(shape)}")

    return check


def _size(c: NodeTypes, name: str, at: int, wanted: Any, why: str) -> None:
    """Fail if operand ``at`` has one dimension, but surely not of the size ``wanted``, for the reason ``why``."""
    shape = c.shape(at)
    if shape is None or len(shape) != 1:
        return
    if isinstance(shape[0], int) and isinstance(wanted, int) and shape[0] != wanted:
        c.fail(f"{name} has {shape[0]} elements for {why}")


def _elements(name: str, at: int, count: int) -> Check:
    """Operand ``at`` has so many elements."""

    def check(c: NodeTypes) -> None:
        sizes = c.tensor(at).static_shape
        if sizes is None:
            return
        found = 1
        for size in sizes:
            found *= size
        if found != count:
            c.fail(f"{name} must have {count} element{'s' * (count > 1)}, not {found}")

    return check


def _by_channel(*operands: tuple[str, int]) -> Check:
    """Each operand has one element for each channel of the first."""

    def check(c: NodeTypes) -> None:
        x = c.shape(0)
        for name, at in operands:
            _rank(name, at, 1)(c)
            if x is not None and len(x) > 1:
                _size(c, name, at, x[1], f"{x[1]} channels")

    return check


def _at_least(name: str, at: int, least: int) -> Check:
    """All elements of operand ``at`` that are known are at least so large."""

    def check(c: NodeTypes) -> None:
        for number in c.numbers(at) or ():
            if isinstance(number, int) and number < least:
                c.fail(f"{name} must be {least} or more, not {number}")

    return check


def _axis(at: int, of: int = 0) -> Check:
    """Operand ``at`` is one axis of operand ``of``."""

    def check(c: NodeTypes) -> None:
        _elements("the axis", at, 1)(c)
        numbers, x = c.ints(at) if c.has(at) else None, c.shape(of)
        if numbers:
            c.axis(numbers[0], MAX_RANK if x is None else len(x))

    return check


def _axes(c: NodeTypes, axes: Sequence[int] | None, rank: int) -> None:
    """Fail if some axis is out of range, or there twice."""
    seen: set[int] = set()
    for axis in axes or ():
        found = c.axis(axis, rank)
        if found in seen:
            c.fail(f"axis {found} is given twice")
        seen.add(found)


# -- single operators ----------------------------------------------------------------


def _attention(c: NodeTypes) -> None:
    x, heads = c.shape(0), [name for name in ("q_num_heads", "kv_num_heads") if c.attr(name) is not None]
    if x is not None and len(x) == 4 and heads:
        c.fail(f"{heads[0]} is for operands of 3 dimensions: where these have 4, the second is the heads")


def _shared_heads(c: NodeTypes) -> None:
    queries, keys = c.attr("q_num_heads"), c.attr("kv_num_heads")
    if queries is not None and keys and queries % keys:
        c.fail(f"q_num_heads {queries} must be a multiple of kv_num_heads {keys}")


def _center_crop_pad(c: NodeTypes) -> None:
    x, axes = c.shape(0), c.attr("axes")
    if x is None:
        return
    _axes(c, axes, len(x))
    count = len(x) if axes is None else len(axes)
    _size(c, "shape", 1, count, f"{count} axes")


def _batch_normalization(c: NodeTypes) -> None:
    """Scale, bias and statistics are of each channel or, where ``spatial`` is 0, of each element of an example.

    Version 7 is the first to say that they have the shape of an example then. What versions before it say of them, one
    dimension, contradicts what they say of ``spatial``; either is let pass.
    """
    operands = ("scale", 1), ("B", 2), ("the mean", 3), ("the variance", 4)
    x = c.shape(0)
    if c.attr("spatial", 1):
        _by_channel(*operands)(c)
    elif x:
        wanted = x[1:]
        ranks = sorted({len(wanted), 1} if c.version < 7 else {len(wanted)})
        for name, at in operands:
            _rank(name, at, *ranks)(c)
            for found, size in zip(c.shape(at) or (), wanted, strict=False):
                if isinstance(found, int) and isinstance(size, int) and found != size:
                    c.fail(f"{name} has {found} elements along an axis for {size} of the input")


def _col2im(c: NodeTypes) -> None:
    image = c.shape(1)
    if image is None or len(image) != 1 or not isinstance(image[0], int):
        return
    count = image[0]
    _size(c, "block_shape", 2, count, f"{count} dimensions of the image")
    _lengths(c, count, "dilations", "strides")


def _lengths(c: NodeTypes, count: int, *names: str) -> None:
    """Fail unless each of the attributes, as far as given, has ``count`` numbers, and pads twice as many."""
    for name, wanted in (*((name, count) for name in names), ("pads", 2 * count)):
        value = c.attr(name)
        if value is not None and len(value) != wanted:
            c.fail(f"{name} must have {wanted} entries, has {len(value)}")


def _conv_transpose(c: NodeTypes) -> None:
    x, group = c.shape(0), c.attr("group", 1)
    if x is None or len(x) < 2:
        return
    if isinstance(x[1], int) and x[1] % group:
        c.fail(f"{x[1]} channels cannot be split into {group} groups")
    shape = c.attr("output_shape")
    if shape is not None and len(shape) != len(x) - 2:
        c.fail(f"output_shape has {len(shape)} numbers for {len(x) - 2} dimensions of the image")


def _dft(c: NodeTypes) -> None:
    x = c.shape(0)
    given = [c.attr("axis")] if c.version < 20 else c.ints(2) if c.has(2) else None
    if x is None or not given or given[0] is None:
        return
    if c.axis(given[0], len(x)) == len(x) - 1:
        c.fail(f"axis {given[0]} is that of real and imaginary parts")


def _group_normalization(c: NodeTypes) -> None:
    x = c.shape(0)
    wanted = c.attr("num_groups") if c.version < 21 else x[1] if x is not None and len(x) > 1 else None
    what = "groups" if c.version < 21 else "channels"
    for name, at in (("scale", 1), ("bias", 2)):
        _rank(name, at, 1)(c)
        _size(c, name, at, wanted, f"{wanted} {what}")


def _label_encoder(c: NodeTypes) -> None:
    for what in ("keys", "values") if c.version > 1 else ():
        names = [f"{what}_{kind}" for kind in ("tensor", "strings", "int64s", "floats")]
        given = [name for name in names if c.attr(name) is not None]
        if len(given) != 1:
            c.fail(f"exactly one of {', '.join(names)} must be given, not {' and '.join(given) or 'none'}")


def _max_unpool(c: NodeTypes) -> None:
    x = c.shape(0)
    if x is not None and len(x) > 2:
        _lengths(c, len(x) - 2, "kernel_shape", "strides")
        _size(c, "output_shape", 2, len(x), f"{len(x)} dimensions")


def _classes(c: NodeTypes) -> None:
    """Losses of classes: (N, C, d...) scores, (N, d...) classes, (C) weights."""
    x, target = c.shape(0), c.shape(1)
    if x is None or len(x) < 2:
        return
    _rank("the weights", 2, 1)(c)
    _size(c, "the weights", 2, x[1], f"{x[1]} classes")
    if target is None:
        return
    if len(target) != len(x) - 1:
        c.fail(f"the classes must have {len(x) - 1} dimensions, not {len(target)}")
    for a, b in zip((x[0], *x[2:]), target):
        c.same_dim([a, b], "sizes of scores and classes")


def _pad(c: NodeTypes) -> None:
    x = c.shape(0)
    if x is not None and c.has(3):
        _axes(c, c.ints(3), len(x))


def _resize(c: NodeTypes) -> None:
    if c.version < 11:
        return
    x, axes = c.shape(0), c.attr("axes")
    scales = c.shape(2)
    if c.has(3) and scales is not None and scales and isinstance(scales[0], int) and scales[0]:
        c.fail("sizes and scales are given, but only one of them may be")
    if c.version > 12 and not c.has(2) and not c.has(3):
        c.fail("neither sizes nor scales are given")
    for scale in () if (given := c.constant(2)) is None else given.reshape(-1).tolist():
        if not scale > 0:
            c.fail(f"scales must be positive, not {scale}")
    if x is not None:
        _axes(c, axes, len(x))
        count = len(x) if axes is None else len(axes)
        _size(c, "sizes", 3, count, f"{count} axes")


def _reverse_sequence(c: NodeTypes) -> None:
    x, at = c.shape(0), c.attr("batch_axis", 1)
    if x is not None and at in (0, 1) and len(x) > 1:
        _size(c, "sequence_lens", 1, x[at], f"{x[at]} sequences")


def _split_to_sequence(c: NodeTypes) -> None:
    x, split = c.shape(0), c.ints(1)
    if x is None:
        return
    whole = x[c.axis(c.attr("axis", 0), len(x))]
    if split is None or not isinstance(whole, int):
        return
    if c.shape(1) == ():
        if split[0] <= 0:
            c.fail(f"parts must have 1 or more, not {split[0]}")
    elif sum(split) != whole:
        c.fail(f"parts {split} do not add up to {whole}")


def _concat_from_sequence(c: NodeTypes) -> None:
    shape, axis = c.element(0).shape, c.attr("axis")
    if shape is not None and axis is not None:
        c.axis(axis, len(shape) + (c.attr("new_axis", 0) == 1))


def _tensor_scatter(c: NodeTypes) -> None:
    x = c.shape(0)
    if x is None:
        return
    c.axis(c.attr("axis", -2), len(x))
    _size(c, "write_indices", 2, x[0] if x else None, "as many samples as the first dimension has")


def _tile(c: NodeTypes) -> None:
    if c.version >= 6:  # before, there is one axis, and a number for it
        _rank("repeats", 1, 1)(c)
        _at_least("repeats", 1, 0)(c)


def _top_k(c: NodeTypes) -> None:
    x, count = c.shape(0), c.ints(1)
    if c.version < 10 or x is None or not count:
        return
    size = x[c.axis(c.attr("axis", -1), len(x))]
    if isinstance(size, int) and count[0] > size:
        c.fail(f"K is {count[0]}, but there are {size} elements along the axis")


_WINDOW = (_rank("size", 0, 0), _at_least("size", 0, 1))
_RECURRENT = (_positive("hidden_size"), _flags("layout", "linear_before_reset", "input_forget"))
_HEADS = (_positive("q_num_heads", "kv_num_heads"), _shared_heads)
_CUMULATIVE = (_flags("exclusive", "reverse"), _axis(1))

_CHECKS: dict[str, tuple[Check, ...]] = {
    "AffineGrid": (_rank("size", 1, 1),),
    "Attention": (
        *_HEADS,
        _attention,
        _attributes((0, 1, 2, 3).__contains__, "0 to 3", "qk_matmul_output_mode"),
        _attributes(lambda n: n >= -1, "-1 or more", "left_window_size", "right_window_size"),
    ),
    "BatchNormalization": (
        _flags("training_mode"),
        _batch_normalization,
    ),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _WINDOW),
    "CausalConvWithState": (_rank("bias", 2, 1),),
    "CenterCropPad": (_rank("shape", 1, 1), _center_crop_pad),
    "Col2Im": (_positive("strides", "dilations"), _at_least("block_shape", 2, 1), _col2im),
    "ConcatFromSequence": (_flags("new_axis"), _concat_from_sequence),
    "ConvTranspose": (_positive("group"), _not_negative("output_padding", "output_shape"), _conv_transpose),
    "CumProd": _CUMULATIVE,
    "CumSum": _CUMULATIVE,
    "DFT": (_flags("inverse", "onesided"), _rank("the axis", 2, 0), _dft),
    "Dropout": (_rank("ratio", 1, 0), _rank("training_mode", 2, 0)),
    "GRU": _RECURRENT,
    "GroupNormalization": (_positive("num_groups"), _group_normalization),
    "LSTM": _RECURRENT,
    "LinearAttention": _HEADS,
    "MaxPool": (_flags("storage_order"),),
    "MaxUnpool": (_rank("output_shape", 2, 1), _max_unpool),
    "NegativeLogLikelihoodLoss": (_classes,),
    "NonMaxSuppression": (_flags("center_point_box"),),
    "OneHot": (_elements("depth", 1, 1), _at_least("depth", 1, 0), _rank("values", 2, 1), _elements("values", 2, 2)),
    "Pad": (_rank("pads", 1, 1), _pad),
    "RNN": _RECURRENT,
    "Resize": (_flags("antialias", "exclude_outside"), _resize),
    "ReverseSequence": (_rank("sequence_lens", 1, 1), _reverse_sequence),
    "RotaryEmbedding": (_not_negative("num_heads", "rotary_embedding_dim"),),
    "SoftmaxCrossEntropyLoss": (_classes,),
    "SplitToSequence": (_rank("split", 1, 0, 1), _split_to_sequence),
    "TensorScatter": (_rank("write_indices", 2, 1), _tensor_scatter),
    "Tile": (_tile,),
    "TopK": (_elements("K", 1, 1), _at_least("K", 1, 0), _top_k),
    "ai.onnx.ml::LabelEncoder": (_label_encoder,),
}
"""Operator (of ONNX's own domain without it) -> what its nodes must have."""

REQUIREMENTS = {kind if "::" in kind else f"onnx::{kind}": checks for kind, checks in _CHECKS.items()}


def check_requirements(c: NodeTypes) -> None:
    """Raise IRC310 if the node surely does not have what its operator requires."""
    for check in REQUIREMENTS[c.node.kind]:
        check(c)
