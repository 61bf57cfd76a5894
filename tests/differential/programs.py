"""Random programs that irc and PyTorch both read: those of ``tests.alias.programs``, and what its oracle lacks."""

from collections.abc import Callable, Sequence

from irc.ir import Builder, Graph, Value, types
from irc.ir.types import ListType, OptionalType, UnionType
from tests.alias.programs import DICT, LIST, PAIR, TENSOR, ProgramBuilder

ANY_LIST = ListType(types.ANY)
MAYBE = OptionalType(TENSOR)
EITHER = UnionType((TENSOR, LIST))
EITHERS = ListType(EITHER)


class TorchProgramBuilder(ProgramBuilder):
    """No opaque calls; instead unknown types, optionals, unions, and results whose sharing no schema declares."""

    def __init__(self, choices: Sequence[int]) -> None:
        super().__init__(choices, opaque=False)

    def _steps(self) -> list[Callable[[Builder, list[Value], int], None]]:
        return [
            *super()._steps(),
            self._undeclared,
            self._undeclared_in_list,
            self._any_list,
            self._of_any,
            self._optional,
            self._list_function,
            self._either,
        ]

    def _undeclared(self, b: Builder, scope: list[Value], depth: int) -> None:
        x = self._value(b, scope, TENSOR)
        if self._pick(2):
            scope.append(b.op("aten::type_as", x, self._value(b, scope, TENSOR)))
        else:
            scope.append(b.op("aten::atleast_2d", x))

    def _undeclared_in_list(self, b: Builder, scope: list[Value], depth: int) -> None:
        xs = self._value(b, scope, LIST)
        kind = ("aten::broadcast_tensors", "aten::meshgrid", "aten::atleast_1d")[self._pick(3)]
        scope.append(b.op(kind, xs, type=LIST))

    def _any_list(self, b: Builder, scope: list[Value], depth: int) -> None:
        """A list of anything, or one that gets something more: itself, maybe."""
        lists = [v for v in scope if v.type == ANY_LIST]
        held = scope[-1 - self._pick(len(scope))]
        if not lists or not self._pick(2):
            scope.append(b.op("prim::ListConstruct", held, type=ANY_LIST))
        else:
            scope.append(b.op("aten::append", lists[-1 - self._pick(len(lists))], held, type=ANY_LIST))

    def _of_any(self, b: Builder, scope: list[Value], depth: int) -> None:
        lists = [v for v in scope if v.type == ANY_LIST]
        if lists:
            found = b.op("aten::__getitem__", lists[-1 - self._pick(len(lists))], self._int, type=types.ANY)
            scope.append(found)
            if self._pick(2):
                to = (TENSOR, LIST)[self._pick(2)]
                scope.append(b.op("prim::unchecked_cast", found, type=to))

    def _optional(self, b: Builder, scope: list[Value], depth: int) -> None:
        values = [v for v in scope if v.type == MAYBE]
        if values and self._pick(2):
            scope.append(b.op("prim::unchecked_unwrap_optional", values[-1 - self._pick(len(values))], type=TENSOR))
        else:
            scope.append(b.op("aten::get", self._value(b, scope, DICT), self._key, type=MAYBE))

    def _either(self, b: Builder, scope: list[Value], depth: int) -> None:
        """A tensor or a list, stored into a list from outside, or taken out of it."""
        values = [v for v in scope if v.type == EITHER]
        which = self._pick(3)
        if which == 0 or not values:
            branches = self._value(b, scope, TENSOR), self._value(b, scope, LIST)
            node = b.node("prim::If", [self._cond], [EITHER])
            for held in branches:
                node.add_block().set_returns([held])
            scope.append(node.output)
            return
        eithers = self.graph.inputs[-1]
        if eithers.type != EITHERS:
            eithers = self.graph.add_input(EITHERS, "eithers")
        if which == 1:
            b.op("aten::append", eithers, values[-1 - self._pick(len(values))], type=EITHERS)
        else:
            found = b.op("aten::__getitem__", eithers, self._int, type=EITHER)
            scope += [found, b.op("prim::unchecked_cast", found, type=(TENSOR, LIST)[self._pick(2)])]

    def _list_function(self, b: Builder, scope: list[Value], depth: int) -> None:
        which = self._pick(4)
        if which == 0:
            scope.append(b.op("aten::values", self._value(b, scope, DICT), type=LIST))
        elif which == 1:
            scope.append(b.op("aten::pop", self._value(b, scope, LIST), self._int, type=TENSOR))
        elif which == 2:
            scope.append(b.op("aten::copy", self._value(b, scope, LIST), type=LIST))
        else:
            pair = self._value(b, scope, PAIR)
            zero = b.constant(0)
            scope.append(b.op("prim::TupleIndex", pair, zero, type=TENSOR))


def program(choices: Sequence[int]) -> Graph:
    """The program that ``choices`` make."""
    return TorchProgramBuilder(choices).graph
