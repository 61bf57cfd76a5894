"""TfIdfVectorizer: how often n-grams of a pool stand in rows of tokens.

The pool is a trie over numbers of tokens. All places in all rows go down it at
once, so that work does not grow with the size of the pool.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import pace
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, check_size

if TYPE_CHECKING:
    from irc.ir import Node

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
    """Of tokens [c] or [rows, c] the counts of n-grams (or whether there are any), maybe weighted: [n] or [rows, n]."""
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
