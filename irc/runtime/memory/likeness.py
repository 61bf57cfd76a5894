"""`LikeArray`: an object that behaves as an array in every respect, but whose memory may change.

NumPy asks it what its functions and ufuncs are to do, and Python asks its class for
attributes, methods and operators. All of these are those of arrays, and receive a
view of the contents of each operand that is like an array. So they find what they
find for an array, and write where they would write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from irc.runtime.values import Array, is_sequence, is_tuple


class LikeArray(NDArrayOperatorsMixin):  # whose operators are those of arrays, below: it declares them
    """An object with contents in ``_view``, which may become another array; to its user it is an array."""

    _view: Array

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    def array(self) -> Array:
        """The contents: a view whose shape and strides its holder may set."""
        return self._view.view()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the contents."""
        return self._view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self._view.dtype

    @property
    def flags(self) -> Any:
        """The flags of the contents, such as whether they may be written."""
        return self._view.flags

    @property
    def setflags(self) -> Any:
        """Set `flags`."""
        return self._view.setflags

    def __len__(self) -> int:
        return len(self._view)

    def __getitem__(self, index: Any) -> Any:
        return self._view[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._view[index] = value

    def __bytes__(self) -> bytes:
        return bytes(self._view)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        found = _called(getattr(ufunc, method), inputs, options)
        # NumPy's `mean` divides what `reduce` returns in its place only if that is an array.
        return found if method == "__call__" else plain(found)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: dict[str, Any]) -> Any:
        contents, named = _plain(arguments), _plain_options(options)
        if contents is arguments and named is options:  # what is like an array is in what only NumPy looks into
            # Those without, of C, were told `like=`, which is gone: called again, they do not come back here.
            return getattr(function, "_implementation", function)(*arguments, **options)
        return _restored(function(*contents, **named), options, named)


def plain(value: Any) -> Any:
    """``value``, or its contents if it is like an array."""
    return value.array if isinstance(value, LikeArray) else value


def _plain(value: Any) -> Any:
    """``value`` with `plain` applied to all in nested lists and tuples; ``value`` itself if that changes nothing."""
    if not is_sequence(value):
        return plain(value)
    items = [_plain(item) for item in value]
    if all(map(is_, items, value)):
        return value
    return tuple(items) if isinstance(value, tuple) else items


def _plain_options(options: dict[str, Any]) -> dict[str, Any]:
    named = {name: _plain(value) for name, value in options.items()}
    return options if all(map(is_, named.values(), options.values())) else named


def _called(function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]) -> Any:
    """The result of ``function`` on the contents of its operands; if it is the ``out`` given, that object itself."""
    named = _plain_options(options)
    return _restored(function(*_plain(arguments), **named), options, named)


def _restored(results: Any, options: dict[str, Any], named: dict[str, Any]) -> Any:
    """``results``, with the ``out`` in ``named`` replaced by the one given in ``options``."""
    if options is named or "out" not in options:
        return results
    given, out = options["out"], named["out"]
    wholes = {id(v): x for v, x in zip(out, given)} if is_tuple(given) else {id(out): given}

    def restored(result: Any) -> Any:
        return wholes.get(id(result), result)

    return tuple(map(restored, results)) if is_tuple(results) else restored(results)


def _method(name: str) -> Callable[..., Any]:
    """The array method ``name``, for objects like an array."""
    function = getattr(np.ndarray, name)

    @wraps(function)
    def method(self: LikeArray, *arguments: Any, **options: Any) -> Any:
        return _called(function, (self, *arguments), options)

    return method


def _in_place(name: str) -> Callable[..., Any]:
    """The array operator ``name``, which returns its first operand."""
    operator = getattr(np.ndarray, name)

    @wraps(operator)
    def method(self: LikeArray, other: Any) -> Any:
        result = operator(self.array, _plain(other))
        return result if result is NotImplemented else self

    return method


def _attribute(name: str) -> property:
    """The array attribute ``name``. It can be set only where setting it writes elements, as in an array."""
    if callable(getattr(np.ndarray, name)):
        method = _method(name)
        return property(method.__get__, doc=method.__doc__)

    def get(self: LikeArray) -> Any:
        return getattr(self.array, name)  # some give the array itself, as `real` may

    def put(self: LikeArray, value: Any) -> None:
        setattr(self.array, name, plain(value))

    return property(get, put if name in ("flat", "imag", "real") else None, doc=getattr(np.ndarray, name).__doc__)


_SPECIAL = """__bool__ __complex__ __contains__ __delitem__ __dlpack__ __dlpack_device__ __float__ __format__ __int__
__iter__ __str__""".split()
"""Methods of arrays that Python, and others, call, beside operators."""


def _take_after_arrays() -> None:
    operators = [name for name in vars(NDArrayOperatorsMixin) if callable(getattr(np.ndarray, name, None))]
    for name in operators:
        is_in_place = name.startswith("__i") and f"__{name[3:]}" in operators
        setattr(LikeArray, name, _in_place(name) if is_in_place else _method(name))
    for name in _SPECIAL:
        setattr(LikeArray, name, _method(name))
    for name in dir(np.ndarray):
        if not name.startswith("_") and name not in vars(LikeArray):
            setattr(LikeArray, name, _attribute(name))


_take_after_arrays()
