"""Values in ``.npz`` archives: tensors, numbers, strings by name; items of containers as entries."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from irc.errors import Error, cannot
from irc.ir.objects import EnumMember
from irc.runtime.values import Array, describe, is_mapping, is_sequence
from irc.support.files import open_regular, replacing

LEVELS = 3
"""Lists and dictionaries in each other that are looked into."""

MOST_ENTRIES = 1 << 20
"""Entries of a ``.npz`` file: lists of lists may hold few tensors very often."""

MAX_NAME = 2**16 - 1 - len(".npy")
"""Bytes of an output's name in a ``.npz`` file: ZIP keeps the length of an entry's in 16 bits (APPNOTE 4.4.10)."""


def write_archive(path: str, values: Mapping[str, Any], say: Callable[[str], None] | None = None) -> None:
    """Write tensors, numbers and strings to a ``.npz`` file: ``y`` as ``y``, items of a list ``y[0]``...

    Those of a dictionary are ``y[key]``, and those of lists and dictionaries in these ``y[0][key]`` and so on.
    Members of enumerations are written as strings, their names. ``say`` is told of empty lists and dictionaries, which
    have no entry.

    Raises:
        Error: IRC503 if a value cannot be written in that form or no entry can have its name; IRC501 if the file
            cannot be written.
    """
    arrays: dict[str, Array] = {}
    empty: list[str] = []
    entries = (entry for output in values.items() for entry in _entries(*output))
    for number, (name, value) in enumerate(entries):
        where = f"output {name!r:.99}"
        if number == MOST_ENTRIES:
            raise Error("IRC503", f"more than {MOST_ENTRIES} entries are not written to .npz", where)
        if _holds(value) and not value:
            empty.append(f"{where} is an empty {'dictionary' if is_mapping(value) else 'list'}")
            continue
        if name in arrays:
            raise Error("IRC503", "this is the name of two entries", where)
        if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex | str):
            what = "only tensors, numbers, strings, and lists and dictionaries of them, can be written to .npz"
            raise Error("IRC503", f"{what}, not {describe(value)}", where)
        arrays[name] = _storable(np.asarray(value, object if isinstance(value, str) else None), where)
        if why := _not_an_entry(name):
            raise Error("IRC503", f"this name cannot be that of an entry in an archive: {why}", where)
    if empty and say is not None:
        others = f", nor for {len(empty) - 1} more that are empty" if len(empty) > 1 else ""
        say(f"{empty[0]}: {path} has no entry for it{others}")
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def as_entries(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """``feeds`` under the names of their entries: exporters write ``/conv/y``, and no entry may begin so."""
    return {name.lstrip("/"): value for name, value in feeds.items()}


def read_archive(path: str) -> Iterator[tuple[str, Array]]:
    """The entries of a ``.npz`` archive and their names, in order. Reads no pickles.

    Raises:
        Error: IRC502 it cannot be read, IRC504 it is no such archive.
    """
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                with archive.open(info) as entry:
                    array: Array = np.lib.format.read_array(entry, allow_pickle=False)
                yield info.filename.removesuffix(".npy"), array
    except OSError as error:
        raise cannot("IRC502", "read the file", error, path) from None
    except Exception as error:  # zipfile and NumPy raise many kinds for what is damaged
        message = f"this is no .npz archive, it is damaged, or it holds Python objects: {error or type(error).__name__}"
        raise Error("IRC504", message, path) from None


def _entries(name: str, value: Any, levels: int = LEVELS) -> Iterator[tuple[str, Any]]:
    """``value``, or the items of a list, tuple or dictionary, with names; empty ones as they are."""
    if not levels or not _holds(value) or not value:
        yield name, str(value) if isinstance(value, EnumMember) else value
        return
    for key, item in value.items() if is_mapping(value) else enumerate(value):
        yield from _entries(f"{name}[{key}]", item, levels - 1)


def _holds(value: Any) -> bool:
    return is_sequence(value) or is_mapping(value)


def _storable(array: Array, where: str) -> Array:
    """``array`` with an element type that .npy files have: text as text, types unknown to NumPy as bytes."""
    if array.dtype.kind == "O":
        texts: Array = array.astype(str)
        if texts.tolist() != array.tolist():
            raise Error("IRC503", ".npz files lose the null character that a string ends in", where)
        return texts
    is_foreign = array.dtype.isbuiltin == 2  # NumPy's number for types that a package, here ml_dtypes, has added
    return array.view(f"V{array.dtype.itemsize}") if is_foreign else array


def _not_an_entry(name: str) -> str:
    """Why no entry of an archive can be named after the output ``name``; "" if one can."""
    if name.startswith("/") or ".." in name.split("/"):
        return "it is a path out of the folder that the archive is unpacked to"
    if "\0" in name:
        return "it holds a null character"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it holds half a surrogate pair"
    return f"it takes {size} bytes, and at most {MAX_NAME} are possible" if size > MAX_NAME else ""
