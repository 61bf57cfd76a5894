"""Kernels of operators defined by an expression of several primitives, or one and a constant.

An expression becomes a program: which ufunc is called when, and where its result lies meanwhile. It is evaluated in
blocks that stay in the cache. Small floats are converted to float32, block by block, and the result is rounded once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from irc.ops import algebra
from irc.ops.algebra import CAST, SINGLE, AnyDType, Apply, Constant, Expression, Operand, fold, walk
from irc.ops.scalar import trace
from irc.runtime.kernels import numerics
from irc.runtime.kernels.numerics import BY, HALF, narrowed, widened
from irc.runtime.kernels.primitives import IMPLEMENTATIONS, UNCHECKED, UNLESS_HALF, Implementation, conversion_to
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, broadcast_shape, check_size, is_half, placed, scratch, shapes_differ

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
    """The result of ``program`` on operands of its types, written to ``out`` if given."""
    first: Array = operands[0]
    are_in_order = _are_in_order(operands)
    if are_in_order is None:
        return _broadcast(program, operands, out)
    if out is None:
        out = np.empty(first.shape, program.dtype)
    else:
        if not out.flags.c_contiguous and not are_in_order:
            np.copyto(out, evaluate(program, operands))
            return out
        are_in_order = are_in_order and out.flags.c_contiguous
        operands = [x if x is None or x.ndim else x.copy() for x in operands]
    size, block = first.size, max(1, BLOCK_BYTES // program.dtype.itemsize)
    for given, into in _blocks(operands, out, block) if size > block and are_in_order else ((operands, out),):
        program.run(*given, into, *_registers(program, into.shape))
    return out


def value_of(expression: Expression, operands: Sequence[Array]) -> Array:
    """What ``expression`` is of operands that broadcast: for a single use, which is worth no program."""

    def leaf(node: Expression) -> Array:
        assert isinstance(node, Operand | Constant)
        return operands[node.index] if isinstance(node, Operand) else _array(node)

    return fold(_expanded(expression), leaf, lambda node, arguments: _implementation(node)(*arguments))


def _are_in_order(operands: Sequence[Any]) -> bool | None:
    """Whether operands that have dimensions lie in C order; None if their shapes differ."""
    shape, found = operands[0].shape, True
    for x in operands:
        if x is not None and x.ndim:
            if x.shape != shape:
                return None
            found = found and x.flags.c_contiguous
    return found


def _blocks(operands: Sequence[Any], out: Array, size: int) -> Iterator[tuple[list[Any], Array]]:
    """Yield blocks of operands, where they have dimensions, and of ``out``; all lie in C order."""
    rows, target = [x.reshape(-1) if x is not None and x.ndim else x for x in operands], out.reshape(-1)
    for start in range(0, out.size, size):
        part = slice(start, start + size)
        yield [x[part] if x is not None and x.ndim else x for x in rows], target[part]


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
    return found if is_placed else placed(found, out)


def _by_name(step: Step) -> bool:
    """Whether the result's array is passed by name, which is slower: NumPy deprecates the position."""
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
    """All nodes, arguments first; of two arguments, the one with the larger tree first.

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


_EXACT = frozenset(
    {
        *(algebra.maximum, algebra.minimum, algebra.at_least, algebra.at_most),
        *(algebra.equal, algebra.not_equal, algebra.is_nan, algebra.is_infinite),
        *(algebra.less, algebra.less_equal, algebra.greater, algebra.greater_equal),
    }
)
"""Primitives that choose or compare: for them, small floats need not be converted."""

Semantics = Callable[..., Any]
SEMANTICS = "semantics"
"""An attribute of the kernels that `of_expression` makes: what it was given."""

_Key = tuple[Any, ...]
"""For each operand its element type, in a tuple if it has no dimensions where the first one has; None: absent."""

_Compute = Callable[..., Array]
"""``(*operands, out) -> result``"""


def of_expression(semantics: Semantics, arity: int, floats: bool = False, result: int | None = 0) -> Kernel:
    """The kernel for what a record says of an operator that has no single primitive.

    Args:
        semantics: a function of ``arity`` expressions; attributes are bound by `functools.partial`, if at all.
        arity: the number of operands; absent ones at the end may be left out.
        floats: as in `irc.ops.Operator`.
        result: likewise.
    """
    find = cache(partial(_computing, semantics, floats, result))
    if arity == 1:

        def of_one(x: Array, out: Array | None = None) -> Array:
            return find((x.dtype,))(x, out)

        setattr(of_one, SEMANTICS, semantics)
        return of_one

    def of_many(*operands: Array | None, out: Array | None = None) -> Array:
        key: _Key = ()
        for x in operands:
            key += (None if x is None else x.dtype if x.ndim or not key else (x.dtype,),)
        return find(key)(*operands, out)

    def of_two(x: Array, y: Array, out: Array | None = None) -> Array:
        return find((x.dtype, y.dtype if y.ndim else (y.dtype,)))(x, y, out)

    found = of_two if arity == 2 else of_many
    setattr(found, SEMANTICS, semantics)
    return found


def _computing(semantics: Semantics, floats: bool, result: int | None, key: _Key) -> _Compute:
    """What computes operands of these types."""
    is_bound = isinstance(semantics, partial)
    function, parameters = (semantics.func, tuple(semantics.keywords.items())) if is_bound else (semantics, ())
    program, converted = _program(function, parameters, repr(parameters), floats, key)
    final = program.dtype if result is None else _dtypes(key)[result]
    assert final is not None
    if not converted and final == program.dtype:
        return _of_one(program) if len(key) == 1 else program.small
    if len(key) == 1 and final != program.dtype == SINGLE:
        return _of_small_float(program, final)
    return lambda *given: _converting(program, converted, final, given[:-1], given[-1])


def _dtypes(key: _Key) -> list[AnyDType | None]:
    return [each[0] if isinstance(each, tuple) else each for each in key]


def _of_one(program: Program) -> _Compute:
    """What evaluates a program of one operand: that of one function and a constant is only that."""
    call, arguments, _ = program.steps[0]
    if len(program.steps) == 1 and arguments == ("x0", "k0") and not isinstance(call, np.ufunc):
        constant = program.constants[0]
        if constant.dtype != HALF:
            call = getattr(call, UNLESS_HALF, call)
        if hasattr(call, BY):
            return getattr(call, BY)(constant)

        def compute(x: Array, out: Array | None) -> Array:
            return call(x, constant, out)

        return compute
    return program.small


def _of_small_float(program: Program, final: AnyDType) -> _Compute:
    """`_converting` of one operand that is to be float32, as the result is."""
    compute = _of_one(program)

    def convert(x: Array, out: Array | None) -> Array:
        if x.size > numerics.BLOCK:
            return _converting(program, _FIRST, final, (x,), out)
        wide = widened(x, scratch("wide 0", x.shape, SINGLE))
        return narrowed(compute(wide, wide), final, np.empty(x.shape, final) if out is None else out)

    return convert


_FIRST = frozenset({0})


@lru_cache(maxsize=1024)
def _program(
    function: Semantics, parameters: tuple[tuple[str, Any], ...], _: str, floats: bool, key: _Key
) -> tuple[Program, frozenset[int]]:
    """The program for operands of these types, and the operands that it takes as float32, not as they are.

    The parameters' text tells apart -0 and 0, which are equal.
    """
    semantics, dtypes = partial(function, **dict(parameters)), _dtypes(key)
    small = frozenset(i for i, dtype in enumerate(dtypes) if dtype is not None and is_half(dtype))
    if small:
        expression = trace(semantics, dtypes)
        if all(node.primitive in _EXACT for node in walk(expression) if isinstance(node, Apply)):
            small = frozenset[int]()
    wide = [SINGLE if i in small else dtype for i, dtype in enumerate(dtypes)]
    scalars = frozenset(i for i, each in enumerate(key) if isinstance(each, tuple))
    return compiled(trace(semantics, wide, floats), len(key), scalars), small


def _converting(
    program: Program, converted: frozenset[int], final: AnyDType, operands: Any, out: Array | None = None
) -> Array:
    """As `_evaluate`, where operands are ``converted`` before, or the result is to be of another type."""
    first, are_in_order = operands[0], _are_in_order(operands)
    is_large = first.size > numerics.BLOCK
    can_be_cut = are_in_order and (out is None or out.flags.c_contiguous)
    if are_in_order is None or (is_large and not can_be_cut):
        wide = [widened(x) if i in converted else x for i, x in enumerate(operands)]
        return _finished(evaluate(program, wide), final, out)
    if out is None:
        out = np.empty(first.shape, final)
    for given, into in _blocks(operands, out, numerics.BLOCK) if is_large else ((operands, out),):
        _convert_block(program, converted, given, into)
    return out


def _finished(x: Array, final: AnyDType, out: Array | None) -> Array:
    if x.dtype == final:
        return placed(x, out)
    return narrowed(x, final, np.empty(x.shape, final) if out is None else out)


def _convert_block(program: Program, converted: frozenset[int], operands: Sequence[Any], out: Array) -> None:
    wide = [widened(x, scratch(f"wide {i}", x.shape, SINGLE)) if i in converted else x for i, x in enumerate(operands)]
    if out.dtype == program.dtype:
        evaluate(program, wide, out)
        return
    # The program may write its result over an operand, so that there is one array less in the cache.
    is_free = 0 in converted and program.dtype == SINGLE and wide[0].shape == out.shape
    result = wide[0] if is_free else scratch("wide result", out.shape, program.dtype)
    narrowed(evaluate(program, wide, result), out.dtype, out)
