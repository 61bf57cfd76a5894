"""What shape inference says of types is true of the values that appear when a program runs."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from irc.ir import Block, Node, Type, Value, types
from irc.ir.types import ClassType, DictType, ListType, OptionalType, TensorType, TupleType, UnionType
from irc.passes import PassManager
from tests.effort import examples
from tests.programs.generator import Program, programs
from tests.programs.interpreter import Env, Observer, interpret


class TypeCheck(Observer):
    """Raises AssertionError for a value that is not of its type.

    A named size must be the same wherever the name occurs.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def entered(self, block: Block, env: Env) -> None:
        for value in block.params:
            self._check(value, env)

    def after(self, node: Node, env: Env) -> None:
        for value in node.outputs if node.kind != "prim::Uninitialized" else ():  # stands for what is never looked at
            self._check(value, env)

    def _check(self, value: Value, env: Env) -> None:
        if value.type != types.FUNCTION and not isinstance(value.type, ClassType):
            assert self._is(env[value], value.type), f"%{value.name} is {env[value]!r}, which is no {value.type}"

    def _is(self, x: Any, of_type: Type) -> bool:
        match of_type:
            case TensorType():
                return isinstance(x, np.ndarray) and self._is_tensor(x, of_type)
            case ListType():  # a constant list is a tuple
                return isinstance(x, list | tuple) and all(self._is(item, of_type.elem) for item in x)
            case TupleType():
                return isinstance(x, tuple) and all(map(self._is, x, of_type.elems))
            case DictType():
                return isinstance(x, dict) and all(self._is(item, of_type.value) for item in x.values())
            case OptionalType():
                return x is None or self._is(x, of_type.elem)
            case UnionType():
                return any(self._is(x, member) for member in of_type.members)
            case types.ANY:
                return True
        return isinstance(x, _PYTHON[of_type])

    def _is_tensor(self, x: np.ndarray[Any, Any], of_type: TensorType) -> bool:
        if of_type.dtype is not None and x.dtype != of_type.dtype.numpy:
            return False
        if of_type.shape is None:
            return True
        known = [(self.sizes.setdefault(d, n) if isinstance(d, str) else d, n) for d, n in zip(of_type.shape, x.shape)]
        return len(of_type.shape) == x.ndim and all(d is None or d == n for d, n in known)


_PYTHON: dict[Type, type] = {
    types.INT: int,
    types.BOOL: bool,
    types.STR: str,
    types.FLOAT: float,
    types.NONE: type(None),
}


@examples(200)
@given(programs(), st.sampled_from(["", "shape-inference", "canonicalize,fuse,shape-inference"]))
def test_types_are_true(program: Program, pipeline: str) -> None:
    PassManager(pipeline).run(program.module)
    interpret(program.graph, program.inputs(), TypeCheck())
