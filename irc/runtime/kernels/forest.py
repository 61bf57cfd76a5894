"""Ensembles of decision trees: every row goes down every tree at once, one level a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import pace
from irc.runtime.kernels.support import Array

COMPARE: tuple[Callable[..., Array], ...] = (
    np.less_equal,
    np.less,
    np.greater_equal,
    np.greater,
    np.equal,
    np.not_equal,
)
"""By the number of a mode, as TreeEnsemble's ``nodes_modes`` has them; `MEMBER` and `LEAF` follow."""

MEMBER, LEAF = 6, 7

AGGREGATE = ("AVERAGE", "SUM", "MIN", "MAX")

STEP = 1 << 18
"""How many pairs of a row and a tree are processed at a time."""


class Votes(NamedTuple):
    """What leaves say: vote ``i`` is ``weight[i]`` for ``target[i]``; node ``n`` has ``many[n]`` from ``first[n]``."""

    target: Array
    weight: Array
    first: Array
    many: Array

    @staticmethod
    def of(leaf: Array, target: Array, weight: Array, nodes: int) -> Votes:
        """From the leaf of each vote, in any order."""
        order = np.argsort(leaf, kind="stable")
        many = np.bincount(leaf, minlength=nodes)
        return Votes(target[order], weight[order], np.cumsum(many) - many, many)


class Forest:
    """Trees over nodes 0 to n - 1.

    Args:
        modes: [n], indices of `COMPARE`, `MEMBER` or `LEAF`.
        features: [n], the column that a node looks at.
        splits: [n], what it compares with.
        yes, no: [n], the node after it.
        nan_is_yes: [n], whether NaN goes the way of ``yes`` whatever the comparison says.
        roots: [trees].
        votes: of the leaves.
        members: what a node with `MEMBER` looks for.

    Raises:
        Error: IRC320 if a node or column is named that cannot be, or a tree comes back to a node.
    """

    def __init__(
        self,
        modes: Array,
        features: Array,
        splits: Array,
        yes: Array,
        no: Array,
        nan_is_yes: Array,
        roots: Array,
        votes: Votes,
        members: dict[int, Array] | None = None,
    ) -> None:
        self.modes, self.features, self.splits = modes, features, splits
        leaves = np.flatnonzero(modes == LEAF)
        self.yes, self.no = yes.copy(), no.copy()
        self.yes[leaves] = self.no[leaves] = leaves
        self.features[leaves] = 0
        self.nan_is_yes, self.roots, self.votes, self.members = nan_is_yes, roots, votes, members or {}
        self.present: list[int] = [m for m in np.unique(modes).tolist() if m < MEMBER]
        nodes = len(modes)
        for what, values in (("node", self.yes), ("node", self.no), ("node", roots)):
            if values.size and not 0 <= values.min() <= values.max() < nodes:
                raise Error("IRC320", f"a {what} is named that does not exist: there are {nodes}")
        if features.size and features.min() < 0:
            raise Error("IRC320", "a feature has a negative number")
        self.columns = int(features.max(initial=-1)) + 1
        self.depth = self._depth()

    def _depth(self) -> int:
        """How many steps the longest way down takes."""
        front = np.unique(self.roots)
        for depth in range(len(self.modes)):
            front = front[self.modes[front] != LEAF]
            if not front.size:
                return depth
            front = np.unique(np.concatenate([self.yes[front], self.no[front]]))
        raise Error("IRC320", "the branches of a tree come back to a node that they left")

    def totals(self, x: Array, targets: int, aggregate: str) -> Array:
        """Of ``x``, [rows, features], the sums (averages, least, most) of votes, [rows, targets]; 0 without votes.

        Votes are added up tree by tree as float64 if ``x`` or they are, else as float32, ONNX's type of scores: whether
        five votes of 0.1 are more than 0.5 depends on it.
        """
        if x.ndim != 2 or x.shape[1] < self.columns:
            raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [n, at least {self.columns}]")
        wide = np.float64 in (x.dtype, self.votes.weight.dtype)
        found = np.zeros((len(x), targets), np.float64 if wide else np.float32)
        step = max(1, STEP // max(1, len(self.roots)))
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            self._vote(self._leaves(x[part]), found[part], aggregate)
            pace()
        return found / found.dtype.type(len(self.roots)) if aggregate == "AVERAGE" else found

    def _leaves(self, x: Array) -> Array:
        """The leaf that each row comes to in each tree, [rows, trees]."""
        at = np.tile(self.roots, (len(x), 1))
        rows = np.arange(len(x))[:, None]
        for _ in range(self.depth):
            values = x[rows, self.features[at]]
            at = np.where(self._is_yes(at, values), self.yes[at], self.no[at])
        return at

    def _is_yes(self, at: Array, values: Array) -> Array:
        splits, modes = self.splits[at], self.modes[at]
        found = np.zeros(at.shape, np.bool_)
        for mode in self.present:
            found |= COMPARE[mode](values, splits) & (modes == mode)
        for node, members in self.members.items():
            found |= np.isin(values, members) & (at == node)
        return found | (self.nan_is_yes[at] & np.isnan(values))

    def _vote(self, leaves: Array, found: Array, aggregate: str) -> None:
        """Write what leaves, [rows, trees], say to ``found``, [rows, targets]."""
        votes = self.votes
        times = votes.many[leaves].reshape(-1)
        total = int(times.sum())
        if not total:
            return
        which = np.repeat(votes.first[leaves].reshape(-1) - np.cumsum(times) + times, times) + np.arange(total)
        rows = np.repeat(np.repeat(np.arange(len(leaves)), leaves.shape[1]), times)
        place = rows * found.shape[1] + votes.target[which]
        if aggregate in ("SUM", "AVERAGE"):
            np.add.at(found.reshape(-1), place, votes.weight[which].astype(found.dtype, copy=False))
            return
        best = np.full(found.size, np.inf if aggregate == "MIN" else -np.inf, found.dtype)
        (np.minimum if aggregate == "MIN" else np.maximum).at(best, place, votes.weight[which])
        seen = np.bincount(place, minlength=found.size) > 0
        found[...] = np.where(seen, best, 0).reshape(found.shape)


def check_lengths(**lists: Sequence[Any] | Array) -> None:
    """Error unless all of the attributes have one length."""
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise Error("IRC320", f"these attributes must have one length: {said}")
