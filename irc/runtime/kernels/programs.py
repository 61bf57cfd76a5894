"""From an expression of scalars to calls of ufuncs: which is called when, and where its result lies meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from irc.ops.algebra import CAST, AnyDType, Apply, Constant, Expression, Operand, walk
from irc.runtime.kernels.primitives import IMPLEMENTATIONS, UNCHECKED, Implementation, conversion_to
from irc.runtime.kernels.support import Array


class Step(NamedTuple):
    """A call: of what, of which registers, and where its result lies."""

    call: Implementation
    arguments: tuple[int, ...]
    result: int


class Program(NamedTuple):
    """An expression as steps over registers: the operands, the result, scratch arrays, and constants, in this order.

    The result may be one of the operands: nothing is written there before the last step that reads any operand.

    Attributes:
        arity: the number of operands.
        steps: the last one makes the result.
        scratch: the element types of the scratch arrays.
        constants: arrays without dimensions.
        dtype: the element type of the result.
        run: ``(*operands, result, *scratch) -> None``: all steps on arrays that have the result's shape, or broadcast
            to it without dimensions.
        broadcast: ``(*operands, result) -> None``: all steps on operands of several shapes, with a new array for what
            each step makes but the last.
        small: of programs of one operand, ``(operand, result or None) -> result``: as `run`, with new scratch arrays.
    """

    arity: int
    steps: tuple[Step, ...]
    scratch: tuple[AnyDType, ...]
    constants: tuple[Array, ...]
    dtype: AnyDType
    run: Callable[..., None]
    broadcast: Callable[..., None]
    small: Callable[..., Array]


def compiled(expression: Expression, arity: int) -> Program:
    """The program for ``expression`` over ``arity`` operands."""
    root = _expanded(expression)
    if not isinstance(root, Apply):
        root = Apply(CAST, (root,), root.dtype)  # a copy
    order = [node for node in _scheduled(root) if isinstance(node, Apply)]
    last_use = {id(argument): i for i, node in enumerate(order) for argument in node.arguments}
    last_read = max((i for i, n in enumerate(order) if any(isinstance(x, Operand) for x in n.arguments)), default=-1)
    scratch: list[AnyDType] = []
    at: dict[int, int] = {}  # where the value of a node lies; scratch arrays count from arity + 1 on
    free: list[int] = []
    for i, node in enumerate(order):
        dying = [at[id(x)] for x in dict.fromkeys(node.arguments) if isinstance(x, Apply) and last_use[id(x)] == i]
        dtypes = {arity: root.dtype, **{arity + 1 + n: dtype for n, dtype in enumerate(scratch)}}
        usable = [r for r in (*dying, *free) if dtypes[r] == node.dtype]
        held = {at[id(x)] for x in order[:i] if last_use[id(x)] >= i}
        if node is root or (i >= last_read and node.dtype == root.dtype and (arity not in held or arity in dying)):
            place = arity
        elif usable:
            place = usable[0]
        else:
            scratch.append(node.dtype)
            place = arity + len(scratch)
        at[id(node)] = place
        free = [r for r in dict.fromkeys((*free, *dying)) if r not in (place, arity)]
    first = arity + 1 + len(scratch)
    constants = [node for node in walk(root) if isinstance(node, Constant)]
    at.update((id(node), first + n) for n, node in enumerate(constants))
    at.update((id(node), node.index) for node in walk(root) if isinstance(node, Operand))
    steps = tuple(Step(_implementation(n), tuple(at[id(x)] for x in n.arguments), at[id(n)]) for n in order)
    arrays = tuple(map(_array, constants))
    functions = _functions(arity, steps, scratch, arrays, root.dtype)
    return Program(arity, steps, tuple(scratch), arrays, root.dtype, *functions)


def _functions(
    arity: int, steps: Sequence[Step], scratch: Sequence[AnyDType], constants: Sequence[Array], dtype: AnyDType
) -> list[Callable[..., Any]]:
    """`Program.run`, `Program.broadcast` and `Program.small`.

    Straight-line Python functions are made from text: a loop over steps takes half as long again as the ufuncs of small
    arrays do. The text has no other names than those below.
    """
    operands, kept = [f"x{i}" for i in range(arity)], [f"t{i}" for i in range(len(scratch))]
    registers = [*operands, "out", *kept, *(f"k{i}" for i in range(len(constants)))]
    calls = [(f"f{i}", [registers[r] for r in step.arguments], registers[step.result]) for i, step in enumerate(steps)]
    in_place = [
        f"{f}({', '.join(given)}, out={to})" if _by_name(step) else f"{f}({', '.join([*given, to])})"
        for step, (f, given, to) in zip(steps, calls, strict=True)
    ]
    *before, (last, given, _) = calls
    anew = [f"{to} = {f}({', '.join(given)})" for f, given, to in before]
    new = [f"t{i} = empty(x0.shape, d{i})" for i in range(len(scratch))]
    functions = {
        f"run({', '.join([*operands, 'out', *kept])})": in_place,
        f"broadcast({', '.join([*operands, 'result'])})": [*anew, f"{last}({', '.join(given)}, out=result)"],
        "small(x0, out)": ["if out is None: out = empty(x0.shape, dtype)", *new, *in_place, "return out"],
    }
    text = "".join(f"def {head}:\n" + "".join(f"    {line}\n" for line in lines) for head, lines in functions.items())
    names: dict[str, Any] = {"empty": np.empty, "dtype": dtype}
    names.update((f"f{i}", step.call) for i, step in enumerate(steps))
    names.update((f"k{i}", constant) for i, constant in enumerate(constants))
    names.update((f"d{i}", each) for i, each in enumerate(scratch))
    exec(text, names)
    return [names[name] for name in ("run", "broadcast", "small")]


def _by_name(step: Step) -> bool:
    """Whether the result's array is given by name, which takes longer: NumPy deprecates it as a third argument here."""
    return step.call in (np.maximum, np.minimum)


def _array(constant: Constant) -> Array:
    return np.array(constant.value).astype(constant.dtype)


def _implementation(node: Apply) -> Implementation:
    if node.primitive is CAST:
        return conversion_to(node.dtype)
    return UNCHECKED.get(node.primitive) or IMPLEMENTATIONS[node.primitive]


def _expanded(expression: Expression) -> Expression:
    """``expression`` with primitives that NumPy has nothing for replaced by their expansions."""
    made: dict[int, Expression] = {}
    for node in walk(expression):
        found = node
        if isinstance(node, Apply):
            arguments = tuple(made[id(x)] for x in node.arguments)
            if node.primitive is not CAST and node.primitive not in IMPLEMENTATIONS:
                assert node.primitive.expansion is not None, node.primitive.name
                found = _expanded(node.primitive.expansion(*arguments))
            elif any(a is not b for a, b in zip(arguments, node.arguments, strict=True)):
                found = Apply(node.primitive, arguments, node.dtype)
        made[id(node)] = found
    return made[id(expression)]


def _scheduled(root: Expression) -> list[Expression]:
    """All nodes, arguments before what is made of them; of two arguments, the one with more below it first.

    So fewer results have to be kept (Sethi and Ullman, "The generation of optimal code for arithmetic expressions",
    JACM 17, 1970).
    """
    height: dict[int, int] = {}
    for node in walk(root):
        arguments = node.arguments if isinstance(node, Apply) else ()
        height[id(node)] = 1 + max((height[id(x)] for x in arguments), default=0)
    order: list[Expression] = []
    seen: set[int] = set()

    def visit(node: Expression) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, Apply):
            for argument in sorted(node.arguments, key=lambda x: -height[id(x)]):
                visit(argument)
        order.append(node)

    visit(root)
    return order
