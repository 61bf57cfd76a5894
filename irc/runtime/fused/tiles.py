"""Pointwise tails of fusion groups, run block by block.

A chain of elementwise operators on large arrays spends its time at fetching and
storing: each operator reads arrays from memory and writes one. In blocks that fit
into a cache, all operators do their work on one block before the next is fetched.
What lies between them is kept in scratch buffers of the size of a block; only the
results of the group are arrays of full size. Blocks are independent, so several
threads may take them, and since every element is computed by the same operations,
results are the same to the last bit, however many threads there are.

Whether and how is decided by the shapes, strides and element types that a run
brings, once for each kind of them (`Tiling`).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple, NoReturn

import numpy as np

from irc.ir import Node
from irc.ir.ops.pointwise import SHAPED_LIKE_FIRST
from irc.ir.types import has_shape
from irc.runtime.binding import interrupts
from irc.runtime.execution import Frame, Run, Slots, Watch, fail
from irc.runtime.fused import tiling
from irc.runtime.fused.tiling import Index, Shape
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import broadcast_shape
from irc.runtime.threads import workers
from irc.runtime.values import Array, is_array

TILE_BYTES = 1 << 18
"""Of one operand in one block, on one thread. Measured on chains of 40 operators: half or double of it make little
difference, a quarter costs a fifth."""

SHARED_TILE_BYTES = 1 << 20
"""The same at most where several threads take blocks: whenever one returns from NumPy while another holds the GIL, it
sleeps, and waking up takes 15 to 38 µs. Measured on two threads, operands of 1 to 16 MiB, chains of 4, 12 and 40: half
takes a twentieth to an eighth longer, a quarter a third to a half; twice as much makes no difference."""

WORTH = 1 << 14
"""An operand of fewer elements does not make a group worth a second look: measured on one thread, blocks of arrays of
up to 65,536 gain nothing, and where shapes change from run to run (decoders), finding the blocks costs 100 µs."""

THREADS = 4
"""No more threads than this by default: memory is shared by all of them."""

KEPT = 16
"""Tilings kept for a group, for as many kinds of inputs."""

_LINE = 64  # bytes of a cache line

Registers = list[Any]


class Operation(NamedTuple):
    """One operator of a tail: registers hold the tail's inputs, then each operator's result."""

    node: Node
    kernel: Kernel
    ins: Slots
    out: int


class Tail:
    """The pointwise operators that a group ends with.

    Args:
        slots: where in the frame the values from before the tail are: its inputs. They are the first registers.
        operations: the operators, in order.
        outputs: the registers of the tail's results, each of them made by an operator.
        spare: the registers of inputs whose memory nothing refers to but that register, once the tail runs.
        places: for registers of results, slots with the arrays in which they are to be made.
    """

    def __init__(
        self,
        slots: Slots,
        operations: Sequence[Operation],
        outputs: Slots,
        spare: Slots = (),
        places: Mapping[int, int] | None = None,
    ) -> None:
        self.slots = slots
        self.operations = operations
        self.outputs = outputs
        self.spare = spare
        self.places = places or {}
        self.size = len(slots) + len(operations)
        self._tilings: OrderedDict[Any, Tiling | None] = OrderedDict()
        self._lock = RLock()

    def run(self, frame: Frame) -> list[Any] | None:
        """The results, or None if this is nothing for tiles: then nothing was done."""
        for s in self.slots:
            x = frame[s]
            if isinstance(x, np.ndarray) and x.size >= WORTH:  # not by a function: decoders ask at each step
                return self._run(frame)
        return None

    def _run(self, frame: Frame) -> list[Any] | None:
        run: Run = frame[0]
        inputs = [frame[s] for s in self.slots]
        if not all(x is None or is_array(x) for x in inputs):
            return None
        threads = run.threads or min(workers.usable_processors(), THREADS)
        kinds = self._kinds(inputs, threads)
        try:
            found = self._tilings[kinds]
        except KeyError:
            found = find_tiling(self, inputs, threads)
            with self._lock:  # threads that run one model share it
                self._keep(kinds, found)
        if found is None:
            return None
        if threads == 1 and len(self.operations) == 1:
            return None  # nothing to keep in the cache for
        made = {r: frame[slot] for r, slot in self.places.items()}
        results = found.run(inputs, threads, run.watch, made)
        counters = run.counters
        counters.kernels += len(self.operations)
        counters.in_place += sum(taken is not None for taken in found.taken.values())
        counters.tiled_groups += 1
        counters.tiles += len(found.blocks)
        counters.tile_bytes = max(counters.tile_bytes, found.scratch_bytes)
        return results

    def _keep(self, kinds: Any, found: Tiling | None) -> None:
        self._tilings[kinds] = found
        while len(self._tilings) > KEPT:
            self._tilings.popitem(last=False)

    def _kinds(self, inputs: Sequence[Any], threads: int) -> Any:
        """All that a tiling depends on."""
        kinds = [None if x is None else (x.shape, x.strides, x.dtype) for x in inputs]
        return tuple(kinds), tuple([inputs[r].flags.writeable for r in self.spare]), threads, TILE_BYTES


@dataclass(frozen=True)
class Block:
    """One block: its shape, and where it lies in operands, by which axes they have."""

    shape: Shape
    places: list[Index]


class Cut(NamedTuple):
    """What is read or written block by block.

    Attributes:
        register: where it is.
        once: an index that leaves out repetitions: axes of stride 0 become axes of one element. None if it is to have
            all of them, those that broadcasting makes included.
        shape: its shape in the merged space, after that.
        place: which of a block's places is its.
    """

    register: int
    once: Index | None
    shape: Shape
    place: int


@dataclass(frozen=True)
class Tiling:
    """A tail made ready for inputs of certain shapes, strides and element types.

    While a block is computed, a list holds what the operators read and write: the registers, then scratch buffers.

    Attributes:
        tail: the tail.
        shape: of all results of full size.
        values: of each register, an array of its shape and type that takes no memory; for messages.
        before: operators with smaller results, to be run whole before all blocks.
        operations: the others; what they read and write are positions in the list.
        scalars: registers of inputs of one element, which every block reads.
        cut: registers that are read and written block by block.
        taken: register of a result of full size -> that of the input whose memory it takes, or None.
        buffers: element types of the scratch buffers.
        blocks: the blocks.
    """

    tail: Tail
    shape: Shape
    values: list[Any]
    before: list[Operation]
    operations: list[Operation]
    scalars: list[int]
    cut: list[Cut]
    taken: dict[int, int | None]
    buffers: list[np.dtype[Any]]
    blocks: list[Block]

    @property
    def scratch_bytes(self) -> int:
        """What each thread needs for its scratch buffers."""
        return sum(map(self._bytes, self.buffers)) + _LINE

    def run(
        self, inputs: Sequence[Any], threads: int, watch: Watch | None = None, made: Mapping[int, Array] | None = None
    ) -> list[Any]:
        """The results of the tail, in order; those of registers in ``made`` in the arrays there."""
        registers: Registers = [*inputs, *[None] * (self.tail.size - len(inputs))]
        for operation in self.before:
            registers[operation.out] = self._call(operation, registers, watch)
        for result, taken in self.taken.items():
            if made and result in made:
                registers[result] = made[result]
            elif taken is not None:
                registers[result] = registers[taken]
            else:
                registers[result] = np.empty(self.shape, self.values[result].dtype)
        shared = registers.copy()
        for register in self.scalars:
            shared[register] = registers[register].reshape(())
        for register, once, shape, _ in self.cut:
            x = registers[register]
            shared[register] = (np.broadcast_to(x, self.shape) if once is None else x[once]).reshape(shape)
        workers.share(lambda: self._piece(shared, watch), len(self.blocks), threads)
        return [registers[r] for r in self.tail.outputs]

    def _piece(self, shared: Registers, watch: Watch | None) -> workers.Piece:
        memory = scratch("tiles", (self.scratch_bytes,), np.dtype(np.uint8))
        memory = memory[-memory.ctypes.data % _LINE :]
        buffers: dict[Shape, list[Array]] = {}

        def piece(number: int) -> None:
            block = self.blocks[number]
            if block.shape not in buffers:
                buffers[block.shape] = self._buffers(memory, block.shape)
            values = shared + buffers[block.shape]
            for register, _, _, place in self.cut:
                values[register] = shared[register][block.places[place]]
            if watch is not None:
                for operation in self.operations:
                    self._call(operation, values, watch, out=values[operation.out])
            else:
                self._compute(values)

        return piece

    def _compute(self, values: Registers) -> None:
        """All operators on one block."""
        done = 0
        try:
            for _, kernel, ins, out in self.operations:
                kernel(*[values[r] for r in ins], out=values[out])
                done += 1
        except Exception as error:
            self._fail(error, self.operations[done])

    def _call(self, operation: Operation, values: Registers, watch: Watch | None, **out: Array) -> Any:
        if watch is not None:
            watch.begin_part(operation.node)
        try:
            result = operation.kernel(*[values[r] for r in operation.ins], **out)
        except Exception as error:
            self._fail(error, operation)
        if watch is not None:
            watch.end_part(operation.node)
        return result

    def _fail(self, error: Exception, operation: Operation) -> NoReturn:
        original = next(o for o in self.tail.operations if o.node is operation.node)
        fail(error, original.node, [self.values[r] for r in original.ins])

    def _buffers(self, memory: Array, shape: Shape) -> list[Array]:
        """The scratch buffers, cut to the shape of a block."""
        found: list[Array] = []
        start, size = 0, math.prod(shape)
        for dtype in self.buffers:
            found.append(memory[start : start + size * dtype.itemsize].view(dtype).reshape(shape))
            start += self._bytes(dtype)
        return found

    def _bytes(self, dtype: np.dtype[Any]) -> int:
        """The size of a scratch buffer, at a multiple of a cache line."""
        size = max(math.prod(block.shape) for block in self.blocks) * dtype.itemsize
        return -(-size // _LINE) * _LINE


def find_tiling(tail: Tail, inputs: Sequence[Any], threads: int) -> Tiling | None:
    """How to run ``tail`` on ``inputs`` and others of their kinds; None if in blocks it cannot be, or need not."""
    values = _kinds_of_values(tail, inputs)
    if values is None:
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
    if not all(_may_be_cut(o, inputs, values, shape) for o in within):
        return None
    read = [r for r in dict.fromkeys(r for o in within for r in o.ins) if r not in full and values[r] is not None]
    results = [r for r in dict.fromkeys(tail.outputs) if r in full]
    cut = [r for r in read if values[r].size != 1] + results
    operands = [inputs[r] if r < len(inputs) else values[r] for r in cut]
    merged = tiling.merge_axes(shape, [_layout(x, r >= len(inputs), shape) for x, r in zip(operands, cut)])
    if merged is None:
        return None
    space, forms = merged
    # What is repeated is cut without its repetitions, unless a kernel would then see nothing as large as its result.
    form_of: dict[int, Shape] = dict.fromkeys(full, space) | dict(zip(cut, forms))
    repeated = {
        r
        for o in within
        if _result_shape(o.node.kind, [None if values[r] is None else form_of.get(r, ()) for r in o.ins]) != space
        for r in o.ins
    }
    forms = [space if r in repeated else form for r, form in zip(cut, forms)]
    places = tiling.blocks(space, max(4, tile_bytes(math.prod(shape) * widest, threads) // widest))
    kinds = list(dict.fromkeys(forms))
    spare = [r for r in tail.spare if inputs[r].flags.c_contiguous and inputs[r].flags.writeable]
    operations, buffers, taken = _assign(tail, within, values, results, spare)
    return Tiling(
        tail=tail,
        shape=shape,
        values=values,
        before=before,
        operations=operations,
        scalars=[r for r in read if values[r].size == 1],
        cut=[
            Cut(r, None if r in repeated else _once(r, inputs), form, kinds.index(form)) for r, form in zip(cut, forms)
        ],
        taken=taken,
        buffers=buffers,
        blocks=[Block(tiling.extents(place), [tiling.within(place, form) for form in kinds]) for place in places],
    )


def tile_bytes(whole: int, threads: int) -> int:
    """How many bytes of an operand of ``whole`` bytes one block has: at least one for each of the threads."""
    if threads == 1:
        return TILE_BYTES
    return max(TILE_BYTES, min(SHARED_TILE_BYTES, whole // threads))


def _kinds_of_values(tail: Tail, inputs: Sequence[Any]) -> list[Any] | None:
    """For each register an array of the shape and type that it will have, or None for an absent input.

    Types are found by calling the kernels on ones. None if something is no number, or the shapes do not go together:
    running the operators whole will say so.
    """
    if any(x is not None and x.dtype.hasobject for x in inputs):
        return None  # strings
    ones: list[Any] = [None if x is None else np.ones((), x.dtype) for x in inputs]
    shapes: list[Any] = [None if x is None else x.shape for x in inputs]
    for operation in tail.operations:
        given = [shapes[r] for r in operation.ins]
        try:
            ones.append(operation.kernel(*[ones[r] for r in operation.ins]))
            shapes.append(_result_shape(operation.node.kind, given))
        except Exception as error:
            if interrupts(error, operation.node):
                raise
            return None
        if ones[-1].dtype.hasobject or not has_shape(shapes[-1], operation.node.output.type.shape):
            return None
    return [None if x is None else np.broadcast_to(np.empty((), x.dtype), s) for x, s in zip(ones, shapes)]


def _result_shape(kind: str, shapes: Sequence[Shape | None]) -> Shape:
    """The shape of the result of a pointwise operator; ValueError if there is none."""
    if kind not in SHAPED_LIKE_FIRST:
        return broadcast_shape(*[s for s in shapes if s is not None])
    if any(s is not None and math.prod(s) != 1 for s in shapes[1:]):
        raise ValueError("a bound has several elements")
    return shapes[0] or ()


def _may_be_cut(operation: Operation, inputs: Sequence[Any], values: Sequence[Any], shape: Shape) -> bool:
    """Whether the kernel does the same on a block as on the whole.

    Pow's kernel treats an exponent of one element in a way of its own: cutting must not make such exponents.
    """
    if operation.node.kind != "onnx::Pow":
        return True
    base, exponent = (values[r] for r in operation.ins)
    if exponent.size == 1:
        return exponent.ndim <= base.ndim
    register = operation.ins[1]
    return exponent.shape == shape and (register >= len(inputs) or 0 not in inputs[register].strides)


def _once(register: int, inputs: Sequence[Any]) -> Index:
    if register >= len(inputs):
        return ()
    return tuple([slice(0, 1) if stride == 0 else slice(None) for stride in inputs[register].strides])


def _layout(x: Array, computed: bool, space: Shape) -> tiling.Layout:
    strides = tiling.c_strides(x.shape, x.itemsize) if computed else x.strides
    return tiling.layout(x.shape, strides, x.itemsize, space)


def _assign(
    tail: Tail, operations: Sequence[Operation], values: Sequence[Any], results: Sequence[int], spare: Sequence[int]
) -> tuple[list[Operation], list[np.dtype[Any]], dict[int, int | None]]:
    """Decide where each operator writes: to a result, or to a scratch buffer that nothing needs any more.

    Returns:
        The operators on positions; the types of the buffers; results and whose memory each takes.
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
                known.append(where[out])  # nobody reads it
        placed.append(Operation(node, kernel, positions, where.get(out, out)))
    return placed, buffers, taken
