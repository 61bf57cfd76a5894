"""The steps of planned runs as calls of loop functions, which tables list (`irc.native.tables`).

A step is read only if calls do all that it does, with the bits that it has outside of tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irc import ops
from irc.ir.kinds import ATTENTION, CONSTANT, GROUP
from irc.ir.tensor import Array
from irc.native.attention import Layout
from irc.native.backend import FAMILIES, group_of, is_bound_to_code, is_slow_in_torch, is_tensor
from irc.native.blas import Matrices, call_for_product
from irc.native.calls import SIZES, STRIDES, Expected
from irc.native.groups import Anchored, Group, GroupCall, group_of_text
from irc.native.inline_cache import product_like
from irc.native.inner_loops import LANES, LOOPS, CheckedCall, Compute, OneCall, is_one_row
from irc.native.kernels import SMALL_SCRATCH, Call
from irc.native.lanes import INT32, INT64
from irc.native.loops import space_of
from irc.native.moves import Append, call_for_append, call_for_copy, call_for_gather, call_for_rows
from irc.ops.algebra import BOOL, SINGLE
from irc.ops.axes import APPEND, reduces
from irc.ops.pointwise import overwritable
from irc.runtime.array_memory import ANY, ANY_STRIDE, aligned, c_strides
from irc.runtime.backends import ArrayType, PlannedOperand, PlannedStep, Unsupported
from irc.runtime.execution import Frame, Slots, fail
from irc.runtime.kernels.attention import broadcasts_into, form_of, has_few_rows
from irc.runtime.kernels.convolution import convolve, repeats_one_filter
from irc.runtime.kernels.index import gather
from irc.runtime.kernels.matmul import product_shape
from irc.runtime.kernels.support import axis_in, is_constant
from irc.runtime.kernels.windows import outputs, resolver
from irc.runtime.lowering import subgraph_of
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Value


_BYTE = np.dtype(np.uint8)
_SUM = "graph(%x : Tensor, %y : Tensor):\n  %z : Tensor = onnx::Add(%x, %y)\n  return (%z)"


class Temporary(NamedTuple):
    """Memory that the calls of one step share: its address and size in bytes."""

    begin: int
    nbytes: int


class GrowingTemporary(NamedTuple):
    """Temporary memory behind all other, whose size follows from the largest size that is open.

    Attributes:
        nbytes: for each number of that.
    """

    nbytes: int


class ArrayNumber(NamedTuple):
    """A number of an array: its slot in the frame, the field (`SIZES`, `STRIDES`), and which one of it."""

    slot: int
    field: int
    position: int


Same = tuple[ArrayNumber, ArrayNumber]


class Check(NamedTuple):
    """What follows a call that may fail.

    Attributes:
        most: of the int32 before the result, if this is right.
        otherwise: makes the result of what is in the frame.
    """

    most: int
    otherwise: Callable[[Frame], object]


class TableCall(NamedTuple):
    """A call in a table.

    Attributes:
        call: of a loop function.
        arrays: its operands, then its results: slots of the frame, constants, temporary memory, numbers of arrays.
        check: for a call that may fail (`irc.native.inner_loops.CheckedCall`), what makes the result then.
        same: pairs of sizes that are to be equal, else the table refuses.
    """

    call: Call
    arrays: Sequence[int | Array | Temporary | GrowingTemporary | ArrayNumber]
    check: Check | None = None
    same: Sequence[Same] = ()


Calls = tuple[list[TableCall], ArrayType]
"""Calls, and what they make."""


class Operand(NamedTuple):
    """An operand of a step.

    Attributes:
        place: its slot in the frame, a constant that is in none, or temporary memory.
        type: its element type and shape.
        strides: how it lies, as of `PlannedOperand`.
        constant: the array itself, if it never changes.
    """

    place: int | Array | Temporary
    type: ArrayType
    strides: tuple[int, ...] | None = None
    constant: Array | None = None


class StepReader:
    """Reads steps as calls of loop functions.

    Args:
        groups: what has been compiled, by the subgraphs of fusion groups.
    """

    def __init__(self, groups: Mapping[Graph, Group | Anchored]) -> None:
        self._groups = groups
        self._known: dict[Any, Sequence[GroupCall] | Unsupported] = {}
        self._taken = 0  # bytes of temporary memory, by the step that is read

    def read(self, step: PlannedStep) -> Sequence[TableCall]:
        """The calls that do what ``step`` does. Raises `Unsupported` if something else is needed."""
        self._taken = 0
        operands = [None if x is None else Operand(x.slot, x.type, x.strides, x.constant) for x in step.operands]
        try:
            return self._calls(step.node, operands, step.outs)
        except Unsupported:
            if all(x is None or x.strides is None for x in operands):
                raise
        copies, ordered = self._ordered(operands)
        return [*copies, *self._calls(step.node, ordered, step.outs)]

    def _calls(self, node: Node, given: Sequence[Operand | None], outs: Slots) -> Sequence[TableCall]:
        if node.kind == APPEND:
            return [self._append(node, *given)]
        if node.kind != ATTENTION and any(x is not None and x.type.varies for x in given):
            raise Unsupported("sizes differ from run to run")
        if node.kind == GROUP:
            group = self._groups.get(subgraph_of(node))
            operands = [x for x in given if x is not None]
            if group is None or len(operands) < len(given):
                raise Unsupported("the group is not compiled")
            if isinstance(group, Anchored):
                return self._anchored(group, operands, outs)
            return self._group(group, operands, outs, ())
        if node.kind in FAMILIES:
            return self._read(node, given, outs)[0]
        if node.kind.startswith("aten::"):
            return self._torch_operator(node, given, outs)
        has_loop = reduces(node) or ops.semantics(node.kind, node.version) is not None
        if not node.kind.startswith("onnx::") or node.kind.endswith("_") or not has_loop:
            raise Unsupported(f"{node.kind} takes more than a loop")
        places = [i for i, value in enumerate(node.inputs) if is_tensor(value)]
        operands = [x for x in (given[i] for i in places) if x is not None]
        exactly = not is_bound_to_code(node)  # as it is computed in the first run
        over = [i for i in range(overwritable(node)) if node.inputs.count(node.inputs[i]) == 1]  # else planners do not
        return self._group(group_of(node, places), operands, outs, over, exactly)

    def _torch_operator(self, node: Node, given: Sequence[Operand | None], outs: Slots) -> Sequence[TableCall]:
        """The calls of a pointwise operator of TorchScript that is not in place."""
        places = [i for i, value in enumerate(node.inputs) if not value.made_by(CONSTANT)]
        operands = [x for x in (given[i] for i in places) if x is not None]
        if node.kind.endswith("_") or ops.semantics(node.kind) is None or len(operands) < len(places):
            raise Unsupported(f"{node.kind} takes more than a loop")
        return self._group(group_of(node, places), operands, outs, (), not is_slow_in_torch(node))

    def _group(
        self, group: Group, operands: Sequence[Operand], outs: Slots, over: Iterable[int], exactly: bool = False
    ) -> Sequence[TableCall]:
        """The calls of a group, one of whose operands at the positions ``over`` may be where the result is."""
        given, over = tuple(map(expected_of, operands)), tuple(over)
        key = group.text or group, given, tuple([(x.dtype, x.shape) for x in group.constants]), over, exactly
        if key not in self._known:
            try:
                self._known[key] = _calls(group, given, over, exactly)
            except Unsupported as error:
                self._known[key] = error
        calls = self._known[key]
        if isinstance(calls, Unsupported):
            raise calls
        arrays = [*[x.place for x in operands], *group.constants]
        return [
            TableCall(call, [*[arrays[i] for i in takes], *[outs[i] for i in makes]]) for call, takes, makes in calls
        ]

    def _anchored(self, group: Anchored, operands: Sequence[Operand], outs: Slots) -> Sequence[TableCall]:
        """The calls of a product, which is made where the result is, and of what follows it there."""
        anchor = group.anchor
        known: dict[Value, Operand | None] = dict(zip(group.inputs, operands))
        for value, array in group.constants.items():
            known[value] = _of_constant(array) if is_array(array) else None
        given = [known[value] for value in anchor.inputs]
        calls, made = self._read(anchor, given, outs)
        others = [operands[i] for i in group.used]
        if group.rest.results([*[x.type for x in others], made]) != [made]:
            raise Unsupported("the product is no place for the result")
        # What comes last is the product, which is written over.
        return [*calls, *self._group(group.rest, [*others, Operand(outs[0], made)], outs, {len(others)})]

    def _read(self, node: Node, operands: Sequence[Operand | None], outs: Slots) -> Calls:
        """The calls of an operator that is neither pointwise nor reduces rows."""
        read = self._readers.get(FAMILIES.get(node.kind, ""))
        if read is None or len(outs) != (3 if read is StepReader._quantize else 1):
            raise Unsupported(f"{node.kind} takes more than a loop")
        return read(self, node, operands, *outs)

    def _product(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The calls of MatMul or Gemm, and what they make."""
        a, b, *others = operands
        c = others[0] if others else None
        given = node.attributes
        factors = [float(given.get("alpha", 1)), float(given.get("beta", 1) if c is not None else 1)]
        if a is None or b is None or factors != [1, 1] or given.get("broadcast") or a.type.dtype != b.type.dtype:
            raise Unsupported("it is more than a product and a sum")
        is_turned = bool(given.get("transB"))
        first, second = _matrices(a, bool(given.get("transA"))), _matrices(b, is_turned)
        made = ArrayType(a.type.dtype, product_shape(first.shape, second.shape))
        compute = self._packed_product(node, a, b, c) if _constant(b) is not None else None
        calls = [_blas_product(a, b, first, second, out) if compute is None else _one_call(compute, a, out)]
        return [*calls, *self._sum(Operand(out, made), c, out)], made

    def _sum(self, x: Operand, y: Operand | None, out: int) -> Sequence[TableCall]:
        """The call that adds ``y`` to ``x``, which is where the result is; none if there is no ``y``."""
        return () if y is None else self._group(group_of_text(_SUM), [x, y], (out,), {0})

    def _torch_product(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The calls of a product of TorchScript, maybe with a sum, and what they make."""
        is_sum = "add" in node.kind
        a, b, c = (*operands[1:3], operands[0]) if is_sum else (*operands[:2], (*operands, None)[2])
        factors = [each.attributes.get("value") for v in node.inputs[3:] if (each := v.made_by(CONSTANT)) is not None]
        if a is None or b is None or a.type.dtype != b.type.dtype or (c is not None and c.type.dtype != a.type.dtype):
            raise Unsupported("operands are of several types")
        if len(node.inputs) != (5 if is_sum else 3 if node.kind == "aten::linear" else 2) or factors != [1, 1] * is_sum:
            raise Unsupported("it is more than a product and a sum")
        first, second = _matrices(a, False), _matrices(b, node.kind == "aten::linear")
        made = ArrayType(a.type.dtype, product_shape(first.shape, second.shape))
        return [_blas_product(a, b, first, second, out), *self._sum(Operand(out, made), c, out)], made

    def _packed_product(self, node: Node, a: Operand, b: Operand, c: Operand | None) -> Compute | None:
        """How ``a`` is multiplied with a constant ``b`` that is packed; None if it is not."""
        is_turned, bias, weights = bool(node.attributes.get("transB")), _constant(c), _constant(b)
        if a.strides is not None or node.attributes.get("transA") or weights is None:
            raise Unsupported("rows do not lie in order")
        if is_turned and (isinstance(a.place, Temporary) or (c is not None and bias is None)):
            return None  # outside of tables, a turned matrix is packed for rows in C order alone
        like = product_like(_like(a), weights, bias if is_turned else None, is_turned, node.kind == "onnx::Gemm")
        return None if like is None else like.compute

    def _convolution(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The call of Conv with constant weights."""
        x, w, *others = operands
        b = others[0] if others else None
        weights, bias = _constant(w), _constant(b)
        if x is None or weights is None or (b is not None and bias is None):
            raise Unsupported("weights may change")
        if not _lies_in_order(x) or x.type.dtype != SINGLE or weights.dtype != SINGLE or repeats_one_filter(weights):
            raise Unsupported("the convolution takes more than a loop")
        axes = resolver(node)(x.type.shape[2:], weights.shape[2:])
        made = ArrayType(SINGLE, (x.type.shape[0], len(weights), *outputs(axes)))
        given, result = _like(x), _like(Operand(out, made))
        group = node.attributes.get("group", 1)
        padded = LOOPS.padded_convolution(given, weights, bias, group, axes, result)
        if padded is None:
            compute = LOOPS.convolver(given, weights, bias, group, axes, result)
            if not isinstance(compute, CheckedCall):
                return [_one_call(compute, x, out)], made

            place = x.place

            def otherwise(frame: Frame) -> object:
                image = _in(frame, place)
                try:
                    return convolve(image, weights, bias, group, axes, frame[out])
                except Exception as error:
                    fail(error, node, [image, weights, bias])

            met = self._temporary(4)
            check = Check(compute.most, otherwise)
            return [TableCall(compute.call, [x.place, *compute.constants, met, out], check)], made
        pad, nbytes, of_padded = padded
        stored = self._temporary(nbytes)
        return [TableCall(pad, [x.place, stored]), TableCall(of_padded.call, [stored, *of_padded.constants, out])], made

    def _attention(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The call of attention of few rows of each head, where queries, keys and values do not broadcast."""
        query, key, value, bias, mask, sink = (*operands, None, None, None)[:6]
        form = form_of(node)
        if sink is not None or query is None or key is None or value is None:
            raise Unsupported("scores are changed")
        lead, rows, (*heads, keys, _) = query.type.shape[:-2], query.type.shape[-2], key.type.shape
        if keys == ANY and (rows != 1 or any(x is not None and x.type.shape[-1:] != (ANY,) for x in (mask, bias))):
            raise Unsupported("there may be many scores, or a mask is as long as keys are in some runs only")
        if not has_few_rows(form, (*lead, rows), keys):
            raise Unsupported("scores are changed, or there are many")
        is_alike = key.type.shape[:-1] == value.type.shape[:-1] and (mask is None or mask.type.dtype == BOOL)
        shared = lead[-1] // heads[-1] if form.grouped and lead and heads and heads[-1] else 1
        if not is_alike or not lead or lead != (*heads[:-1], heads[-1] * shared) or query.type.varies:
            raise Unsupported("operands broadcast")
        numbers = [x.type.dtype for x in (query, key, value, bias) if x is not None]
        if set(numbers) != {query.type.dtype} or not query.type.nbytes * keys:
            raise Unsupported("operands are of several types, or empty")
        if any(isinstance(x.place, Temporary) for x in (key, value)):
            raise Unsupported("rows do not lie in order")
        scale = 1 / math.sqrt(query.type.shape[-1]) if form.scale is None else form.scale
        has_rows = tuple([int(x is None or not is_one_row(x.type.shape, keys)) for x in (mask, bias)])
        one = np.empty((*heads, *[shared] * (shared > 1), *query.type.shape[-2:]), query.type.dtype)
        fill = None if mask is None else form.fill
        found = LOOPS.attention(one, _like(key), _like(value), scale, fill, bias is not None, has_rows)
        if found is None:
            raise Unsupported("there is no loop")
        call, (layout,) = found
        dtype, more = query.type.dtype, [x for x in (mask, bias) if x is not None]
        if keys == ANY:
            copies, places, same = self._open_attention(key, value, layout, call.size)
            same += [_same_size(same[0][0], x, len(x.type.shape) - 1) for x in more]
        else:
            scores = self._temporary(call.size * (keys + LANES) * dtype.itemsize)
            copies, places, same = list[TableCall](), [np.array(keys), layout, scores], []
        scored = *lead, rows, keys
        shapes = [x.type.shape if x is query or is_one_row(x.type.shape, keys) else scored for x in (query, *more)]
        spread = [self._spread(x, shape) for x, shape in zip((query, *more), shapes)]
        copies += [each for calls, _ in spread for each in calls]
        (given, *others) = [place for _, place in spread]
        made = ArrayType(dtype, (*lead, rows, value.type.shape[-1]))
        return [*copies, TableCall(call, [given, key.place, value.place, *places, *others, out], same=same)], made

    def _open_attention(
        self, key: Operand, value: Operand, layout: Array, rows: int
    ) -> tuple[list[TableCall], list[Any], list[Same]]:
        """Calls that make the layout of caches of which the number of rows differs from run to run.

        And what the call of attention takes then: the number of keys, the layout, memory for scores; which sizes agree.
        """
        lead, itemsize = key.type.shape[:-2], key.type.dtype.itemsize
        axes = _axes_of(lead)
        if not (isinstance(key.place, int) and isinstance(value.place, int) and key.strides and value.strides):
            raise Unsupported("there may be no keys: these are no caches to which something is appended")
        made = self._temporary(layout.nbytes)
        template = Layout(*layout.tolist())._replace(heads=lead[axes[-1]] if axes else 1, key_outer=0, value_outer=0)
        calls = [TableCall(call_for_rows(1, made.nbytes, made.nbytes, 0), [np.array(template), made])]
        for slot, name in ((key.place, "key_row"), (value.place, "value_row")):
            for behind, axis in enumerate((len(lead), *reversed(axes))):
                place = 8 * (Layout._fields.index(name) - behind)
                calls.append(TableCall(call_for_rows(1, 8, 8, place), [ArrayNumber(slot, STRIDES, axis), made]))
        count = ArrayNumber(key.place, SIZES, len(lead))
        return calls, [count, made, GrowingTemporary(rows * itemsize)], [_same_size(count, value, len(lead))]

    def _append(self, node: Node, both: Operand | None, new: Operand | None) -> TableCall:
        """The call that copies ``new`` to the end of what is longer (`irc.runtime.backends.PlannedStep`)."""
        if both is None or new is None or not isinstance(both.place, int) or new.type.dtype.hasobject:
            raise Unsupported("there is nothing to append")
        shape, itemsize = new.type.shape, new.type.dtype.itemsize
        axis = axis_in(int(node.attributes["axis"]), len(shape))
        axes, strides = _axes_of(shape[:axis]), new.strides or c_strides(shape, itemsize)
        inner = zip(shape[axis + 1 :], strides[axis + 1 :], c_strides(shape[axis:], itemsize)[1:])
        if ANY_STRIDE in strides or any(n > 1 and step != dense for n, step, dense in inner):
            raise Unsupported("rows do not lie in order")
        none = np.zeros((), np.int64)
        outer_from, inner_from = (0, 0, *[strides[i] for i in axes])[-2:]
        to = [none, none, *[ArrayNumber(both.place, STRIDES, i) for i in axes]][-2:]
        heads = shape[axes[-1]] if axes else 1
        width = itemsize * math.prod(shape[axis + 1 :])
        layout = Append(heads, outer_from, inner_from, strides[axis], shape[axis], width)
        call = call_for_append(math.prod(shape[:axis]), layout)
        return TableCall(call, [new.place, both.place, ArrayNumber(both.place, SIZES, axis), *to])

    def _spread(self, x: Operand, shape: tuple[int, ...]) -> tuple[list[TableCall], int | Array | Temporary]:
        """Calls that broadcast ``x`` to ``shape``, if it has another, and where it is then."""
        if x.type.shape == shape and x.strides is None:
            return [], x.place
        if x.type.varies or ANY in shape:
            raise Unsupported("sizes differ from run to run")
        if not broadcasts_into(x.type.shape, shape):
            raise Unsupported("a mask has more axes than scores")
        seen = np.broadcast_to(_like(x), shape)
        place = self._temporary(math.prod(shape) * seen.itemsize)
        return [_copy(Operand(x.place, ArrayType.of(seen), seen.strides), place)], place

    def _pool(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The call of MaxPool or AveragePool."""
        (x,) = operands
        include = None if node.kind == "onnx::MaxPool" else bool(node.attributes.get("count_include_pad", 0))
        if x is None or not _lies_in_order(x):
            raise Unsupported("rows do not lie in order")
        axes = resolver(node)(x.type.shape[2:], None)
        made = ArrayType(x.type.dtype, (*x.type.shape[:2], *outputs(axes)))
        return [_one_call(LOOPS.pooling(_like(x), axes, _like(Operand(out, made)), include), x, out)], made

    def _concat(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The calls that copy rows of the operands of Concat side by side."""
        parts = [x for x in operands if x is not None and x.strides is None]
        dtypes = {x.type.dtype for x in parts}
        if len(parts) < len(operands) or len(dtypes) > 1 or any(dtype.hasobject for dtype in dtypes):
            raise Unsupported("operands are of several types, or do not lie in order")
        (dtype,), (first, *_) = dtypes, [x.type.shape for x in parts]
        axis = axis_in(int(node.attributes["axis"]), len(first))
        rows, widths = math.prod(first[:axis]), [dtype.itemsize * math.prod(x.type.shape[axis:]) for x in parts]
        whole = sum(widths)
        calls: list[TableCall] = []
        place = 0
        for x, width in zip(parts, widths):
            if rows and width:
                calls.append(TableCall(call_for_rows(rows, width, whole, place), [x.place, out]))
            place += width
        along = sum([x.type.shape[axis] for x in parts])
        return calls, ArrayType(dtype, (*first[:axis], along, *first[axis + 1 :]))

    def _gather(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The call of Gather, which fails if an index is out of range."""
        x, indices = operands
        if x is None or indices is None or {x.strides, indices.strides} != {None} or indices.type.dtype != INT64:
            raise Unsupported("operands do not lie in order, or indices have 32 bits")
        (dtype, shape), count = x.type, math.prod(indices.type.shape)
        axis = axis_in(int(node.attributes.get("axis", 0)), len(shape))
        made = ArrayType(dtype, (*shape[:axis], *indices.type.shape, *shape[axis + 1 :]))
        if dtype.hasobject or not made.nbytes:
            raise Unsupported("there is nothing to copy, or objects")
        met, places = self._temporary(4), [x.place, indices.place]

        def otherwise(frame: Frame) -> object:
            given = [_in(frame, place) for place in places]
            try:
                return gather(*given, axis=axis)
            except Exception as error:
                fail(error, node, given)

        return [TableCall(call_for_gather(_like(x), count, axis), [*places, met, out], Check(0, otherwise))], made

    def _quantize(self, node: Node, operands: Sequence[Operand | None], *outs: int) -> Calls:
        """The call of DynamicQuantizeLinear."""
        (x,) = operands
        call = None if x is None or x.strides is not None else LOOPS.quantizer(_like(x))
        if x is None or call is None:
            raise Unsupported("there is no loop")
        return [TableCall(call, [x.place, *outs])], ArrayType(_BYTE, x.type.shape)

    def _product_of_integers(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The call of MatMulInteger with constant weights."""
        a, b, zero, b_zero = (*operands, None, None)[:4]
        weights, of_weights = _constant(b), _constant(b_zero)
        if a is None or a.strides is not None or weights is None or (b_zero is not None and of_weights is None):
            raise Unsupported("weights may change, or rows do not lie in order")
        if zero is not None and (zero.type.dtype != a.type.dtype or math.prod(zero.type.shape) != 1):
            raise Unsupported("rows have zero points of their own")
        made = ArrayType(INT32, product_shape(a.type.shape, weights.shape))
        found = LOOPS.integer_product(_like(a), weights, of_weights)
        if found is None:
            raise Unsupported("there is no loop")
        zeros = np.zeros((), _BYTE) if zero is None else zero.place
        return [TableCall(found.call, [a.place, *found.constants, zeros, out])], made

    def _reshape(self, node: Node, operands: Sequence[Operand | None], out: int) -> Calls:
        """The call of Reshape that copies what lies in another order."""
        x = operands[0]
        if x is None:
            raise Unsupported("there is nothing to copy")
        return [_copy(x, out)], x.type

    def _ordered(self, operands: Sequence[Operand | None]) -> tuple[list[TableCall], list[Operand | None]]:
        """Calls that copy operands to C order, as kernels do, and what they make. Raises `Unsupported`."""
        calls: list[TableCall] = []
        made: list[Operand | None] = []
        for x in operands:
            if x is None or x.strides is None:
                made.append(x)
                continue
            if x.type.varies:
                raise Unsupported("sizes differ from run to run")
            place = self._temporary(x.type.nbytes)
            calls.append(_copy(x, place))
            made.append(Operand(place, x.type))
        return calls, made

    def _temporary(self, nbytes: int) -> Temporary:
        """Memory that no other call of the step uses."""
        found = Temporary(self._taken, nbytes)
        self._taken = aligned(self._taken + nbytes)
        return found

    _readers: ClassVar[Mapping[str, Callable[..., Calls]]] = {
        "convolution": _convolution,
        "product": _product,
        "product of TorchScript": _torch_product,
        "pooling": _pool,
        "concatenation": _concat,
        "gathering": _gather,
        "attention": _attention,
        "quantization": _quantize,
        "product of integers": _product_of_integers,
        "copying": _reshape,
    }
    """What reads a step of an operator of these families."""


def _lies_in_order(x: Operand) -> bool:
    """Whether ``x`` itself, not just a copy, lies in C order: windows are read by rows' strides."""
    return x.strides is None and not isinstance(x.place, Temporary)


def _constant(operand: Operand | None) -> Array | None:
    """The array of an operand that never changes."""
    array = None if operand is None else operand.constant
    return array if array is not None and is_constant(array) else None


def _in(frame: Frame, place: int | Array | Temporary) -> Array:
    """The array at a place of an operand that lies in order."""
    assert not isinstance(place, Temporary), "only copies do not lie in the frame"
    return frame[place] if isinstance(place, int) else place


def _one_call(found: Compute | None, x: Operand, out: int) -> TableCall:
    """The call of a loop for ``x``."""
    if not isinstance(found, OneCall):
        raise Unsupported("it takes more than a loop")
    return TableCall(found.call, [x.place, *found.constants, out])


def _blas_product(a: Operand, b: Operand, first: Matrices, second: Matrices, out: int) -> TableCall:
    found = call_for_product(first, second, a.type.dtype)
    if found is None or isinstance(a.place, Temporary) or isinstance(b.place, Temporary):
        raise Unsupported("NumPy computes the product in another way")
    arrays = [b.place, a.place] if found.is_swapped else [a.place, b.place]
    return TableCall(found.call, [*arrays, out])


def _of_constant(array: Array) -> Operand:
    """An array that is in no slot."""
    strides = None if array.flags.c_contiguous else array.strides
    return Operand(array, ArrayType(array.dtype, array.shape), strides, array)


def _same_size(size: ArrayNumber, x: Operand, axis: int) -> Same:
    """That ``x`` is as long along an axis as ``size`` says."""
    if not isinstance(x.place, int):
        raise Unsupported("sizes that differ from run to run are those of arrays in the frame")
    return size, ArrayNumber(x.place, SIZES, axis)


def _axes_of(lead: Sequence[int]) -> list[int]:
    """The axes of more than one element, at most two. Raises `Unsupported`."""
    axes = [i for i, size in enumerate(lead) if size != 1]
    if len(axes) > 2:
        raise Unsupported("heads lie along more than two axes")
    return axes


_USUAL = 256
"""A size that stands for `ANY`, to estimate work."""


def _like(x: Operand) -> Array:
    """An array of its type that lies as ``x`` does, as far as is known, of which nothing may be read."""
    dtype, shape = x.type
    if x.type.varies:
        if x.strides is None:
            raise Unsupported("nothing is known of sizes that differ from run to run")
        shape = tuple([_USUAL if size == ANY else size for size in shape])
        dense = c_strides(shape, dtype.itemsize)
        steps = [usual if step == ANY_STRIDE else step for step, usual in zip(x.strides, dense)]
        return as_strided(np.empty(1, dtype), shape, steps)
    return np.empty(shape, dtype) if x.strides is None else as_strided(np.empty(1, dtype), shape, x.strides)


def _copy(x: Operand, to: int | Temporary) -> TableCall:
    """The call that copies ``x`` to C order."""
    given = _like(x)
    call = call_for_copy(given, np.empty(given.shape, given.dtype)) or _copy_of_rows(given)
    if call is None:
        raise Unsupported("there is no loop that copies so")
    return TableCall(call, [x.place, to])


def _copy_of_rows(x: Array) -> Call | None:
    """A call that copies arrays like ``x`` to C order, if rows lie as they should; None if not."""
    sizes, (steps, _) = space_of(x.shape, [(x.shape, x.strides), (x.shape, c_strides(x.shape, x.itemsize))])
    if not steps[-1]:  # each element is repeated: rows are of one
        sizes, steps = (*sizes, 1), (*steps, x.itemsize)
    if not 0 < len(sizes) < 5 or steps[-1] != x.itemsize or not x.size:
        return None
    (rows, step), *inner = [(1, 0), *zip(sizes[:-1], steps)][-max(1, len(sizes) - 1) :]
    width = sizes[-1] * x.itemsize
    return call_for_rows(rows, width, width, 0, step, inner=inner)


def _matrices(operand: Operand, is_turned: bool) -> Matrices:
    (dtype, shape), strides = operand.type, operand.strides
    if strides is not None and any(stride % dtype.itemsize for stride in strides):
        raise Unsupported("there are parts of elements between elements")
    steps = c_strides(shape, 1) if strides is None else tuple([stride // dtype.itemsize for stride in strides])
    return Matrices(shape[::-1], steps[::-1]) if is_turned else Matrices(shape, steps)


def _calls(group: Group, operands: Sequence[Expected], over: Iterable[int], exactly: bool) -> Sequence[GroupCall]:
    types = [ArrayType(x.dtype, tuple(x.shape)) for x in operands]
    calls, allowed, (made, *_) = group.calls(operands, exactly), group.overwrites(types), group.results(types)
    if any(i < len(types) and types[i] == made and (0, i) not in allowed for i in over):
        raise Unsupported("the result may be in the way")
    if any(each.call.work or each.call.scratch > SMALL_SCRATCH for each in calls):
        raise Unsupported("it takes much memory")
    return calls


def expected_of(operand: Operand | PlannedOperand) -> Expected:
    """What a call is made for: ``operand``."""
    return Expected(*operand.type, operand.strides)
