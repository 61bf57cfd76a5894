"""How operators that work element by element become kernels: a functional and an in-place form each.

An operator is a *setup*: a function of its arguments that says what to compute,
on which operands, and in which element type. Everything else, broadcasting,
where the result lies in memory, writing in place, is the same for all.

Of float tensors of one type, in order in memory, or one of them and a number, all that is known beforehand: most calls
compute at once. Determining it again for each call takes longer than computing a small tensor: 5 microseconds of 6,
measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from irc import ops
from irc.errors import Error
from irc.ops import ScalarSemantics, record
from irc.ops.algebra import Primitive
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    as_float,
    check_result,
    check_writable,
    result_type,
    takes_floats,
    tensor,
    wide,
)
from irc.runtime.kernels.aten.registering import aten
from irc.runtime.kernels.expressions import of_expression
from irc.runtime.kernels.numerics import narrowed
from irc.runtime.kernels.primitives import IMPLEMENTATIONS
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import AnyDType, Array, broadcast_shape, scalar, shapes_differ
from irc.runtime.values import is_array

_NDARRAY = np.ndarray

_EXACT = 1 << 24
"""Integers up to this are float32's as they are."""


def shortened(name: str, operands: int, compute: Kernel, rest: tuple[Any, ...], run: Kernel) -> Kernel:
    """``run``, the kernel of torch's operator ``name``, replaced by ``compute`` for most calls.

    Args:
        name: without ``aten::``.
        operands: how many operands there are, one or two.
        compute: what ``run`` computes of floats: a new array, which lies in order if all operands do.
        rest: further arguments with which ``run`` still only computes that.
        run: for all arguments.
    """
    if not takes_floats(name):
        return run
    return _of_one(run, compute) if operands == 1 else _of_two(run, compute, rest)


def _is_plain(x: Array) -> bool:
    """Whether what has the element type and the order of ``x`` is computed as it is."""
    return (x.dtype is FLOAT32 or x.dtype is FLOAT64) and x.ndim > 0 and x.flags.c_contiguous


def _of_one(run: Kernel, compute: Kernel) -> Kernel:
    def kernel(x: Any, *more: Any, out: Array | None = None) -> Any:
        if x.__class__ is _NDARRAY and not more and _is_plain(x):
            return compute(x) if out is None else compute(x, out=out)  # naming it takes a tenth of the time
        return run(x, *more, out=out)

    return kernel


def _of_two(run: Kernel, compute: Kernel, rest: tuple[Any, ...]) -> Kernel:
    takes_numbers = isinstance(compute, np.ufunc)  # takes a number in the type of the array

    def kernel(x: Any, y: Any, *more: Any, out: Array | None = None) -> Any:
        if x.__class__ is _NDARRAY and (not more or more == rest) and _is_plain(x):
            if y.__class__ is _NDARRAY:
                if y.dtype is x.dtype and y.flags.c_contiguous:
                    try:
                        return compute(x, y) if out is None else compute(x, y, out=out)
                    except ValueError:  # shapes that do not broadcast: ``run`` says so
                        pass
            elif takes_numbers and (y.__class__ is float or (y.__class__ is int and -_EXACT <= y <= _EXACT)):
                return compute(x, y) if out is None else compute(x, y, out=out)
        return run(x, y, *more, out=out)

    return kernel


Operand = Any
"""A tensor or a Python number."""

Compute = Callable[..., Any]
"""``(a, b, ..., out=None)``: of arrays of one element type whose shapes broadcast; ``out`` may be one of them."""


class Computation(NamedTuple):
    """What to compute.

    Attributes:
        compute: of the operands, as arrays.
        operands: tensors and numbers.
        dtype: the element type in which the operands are taken; small floats are then computed in float32.
        result: the element type of the result, if it is another one.
        exact: whether operands need not be rounded to a small float type before they are taken in float32.
    """

    compute: Compute
    operands: tuple[Operand, ...]
    dtype: AnyDType
    result: AnyDType | None = None
    exact: bool = False


Setup = Callable[..., Computation]


def run(computation: Computation, into: Array | None = None) -> Array:
    """The result of ``computation``: a new array, or written into one.

    Raises:
        Error: the shapes do not broadcast; ``into`` may not be written or cannot hold the result.
    """
    compute, operands, dtype, result, exact = computation
    within = wide(dtype)
    natural = within if result is None else result  # what `compute` gives
    final = dtype if result is None else result
    taken = operands if exact or within == dtype else [tensor(x, dtype) for x in operands]
    arrays = [tensor(x, within) for x in taken]
    try:
        if into is None:
            if natural == final and all(x.flags.c_contiguous for x in arrays):
                return np.asarray(compute(*arrays))
            out = layout.empty(broadcast_shape(*(x.shape for x in arrays)), final, operands)
        else:
            check_writable(into)
            check_result(into, final)
            if broadcast_shape(into.shape, *(x.shape for x in arrays)) != into.shape:
                raise Error("IRC421", f"a tensor of shape {list(into.shape)} is too small for the result in place")
            out = into
        if natural == out.dtype:
            compute(*arrays, out=out)
        else:
            narrowed(np.broadcast_to(compute(*arrays), out.shape), out.dtype, out)
    except ValueError as error:
        raise shapes_differ(error, *arrays) from None
    return out


_PLAIN = "plain"
"""An attribute of setups: how many operands they have, and what they compute of float tensors of one type."""

SETUPS: dict[str, Setup] = {}
"""What operators that `register` has registered, and their in-place variants, compute of their arguments, by names
without ``aten::``."""

ELEMENTWISE: set[str] = set()
"""Names without ``aten::`` of the operators that `register` has registered."""


def register(
    name: str,
    setup: Setup | None = None,
    *,
    in_place: Setup | None = None,
    compute: Compute | None = None,
    rest: tuple[Any, ...] = (),
    python: Kernel | None = None,
    python_in_place: Kernel | None = None,
) -> None:
    """Register an operator and, if its variant has a row, the in-place variant.

    Where a tag of its row tells the element type of the result, the operator need not.

    Args:
        name: without ``aten::``.
        setup: for tensors; by default what the operator's record says, of operands in their common type.
        in_place: the variant's setup, if it differs.
        compute: the function that it computes of two float tensors of one type, provided that further arguments
            are left out or are ``rest``. Setups that `of_one` or `of_two` made have it already.
        rest: see ``compute``.
        python: for arguments of which neither the first nor the second is a tensor.
        python_in_place: what the variant does to a value that is not a tensor.
    """
    ELEMENTWISE.add(name)
    setup = recorded(name) if setup is None else setup
    plain: tuple[int, Compute] | None = getattr(setup, _PLAIN, None) if compute is None else (2, compute)
    told = _RESULTS.get(record(f"aten::{name}").result_type or "", _as_it_is)

    def computation(*arguments: Any) -> Computation:
        return told(setup(*arguments))

    def computation_in_place(*arguments: Any) -> Computation:
        return told((in_place or setup)(*arguments))

    SETUPS[name], SETUPS[f"{name}_"] = computation, computation_in_place

    def functional(*arguments: Any, out: Array | None = None) -> Any:
        if python is not None and not any(map(is_array, arguments[:2])):
            return python(*arguments)
        return run(told(setup(*arguments)), into=out)

    def writing(x: Any, *rest: Any) -> Any:
        if python_in_place is not None and not is_array(x):
            return python_in_place(x, *rest)
        return run(told((in_place or setup)(x, *rest)), into=x)

    takes = tuple(f for f in (setup, python, python_in_place) if f is not None)
    shorten = None if plain is None else partial(shortened, name, *plain, rest)
    aten(name, takes=takes, shorten=shorten)(functional)
    if record(f"aten::{name}_").rows:
        aten(f"{name}_", takes=takes)(writing)


def _as_it_is(found: Computation) -> Computation:
    return found


def to_float(found: Computation) -> Computation:
    """``found``, in float32 if it is of bools or integers."""
    dtype = as_float(found.dtype)
    return found if dtype is found.dtype else found._replace(dtype=dtype)


def _to_bool(found: Computation) -> Computation:
    compute, operands, dtype, _, exact = found  # `_replace` takes twice as long
    return Computation(compute, operands, dtype, BOOL, exact)


_RESULTS: dict[str, Callable[[Computation], Computation]] = {"bool": _to_bool, "float": to_float}
"""What tags tell of results that would have another element type."""


# -- kinds of setups ------------------------------------------------------------


def of_one(compute: Compute) -> Setup:
    """Of one operand."""

    def setup(x: Array) -> Computation:
        return Computation(compute, (x,), x.dtype)

    setattr(setup, _PLAIN, (1, compute))
    return setup


def of_two(compute: Compute) -> Setup:
    """Of two operands, taken in the element type that both have in common."""

    def setup(x: Operand, y: Operand) -> Computation:
        return Computation(compute, (x, y), result_type(x, y))

    setattr(setup, _PLAIN, (2, compute))
    return setup


def recorded(name: str) -> Setup:
    """Of the operands of ``aten::name``, what its record says; further arguments are parameters of that."""
    scalar = _semantics(name)
    if scalar.parameters:

        def setup(x: Array, *parameters: Any) -> Computation:
            return Computation(computed(name, *parameters), (x,), x.dtype)

        return setup
    return (of_one if scalar.arity == 1 else of_two)(computed(name))


def computed(name: str, *parameters: Any) -> Compute:
    """What the record of ``aten::name`` says of arrays, given the parameters, in the order of the schema."""
    given = tuple([scalar(p, f"a parameter of {name}") if is_array(p) else p for p in parameters])
    return _computed(name, given, "" if all(given) else repr(given))  # which tells apart -0 and 0


@lru_cache(maxsize=1024)
def _computed(name: str, parameters: tuple[Any, ...], _: str) -> Compute:
    scalar = _semantics(name)
    semantics = scalar.resolve(dict(zip(scalar.parameters, parameters, strict=False)))
    if isinstance(semantics, Primitive) and semantics in IMPLEMENTATIONS:
        return IMPLEMENTATIONS[semantics]
    return of_expression(semantics, scalar.arity, result=None)


def _semantics(name: str) -> ScalarSemantics:
    found = ops.semantics(f"aten::{name}")
    assert found is not None, name
    return found


def of_parameters(make: Callable[..., Compute]) -> Setup:
    """Of one tensor, by what ``make`` makes of the other arguments: ``(x, out)``, on floats."""

    def setup(x: Array, *parameters: Any) -> Computation:
        return Computation(writing_new(make(*parameters)), (x,), as_float(x.dtype))

    return setup


def writing_new(function: Callable[[Array, Array], Any]) -> Compute:
    """``function``, which writes into its second operand, with a new array for that if none is given."""

    def run(x: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        function(x, out)
        return out

    return run


def on_numbers(ufunc: Callable[..., Any], result: Callable[[Any], Any] = float) -> Kernel:
    """The function on Python numbers, giving infinities and NaNs; complex if an operand is."""

    def compute(*numbers: Any) -> Any:
        if any(isinstance(n, complex) for n in numbers):
            found = ufunc(*map(np.complex128, numbers))
            return complex(found) if result is float else result(found)
        return result(ufunc(*map(np.float64, numbers)))

    return compute
