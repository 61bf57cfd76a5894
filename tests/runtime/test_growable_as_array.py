"""Growable arrays beside arrays of the same contents: what is done to both gives, and does, the same."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from irc.runtime import GrowableArray

CONTENTS: dict[str, Any] = {
    "float32": np.float32([[3, -1, 0.5], [2.5, 7, -4]]),
    "int64": np.arange(9).reshape(3, 3) % 5,
    "bool": np.array([True, False, True]),
    "complex128": np.array([[1 + 2j, -3j], [0, 1]]),
    "one": np.array([2.0]),
    "not finite": np.array([1, np.nan, -np.inf, 3]),
    "empty": np.zeros((0, 3), np.float32),
    "days": np.array(["2020-02-29", "NaT"], "M8[D]"),
}


def growable(contents: Any) -> GrowableArray:
    grown = GrowableArray(contents[:1], 0, capacity=9)
    assert grown.append(contents[1:])
    return grown


def seen(value: Any, operands: tuple[Any, ...]) -> Any:
    """``value`` as something to compare: of what kind it is, what is in it, and which operands' memory it shows."""
    if isinstance(value, GrowableArray):
        value = value.array
    if isinstance(value, np.ndarray):
        shown = [i for i, x in enumerate(operands) if value.size and np.may_share_memory(value, x)]
        return type(value), value.dtype, value.shape, shown, repr(value.tolist())
    if isinstance(value, (list, tuple, deque, Iterator)):
        return type(value), [seen(v, operands) for v in value]
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None), np.dtype, np.generic)):
        return type(value), repr(value)
    return type(value)


def outcome(action: Callable[..., Any], *operands: Any) -> Any:
    """What ``action`` gives or raises, of what it warns if it gives something, and what is in the operands then."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            found = seen(action(*operands), operands)
        except Exception as error:
            found = type(error)
            caught.clear()  # NumPy 2.0 warns of what it casts before it finds that it cannot go on
    return found, {w.category for w in caught}, [seen(np.array(x), ()) for x in operands]


def differences(action: Callable[..., Any], *contents: Any) -> list[Any]:
    """Both outcomes, if they differ."""
    of_arrays = outcome(action, *(x.copy() for x in contents))
    of_growable = outcome(action, *map(growable, contents))
    return [] if of_arrays == of_growable else [of_arrays, of_growable]


# -- functions and ufuncs ----------------------------------------------------------


NO_RESULT = {"empty_like", "save", "savez", "savez_compressed", "savetxt"}
"""Functions that give whatever is in memory, and that write files."""

FUNCTIONS = {
    f"{module.__name__}.{name}": function
    for module in (np, np.linalg, np.fft)
    for name, function in vars(module).items()
    if name not in NO_RESULT and (hasattr(function, "_implementation") or isinstance(function, np.ufunc))
}

CALLS: dict[str, Callable[..., Any]] = {
    "f(x)": lambda f, x: f(x),
    "f(x, x)": lambda f, x: f(x, x),
    "f(x, 1)": lambda f, x: f(x, 1),
    "f(x, 0, x)": lambda f, x: f(x, 0, x),
    "f(x, x, x)": lambda f, x: f(x, x, x),
    "f(x, axis=0)": lambda f, x: f(x, axis=0),
    "f([x, x])": lambda f, x: f([x, x]),
    "f((x,))": lambda f, x: f((x,)),
    "f(x, out=x)": lambda f, x: f(x, out=x),
    "f(x, 1, out=x)": lambda f, x: f(x, 1, out=x),
}

OF_UFUNCS: dict[str, Callable[..., Any]] = {
    "f(1, x)": lambda f, x: f(1, x),
    "f(x, where=)": lambda f, x: f(x, out=x, where=growable(np.array([True, False, True]))),
    "f(x, x, where=)": lambda f, x: f(x, x, where=x == x, out=x),
    "f(x, (out, out))": lambda f, x: f(x, out=(x, None)),
    "reduce": lambda f, x: f.reduce(x, axis=-1),
    "reduce, out": lambda f, x: f.reduce(x, axis=0, keepdims=True, out=x),
    "accumulate": lambda f, x: f.accumulate(x, out=x),
    "reduceat": lambda f, x: f.reduceat(x, [0]),
    "outer": lambda f, x: f.outer(x, x),
    "at": lambda f, x: f.at(x, 0, x[0]),
}


def test_there_is_something_to_call() -> None:
    assert {"numpy.sum", "numpy.add", "numpy.linalg.multi_dot", "numpy.fft.fft"} <= FUNCTIONS.keys()


@pytest.mark.parametrize("kind", CONTENTS)
def test_functions(kind: str) -> None:
    wrong = {
        (name, call): found
        for name, function in FUNCTIONS.items()
        for call, action in [*CALLS.items(), *(OF_UFUNCS.items() if isinstance(function, np.ufunc) else ())]
        if (found := differences(lambda x, f=function, action=action: action(f, x), CONTENTS[kind]))
    }
    assert not wrong


INTO: dict[str, Callable[..., Any]] = {
    **{
        name: lambda x, out, name=name: getattr(np, name)(x, axis=0, out=out)
        for name in (
            "mean std var median nanmean nanstd nanvar nanmedian sum prod max min ptp nansum nanmax average "
            "any all argmax argmin"
        ).split()
    },
    **{
        f"{name} of an array": lambda x, out, name=name: getattr(np.asarray(x), name)(axis=0, out=out)
        for name in "mean std var sum prod max min any all".split()
    },
    **{
        f"{name} of itself": lambda x, out, name=name: getattr(x, name)(axis=0, out=out)
        for name in "mean std var sum prod max min any all".split()
    },
    "copyto": lambda x, out: np.copyto(out, x[0]),
    "copyto where": lambda x, out: np.copyto(out, 0, where=out > 2),
    "place": lambda x, out: np.place(out, out > 2, [1, 2]),
    "put": lambda x, out: np.put(out, [0, 1], [8, 9]),
    "putmask": lambda x, out: np.putmask(out, out > 2, x[0]),
    "put_along_axis": lambda x, out: np.put_along_axis(out, np.array([0]), 9, 0),
    "fill_diagonal": lambda x, out: np.fill_diagonal(x, 5),
    "take": lambda x, out: np.take(x, 1, 0, out=out),
    "take by position": lambda x, out: np.take(x, 1, 0, out),
    "compress": lambda x, out: np.compress([True, False], x, axis=0, out=out[None] if out is x else out),
    "choose": lambda x, out: np.choose([0, 1, 0], x, out=out),
    "cumsum": lambda x, out: np.cumsum(x[0], out=out),
    "cumsum of itself": lambda x, out: x.cumsum(0, out=x),
    "round": lambda x, out: np.round(x[0], out=out),
    "around": lambda x, out: np.around(x, out=x),
    "clip": lambda x, out: np.clip(x, 0, 1, out=x),
    "stack": lambda x, out: np.stack([out[0], out[1], out[0]], out=out),
    "concatenate": lambda x, out: np.concatenate([x[0, :1], x[1, :2]], out=out),
    "dot": lambda x, out: np.dot(np.ones(2, x.dtype), x, out=out),
    "einsum": lambda x, out: np.einsum("ij->j", x, out=out),
    "multi_dot": lambda x, out: np.linalg.multi_dot([np.ones((1, 2), x.dtype), x, np.eye(3, dtype=x.dtype)], out=out),
    "modf": lambda x, out: np.modf(x[0], out, np.zeros(3)),
    "nan_to_num": lambda x, out: np.nan_to_num(x, copy=False, nan=1),
    "sort": lambda x, out: x.sort(axis=0),
    "partition": lambda x, out: x.partition(1),
    "fill": lambda x, out: x.fill(4),
    "itself": lambda x, out: np.multiply.at(x, (0, 1), out[0]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", INTO)
def test_what_is_written_to(name: str, dtype: Any) -> None:
    x = np.array([[3, np.nan if name.startswith("nan") else -1, 0.5], [2.5, 7, -4]], dtype)
    assert not differences(INTO[name], x, np.array([1, 2, 3], dtype))


def test_what_is_given_as_out_is_returned() -> None:
    x, out = growable(np.float32([[1, 2], [3, 4]])), growable(np.float32([0, 0]))
    for name in "mean std sum max median cumsum".split():
        into = x if name == "cumsum" else out
        assert getattr(np, name)(x, axis=0, out=into) is into
    assert x.sum(axis=0, out=out) is out
    assert np.add(x, 1, x) is x
    fraction, whole = np.modf(out, out=(None, out))
    assert type(fraction) is np.ndarray and whole is out


def test_what_only_numpy_looks_into() -> None:
    assert not differences(lambda x: np.concatenate(deque([x, x])), CONTENTS["float32"])
    assert not differences(lambda x: np.zeros(2, like=x), CONTENTS["float32"])


# -- attributes and methods --------------------------------------------------------


NO_METHODS = {"dump", "dumps", "tofile", "resize"}
"""Those that write files, or need memory of an array's own."""

ATTRIBUTES = [name for name in dir(np.ndarray) if not name.startswith("_") and name not in NO_METHODS]


@pytest.mark.parametrize("kind", CONTENTS)
def test_attributes_and_methods(kind: str) -> None:
    arguments: list[Callable[[Any], tuple[Any, ...]]] = [
        lambda x: (),
        lambda x: (0,),
        lambda x: (x,),
        lambda x: (0, x),
        lambda x: ([0], x),
        lambda x: (x.dtype,),
    ]
    wrong: dict[Any, Any] = {}
    for name in ATTRIBUTES:
        if not callable(getattr(np.ndarray, name)):
            if name not in ("base", "strides"):  # that of one row may be any
                wrong[name] = differences(lambda x, name=name: getattr(x, name), CONTENTS[kind])
            continue
        for i, given in enumerate(arguments):
            wrong[name, i] = differences(lambda x, name=name, given=given: getattr(x, name)(*given(x)), CONTENTS[kind])
        wrong[name, "out"] = differences(lambda x, name=name: getattr(x, name)(out=x), CONTENTS[kind])
    assert not {k: v for k, v in wrong.items() if v}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_only_what_writes_elements_can_be_set(name: str) -> None:
    for kind in ("float32", "complex128"):
        if name in ("flat", "imag", "real"):
            for value in (7, CONTENTS[kind].real + 1):
                assert not differences(lambda x, value=value: setattr(x, name, value), CONTENTS[kind])
        else:
            grown = growable(CONTENTS[kind])
            with pytest.raises(AttributeError):
                setattr(grown, name, getattr(grown, name))


def test_attributes_of_subclasses() -> None:
    class Named(GrowableArray):
        name = "a"

    named = Named([1, 2], 0)
    named.name = "b"
    assert (named.name, np.sum(named), hasattr(named, "nonsense")) == ("b", 3, False)


# -- operators, indices, conversions -----------------------------------------------


BINARY = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor lt le eq ne gt ge".split()
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow imatmul ilshift irshift iand ior ixor".split()
OTHERS: list[Any] = [0, 2, -1, 0.5, 1j, True, None, "a", [1, 2, 3], np.float32(3), np.ones(3), np.ones((3, 3), int)]


@pytest.mark.parametrize("kind", CONTENTS)
def test_operators(kind: str) -> None:
    wrong: list[Any] = []
    for name in [*BINARY, *IN_PLACE]:
        f = getattr(operator, name)
        wrong.append((name, differences(f, CONTENTS[kind], CONTENTS[kind])))
        for other in OTHERS:
            wrong.append((name, other, differences(lambda x, f=f, other=other: f(x, other), CONTENTS[kind])))
            if name in BINARY or isinstance(other, np.ndarray):
                wrong.append(
                    (other, name, differences(lambda x, f=f, other=other: f(copy.copy(other), x), CONTENTS[kind]))
                )
    wrong += [(f, differences(f, CONTENTS[kind])) for f in UNARY]
    assert not [each for each in wrong if each[-1]]


UNARY: list[Callable[..., Any]] = [
    *(operator.neg, operator.pos, operator.abs, operator.invert, operator.not_, operator.index),
    *(bool, int, float, complex, bytes, list, tuple, iter, reversed, len, hash, str, format, sum, max, sorted, round),
    lambda x: divmod(x, 2),
    lambda x: divmod(7, x),
    lambda x: pow(x, 2, 3),
    lambda x: format(x, ".2f"),
    lambda x: operator.delitem(x, 0),
    lambda x: 1 in x,
    lambda x: x in [1],
    lambda x: x[0] in x,
    lambda x: np.from_dlpack(x),
    lambda x: copy.copy(x),
    lambda x: copy.deepcopy([x]),
    lambda x: pickle.loads(pickle.dumps(x)),
    lambda x: np.random.default_rng(0).permutation(x),
    lambda x: [np.array(x), np.asarray(x), np.asarray(x, x.dtype), np.array(x, np.complex64)],
    lambda x: np.array([x, x]),
    lambda x: np.asarray(x, np.float16, copy=False),
    lambda x: np.array(x, copy=False),
    lambda x: np.r_[x, x],
    lambda x: np.isfinite(x),
    lambda x: np.ma.masked_invalid(x),
]


def test_operators_in_place_keep_it() -> None:
    grown = same = growable(np.arange(9).reshape(3, 3))
    for name in IN_PLACE:
        if name != "itruediv":
            grown = getattr(operator, name)(grown, 2 if name != "imatmul" else np.eye(3, dtype=int))
            assert grown is same, name


INDICES: list[Any] = [
    *(0, -1, 5, ..., None, (), (0, 1), (slice(None), 1), slice(1, None), slice(None, None, -1), [0, 0], [[1], [0]]),
    *(True, [True, False], 0.5, "a", np.array([1, 0]), np.array([[True, False, True], [False, True, False]])),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indices(index: Any) -> None:
    x = CONTENTS["float32"]
    assert not differences(lambda x: x[index], x)
    for value in (7, 1j, "a", [1, 2, 3], np.float64([[1], [2]])):
        assert not differences(lambda x, value=value: operator.setitem(x, index, value), x)
    assert not differences(lambda x, y: operator.setitem(x, index, y), x, x[::-1].copy())


@pytest.mark.parametrize("of_arrays", [False, True])
def test_as_an_index(of_arrays: bool) -> None:
    whole = np.arange(5.0)
    for index in (np.array([3, 1]), np.array([True, False, True, False, True]), np.array([0.5]), np.zeros(0, int)):
        assert not differences(lambda i: (whole if of_arrays else growable(whole))[i], index)
        assert not differences(lambda i: whole[None][0, i], index)


# -- what it gives is its own ------------------------------------------------------


@pytest.mark.parametrize(
    "give",
    [
        lambda x: np.asarray(x, x.dtype),
        lambda x: np.asanyarray(x, x.dtype),
        lambda x: np.array(x, x.dtype, copy=None),
        lambda x: np.require(x, x.dtype, "C"),
        lambda x: np.add.reduce(np.ones((1, 2, 3), np.float32), out=x),
        lambda x: np.mean(np.ones((1, 2, 3), np.float32), 0, None, x),
        lambda x: np.squeeze(x),
        lambda x: np.atleast_2d(x),
    ],
)
def test_what_is_done_to_what_it_gives_leaves_it(give: Callable[..., Any]) -> None:
    grown = GrowableArray(np.ones((2, 3), np.float32), 0, 9)
    given = give(grown)
    with warnings.catch_warnings(action="ignore"):
        given.shape = (6,)
        given.dtype = np.int32
    given.flags.writeable = False
    assert (grown.shape, grown.dtype, grown.flags.writeable) == ((2, 3), np.float32, True)
    assert grown.append(np.ones((1, 3), np.float32))
