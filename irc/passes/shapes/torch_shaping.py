"""Types of TorchScript's views and of what else moves, joins or makes tensors; sizes as numbers."""

from __future__ import annotations

from functools import reduce

from irc.ir import types
from irc.ir.limits import MAX_SIZE
from irc.ir.polynomials import plus, product
from irc.ir.types import Dim, DType, ListType, Shape, TensorType, Type
from irc.ops.inference import NodeTypes
from irc.ops.shape_rules import shape_rule
from irc.passes.shapes.shaping import range_length, sliced
from irc.passes.shapes.torch_call import Call, torch_rule
from irc.passes.shapes.torch_pointwise import element_type
from irc.passes.shapes.torch_types import NUMBERS, result_type

# -- views ---------------------------------------------------------------------


@torch_rule("view", "reshape")
def view(c: Call) -> Type:
    x = c.tensor("self")
    if c.schema.overload == "dtype":
        return TensorType(element_type(c.arg("dtype")))
    sizes = c.dims("size") if c.has("size") else c.dims("shape")
    if sizes is None:
        return TensorType(x.dtype)
    if -1 in sizes:
        at = sizes.index(-1)
        whole = None if x.shape is None else product(x.shape)
        rest = product(sizes[:at] + sizes[at + 1 :])
        if isinstance(whole, int) and isinstance(rest, int) and rest > 0 and whole % rest == 0:
            sizes[at] = whole // rest
        else:
            sizes[at] = whole if rest == 1 else None
    return TensorType(x.dtype, tuple(sizes))


@torch_rule("expand")
def expand(c: Call) -> Type:
    x, sizes = c.tensor(0), c.dims("size")
    if sizes is None:
        return TensorType(x.dtype)
    out = list(sizes)
    for i, size in enumerate(sizes):
        back = len(sizes) - i
        if size == -1:
            out[i] = x.shape[-back] if x.shape is not None and back <= len(x.shape) else None
    return TensorType(x.dtype, tuple(out))


@torch_rule("expand_as", "view_as", "reshape_as")
def like_other(c: Call) -> Type:
    return TensorType(c.tensor(0).dtype, c.tensor("other").shape)


@torch_rule("permute")
def permute(c: Call) -> Type:
    x, order = c.tensor(0), c.dims("dims")
    if x.shape is None or order is None:
        return TensorType(x.dtype, None if order is None else (None,) * len(order))
    axes = [c.axis(d, len(x.shape)) for d in order]
    return TensorType(x.dtype, tuple(None if a is None else x.shape[a] for a in axes))


@torch_rule("transpose")
def transpose(c: Call) -> Type:
    x = c.tensor(0)
    if x.shape is None or not x.shape:
        return TensorType(x.dtype, x.shape)
    a, b = (c.axis(c.arg(name), len(x.shape)) for name in ("dim0", "dim1"))
    if a is None or b is None:
        return TensorType(x.dtype, (None,) * len(x.shape))
    out = list(x.shape)
    out[a], out[b] = out[b], out[a]
    return TensorType(x.dtype, tuple(out))


@torch_rule("t", "numpy_T")
def reversed_axes(c: Call) -> Type:
    x = c.tensor(0)
    return TensorType(x.dtype, None if x.shape is None else x.shape[::-1])


@torch_rule("unsqueeze")
def unsqueeze(c: Call) -> Type:
    x, dim = c.tensor(0), c.arg("dim")
    if x.shape is None or not isinstance(dim, int):
        return TensorType(x.dtype)
    at = c.axis(dim, len(x.shape) + 1)
    return TensorType(x.dtype, (*x.shape[:at], 1, *x.shape[at:]))


@torch_rule("squeeze")
def squeeze(c: Call) -> Type:
    x = c.tensor(0)
    dims = c.dims("dim") if c.has("dim") else list[Dim](range(len(x.shape or ())))
    if x.shape is None or dims is None:
        return TensorType(x.dtype)
    axes = [c.axis(d, len(x.shape)) for d in dims]
    if any(a is None or (x.shape and not isinstance(x.shape[a], int)) for a in axes):
        return TensorType(x.dtype)
    return TensorType(x.dtype, tuple(d for i, d in enumerate(x.shape) if i not in axes or d != 1))


@torch_rule("flatten")
def flatten(c: Call) -> Type:
    x = c.tensor(0)
    if x.shape is None or c.schema.overload != "using_ints":
        return TensorType(x.dtype)
    first, last = c.axis(c.arg("start_dim"), len(x.shape)), c.axis(c.arg("end_dim"), len(x.shape))
    if first is None or last is None or first > last:
        return TensorType(x.dtype)
    return TensorType(x.dtype, (*x.shape[:first], product(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@torch_rule("select")
def select(c: Call) -> Type | tuple[Type, ...]:
    x = c.tensor(0)
    if c.is_number() or x.shape is None:
        return () if c.is_number() else TensorType(x.dtype)
    at = c.axis(c.arg("dim"), len(x.shape))
    return TensorType(x.dtype, (None,) * (len(x.shape) - 1) if at is None else (*x.shape[:at], *x.shape[at + 1 :]))


@torch_rule("slice", "narrow")
def slice_(c: Call) -> Type | tuple[Type, ...]:
    x = c.tensor(0)
    if c.is_number() or x.shape is None:
        return () if c.is_number() else TensorType(x.dtype)
    at = c.axis(c.arg("dim"), len(x.shape))
    if at is None:
        return TensorType(x.dtype, (None,) * len(x.shape))
    size, step = c.number("length"), c.number("step")
    if not c.has("length") and step is not None and step > 0:
        size = sliced(x.shape[at], c.number("start", 0), c.number("end", MAX_SIZE), step)
    return TensorType(x.dtype, (*x.shape[:at], size, *x.shape[at + 1 :]))


@torch_rule("as_strided")
def as_strided(c: Call) -> Type:
    sizes = c.dims("size")
    return TensorType(c.tensor(0).dtype, None if sizes is None else tuple(sizes))


@torch_rule("diagonal")
def diagonal(c: Call) -> Type:
    x, offset = c.tensor(0), c.number("offset")
    if x.shape is None:
        return TensorType(x.dtype)
    a, b = (c.axis(c.arg(name), len(x.shape)) for name in ("dim1", "dim2"))
    if a is None or b is None or a == b:
        return TensorType(x.dtype, (None,) * (len(x.shape) - 1) if len(x.shape) > 1 else None)
    rows, columns, size = x.shape[a], x.shape[b], None
    if offset is not None and isinstance(rows, int) and isinstance(columns, int):
        size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    return TensorType(x.dtype, (*(d for i, d in enumerate(x.shape) if i not in (a, b)), size))


@torch_rule("unfold")
def unfold(c: Call) -> Type:
    x, size, step = c.tensor(0), c.number("size"), c.number("step")
    if x.shape is None:
        return TensorType(x.dtype)
    shape = x.shape or (1,)
    at = c.axis(c.arg("dimension"), len(shape))
    if at is None:
        return TensorType(x.dtype, (*(None for _ in x.shape), size))
    count, whole = None, shape[at]
    if isinstance(whole, int) and size is not None and step is not None and step > 0 and 0 <= size <= whole:
        count = (whole - size) // step + 1
    return TensorType(x.dtype, (*shape[:at], count, *shape[at + 1 :], size) if x.shape else (size,))


@torch_rule("chunk", "split", "unbind", "split_with_sizes", "tensor_split")
def parts(c: Call) -> Type | tuple[Type, ...]:
    found = c.node.outputs[0]
    is_list = isinstance(found.type, ListType) and isinstance(found.type.elem, TensorType)
    return ListType(TensorType(c.tensor(0).dtype)) if is_list and c.types.is_fixed(found) else ()


@shape_rule("prim::ListUnpack")
def unpack(c: NodeTypes) -> Type | tuple[Type, ...]:
    listed = c.contents.get(c.node.inputs[0])
    numbers = c.node.inputs[0].type == ListType(types.INT)
    for i, value in enumerate(c.node.outputs):
        c.contents.pop(value, None)
        if listed is not None and numbers and listed.size == len(c.node.outputs) and c.is_fixed(c.node.inputs[0]):
            c.contents[value] = listed[i : i + 1].reshape(())
    given = c.type(0)
    if not isinstance(given, ListType) or not isinstance(given.elem, TensorType):
        return ()
    # What lists are believed to hold is what this module says of lists that are only read.
    return tuple(c.element(0) if c.is_stable else TensorType() for _ in c.node.outputs)


# -- joined and made -----------------------------------------------------------


@torch_rule("cat", "stack")
def cat(c: Call) -> Type:
    items = c.elements("tensors")
    if not items:
        return TensorType()
    dtype = result_type(items) if len({t.dtype for t in items}) > 1 else items[0].dtype
    shapes = [t.shape for t in items if t.shape is not None]
    rank = len(shapes[0]) if shapes else 0
    if len(shapes) < len(items) or any(len(s) != rank for s in shapes):
        return TensorType(dtype)  # cat leaves out empty vectors among others
    stacks = c.schema.name == "aten::stack"
    at = c.axis(c.arg("dim"), rank + stacks)
    if at is None or (not stacks and not rank):
        return TensorType(dtype, (None,) * (rank + stacks))
    axes = enumerate(zip(*shapes, strict=True))
    together = [None if i == at and not stacks else c.types.same_dim(dims, "sizes") for i, dims in axes]
    if stacks:
        return TensorType(dtype, (*together[:at], len(items), *together[at:]))
    together[at] = reduce(plus, [s[at] for s in shapes])
    return TensorType(dtype, tuple(together))


@torch_rule("zeros", "ones", "empty", "rand", "randn", "full")
def filled(c: Call) -> Type:
    sizes, given = c.dims("size"), c.arg("dtype")
    dtype = DType.FLOAT if given is None else element_type(given)
    if given is None and c.schema.name == "aten::full":
        fill = c.value("fill_value")
        dtype = None if fill is None else NUMBERS.get(fill.type)
    return TensorType(dtype, None if sizes is None else tuple(sizes))


@torch_rule("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like")
def filled_like(c: Call) -> Type:
    x, given = c.tensor(0), c.arg("dtype")
    return TensorType(x.dtype if given is None else element_type(given), x.shape)


@torch_rule("arange")
def arange(c: Call) -> Type:
    names = [n for n in ("start", "end", "step") if c.value(n) is not None]
    kinds = {v.type for v in map(c.value, names) if v is not None}
    given = c.arg("dtype")
    dtype = element_type(given)
    if given is None and kinds <= {types.INT, types.FLOAT}:
        dtype = DType.INT64 if kinds == {types.INT} else DType.FLOAT
    start, end, step = c.number("start", 0), c.number("end"), c.number("step", 1)
    if start is None or end is None or not step:
        return TensorType(dtype, (None,))
    return TensorType(dtype, (range_length(start, end, step),))


# -- sizes ---------------------------------------------------------------------


@torch_rule("size")
def size(c: Call) -> tuple[Type, ...]:
    shape, out = c.tensor(0).shape, c.node.outputs[0]
    if shape is not None and c.schema.overload == "int":
        at = c.axis(c.arg("dim"), len(shape))
        if at is not None and shape and shape[at] is not None:
            c.tell(out, shape[at])
    elif shape is not None and c.schema.overload == "":
        c.tell(out, list(shape))
    return ()


@torch_rule("dim")
def rank(c: Call) -> tuple[Type, ...]:
    shape = c.tensor(0).shape
    if shape is not None:
        c.tell(c.node.outputs[0], len(shape))
    return ()


@torch_rule("numel")
def numel(c: Call) -> tuple[Type, ...]:
    shape: Shape | None = c.tensor(0).shape
    if shape is not None and product(shape) is not None:
        c.tell(c.node.outputs[0], product(shape))
    return ()
