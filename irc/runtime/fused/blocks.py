"""The tail of a group on one block after the other, once it is known how to cut it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from irc.ir import Node
from irc.runtime.execution import Slots, Watch, fail
from irc.runtime.fused.geometry import Index, Shape
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.scratch import scratch
from irc.runtime.threads import workers
from irc.runtime.values import Array

if TYPE_CHECKING:
    from irc.runtime.fused.tiles import Tail

_LINE = 64  # bytes of a cache line

Registers = list[Any]


class Operation(NamedTuple):
    """One operator of a tail: registers hold the tail's inputs, then each operator's result."""

    node: Node
    kernel: Kernel
    ins: Slots
    out: int


@dataclass(frozen=True)
class Block:
    """One block: its shape, and its place in operands of each form (which axes they have)."""

    shape: Shape
    places: list[Index]


class Cut(NamedTuple):
    """A register that is read or written block by block.

    Attributes:
        register: its number.
        once: an index that leaves out repetitions: axes of stride 0 become axes of one element. None if a block is to
            have all its elements, those that broadcasting repeats included.
        shape: its shape in the merged space, after that.
        place: the index of its place among those of a `Block`.
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
        scalars: registers of one element, which every block reads.
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
        """How many bytes of scratch buffers each thread needs."""
        return sum(map(self._bytes, self.buffers)) + _LINE

    def run(
        self, inputs: Sequence[Any], threads: int, watch: Watch | None = None, made: Mapping[int, Array] | None = None
    ) -> list[Any]:
        """The results of the tail, in order; results of registers in ``made`` are written to the arrays there."""
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
            x = registers[register]  # with an axis or without: PyTorch's types depend on it
            shared[register] = x.reshape((1,) * min(1, x.ndim))
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
        """Run all operators on one block."""
        done = 0
        try:
            for _, kernel, ins, out in self.operations:
                kernel(*[values[r] for r in ins], out=values[out])
                done += 1
        except Exception as error:
            self._fail(error, self.operations[done], values)

    def _call(self, operation: Operation, values: Registers, watch: Watch | None, **out: Array) -> Any:
        if watch is not None:
            watch.begin_part(operation.node)
        try:
            result = operation.kernel(*[values[r] for r in operation.ins], **out)
        except Exception as error:
            self._fail(error, operation, values)
        if watch is not None:
            watch.end_part(operation.node)
        return result

    def _fail(self, error: Exception, operation: Operation, values: Registers) -> NoReturn:
        original = next(o for o in self.tail.operations if o.node is operation.node)
        whole = [values[r] if self.values[r] is None else self.values[r] for r in original.ins]
        fail(error, original.node, whole)

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
