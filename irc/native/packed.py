"""Weights that never change, laid out once for the loops that read them, and kept as long as they are.

Those of convolutions can be saved with a model. They are then read where the file is mapped, if they have just the
shapes that would be made, by the same code for the same processor: the file is not trusted.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary, ref

import numpy as np

from irc.errors import Error
from irc.ir.tensor import Array, Tensor
from irc.ops.algebra import AnyDType
from irc.runtime.array_memory import ALIGNMENT, ArrayType, address_of, aligned, aligned_bytes
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.support import is_constant

MOST_BYTES = 1 << 30
"""Of all that is kept in a process."""


class Packed:
    """What has been made of constants: by their identities, and what it was made for."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._saved: WeakValueDictionary[tuple[_Place, str], Saved] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._kept)

    def of(
        self,
        constants: tuple[Array | None, ...],
        purpose: Hashable,
        room: Callable[[], int | ArrayType],
        make: Callable[..., tuple[Array, ...] | None],
    ) -> tuple[Array, ...] | None:
        """The cached result of ``make`` for ``constants`` and this ``purpose``; None if they may change.

        It is None, too, if there is not the ``room``, in bytes. If that is the form of an array instead, the first one
        of the result, which is made of the first constant, can be saved, and ``make`` is given what was.
        """
        given = [x for x in constants if x is not None]
        key = tuple(map(id, constants)), purpose
        kept = self._kept.get(key)
        if kept is not None and all(known() is x for known, x in zip(kept.constants, given, strict=True)):
            return kept.arrays
        if not all(map(is_constant, given)):
            return None
        form, place, saved = room(), None, None
        if isinstance(form, ArrayType):
            place = _place(given[0]), repr(purpose)
            saved, size = self._saved.get(place), form.nbytes
            saved = None if saved is None else saved.array(form)
        else:
            size = form
        if not self._admits(size):
            return None
        made = make() if saved is None else make(saved)

        def drop(_: object) -> None:
            self._kept.pop(key, None)

        self._kept[key] = _Kept([ref(x, drop) for x in given], made, place)
        return made

    def to_save(self, weights: Mapping[str, Array]) -> dict[str, Array]:
        """What was made of these weights, or `use` was given, by texts that `use` understands."""
        names = {_place(weight)[0]: name for name, weight in weights.items()}
        made = {place: saved.tensor.numpy() for place, saved in [*self._saved.items()]}  # that no run has used yet
        for kept in [*self._kept.values()]:
            if kept.arrays is not None and kept.place is not None:
                made[kept.place] = kept.arrays[0]
        return {
            json.dumps([_mark(), purpose, names[address], *lies]): array
            for ((address, *lies), purpose), array in made.items()
            if address in names
        }

    def use(self, weights: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> list[Saved]:
        """Let `of` take what `to_save` gave for these weights, as long as the caller keeps what this returns.

        Raises:
            Error: IRC513 if a text is none that `to_save` gives.
        """
        found: list[Saved] = []
        for text, tensor in saved.items():
            try:
                mark, purpose, name, shape, strides = json.loads(text)
                if mark == _mark():  # else it is of another processor, or version
                    place = (_place(weights[name].numpy())[0], tuple(shape), tuple(strides)), purpose
                    found.append(self._saved.setdefault(place, Saved(tensor)))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise Error("IRC513", f"packed weights are of nothing that is known ({error!r})") from error
        return found

    def _admits(self, size: int) -> bool:
        """Whether there is room for ``size`` more bytes: asked before they are made, again in each run."""
        guard = CURRENT.scope.guard
        kept = sum([x.nbytes for kept in [*self._kept.values()] for x in kept.arrays or ()])
        return kept + size <= MOST_BYTES and (guard is None or guard.keeps(size))


class _Kept(NamedTuple):
    """What was made of constants.

    Attributes:
        constants: of which it was made.
        arrays: what was made; None: nothing can be.
        place: where the first constant lies, and the purpose; None if nothing can be saved.
    """

    constants: list[ref[Array]]
    arrays: tuple[Array, ...] | None
    place: tuple[_Place, str] | None


class Saved:
    """What has been made of a constant, which is in a file."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def array(self, form: ArrayType) -> Array | None:
        """The array, if it is of this form, and lies as `Pieces` lie: nothing else says that code may read it."""
        array = self.tensor.numpy()
        is_dense = array.flags.c_contiguous and not _place(array)[0] % ALIGNMENT
        return array if is_dense and ArrayType.of(array) == form else None


_Place = tuple[int, tuple[int, ...], tuple[int, ...]]
"""An address, and shape and strides of the array there."""


def _place(x: Array) -> _Place:
    return x.__array_interface__["data"][0], x.shape, x.strides


@cache
def _mark() -> str:
    """The processor, and a digest of the code that decides how weights are packed and read."""
    from irc.native.target import current  # late: it imports llvmlite

    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return f"{current()!r} {digest.hexdigest()}"


PACKED = Packed()
"""Those of this process."""


class Pieces:
    """Memory for packed weights, in pieces that the operating system gives in large pages.

    Most weights are smaller than such a page, and a processor that streams them goes through small pages a fifth
    slower. A piece is freed when the last array in it is gone: large arrays have pieces of their own.
    """

    def __init__(self) -> None:
        self._rests: list[Array] = []  # of pieces; who takes one out has it: nobody waits, nor does a signal handler

    def array(self, shape: Sequence[int], dtype: AnyDType) -> Array:
        """A new array, with any contents.

        Raises:
            Error: IRC403 if there is not so much memory.
        """
        size = math.prod(shape) * dtype.itemsize
        if size > _PIECE // 2:
            return _piece(size)[:size].view(dtype).reshape(shape)
        try:
            rest = self._rests.pop()
        except IndexError:
            rest = _NOTHING
        if len(rest) < size:
            rest = _piece(_PIECE)
        self._rests.append(rest[aligned(size) :])
        return rest[:size].view(dtype).reshape(shape)

    def copy(self, array: Array) -> Array:
        """``array`` in C order."""
        made = self.array(array.shape, array.dtype)
        made[...] = array
        return made


_PAGE, _PIECE = 1 << 21, 1 << 22
"""Bytes of a large page; of a piece, for which NumPy asks for such."""

_NOTHING = np.empty(0, np.uint8)


def _piece(size: int) -> Array:
    whole = aligned_bytes(max(size, _PIECE) + _PAGE)
    return whole[-address_of(whole) % _PAGE :]


PIECES = Pieces()
"""Those of this process."""
