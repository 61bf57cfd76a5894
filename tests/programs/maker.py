"""The core of the generator: draws, scopes, and nodes whose results are known to be possible."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from irc.ir import Builder, Graph, Module, Node, Tensor, Type, Value, types
from tests.programs.kinds import BOOL, FLOAT, LONG, Kind, Tens, ir_type

T = TypeVar("T")

MAX_ELEMENTS = 48
MAX_RANK = 4


@cache
def _below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


class Maker:
    """Appends random nodes to one block of a graph.

    Every value is made with a ``Kind`` that its run-time value is sure to
    have, so that programs run: shapes fit, indices are in range, and nothing
    writes into constants.

    Attributes:
        kinds: what is known of each value.
        scope: the values visible at the insertion point.
        trusted: whether nodes state the exact types of their results, or leave them to inference.
        wide: the types that leave open what values are, Any and unions; none if the program is to have none.
    """

    def __init__(self, draw: st.DrawFn, graph: Graph, module: Module, budget: int) -> None:
        self._draw = draw
        self.graph = graph
        self.module = module
        self.budget = budget
        self.builder = Builder(graph)
        self.kinds: dict[Value, Kind] = {}
        self.scope: list[Value] = []
        self.numbers: list[tuple[Any, Value]] = []
        self.trusted = True
        self.wide: tuple[Type, ...] = ()
        self.depth = 0

    # -- draws -----------------------------------------------------------

    def below(self, n: int) -> int:
        """A number from 0 to ``n - 1``; shrinks to 0."""
        return self._draw(_below(n)) if n > 1 else 0

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def flip(self) -> bool:
        return self.below(2) == 1

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def some(self, items: Sequence[T]) -> list[T]:
        """A random part of ``items``, in their order."""
        return [item for item in items if self.flip()]

    def order(self, n: int) -> list[int]:
        """A random permutation of ``range(n)``; shrinks to none."""
        rest = list(range(n))
        return [rest.pop(self.below(len(rest))) for _ in range(n)]

    def array(self, shape: tuple[int, ...], dtype: Any = FLOAT) -> np.ndarray[Any, Any]:
        """Small integers, whose sums and products are exact."""
        seed = self.below(1 << 16)
        values = np.random.default_rng(seed).integers(-3, 4, shape) if seed else np.ones(shape, np.int64)
        return values.astype(dtype.numpy)

    # -- finding values --------------------------------------------------

    def candidates(self, test: Callable[[Kind], bool]) -> list[Value]:
        """The visible values whose kind passes ``test``, newest first."""
        return [v for v in reversed(self.scope) if test(self.kinds[v])]

    def find(self, test: Callable[[Kind], bool]) -> Value | None:
        """Some visible value whose kind passes ``test``; None if there is none."""
        found = self.candidates(test)
        return self.choose(found) if found else None

    def choose(self, values: Sequence[Value]) -> Value:
        """One of ``values``; mostly one that nothing uses yet, so that little of a program is dead."""
        unused = [v for v in values if not v.has_uses]
        return self.pick(unused if unused and self.below(4) else values)

    def newest_first(self) -> list[Value]:
        """All visible values."""
        return list(reversed(self.scope))

    def tensor(self, test: Callable[[Tens], bool] = lambda _: True) -> Value:
        """Some visible tensor that passes ``test``; a new one if there is none."""
        found = self.find(lambda k: isinstance(k, Tens) and test(k))
        return found or self.fresh(next(k for k in _DEFAULTS if test(k)))

    def numeric(self, test: Callable[[Tens], bool] = lambda _: True) -> Value:
        """Some visible tensor of numbers."""
        return self.tensor(lambda k: k.dtype is not BOOL and test(k))

    def like(self, kind: Tens, broadcast: bool = False) -> Value:
        """A tensor of the element type and shape of ``kind``, or (``broadcast``) one that broadcasts to it."""
        found = self.find(
            lambda k: (
                isinstance(k, Tens)
                and k.dtype is kind.dtype
                and (k.shape == kind.shape or (broadcast and broadcasts_to(k.shape, kind.shape)))
            )
        )
        return found or self.fresh(Tens(kind.dtype, kind.shape))

    def fresh(self, kind: Tens) -> Value:
        """A new tensor that may be written: a copy of a constant."""
        constant = self.tensor_constant(self.array(kind.shape, kind.dtype))
        return self.emit("aten::clone", [constant], Tens(kind.dtype, kind.shape))

    def kind(self, value: Value) -> Any:
        return self.kinds[value]

    # -- emitting nodes --------------------------------------------------

    def emit(
        self, kind: str, inputs: Sequence[Value], result: Kind, type: Type | None = None, **attributes: Any
    ) -> Value:
        """Append a node with one output of the kind ``result``."""
        return self.emit_many(kind, inputs, [result], [type], **attributes)[0]

    def emit_many(
        self,
        kind: str,
        inputs: Sequence[Value],
        results: Sequence[Kind],
        result_types: Sequence[Type | None] = (),
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Append a node with outputs of the kinds ``results``."""
        given = [*result_types, *[None] * len(results)]
        of_types = [t or ir_type(k, self.trusted) for t, k in zip(given, results)]
        node = self.builder.node(kind, inputs, of_types, attributes=attributes)
        self.define(node.outputs, results)
        return node.outputs

    def define(self, values: Iterable[Value], kinds: Iterable[Kind]) -> None:
        """Make ``values`` visible."""
        for value, kind in zip(values, kinds, strict=True):
            self.kinds[value] = kind
            self.scope.append(value)

    def node_with_blocks(self, kind: str, inputs: Sequence[Value]) -> Node:
        return self.builder.node(kind, inputs)

    def finish(self, node: Node, kinds: Sequence[Kind]) -> tuple[Value, ...]:
        """Give a node with blocks its outputs."""
        outputs = node.add_outputs([ir_type(k, self.trusted) for k in kinds])
        self.define(outputs, kinds)
        return outputs

    # -- constants -------------------------------------------------------

    def number(self, value: Any = None) -> Value:
        """A Python constant, often one that is there already; None by default."""
        key = (type(value), value)
        known = [v for k, v in self.numbers if k == key]
        if known and self.below(4):
            return self.pick(known)
        constant = self.builder.constant(value)
        self.numbers.append((key, constant))
        return constant

    def ints(self, values: Sequence[int]) -> Value:
        """A Python list of ints: a constant, or constructed."""
        of_type = types.ListType(types.INT)
        if self.flip():
            return self.builder.constant(list(values), type=of_type)
        return self.builder.op("prim::ListConstruct", *map(self.number, values), type=of_type)

    def tensor_constant(self, array: np.ndarray[Any, Any], weight: bool = False) -> Value:
        """A constant tensor; a named weight if it is large or ``weight``."""
        tensor = Tensor.of(np.ascontiguousarray(array).reshape(array.shape))
        if weight or (tensor.numel > 16 and not tensor.is_splat):
            tensor = self.graph.weights.add(f"w{len(self.graph.weights)}", tensor)
        value = self.builder.constant(tensor)
        self.kinds[value] = Tens(tensor.dtype, tensor.shape, frozen=True)
        return value

    def shape_constant(self, values: Sequence[int]) -> Value:
        """The integers that ONNX operators take as a tensor."""
        return self.tensor_constant(np.array(values, np.int64))

    # -- nested blocks ---------------------------------------------------

    @contextmanager
    def inside(self, block: Any):
        """Append to ``block``; what it defines is visible only there."""
        saved = self.builder, self.scope, self.numbers
        self.builder, self.scope, self.numbers = Builder.at_end(block), list(self.scope), list(self.numbers)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self.builder, self.scope, self.numbers = saved


_DEFAULTS = (
    Tens(FLOAT, (2, 3)),
    Tens(LONG, (2,)),
    Tens(BOOL, (2, 3)),
    Tens(FLOAT, (3,)),
    Tens(FLOAT, (1, 2, 3, 3)),
    Tens(BOOL, ()),
)


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of ``shape`` broadcasts to exactly ``target``."""
    return len(shape) <= len(target) and all(m in (1, n) for m, n in zip(reversed(shape), reversed(target)))


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that ``shapes`` broadcast to; None if they do not, or it is larger than these and too large."""
    try:
        found = np.broadcast_shapes(*shapes)
    except ValueError:
        return None
    return found if small(found) or found in shapes else None  # weights may be large


def small(shape: Sequence[int]) -> bool:
    return len(shape) <= MAX_RANK and int(np.prod(shape)) <= MAX_ELEMENTS
