"""Limits of a run: the steps, memory and time that an untrusted model may use; what memory is alive.

A model of a few hundred bytes can ask for a loop without end or for a tensor of
terabytes. Under limits, a run is followed node by node: steps are counted, the
clock is read before each, and the arrays, strings, lists and dictionaries that are
alive are added up. Results that would be too large are refused before they are
allocated, as far as their size can be told: by the records of operators from what the node is run with
(`irc.ops.sizes`), and by kernels, which ask for what they allocate beside, and for what contents decide
(`irc.runtime.kernels.support.check_size`). All other results are about as large
as an operand, and are counted once they exist.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from threading import RLock
from typing import Any

from irc.errors import Error
from irc.ir import Node
from irc.ops.sizes import STRING_BYTES, object_bytes, result_bytes
from irc.runtime.array_memory import is_alone
from irc.runtime.execution import Frame, Observer, Slots, label
from irc.runtime.kernels.support import is_constant
from irc.runtime.prepack import COMPUTED
from irc.runtime.values import Array, arrays_once, containers, integer, is_array, owner
from irc.support.formatting import count


def expected_bytes(node: Node, inputs: Sequence[Any]) -> int:
    """At least the result bytes of ``node`` on ``inputs``, if much larger than an operand; else 0.

    Shapes that do not fit together give 0: the kernel will report them.
    """
    arrays = [x for x in inputs if is_array(x)]
    if node.kind in COMPUTED and all(map(is_constant, arrays)):
        return 0  # it is kept, which counts by itself
    # A kernel writes out what only a repeated element stands for, or windows that overlap.
    spread = sum(x.nbytes for x in arrays if _own_bytes(x) < x.nbytes)
    size = max(spread, result_bytes(node, inputs))
    return size if size > max(map(_own_bytes, arrays), default=0) else 0


def _own_bytes(array: Array) -> int:
    """The bytes of distinct elements in ``array``: at most those from its first element to its last."""
    if array.flags.c_contiguous:
        return array.nbytes
    reach = sum((n - 1) * abs(stride) for n, stride in zip(array.shape, array.strides)) + array.itemsize
    return min(reach, math.prod(n for n, stride in zip(array.shape, array.strides) if stride) * array.itemsize)


LIMIT_CODES = frozenset(["IRC441", "IRC442", "IRC443"])
"""Codes of errors of runs that reach a limit."""

RATE = 20_000_000_000
"""Multiplications a second. Work in one piece that would take longer than there is time at this rate is refused."""


@dataclass(frozen=True)
class Limits:
    """What one run may use; None: as much as it likes.

    Attributes:
        steps: nodes run, those inside blocks, functions and fusion groups included; each execution of a block,
            such as an iteration of a loop, is a step too.
        bytes: memory of the arrays, strings, lists and dictionaries that the run makes and that are alive at one
            time. Inputs and weights do not count. What is made of weights once and kept does not count either, but its
            total may not exceed the same limit. Work memory of single kernels, a small multiple of their operands, does
            not count.
        seconds: of real time, checked before each node, in loop iterations, and between the parts of long kernels;
            work that cannot be interrupted is refused if even at `RATE` it would not finish in time.

    Raises:
        Error: IRC440 if one is not positive, or steps or bytes are not integers.
    """

    steps: int | None = None
    bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).copy().items():
            number = None if value is None else _real(value) if name == "seconds" else integer(value)
            if value is not None and (number is None or not number > 0):
                what = "number" if name == "seconds" else "integer"
                raise Error("IRC440", f"the limit {name} must be a positive {what}, not {value!r}")
            object.__setattr__(self, name, number)


def _real(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        return None


class LimitGuard(Observer):
    """Holds a run to its limits: an observer of its steps, a guard for kernels (`irc.runtime.bounds`).

    Args:
        limits: the limits.
        inputs: the inputs of the run, which do not count.

    Attributes:
        most_bytes: how many bytes of memory the run may use; infinite without a limit.
    """

    def __init__(self, limits: Limits, inputs: Iterable[Any] = ()) -> None:
        self._limits = limits
        self._steps_left = math.inf if limits.steps is None else limits.steps
        self._deadline = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
        self.most_bytes = math.inf if limits.bytes is None else limits.bytes
        inputs = list(inputs)
        self._arrays, self._objects = ArrayBytes(inputs), ObjectBytes(inputs)
        self._changing: Sequence[Any] = ()
        self._kept = 0  # bytes, of what was made of weights

    def before(self, node: Node, frame: Frame, ins: Slots) -> None:
        """Count a step; refuse a result that would be too large."""
        self.enter()
        if self.most_bytes is not math.inf:
            inputs = [frame[s] for s in ins]
            self._changing = [x for x in inputs if isinstance(x, (list, dict))]
            self.allocate(expected_bytes(node, inputs))

    def after(self, node: Node, frame: Frame, outs: Slots) -> None:
        """Count the memory of the results."""
        if self.most_bytes is math.inf:
            return
        changing, self._changing = self._changing, ()
        for container in changing:  # what it holds has been counted where that was made
            self._objects.resize(container)
        made = [frame[s] for s in outs if not any(frame[s] is x for x in changing)]
        self._objects.count(made)
        self._arrays.count(made)
        del changing, made
        in_use = self._in_use(0)
        if in_use > self.most_bytes:
            raise self._too_large(f"its results are alive, {count(in_use, 'byte')} in use", label(node))

    def retain(self, made: Any) -> None:
        """Stop counting ``made``: the model keeps it."""
        self._arrays.disown([made])

    def enter(self) -> None:
        """Count a step."""
        self._steps_left -= 1
        if self._steps_left < 0:
            limit = f"its limit of {self._limits.steps} (Limits.steps, --max-steps)"
            raise Error("IRC441", f"the run needs more steps than {limit}")
        self.pace()

    def allocate(self, size: int) -> None:
        """Error IRC442 if ``size`` bytes more are too much."""
        in_use = self._in_use(size)
        if in_use + size > self.most_bytes:
            raise self._too_large(f"{count(size, 'byte')} needed, {in_use:,} in use")

    def keeps(self, size: int) -> bool:
        """Whether the run may make ``size`` more bytes of weights that are kept, which are then counted."""
        if self._kept + size > self.most_bytes:
            return False
        self._kept += size
        return True

    def _in_use(self, more: int) -> int:
        """The bytes that are alive, counted exactly if ``more`` bytes might not fit."""
        if self._arrays.now + self._objects.now + more > self.most_bytes:
            self._objects.let_go()
        return self._arrays.now + self._objects.now

    def work(self, products: int) -> None:
        """Error IRC443 if ``products`` multiplications cannot be made in the time left."""
        self.pace()
        if products > RATE * (self._deadline - time.monotonic()):
            raise self._too_long(f"{products} multiplications would take longer than there is time")

    def pace(self) -> None:
        """Error IRC443 if the time is over."""
        if time.monotonic() > self._deadline:
            raise self._too_long("the time is over")

    def _too_large(self, why: str, where: str = "") -> Error:
        """The error IRC442; ``where`` is given only once the operator has run, as its inputs may be gone then."""
        limit = f"the limit of the run is {count(self._limits.bytes or 0, 'byte')} (Limits.bytes, --max-bytes)"
        return Error("IRC442", f"{why}; {limit}", where)

    def _too_long(self, why: str) -> Error:
        limit = f"the limit of the run is {self._limits.seconds} s (Limits.seconds, --max-seconds)"
        return Error("IRC443", f"{why}; {limit}")


class ArrayBytes:
    """The bytes of the arrays that a run has made and that something still refers to.

    A view counts as the array whose memory it shows, and each array counts once. Read-only arrays are the model's or
    the caller's and do not count. Several threads may report to one object.

    Args:
        others: values whose memory is not the run's either.

    Attributes:
        now: bytes alive.
        arrays: how many have been counted so far, those that are gone too; each was an allocation.
    """

    def __init__(self, others: Iterable[Any] = ()) -> None:
        self.now = self.arrays = 0
        # By identity of the array that owns the memory: what it is counted as.
        self._known: dict[int, tuple[weakref.ref[Array], int]] = {}
        self._lock = RLock()  # an array may die, and say so, at any time: inside of these methods too
        self.disown(others)

    def count(self, values: Iterable[Any]) -> int:
        """Count the memory of ``values``, contents of lists included; the bytes not counted before."""
        made = 0
        for array in arrays_once(values):
            root = owner(array)
            if array.flags.writeable and id(root) not in self._known:
                made += self._enter(root, root.nbytes + text_bytes(root))
                self.arrays += 1
        return made

    def disown(self, values: Iterable[Any]) -> None:
        """Never count the memory of ``values``, and no longer if it has been counted: it is not the run's."""
        for array in arrays_once(values):
            root = owner(array)
            with self._lock:
                # The weak reference goes at once: it must not tell that the array is gone.
                self.now -= self._known.pop(id(root), (None, 0))[1]
            self._enter(root, 0)

    def _enter(self, root: Array, size: int) -> int:
        key = id(root)

        def gone(_: Any) -> None:
            with self._lock:
                del self._known[key]
                self.now -= size

        with self._lock:
            if key in self._known:
                return 0
            self._known[key] = weakref.ref(root, gone), size
            self.now += size
        return size


def text_bytes(array: Array) -> int:
    """The bytes of the strings in ``array``; 0 for any other element type."""
    if not array.dtype.hasobject:
        return 0
    return sum(STRING_BYTES + len(s) for s in array.reshape(-1) if isinstance(s, str))


class ObjectBytes:
    """The bytes of a run's strings, lists, tuples and dictionaries that are still referenced.

    They are held here, so that none is counted twice, and released when room is needed. Until then, those that nothing
    else refers to count too, as they are in memory.

    Args:
        others: those of the caller, which do not count.

    Attributes:
        now: bytes held.
    """

    def __init__(self, others: Iterable[Any] = ()) -> None:
        self._others = list(others)  # a reference more, so that they are not let go of
        self._held: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}
        self.now = 0
        self.count(self._others)
        self.now = 0

    def count(self, values: Iterable[Any]) -> None:
        """Count ``values`` and what they hold; known objects are counted again at their present size."""
        given = list(values)
        for container, items in containers(given):
            if container is not given:
                self.resize(container)
            for text in items:
                if isinstance(text, str):
                    self.resize(text)

    def resize(self, value: Any) -> None:
        """Count a string or container, but not what it holds, by its present size."""
        key, size = id(value), object_bytes(value)
        self.now += size - self._sizes.get(key, 0)
        self._held[key], self._sizes[key] = value, size

    def let_go(self) -> None:
        """Release all that nothing else refers to."""
        # Again and again: what a list held may be alone once the list is gone.
        while gone := [key for key in self._held if is_alone(self._held, key)]:
            for key in gone:
                del self._held[key]
                self.now -= self._sizes.pop(key)
