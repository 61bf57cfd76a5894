"""Operators on strings, which are arrays of Python's strings, and TfIdfVectorizer.

The pool is a trie over numbers of tokens. All places in all rows go down it at
once, so that work does not grow with the size of the pool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.bounds import check_work, pace
from irc.runtime.kernels.registry import Kernel, computes, kernel, one_of
from irc.runtime.kernels.support import Array, check_size, common_shape, needed

TEXT = np.dtype(object)


@computes("onnx::StringConcat")
def string_concat(x: Array, y: Array) -> Array:
    """Texts of the second operand behind those of the first, broadcast as NumPy does."""
    if not x.dtype == y.dtype == TEXT:  # the sum of numbers would not be text
        raise Error("IRC421", f"onnx::StringConcat cannot be {x.dtype} and {y.dtype}: it joins strings")
    found: Array = np.empty(check_size(common_shape(x.shape, y.shape), TEXT), TEXT)
    np.add(x, y, out=found)
    return found


@computes("onnx::StringSplit")
def string_split(x: Array, *, delimiter: str = "", maxsplit: int = -1) -> tuple[Array, Array]:
    """Each text's parts, [*shape, most parts], filled up with empty ones; and their number, [*shape]."""
    texts: list[str] = x.reshape(-1).tolist()
    parts = [text.split(delimiter or None, maxsplit) for text in texts]
    counts = np.array([len(p) for p in parts], np.int64)
    width = int(counts.max(initial=0))
    found: Array = np.full(check_size((len(parts), width), TEXT), "", TEXT)
    for row, words in zip(found, parts, strict=True):
        row[: len(words)] = words
    return found.reshape(*x.shape, width), counts.reshape(x.shape)


def _matcher(node: Node) -> Any:
    re2 = needed("re2", node.kind)
    options = re2.Options()
    options.log_errors, options.never_capture = False, True
    pattern: Any = node.attributes.get("pattern")
    if not isinstance(pattern, str):
        raise Error("IRC320", f"pattern is {pattern!r}; it must be a string")
    try:
        return re2.compile(pattern.encode(errors="surrogatepass"), options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error
        raise Error("IRC320", f"the pattern {pattern!r} is not one of RE2's: {why}") from None


@computes("onnx::RegexFullMatch", matcher=_matcher)
def regex_full_match(x: Array, *, matcher: Any) -> Array:
    """Whether each text as a whole matches the pattern, as bool.

    Patterns are RE2's (https://github.com/google/re2/wiki/Syntax), and so is the engine: its time is linear in the
    length of a text, whatever the pattern. Backreferences and look-around, which make that impossible, it refuses.
    """
    if x.dtype != TEXT:
        raise Error("IRC421", f"onnx::RegexFullMatch matches strings, not {x.dtype}")
    found: Array = np.empty(math.prod(check_size(x.shape, np.dtype(np.bool_))), np.bool_)
    for i, text in enumerate(x.reshape(-1)):
        data = text.encode(errors="surrogatepass")  # a lone surrogate is a character like others
        check_work(len(data) * matcher.programsize)
        found[i] = matcher.fullmatch(data) is not None
    return found.reshape(x.shape)


CASES: dict[str, Any] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


@computes("onnx::StringNormalizer", case_change_action=one_of("case_change_action", "NONE", CASES))
def string_normalizer(
    x: Array, *, case_change_action: str, is_case_sensitive: bool = False, stopwords: Sequence[str] = ()
) -> Array:
    """Removes texts that are stop words, and changes the case of the others; of [c] or [1, c].

    As in ONNX Runtime texts are compared whole, and keep their accents. The locale changes nothing: the case of
    letters is Unicode's.
    """
    if x.ndim not in (1, 2) or (x.ndim == 2 and len(x) != 1):
        raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [c] or [1, c]")
    change, key = CASES[case_change_action], str if is_case_sensitive else str.casefold
    stops, texts = set(map(key, stopwords)), x.reshape(-1).tolist()
    kept = [change(text) for text in texts if key(text) not in stops] or [""]
    found: Array = np.empty(len(kept), TEXT)
    found[:] = kept
    return found if x.ndim == 1 else found[None]


# -- TfIdfVectorizer -----------------------------------------------------------


MODES = ("TF", "IDF", "TFIDF")


class Trie(NamedTuple):
    """N-grams by the numbers of their tokens.

    Attributes:
        tokens: number of each token; unknown ones have none.
        edges: [edges], sorted, ``node * len(tokens) + token``. Node 0 is the root; edge ``i`` leads to ``child[i]``.
        gram: [nodes], the number of the n-gram that ends at a node, or -1.
    """

    tokens: dict[Any, int]
    edges: Array
    child: Array
    gram: Array

    @staticmethod
    def of(grams: list[tuple[Any, ...]]) -> Trie:
        """Of n-grams in the order of their numbers; of equal ones the first counts."""
        tokens = {token: i for i, token in enumerate(dict.fromkeys(token for gram in grams for token in gram))}
        ends: dict[int, int] = {}
        edges: dict[int, int] = {}
        for number, gram in enumerate(grams):
            at = 0
            for token in gram:
                at = edges.setdefault(at * len(tokens) + tokens[token], len(edges) + 1)
            ends.setdefault(at, number)
        keys = sorted(edges)
        gram_at = np.full(len(edges) + 1, -1, np.int64)
        gram_at[list(ends)] = list(ends.values())
        return Trie(tokens, np.array(keys, np.int64), np.array([edges[k] for k in keys], np.int64), gram_at)

    def follow(self, at: Array, token: Array) -> Array:
        """The nodes after ``at``, with the next tokens' numbers; -1 where there is none, or ``at`` is -1."""
        keys = at * len(self.tokens) + token
        place = np.minimum(np.searchsorted(self.edges, keys), len(self.edges) - 1)
        found = (at >= 0) & (token >= 0) & (self.edges[place] == keys)
        return np.where(found, self.child[place], -1)


@kernel("onnx::TfIdfVectorizer")
def tf_idf_vectorizer(node: Node) -> Kernel:
    """Counts of n-grams (or 0 and 1) of tokens [c] or [rows, c], maybe weighted: [n] or [rows, n]."""
    grams = _pool(node)
    at: list[int] = node.attributes.get("ngram_indexes") or []
    weights: list[float] | None = node.attributes.get("weights")
    mode = node.attributes.get("mode")
    if mode not in MODES:
        raise Error("IRC320", f"mode is {mode!r}; it must be one of {', '.join(MODES)}")
    if len(at) != len(grams) or (weights is not None and len(weights) != len(grams)):
        raise Error("IRC320", f"{len(grams)} n-grams, ngram_indexes and weights must be of one number")
    if not at or min(at) < 0:
        raise Error("IRC320", f"ngram_indexes is {at[:9]}; it must name places from 0 on")
    least, most, skips = (
        int(node.attributes[f"{n}"]) for n in ("min_gram_length", "max_gram_length", "max_skip_count")
    )
    if not 1 <= least <= most or skips < 0:
        raise Error("IRC320", f"n-grams of {least} to {most} tokens with {skips} skipped are not defined")
    trie, width = Trie.of(grams), max(at) + 1
    lengths = range(least, min(most, max(map(len, grams))) + 1)
    place, weight = np.array(at), np.array(weights or [1.0] * len(grams), np.float64)
    shared = len(set(at)) < len(at)

    def run(x: Array) -> Array:
        if x.ndim not in (1, 2):
            raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [c] or [rows, c]")
        shape = check_size((*x.shape[:-1], width), np.dtype(np.float32))
        rows = x if x.ndim == 2 else x[None]
        known = map(trie.tokens.get, rows.reshape(-1).tolist(), repeat(-1))
        numbers = np.fromiter(known, np.int64, rows.size).reshape(rows.shape)
        found = [np.empty(0, np.int64)]
        for length in lengths:
            for step in range(1, 2 + (skips if length > 1 else 0)):
                if (length - 1) * step >= rows.shape[1]:
                    break
                found.append(_found(trie, numbers, length, step, len(grams)))
                pace()
        seen = np.sort(np.concatenate(found))
        starts = np.flatnonzero(np.diff(seen, prepend=-1))
        counts = np.diff(starts, append=len(seen))
        row, gram = np.divmod(seen[starts], len(grams))
        values = counts if mode == "TF" else (counts if mode == "TFIDF" else np.minimum(counts, 1)) * weight[gram]
        cells = row * width + place[gram]
        if shared:
            cells, of_cell = np.unique(cells, return_inverse=True)
            values = np.bincount(of_cell, values)
        out = np.zeros(shape, np.float32)
        out.reshape(-1)[cells] = values
        return out

    return run


def _found(trie: Trie, numbers: Array, length: int, step: int, grams: int) -> Array:
    """``row * grams + gram`` for each n-gram of ``length`` tokens, every ``step``th, that stands in a row."""
    places = numbers.shape[1] - (length - 1) * step
    at = np.zeros((len(numbers), places), np.int64)
    for i in range(length):
        at = trie.follow(at, numbers[:, i * step : i * step + places])
    gram = np.where(at >= 0, trie.gram[at], -1)
    row, _ = seen = np.nonzero(gram >= 0)
    return row * grams + gram[seen]


def _pool(node: Node) -> list[tuple[Any, ...]]:
    """The n-grams, in the order of their numbers: all of one token, then all of two..."""
    numbers: list[Any] = node.attributes.get("pool_int64s") or []
    words: list[Any] = node.attributes.get("pool_strings") or []
    if bool(numbers) == bool(words):
        raise Error("IRC320", "exactly one of pool_int64s and pool_strings must be given")
    pool = numbers or words
    starts: list[int] = node.attributes.get("ngram_counts") or []
    grams: list[tuple[Any, ...]] = []
    for length, (start, end) in enumerate(zip(starts, [*starts[1:], len(pool)], strict=True), 1):
        if not 0 <= start <= end <= len(pool) or (end - start) % length:
            raise Error("IRC320", f"ngram_counts is {starts}: {start} to {end} are no n-grams of {length} tokens each")
        grams += [tuple(pool[i : i + length]) for i in range(start, end, length)]
    return grams
