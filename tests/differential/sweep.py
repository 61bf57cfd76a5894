"""Every ``aten::`` row that has a kernel, against PyTorch, on arguments generated from its schema.

``python -m tests.differential.sweep N SEED [PATTERN]`` calls each row ``N`` times. irc must give PyTorch's element
types, shapes, strides, sharing, writes and values, and refuse what PyTorch refuses; what it may do otherwise is in
`tests.differential.sweep_exceptions`, with the reason. Values of pointwise operators agree within `ULPS`, others
within `RELATIVE` of the largest one, with what PyTorch computes or with what it computes in float64 of the same
numbers: then PyTorch's own result is the less exact one.
"""

import random
import re
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from irc import Error
from irc.ir import parse_graph
from irc.ir.schema import Argument, Schema
from irc.ir.types import SCALAR_TYPES, OptionalType
from irc.ops import Effects, record, schemas
from irc.ops.signatures import kinds
from irc.runtime.kernels.registry import find_binder
from irc.runtime.plan import Plan, lower
from tests.differential import sweep_exceptions
from tests.differential.helpers import _NOT_IMPLEMENTED, Differ, _arrays, _Check, _tensors, numpy_of
from tests.differential.sweep_arguments import arguments
from tests.differential.torch_calls import IMPOSSIBLE, call

Array = np.ndarray[Any, Any]

ULPS = {"float16": 1, "bfloat16": 1, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16}
"""How many units in the last place results of pointwise operators may be apart."""

RELATIVE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 3e-6,
    "float64": 1e-13,
    "complex64": 6e-6,
    "complex128": 1e-13,
}
"""How far other results may be apart, relative to the largest finite one of a tensor."""

_NUMBERS = {t.numpy: number for number, t in SCALAR_TYPES.items()}


_ABSENT = re.compile(_NOT_IMPLEMENTED.pattern + "|Could not run|not available for")
"""What PyTorch says of element types that it lacks on CPUs: irc may know more of them."""


_NO_REFUSAL = re.compile(
    "INTERNAL ASSERT|please report|undefined Tensor|Expected a value of type|is missing value|basic_string|codec can't|"
    "Can't detach views|implemented directly in the interpreter|not linked with support|pin_memory"
)
"""PyTorch's own failures, and what its bindings for Python cannot be given."""


def swept() -> list[Schema]:
    """The rows with a kernel for which arguments can be generated."""
    return [row for row in rows_with_kernels() if not sweep_exceptions.ungenerated(row)]


def rows_with_kernels() -> list[Schema]:
    names = [kind for kind in kinds() if kind.startswith("aten::") and find_binder(kind, None) is not None]
    return [row for name in names for row in schemas(name)]


def name_of(row: Schema) -> str:
    return f"{row.name}.{row.overload}".rstrip(".").removeprefix("aten::")


class Outcome(NamedTuple):
    """What became of a call: ``agree``, ``refused`` by both, ``skipped``, or a fault, which ``text`` tells."""

    verdict: str
    text: str = ""


def sweep(row: Schema, most: int, seed: int, made: Any = None) -> Iterator[tuple[Outcome, list[Any]]]:
    """Up to ``most`` calls of ``row``, at least two thirds of which PyTorch takes, if they can be found.

    ``made.value``, if given, is set to how many arguments have been made so far.
    """
    rng = random.Random(f"{name_of(row)} {seed}")
    torch.manual_seed(seed)
    taken = refused = 0
    for i in range(most * 12):
        if made is not None:
            made.value = i + 1
        given = arguments(row, rng)
        outcome = checked(row, given, refused * 2 <= taken)
        if outcome is None:
            continue
        taken += outcome.verdict != "refused"
        refused += outcome.verdict == "refused"
        yield outcome, given
        if taken + refused >= most:
            return


def checked(row: Schema, given: list[Any], takes_refused: bool = True) -> Outcome | None:
    """One call both ways; None if PyTorch refuses it and that is not wanted."""
    reason = sweep_exceptions.skipped(row, given)
    if reason:
        return Outcome("skipped", reason)
    its = [_cloned(v) for v in given]
    its_error: Exception | None = None
    expected: Any = None
    torch.manual_seed(0)
    try:
        expected = call(row, its)
    except IMPOSSIBLE as error:
        its_error = error
    if its_error is not None and _NO_REFUSAL.search(str(its_error)):
        return None
    if its_error is not None and not takes_refused:
        return None
    mine = [to_irc(v) for v in given]
    before = _Comparison(row, given, _tensors(its), _arrays(mine))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = list(_plan(row, tuple(_type_of(a, v) for a, v in zip(row.arguments, mine))).run(mine))
    except Error as error:
        if its_error is not None:
            return Outcome("refused")
        return _fault(row, given, "irc refuses", f"{error.code}: {error.message}"[:300])
    except Exception as error:
        return _fault(row, given, "irc raises", f"{type(error).__name__}: {error}"[:300])
    if its_error is not None:
        if _ABSENT.search(str(its_error)):
            return Outcome("refused")  # irc may know more element types
        return _fault(row, given, "irc computes", f"torch: {str(its_error)[:200]}")
    results = list(expected) if len(row.returns) > 1 else [expected] if row.returns else []
    try:
        for i, (m, t) in enumerate(zip(found, results, strict=True)):
            before(m, t, f"result {i}")
        before.written()
    except AssertionError as error:
        return _fault(row, given, "differs", " ".join(str(error).split())[:400])
    return Outcome("agree")


def _fault(row: Schema, given: list[Any], what: str, text: str) -> Outcome:
    reason = sweep_exceptions.excused(row, given, what, text)
    return Outcome("excused", reason) if reason else Outcome(what, text)


@lru_cache(maxsize=4096)
def _plan(row: Schema, of_types: tuple[str, ...]) -> Plan:
    params = ", ".join(f"%a{i} : {t}" for i, t in enumerate(of_types))
    results = ", ".join(f"%r{i} : {r.type}" for i, r in enumerate(row.returns))
    names = ", ".join(f"%r{i}" for i in range(len(row.returns)))
    operands = ", ".join(f"%a{i}" for i in range(len(of_types)))
    equals = f"{results} = " if results else ""
    return lower(parse_graph(f"graph({params}):\n  {equals}{row.name}({operands})\n  return ({names})\n"))


def _type_of(argument: Argument, value: Any) -> str:
    type = argument.type
    if isinstance(type, OptionalType):
        return "NoneType" if value is None else str(type.elem)
    if str(type) == "Scalar":
        return {bool: "bool", int: "int", float: "float", complex: "complex"}[value.__class__]
    return str(type)


def to_irc(value: Any) -> Any:
    """The same value for irc: arrays over copies of tensors' whole memory, numbers for enumerations."""
    if isinstance(value, torch.Tensor):
        return _array(value)
    if isinstance(value, list):
        return [to_irc(v) for v in value]
    if isinstance(value, torch.dtype):
        return _NUMBERS[numpy_of(torch.empty(0, dtype=value)).dtype]
    if isinstance(value, torch.layout):
        return 0
    if isinstance(value, torch.memory_format):
        return [torch.contiguous_format, torch.preserve_format, torch.channels_last].index(value)
    return str(value) if isinstance(value, torch.device) else value


def _array(x: torch.Tensor) -> Array:
    """Over an array that is the whole storage, which irc then knows."""
    whole = numpy_of(torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())).copy()  # type: ignore[arg-type]
    size = whole.itemsize
    strides = [step * size for step in x.stride()]
    if not x.numel():
        return np.empty(tuple(x.shape), whole.dtype)
    return np.ndarray(tuple(x.shape), whole.dtype, whole, x.storage_offset() * size, strides)


def _cloned(value: Any) -> Any:
    if isinstance(value, list):
        return [_cloned(v) for v in value]
    if not isinstance(value, torch.Tensor):
        return value
    whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage().clone())  # type: ignore[arg-type]
    return whole.as_strided(value.shape, value.stride(), value.storage_offset())


class _Comparison(_Check):
    """Compares results, and afterwards the arguments, with PyTorch's, which float64 may overrule."""

    def __init__(self, row: Schema, given: list[Any], tensors: list[Any], arrays: list[Array]) -> None:
        super().__init__(tensors, arrays, True, True, None)
        self.row = row
        self.given = given
        self.values = not _is_random(row, given) and not row.name.removeprefix("aten::").startswith(_UNWRITTEN)
        self.strides = name_of(row) not in sweep_exceptions.STRIDES
        name = row.name.removeprefix("aten::").removesuffix("_")
        self.is_pointwise = (
            record(f"aten::{name}").result_type is not None and name not in sweep_exceptions.RELATIVE_TO_OPERANDS
        )
        self.scale = _scale(given)
        self.place: list[int] | None = None

    def __call__(self, mine: Any, its: Any, where: str) -> None:
        if isinstance(its, float) and isinstance(mine, float):
            near = 2.0**-23 if name_of(self.row) in sweep_exceptions.ROUNDED else 4 * 2.0**-52
            self._require(_near(np.array(mine), np.array(its), near, 0) is None, where, mine, its)
        elif isinstance(its, complex) and isinstance(mine, complex):
            self._require(_near(np.array(mine), np.array(its), 8 * 2**-52, 0) is None, where, mine, its)
        else:
            super().__call__(mine, its, where)

    def written(self) -> None:
        """What became of the arguments that are tensors."""
        for i, (array, tensor) in enumerate(zip(self.arrays, self.tensors, strict=True)):
            self(array, tensor, f"array {i} afterwards")

    def _tensor(self, mine: Any, its: Any, where: str) -> None:
        values, self.values = self.values, False
        super()._tensor(mine, its, where)
        self.values = values
        if not values:
            return
        expected = numpy_of(its.resolve_conj().resolve_neg())
        text = self._apart(mine, expected)
        if text is None:
            return
        exact = self._exactly(where)
        if exact is not None and exact.shape == expected.shape:
            info = None if mine.dtype.kind in "biu" else mine.dtype
            rounded = exact.astype(info) if info is not None else exact
            if info is not None and self._apart(mine, rounded) is None:
                return
            if info is not None and not self.is_pointwise and _is_nearer(mine, expected, exact):
                return
        raise Differ(f"{where}: {text}")

    def _apart(self, mine: Array, its: Array) -> str | None:
        name = mine.dtype.name
        if mine.dtype.kind in "biu":
            return None if np.array_equal(mine, its) else f"irc {_shown(mine)}, torch {_shown(its)}"
        ulps = sweep_exceptions.ULPS.get(self.row.name.removeprefix("aten::").removesuffix("_"), 1)
        if sweep_exceptions.mixes_infinities(self.row, self.given):
            known = np.isfinite(_wide(mine)) & np.isfinite(_wide(its))
            mine, its = mine[known], its[known]
        if self.is_pointwise:
            return _near(mine, its, ulps * ULPS[name] * _EPS[name], None if self._ignores_signs() else 1)
        finite = np.abs(_wide(its)[np.isfinite(_wide(its))])
        largest = max(float(finite.max()) if finite.size else 0.0, self.scale)
        return _near(mine, its, RELATIVE[name] * ulps, None, RELATIVE[name] * ulps * largest)

    def _ignores_signs(self) -> bool:
        return self.row.name.removeprefix("aten::").removesuffix("_") in sweep_exceptions.SIGNS

    def _exactly(self, where: str) -> Array | None:
        """The same result in float64, if PyTorch can compute that."""
        wide = [_widened(v) for v in self.given]
        try:
            results = call(self.row, wide)
        except IMPOSSIBLE:
            return None
        results = list(results) if len(self.row.returns) > 1 else [results]
        number = int(re.findall(r"\d+", where)[0])
        found: Any = _tensors(wide)[number] if where.startswith("array") else results[number]
        for at in re.findall(r"\[(\d+)\]", where):
            found = found[int(at)]
        return numpy_of(found.resolve_conj().resolve_neg()) if isinstance(found, torch.Tensor) else None


_EPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}
_EPS |= {"complex64": 2**-23, "complex128": 2**-52}
_UNWRITTEN = ("empty", "new_empty", "resize")
"""Operators whose results have elements that nothing was written to."""


def _scale(given: list[Any]) -> float:
    """The largest number among the operands, relative to which sums are exact; 0 if it is huge or not finite."""
    floats = [t.abs().to(torch.float64).max().item() for t in _tensors(given) if t.numel() and t.dtype != torch.bool]
    largest = max(floats, default=0.0)
    return largest if largest < 1e6 else 0.0


def _widened(value: Any) -> Any:
    if isinstance(value, list):
        return [_widened(v) for v in value]
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else torch.complex128 if value.is_complex else value
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_floating_point():
        return value.to(torch.float64, copy=True)
    return value.to(torch.complex128, copy=True) if value.is_complex() else value.clone()


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _near(mine: Array, its: Array, relative: float, signs: int | None, absolute: float = 0.0) -> str | None:
    """None, or what is apart: more than ``relative`` or ``absolute``, infinities, NaNs, and signs of zero if given."""
    with np.errstate(all="ignore"):
        return _near_quietly(mine, its, relative, signs, absolute)


def _near_quietly(mine: Array, its: Array, relative: float, signs: int | None, absolute: float) -> str | None:
    a, b = _wide(mine), _wide(its)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    floor = float(np.finfo(mine.dtype).smallest_subnormal) if mine.dtype.kind in "fc" else 0.0
    close = np.abs(a - b) <= np.maximum(relative * np.abs(b), absolute) + 2 * floor
    good = same | (close & np.isfinite(a) & np.isfinite(b))
    if mine.dtype.kind != "c" and signs is not None:
        good &= (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))
    if good.all():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(~good)))
    return f"at {list(at)} irc {np.atleast_1d(a)[at]!r}, torch {np.atleast_1d(b)[at]!r}"


def _is_nearer(mine: Array, its: Array, exact: Array) -> bool:
    """Whether irc's largest error is at most PyTorch's, of numbers that are finite in all three."""
    a, b, c = _wide(mine), _wide(its), _wide(exact)
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
        same = (a == c) | (np.isnan(a) & np.isnan(c))
        error = np.abs(a - c) <= np.maximum(np.abs(b - c), np.abs(b - c).max(where=finite, initial=0.0))
    return bool(((finite & error) | same).all())


def _shown(x: Array) -> str:
    return f"{x.dtype.name} {x.reshape(-1)[:8].tolist()}"


def _is_random(row: Schema, given: list[Any]) -> bool:
    if Effects.RANDOM in record(row.name).effects and record(row.name).random_switch is None:
        return True
    flag = record(row.name).random_switch
    return flag is not None and any(a.name == flag and v not in (False, 0) for a, v in zip(row.arguments, given))


def described(value: Any) -> str:
    """An argument in one line, so that a fault can be told."""
    if isinstance(value, torch.Tensor):
        few = value.flatten()[:6].tolist()
        dense = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{dense} {few}"
    if isinstance(value, list):
        return "[" + ", ".join(map(described, value)) + "]"
    return repr(value)


def matches(row: Schema, pattern: str) -> bool:
    """Whether the name of ``row`` matches ``pattern`` somewhere."""
    return re.search(pattern, name_of(row)) is not None


if __name__ == "__main__":
    from tests.differential.sweep_apart import main

    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
