"""Operators on strings. Tensors of strings are arrays of Python's strings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import check_work
from irc.runtime.kernels.extras import needed
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, broadcast_shape, check_size

if TYPE_CHECKING:
    from irc.ir import Node

TEXT = np.dtype(object)


@kernel("onnx::StringConcat")
def string_concat(node: Node) -> Kernel:
    """Texts of the second operand behind those of the first, broadcast as NumPy does."""

    def run(x: Array, y: Array) -> Array:
        if not x.dtype == y.dtype == TEXT:  # the sum of numbers would be no text
            raise Error("IRC421", f"onnx::StringConcat cannot be {x.dtype} and {y.dtype}: it joins strings")
        try:
            shape = broadcast_shape(x.shape, y.shape)
        except ValueError:
            raise Error("IRC421", f"the shapes {list(x.shape)} and {list(y.shape)} do not broadcast") from None
        found: Array = np.empty(check_size(shape, TEXT), TEXT)
        np.add(x, y, out=found)
        return found

    return run


@kernel("onnx::StringSplit")
def string_split(node: Node) -> Kernel:
    """The parts of each text, [*shape, most parts], filled up with empty ones; and how many there are, [*shape]."""
    delimiter: str | None = node.attributes.get("delimiter") or None
    most: int = node.attributes.get("maxsplit", -1)

    def run(x: Array) -> tuple[Array, Array]:
        texts: list[str] = x.reshape(-1).tolist()
        parts = [text.split(delimiter, most) for text in texts]
        counts = np.array([len(p) for p in parts], np.int64)
        width = int(counts.max(initial=0))
        found: Array = np.full(check_size((len(parts), width), TEXT), "", TEXT)
        for row, words in zip(found, parts, strict=True):
            row[: len(words)] = words
        return found.reshape(*x.shape, width), counts.reshape(x.shape)

    return run


@kernel("onnx::RegexFullMatch")
def regex_full_match(node: Node) -> Kernel:
    """Whether each text as a whole matches the pattern, as bool.

    Patterns are RE2's (https://github.com/google/re2/wiki/Syntax), and so is the engine: its time is linear in the
    length of a text, whatever the pattern. Backreferences and look-around, which make that impossible, it refuses.
    """
    re2 = needed("re2", node.kind)
    options = re2.Options()
    options.log_errors, options.never_capture = False, True
    pattern: Any = node.attributes.get("pattern")
    if not isinstance(pattern, str):
        raise Error("IRC320", f"pattern is {pattern!r}; it must be a string")
    try:
        matcher = re2.compile(pattern.encode(errors="surrogatepass"), options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error
        raise Error("IRC320", f"the pattern {pattern!r} is not one of RE2's: {why}") from None

    def run(x: Array) -> Array:
        if x.dtype != TEXT:
            raise Error("IRC421", f"{node.kind} matches strings, not {x.dtype}")
        found: Array = np.empty(math.prod(check_size(x.shape, np.dtype(np.bool_))), np.bool_)
        for i, text in enumerate(x.reshape(-1)):
            data = text.encode(errors="surrogatepass")  # a lone surrogate is a character like others
            check_work(len(data) * matcher.programsize)
            found[i] = matcher.fullmatch(data) is not None
        return found.reshape(x.shape)

    return run


CASES: dict[str, Any] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


@kernel("onnx::StringNormalizer")
def string_normalizer(node: Node) -> Kernel:
    """Removes texts that are stop words, and changes the case of the others; of [c] or [1, c].

    As in ONNX Runtime texts are compared whole, and keep their accents. The locale changes nothing: the case of
    letters is Unicode's.
    """
    action = node.attributes.get("case_change_action", "NONE")
    if action not in CASES:
        raise Error("IRC320", f"case_change_action is {action!r}; it must be one of {', '.join(CASES)}")
    change = CASES[action]
    key = str if node.attributes.get("is_case_sensitive", 0) else str.casefold
    stops = {key(word) for word in node.attributes.get("stopwords", [])}

    def run(x: Array) -> Array:
        if x.ndim not in (1, 2) or (x.ndim == 2 and len(x) != 1):
            raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [c] or [1, c]")
        texts: list[str] = x.reshape(-1).tolist()
        kept = [change(text) for text in texts if key(text) not in stops] or [""]
        found: Array = np.empty(len(kept), TEXT)
        found[:] = kept
        return found if x.ndim == 1 else found[None]

    return run
