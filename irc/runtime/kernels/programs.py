"""From an expression of scalars to calls of ufuncs: which is called when, and where its result lies meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from irc.ops.algebra import CAST, AnyDType, Apply, Constant, Expression, Operand, fold, walk
from irc.runtime.kernels.primitives import IMPLEMENTATIONS, UNCHECKED, Implementation, conversion_to
from irc.runtime.kernels.support import Array, broadcast_shape, check_size, shapes_differ

BLOCK_BYTES = 1 << 20
"""Of an operand that a program treats at once, so that what lies between its steps stays in cache. Measured on one
thread: of 16 MiB, whole arrays take 1.2 (Softplus) to 1.65 times (Erf) as long, of 4 MiB up to 1.1 times."""


class Step(NamedTuple):
    """A call: of what, on what, and where its result lies.

    ``x0``, ``x1``... are the operands, ``out`` is the result's array, ``t0``... are scratch arrays, ``k0``... are
    constants, ``s0``... what is computed of operands without dimensions alone.
    """

    call: Implementation
    arguments: tuple[str, ...]
    result: str


class Program(NamedTuple):
    """An expression as steps.

    ``out`` may be the memory of an operand: nothing is written there before the last step that reads any operand that
    has dimensions.

    Attributes:
        steps: the last one makes the result.
        scratch: the element types of the scratch arrays.
        constants: arrays without dimensions.
        dtype: the element type of the result.
        run: ``(*operands, out, *scratch) -> None``: all steps. Operands have the result's shape, but for those that
            the program expects to have no dimensions.
        broadcast: ``(*operands, result) -> None``: all steps on operands of several shapes, with a new array for what
            each step makes but the last.
        small: ``(*operands, out) -> result``: as `evaluate`, where a small array takes no longer than its ufuncs do.
    """

    steps: tuple[Step, ...]
    scratch: tuple[AnyDType, ...]
    constants: tuple[Array, ...]
    dtype: AnyDType
    run: Callable[..., None]
    broadcast: Callable[..., None]
    small: Callable[..., Array]


def compiled(expression: Expression, arity: int, scalars: frozenset[int] = frozenset()) -> Program:
    """The program for ``expression`` over ``arity`` operands, of which ``scalars`` have no dimensions."""
    root = _expanded(expression)
    if not isinstance(root, Apply):
        root = Apply(CAST, (root,), root.dtype)  # a copy
    order = [node for node in _scheduled(root) if isinstance(node, Apply)]
    constants = [node for node in walk(root) if isinstance(node, Constant)]
    at = {id(node): f"k{i}" for i, node in enumerate(constants)}  # where the value of a node lies
    at.update((id(node), f"x{node.index}") for node in walk(root) if isinstance(node, Operand))
    single = {id(node) for node in constants}
    single.update(id(node) for node in walk(root) if isinstance(node, Operand) and node.index in scalars)
    for node in order[:-1]:
        if all(id(x) in single for x in node.arguments):
            single.add(id(node))
            at[id(node)] = f"s{len(single)}"
    types = _allotted([node for node in order if id(node) not in single], root, single, at)
    steps = tuple(Step(_implementation(n), tuple(at[id(x)] for x in n.arguments), at[id(n)]) for n in order)
    arrays = tuple(map(_array, constants))
    used = {f"x{i}" for i in range(1, arity)} & {name for step in steps for name in step.arguments}
    given = {f"x{i}" for i in scalars} & used
    names = _functions(arity, steps, types, arrays, root.dtype, sorted(used - given), sorted(given))
    functions = (names[name] for name in ("run", "broadcast", "small"))
    program = Program(steps, tuple(types), arrays, root.dtype, *functions)
    names["large"] = partial(evaluate, program)
    return program


def _allotted(order: Sequence[Apply], root: Apply, single: set[int], at: dict[int, str]) -> list[AnyDType]:
    """The element types of the scratch arrays that results lie in; enters into ``at`` where each does."""
    last_use = {id(argument): i for i, node in enumerate(order) for argument in node.arguments}
    last_read = max(
        (i for i, n in enumerate(order) if any(isinstance(x, Operand) and id(x) not in single for x in n.arguments)),
        default=-1,
    )
    scratch: dict[str, AnyDType] = {}
    free: list[str] = []
    for i, node in enumerate(order):
        arguments = [x for x in dict.fromkeys(node.arguments) if isinstance(x, Apply) and id(x) not in single]
        dying = [at[id(x)] for x in arguments if last_use[id(x)] == i]
        usable = [name for name in (*dying, *free) if {"out": root.dtype, **scratch}[name] == node.dtype]
        held = {at[id(x)] for x in order[:i] if last_use[id(x)] >= i}
        may_be_out = i >= last_read and node.dtype == root.dtype and ("out" not in held or "out" in dying)
        if node is root or may_be_out:
            place = "out"
        elif usable:
            place = usable[0]
        else:
            place = f"t{len(scratch)}"
            scratch[place] = node.dtype
        at[id(node)] = place
        free = [name for name in dict.fromkeys((*free, *dying)) if name not in (place, "out")]
    return list(scratch.values())


def _functions(
    arity: int,
    steps: Sequence[Step],
    scratch: Sequence[AnyDType],
    constants: Sequence[Array],
    dtype: AnyDType,
    arrays: Sequence[str],
    scalars: Sequence[str],
) -> dict[str, Any]:
    """`Program.run`, `Program.broadcast` and `Program.small`, by name.

    Straight-line Python functions are made from text: a loop over steps takes half as long again as the ufuncs of small
    arrays do. The text has no other names than those below, which the functions find in the dictionary returned.

    Args:
        arity, steps, scratch, constants, dtype: as in `Program`.
        arrays: operands but the first that are read and have dimensions.
        scalars: those that are read and have none. They are copied where a result is written over an operand, whose
            memory they may be.
    """
    operands, kept = [f"x{i}" for i in range(arity)], [f"t{i}" for i in range(len(scratch))]
    *before, last = [f"f{i}({', '.join(step.arguments)}" for i, step in enumerate(steps)]
    anew = [f"{step.result} = {call})" for call, step in zip(before, steps)]
    calls = [
        f"{step.result} = {call})" if step.result[0] == "s" else f"{call}, {'out=' * _by_name(step)}{step.result})"
        for call, step in zip((*before, last), steps)
    ]
    conditions = [f"{name}.shape != shape" for name in arrays]
    conditions += ["x0.nbytes > limits.BLOCK_BYTES", "(out is not None and not out.flags.c_contiguous)"]
    functions = {
        f"run({', '.join([*operands, 'out', *kept])})": calls,
        f"broadcast({', '.join([*operands, 'result'])})": [*anew, f"{last}, out=result)"],
        f"small({', '.join([*operands, 'out'])})": [
            "shape = x0.shape",
            f"if {' or '.join(conditions)}: return large(({', '.join(operands)},), out)",
            "if out is None: out = empty(shape, dtype)",
            *(["else: " + "; ".join(f"{name} = {name}.copy()" for name in scalars)] if scalars else []),
            *(f"t{i} = empty(shape, d{i})" for i in range(len(scratch))),
            *calls,
            "return out",
        ],
    }
    text = "".join(f"def {head}:\n" + "".join(f"    {line}\n" for line in lines) for head, lines in functions.items())
    names: dict[str, Any] = {"empty": np.empty, "dtype": dtype, "limits": sys.modules[__name__]}
    names.update((f"f{i}", step.call) for i, step in enumerate(steps))
    names.update((f"k{i}", constant) for i, constant in enumerate(constants))
    names.update((f"d{i}", each) for i, each in enumerate(scratch))
    exec(text, names)
    return names


def evaluate(program: Program, operands: Sequence[Any], out: Array | None = None) -> Array:
    """The result of ``program`` on operands of the types that it is for; written to ``out`` if that is given."""
    first: Array = operands[0]
    shape, are_in_order = first.shape, True
    for x in operands:
        if x is not None and x.ndim:
            if x.shape != shape:
                return _broadcast(program, operands, out)
            are_in_order = are_in_order and x.flags.c_contiguous
    if out is None:
        out = np.empty(shape, program.dtype)
    else:
        if not out.flags.c_contiguous and not are_in_order:
            np.copyto(out, evaluate(program, operands))
            return out
        are_in_order = are_in_order and out.flags.c_contiguous
        operands = [x if x is None or x.ndim else x.copy() for x in operands]
    size, block = first.size, max(1, BLOCK_BYTES // program.dtype.itemsize)
    if size <= block or not are_in_order:
        program.run(*operands, out, *_registers(program, shape))
        return out
    rows, target = [flat(x) for x in operands], out.reshape(-1)
    for start in range(0, size, block):
        part = slice(start, start + block)
        into = target[part]
        program.run(*(x[part] if x is not None and x.ndim else x for x in rows), into, *_registers(program, into.shape))
    return out


def flat(x: Array | None) -> Any:
    """``x`` as a vector, if it has dimensions."""
    return x.reshape(-1) if x is not None and x.ndim else x


def _registers(program: Program, shape: tuple[int, ...]) -> list[Array]:
    """The scratch arrays of ``program``."""
    return [np.empty(check_size(shape, dtype), dtype) for dtype in program.scratch]


def _broadcast(program: Program, operands: Sequence[Any], out: Array | None) -> Array:
    """As `evaluate`, for operands of several shapes."""
    given: list[Array] = [x for x in operands if x is not None]
    try:
        shape = broadcast_shape(*(x.shape for x in given))
        is_placed = out is not None and out.flags.c_contiguous
        found: Array = out if is_placed else np.empty(shape, program.dtype)  # type: ignore[assignment]
        program.broadcast(*operands, found)
    except ValueError as error:
        raise shapes_differ(error, *given) from None
    if out is None or is_placed:
        return found
    np.copyto(out, found)
    return out


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

    def apply(node: Apply, arguments: Sequence[Expression]) -> Expression:
        if node.primitive is not CAST and node.primitive not in IMPLEMENTATIONS:
            assert node.primitive.expansion is not None, node.primitive.name
            return _expanded(node.primitive.expansion(*arguments))
        if all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
            return node
        return Apply(node.primitive, tuple(arguments), node.dtype)

    return fold(expression, lambda leaf: leaf, apply)


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
