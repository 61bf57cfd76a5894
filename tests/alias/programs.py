"""Random programs: views, in-place operators, lists, tuples, dictionaries, branches, loops, opaque calls.

A program is built from a list of numbers, each of which settles one choice,
so that hypothesis can shrink it.
"""

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from irc.ir import Block, Builder, Graph, Type, Value, types
from irc.ir.types import DictType, ListType, TupleType

TENSOR = types.TENSOR
LIST = ListType(TENSOR)
NESTED = ListType(LIST)
PAIR = TupleType((TENSOR, LIST))
DICT = DictType(types.STR, TENSOR)
TYPES: tuple[Type, ...] = (TENSOR, LIST, NESTED, PAIR, DICT)

_HIGHEST = 1 << 12


def random_choices(seed: int) -> list[int]:
    """Choices for a larger program than hypothesis would make by itself."""
    rnd = random.Random(seed)
    return [rnd.randrange(_HIGHEST) for _ in range(rnd.randrange(20, 200))]


choices = st.one_of(
    st.lists(st.integers(0, _HIGHEST), min_size=4, max_size=60), st.integers(0, 1 << 32).map(random_choices)
)


class ProgramBuilder:
    """Builds one program; ``graph`` is the result."""

    def __init__(self, choices: Sequence[int], opaque: bool = True) -> None:
        self._choices = list(choices)
        self._opaque = opaque
        self.graph = Graph()
        for i in range(1 + self._pick(2)):
            self.graph.add_input(TENSOR, f"x{i}")
        if self._pick(2):
            self.graph.add_input(LIST, "xs")
        self._int = Builder(self.graph).constant(0, name="zero")
        self._one = Builder(self.graph).constant(1, name="one")
        self._key = Builder(self.graph).constant("k", name="key")
        self._cond = Builder(self.graph).constant(True, name="cond")
        scope = list(self.graph.inputs)
        self._fill(self.graph.block, scope, depth=0)
        self.graph.set_outputs(scope[-1 - self._pick(2) :])

    def _pick(self, n: int) -> int:
        return self._choices.pop(0) % n if self._choices else 0

    def _value(self, b: Builder, scope: list[Value], type: Type) -> Value:
        """Some value of ``type``, newly made if there is none."""
        known = [v for v in scope if v.type == type]
        if known:
            return known[-1 - self._pick(len(known))]
        if type == TENSOR:
            value = b.op("aten::zeros", *self._zeros_arguments(b), type=TENSOR)
        elif type == LIST:
            value = b.op("prim::ListConstruct", self._value(b, scope, TENSOR), type=LIST)
        elif type == NESTED:
            value = b.op("prim::ListConstruct", self._value(b, scope, LIST), type=NESTED)
        elif type == PAIR:
            parts = self._value(b, scope, TENSOR), self._value(b, scope, LIST)
            value = b.op("prim::TupleConstruct", *parts, type=PAIR)
        else:
            value = b.op("prim::DictConstruct", self._key, self._value(b, scope, TENSOR), type=DICT)
        scope.append(value)
        return value

    def _zeros_arguments(self, b: Builder) -> list[Value]:
        return [b.op("prim::ListConstruct", self._int, type=ListType(types.INT))]

    def _fill(self, block: Block, scope: list[Value], depth: int) -> None:
        steps = self._steps()
        for _ in range(1 + self._pick(8 if depth == 0 else 4)):
            if not self._choices:
                return
            step = steps[self._pick(len(steps))]
            step(Builder.at_end(block), scope, depth)

    def _steps(self) -> list[Callable[[Builder, list[Value], int], None]]:
        steps: list[Callable[[Builder, list[Value], int], None]] = [
            self._relu,
            self._view,
            self._in_place,
            self._add_in_place,
            self._make,
            self._take,
            self._store,
            self._split,
            self._join_lists,
            self._unpack,
            self._branch,
            self._loop,
        ]
        if self._opaque:
            steps.append(self._call)
        return steps

    def _relu(self, b: Builder, scope: list[Value], depth: int) -> None:
        scope.append(b.op("aten::relu", self._value(b, scope, TENSOR)))

    def _view(self, b: Builder, scope: list[Value], depth: int) -> None:
        scope.append(b.op("aten::t", self._value(b, scope, TENSOR)))

    def _in_place(self, b: Builder, scope: list[Value], depth: int) -> None:
        x = self._value(b, scope, TENSOR)
        which, other = divmod(len(scope), 3)  # no choice of its own: programs are as long as without these operators
        scope.append(b.op("aten::relu_", x) if other else self._metadata(b, x, (which + 2 * len(x.uses)) % 6))

    def _add_in_place(self, b: Builder, scope: list[Value], depth: int) -> None:
        x, y = self._value(b, scope, TENSOR), self._value(b, scope, TENSOR)
        scope.append(b.op("aten::add_", x, y, self._int))

    def _metadata(self, b: Builder, x: Value, which: int) -> Value:
        """A tensor changes its own shape and strides, or the memory it shows; matrices stay of 2 by 2."""
        zero, one = self._int, self._one
        if which == 0:
            return b.op("aten::t_", x)
        if which == 1:
            return b.op("aten::transpose_", x, zero, one)
        if which == 2:  # whose size is not 1
            return b.op("aten::squeeze_", x, zero)
        if which == 3:
            return b.op("aten::squeeze_", b.op("aten::unsqueeze_", x, zero), zero)
        two, none = b.constant(2), b.constant(None)
        size, strides = (b.op("prim::ListConstruct", *n, type=ListType(types.INT)) for n in ((two, two), (one, two)))
        if which == 4:
            return b.op("aten::resize_", x, size, none)
        return b.op("aten::as_strided_", x, size, strides, none)

    def _make(self, b: Builder, scope: list[Value], depth: int) -> None:
        kind = (LIST, NESTED, PAIR, DICT)[self._pick(4)]
        without = [v for v in scope if v.type != kind]
        value = self._value(b, without, kind)
        scope += [v for v in without if v not in scope]
        assert value in scope

    def _take(self, b: Builder, scope: list[Value], depth: int) -> None:
        held = (LIST, NESTED, DICT)[self._pick(3)]
        container = self._value(b, scope, held)
        index = self._key if held == DICT else self._int
        type = LIST if held == NESTED else TENSOR
        scope.append(b.op("aten::__getitem__", container, index, type=type))

    def _store(self, b: Builder, scope: list[Value], depth: int) -> None:
        which = self._pick(4)
        if which == 0:
            value = self._value(b, scope, TENSOR)
            b.node("aten::_set_item", [self._value(b, scope, DICT), self._key, value])
            return
        held, elem = ((LIST, TENSOR), (NESTED, LIST))[self._pick(2)]
        container, value = self._value(b, scope, held), self._value(b, scope, elem)
        if which == 1:
            scope.append(b.op("aten::append", container, value, type=held))
        elif which == 2:
            scope.append(b.op("aten::_set_item", container, self._int, value, type=held))
        else:
            b.node("aten::extend", [container, self._value(b, scope, held)])

    def _split(self, b: Builder, scope: list[Value], depth: int) -> None:
        scope.append(b.op("aten::chunk", self._value(b, scope, TENSOR), self._int, self._int, type=LIST))

    def _join_lists(self, b: Builder, scope: list[Value], depth: int) -> None:
        type = (LIST, NESTED)[self._pick(2)]
        if self._pick(2):
            scope.append(b.op("aten::add", self._value(b, scope, type), self._value(b, scope, type), type=type))
        else:
            scope.append(b.op("aten::cat", self._value(b, scope, LIST), self._int))

    def _unpack(self, b: Builder, scope: list[Value], depth: int) -> None:
        scope += b.node("prim::TupleUnpack", [self._value(b, scope, PAIR)], [TENSOR, LIST]).outputs

    def _call(self, b: Builder, scope: list[Value], depth: int) -> None:
        type = TYPES[self._pick(len(TYPES))]
        result = TYPES[self._pick(len(TYPES))]
        value = self._value(b, scope, type)
        which = self._pick(4)
        if which < 2 or depth > 1:
            kind = ("foreign::call", "opaque.com.example::Call")[which % 2]
            scope.append(b.op(kind, value, type=result))
            return
        node = b.node(("foreign::run", "opaque.com.example::Run")[which - 2], [value], [result])
        block = node.add_block()
        inner = [*scope, block.add_param(type)]
        self._fill(block, inner, depth + 1)
        block.set_returns([self._value(Builder.at_end(block), inner, result)])
        scope.append(node.output)

    def _branch(self, b: Builder, scope: list[Value], depth: int) -> None:
        if depth > 1:
            return
        result = TYPES[self._pick(len(TYPES))]
        node = b.node("prim::If", [self._cond], [result])
        for _ in range(2):
            block = node.add_block()
            inner = list(scope)
            self._fill(block, inner, depth + 1)
            block.set_returns([self._value(Builder.at_end(block), inner, result)])
        scope.append(node.output)

    def _loop(self, b: Builder, scope: list[Value], depth: int) -> None:
        if depth > 1:
            return
        carried = [self._value(b, scope, TYPES[self._pick(len(TYPES))]) for _ in range(1 + self._pick(3))]
        node = b.node("prim::Loop", [self._int, self._cond, *carried], [v.type for v in carried])
        block = node.add_block()
        block.add_param(types.INT)
        inner = [*scope, *(block.add_param(v.type) for v in carried)]
        self._fill(block, inner, depth + 1)
        end = Builder.at_end(block)
        block.set_returns([self._cond, *(self._value(end, inner, v.type) for v in carried)])
        scope += node.outputs


def program(choices: Sequence[int], opaque: bool = True) -> Graph:
    """The program that ``choices`` make."""
    return ProgramBuilder(choices, opaque).graph
