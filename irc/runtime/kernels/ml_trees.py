"""Ensembles of trees.

The specification leaves open what a classifier of two classes makes of votes
that are all for the first. That follows ONNX Runtime: they are the score of the
second class, a probability if no weight is negative, else a distance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.bounds import CURRENT, InnerLoops, pace
from irc.runtime.kernels.ml import TRANSFORMS, choice, class_labels, post_transform
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import AnyDType, Array, check_size

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

MODE_BITS = 3
"""That modes take."""

RECORD = np.dtype([("split", "f8"), ("feature", "i4"), ("yes", "i4"), ("no", "i4"), ("flags", "i4")])
"""A node as machine code reads it: flags are the mode, and above that, whether NaN goes the way of ``yes``. Of a leaf,
``yes`` is the number of its first vote, and ``no`` how many it has."""

AGGREGATE = ("AVERAGE", "SUM", "MIN", "MAX")

STEP = 1 << 18
"""How many pairs of a row and a tree are processed at a time."""


class Votes(NamedTuple):
    """What leaves say: vote ``i`` gives ``weight[i]`` to ``target[i]``; node ``n`` has ``many[n]`` votes."""

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


class TreeTables(NamedTuple):
    """A `Forest` as machine code reads it.

    Attributes:
        roots: the numbers of nodes.
        nodes: as `RECORD`.
        targets: of votes, int64.
        weights: of votes, in the type of what they make.
        modes: of comparisons, by their numbers.
        depth: how many steps the longest way down takes.
    """

    roots: Array
    nodes: Array
    targets: Array
    weights: Array
    modes: tuple[int, ...]
    depth: int


Vote = Callable[[Array, Array], bool]
"""Adds votes for the rows of the first array to the second one, and says whether it has done so."""


class _Latest(NamedTuple):
    """Operands of `Forest.totals`, and what computes others like them.

    Attributes:
        loops: the inner loops that gave ``vote``.
        x: the shape, strides and element type of the input.
        result: the shape of the totals.
        dtype: their element type.
        vote: what adds votes.
    """

    loops: InnerLoops
    x: tuple[Any, ...]
    result: tuple[int, int]
    dtype: AnyDType
    vote: Vote


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
        self._latest: _Latest | None = None

    def _depth(self) -> int:
        """How many steps the longest way down takes."""
        front = np.unique(self.roots)
        for depth in range(len(self.modes)):
            front = front[self.modes[front] != LEAF]
            if not front.size:
                return depth
            front = np.unique(np.concatenate([self.yes[front], self.no[front]]))
        raise Error("IRC320", "the branches of a tree come back to a node that they left")

    @cached_property
    def tables(self) -> TreeTables | None:
        """What machine code reads; None if a node has `MEMBER`."""
        if self.members or max(len(self.modes), len(self.votes.target)) > np.iinfo(np.int32).max:
            return None
        is_leaf = self.modes == LEAF
        made = np.zeros(len(self.modes), RECORD)
        made["split"], made["feature"] = self.splits, self.features
        made["yes"] = np.where(is_leaf, self.votes.first, self.yes)
        made["no"] = np.where(is_leaf, self.votes.many, self.no)
        made["flags"] = self.modes | self.nan_is_yes.astype(np.int64) << MODE_BITS
        targets = self.votes.target.astype(np.int64)
        return TreeTables(self.roots, made, targets, self.votes.weight, tuple(self.present), self.depth)

    def totals(self, x: Array, targets: int, aggregate: str) -> Array:
        """The sums (averages, minima, maxima) of votes for ``x`` [rows, features]: [rows, targets].

        Votes are added up tree by tree as float64 if ``x`` or they are, else as float32, ONNX's type of scores: whether
        five votes of 0.1 are more than 0.5 depends on it.
        """
        latest = self._latest
        if latest is not None and latest.x == (x.shape, x.strides, x.dtype) and latest.result[1] == targets:
            found = np.zeros(latest.result, latest.dtype)
            if aggregate == "SUM" and latest.loops is CURRENT.scope.loops and latest.vote(x, found):
                return found
        if x.ndim != 2 or x.shape[1] < self.columns:
            raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [n, at least {self.columns}]")
        wide = np.float64 in (x.dtype, self.votes.weight.dtype)
        found = np.zeros((len(x), targets), np.float64 if wide else np.float32)
        if aggregate in ("SUM", "AVERAGE") and self._added_natively(x, found):
            return found / found.dtype.type(len(self.roots)) if aggregate == "AVERAGE" else found
        step = max(1, STEP // max(1, len(self.roots)))
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            self._vote(self._leaves(x[part]), found[part], aggregate)
            pace()
        return found / found.dtype.type(len(self.roots)) if aggregate == "AVERAGE" else found

    def _added_natively(self, x: Array, found: Array) -> bool:
        tables = self.tables
        if tables is None or tables.weights.dtype.kind != "f":
            return False
        loops, weights = CURRENT.scope.loops, tables.weights.astype(found.dtype, copy=False)
        vote = loops.voter(x, tables._replace(weights=weights), found)
        if vote is None or not vote(x, found):
            return False
        self._latest = _Latest(loops, (x.shape, x.strides, x.dtype), (len(x), found.shape[1]), found.dtype, vote)
        return True

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


# -- TreeEnsemble and its older forms ------------------------------------------


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")


def _ints(node: Node, name: str, default: int | None = None, like: int = 0) -> Array:
    values: list[int] | None = node.attributes.get(name)
    if values is None and default is None:
        raise Error("IRC320", f"the attribute {name} is missing")
    return np.full(like, default) if values is None else np.array(values, np.int64)


def _floats(node: Node, name: str) -> Array:
    """The attribute as floats, or as a tensor."""
    tensor: Any = node.attributes.get(f"{name}_as_tensor")
    return np.array(node.attributes.get(name, []), np.float32) if tensor is None else np.asarray(tensor.numpy())


def _aggregate(node: Node) -> str:
    return choice(node, "aggregate_function", "SUM", AGGREGATE)


def _targets(ids: Array, count: int) -> int:
    """``count``, checked: the votes must be for one of them."""
    check_size([count], np.dtype(np.float64))
    if ids.size and not 0 <= ids.min() <= ids.max() < count:
        raise Error("IRC320", f"a leaf votes for target {ids.min()} or {ids.max()}; there are {count}")
    return count


def _forest(node: Node, votes: str) -> tuple[Forest, Array]:
    """The trees of the older forms, whose nodes have tree and node numbers; all votes' targets."""
    of_nodes = [f"nodes_{name}" for name in ("treeids", "nodeids", "truenodeids", "falsenodeids", "featureids")]
    trees, numbers, yes, no, features = given = [_ints(node, name) for name in of_nodes]
    names: list[str] = node.attributes.get("nodes_modes") or []
    nodes, splits = len(trees), _floats(node, "nodes_values")
    nan_is_yes = _ints(node, "nodes_missing_value_tracks_true", 0, nodes)
    others = {"nodes_modes": names, "nodes_values": splits, "nodes_missing_value_tracks_true": nan_is_yes}
    check_lengths(**dict(zip(of_nodes, given)), **others)
    unknown = sorted({*names} - {*MODES})
    if unknown:
        raise Error("IRC320", f"nodes_modes has {unknown[0]!r}; it must be one of {', '.join(MODES)}")
    numbered: dict[str, int] = dict(zip(MODES, (*range(len(COMPARE)), LEAF), strict=True))
    modes = np.array([numbered[name] for name in names], np.int64)
    place = {key: i for i, key in enumerate(zip(trees.tolist(), numbers.tolist(), strict=True))}
    if len(place) != nodes:
        raise Error("IRC320", "two nodes of a tree have one number")

    def at(tree: Array, number: Array, where: Array) -> Array:
        found = np.zeros(len(tree), np.int64)
        for i in np.flatnonzero(where).tolist():
            key = int(tree[i]), int(number[i])
            if key not in place:
                raise Error("IRC320", f"tree {key[0]} has no node {key[1]}")
            found[i] = place[key]
        return found

    inner = modes != LEAF
    leaf_trees, leaf_numbers = _ints(node, f"{votes}_treeids"), _ints(node, f"{votes}_nodeids")
    targets, weights = _ints(node, f"{votes}_ids"), _floats(node, f"{votes}_weights")
    lists = {"treeids": leaf_trees, "nodeids": leaf_numbers, "ids": targets, "weights": weights}
    check_lengths(**{f"{votes}_{name}": values for name, values in lists.items()})
    leaves = at(leaf_trees, leaf_numbers, np.ones(len(leaf_trees), np.bool_))
    _, roots = np.unique(trees, return_index=True)
    voted = Votes.of(leaves, targets, weights, nodes)
    after_yes, after_no = at(trees, yes, inner), at(trees, no, inner)
    return Forest(modes, features, splits, after_yes, after_no, nan_is_yes.astype(np.bool_), roots, voted), targets


def _base(node: Node, targets: int) -> Array:
    base = _floats(node, "base_values")
    if base.size not in (0, 1, targets):
        raise Error("IRC320", f"there are {base.size} base_values and {targets} targets")
    return base


def _with_base(totals: Array, base: Array) -> Array:
    """``totals`` plus the base values, in the type of ``totals``."""
    return totals + base.astype(totals.dtype) if base.size else totals


@kernel("ai.onnx.ml::TreeEnsembleRegressor")
def tree_ensemble_regressor(node: Node) -> Kernel:
    """For x [n, features], the transformed totals of votes and base values, [n, targets]; 0 without votes."""
    forest, ids = _forest(node, "target")
    targets = _targets(ids, node.attributes.get("n_targets", 1))
    transform, base = TRANSFORMS[post_transform(node)], _base(node, targets)
    aggregate = _aggregate(node)

    def run(x: Array) -> Array:
        totals = _with_base(forest.totals(x, targets, aggregate), base)
        return transform(totals.astype(np.float64)).astype(np.float32)

    return run


@kernel("ai.onnx.ml::TreeEnsemble")
def tree_ensemble(node: Node) -> Kernel:
    """Inner nodes and leaves are numbered apart here; each leaf has one vote."""
    of_nodes = [f"nodes_{name}" for name in ("truenodeids", "falsenodeids", "trueleafs", "falseleafs", "featureids")]
    yes, no, yes_leaf, no_leaf, features = given = [_ints(node, name) for name in of_nodes]
    inner, splits = len(yes), np.asarray(node.attributes["nodes_splits"].numpy())
    modes = np.asarray(node.attributes["nodes_modes"].numpy()).astype(np.int64)
    nan_is_yes = _ints(node, "nodes_missing_value_tracks_true", 0, inner)
    ids, weights = _ints(node, "leaf_targetids"), np.asarray(node.attributes["leaf_weights"].numpy())
    others = {"nodes_splits": splits, "nodes_modes": modes, "nodes_missing_value_tracks_true": nan_is_yes}
    check_lengths(**dict(zip(of_nodes, given)), **others)
    check_lengths(leaf_targetids=ids, leaf_weights=weights)
    unknown = modes[(modes < 0) | (modes > MEMBER)]
    if unknown.size:
        raise Error("IRC320", f"nodes_modes has {unknown[0]}; it must be 0 to {MEMBER}")
    leaves = len(ids)
    for way, is_leaf in ((yes, yes_leaf), (no, no_leaf)):
        if way.size and (way.min() < 0 or (way >= np.where(is_leaf, leaves, inner)).any()):
            raise Error("IRC320", f"a branch leads nowhere: there are {inner} nodes and {leaves} leaves")
    targets = _targets(ids, node.attributes.get("n_targets", 1))
    no_more = np.zeros(leaves, np.int64)
    forest = Forest(
        np.concatenate([modes, np.full(leaves, LEAF)]),
        np.concatenate([features, no_more]),
        np.concatenate([splits, np.zeros(leaves, splits.dtype)]),
        np.concatenate([np.where(yes_leaf, yes + inner, yes), no_more]),
        np.concatenate([np.where(no_leaf, no + inner, no), no_more]),
        np.concatenate([nan_is_yes, no_more]).astype(np.bool_),
        _ints(node, "tree_roots"),
        Votes.of(np.arange(inner, inner + leaves), ids, weights, inner + leaves),
        _members(node, modes),
    )  # fmt: skip
    transform, aggregate = TRANSFORMS[post_transform(node)], _aggregate(node)

    def run(x: Array) -> Array:
        totals = forest.totals(x, targets, aggregate)
        return transform(totals.astype(np.float64)).astype(x.dtype)

    return run


def _members(node: Node, modes: Array) -> dict[int, Array]:
    """What each node with `MEMBER` looks for: the sets stand one after the other, each ended by NaN."""
    nodes: list[int] = np.flatnonzero(modes == MEMBER).tolist()
    given: Any = node.attributes.get("membership_values")
    values = np.zeros(0, np.float32) if given is None else np.asarray(given.numpy())
    sets = np.split(values, np.flatnonzero(np.isnan(values)) + 1)[:-1]
    if len(sets) != len(nodes):
        raise Error("IRC320", f"membership_values has {len(sets)} sets for {len(nodes)} nodes")
    return dict(zip(nodes, [s[:-1] for s in sets], strict=True))


@kernel("ai.onnx.ml::TreeEnsembleClassifier")
def tree_ensemble_classifier(node: Node) -> Kernel:
    """Of x [n, features] the likeliest class of each row, [n], and the transformed scores, [n, classes]."""
    forest, ids = _forest(node, "class")
    labels = class_labels(node, "classlabels_int64s")
    classes = _targets(ids, len(labels))
    name, base = post_transform(node), _base(node, classes)
    if classes == 2 and ids.size and not ids.any():
        return _by_one_score(forest, labels, name, base)
    if classes == 1:
        raise Error("IRC320", "there is one class only: the specification does not say what it is told apart from")
    transform = TRANSFORMS[name]

    def run(x: Array) -> tuple[Array, Array]:
        scores = _with_base(forest.totals(x, classes, "SUM"), base).astype(np.float64)
        transformed = transform(scores)
        # the one transform that does not keep the order: a class without votes has probability 0 by it
        decisive = transformed if name == "SOFTMAX_ZERO" else scores
        return labels[decisive.argmax(1)], transformed.astype(np.float32)

    return run


def _by_one_score(forest: Forest, labels: Array, name: str, base: Array) -> Kernel:
    """All votes are for the first of two classes: they make the score of the second one."""
    if name == "PROBIT" or base.size > 1:
        what = f"post_transform {name}" if name == "PROBIT" else "two base_values"
        raise Error("IRC320", f"all votes are for one of two classes: what {what} does to them is not specified")
    is_probability = bool((forest.votes.weight >= 0).all())
    least = np.array(0.5 if is_probability else 0, np.float32)
    logistic = TRANSFORMS["LOGISTIC"]

    def run(x: Array) -> tuple[Array, Array]:
        totals = _with_base(forest.totals(x, 1, "SUM"), base)
        best = totals.reshape(-1) > least
        if name == "LOGISTIC":
            score = totals.astype(np.float64)
            scores = logistic(np.concatenate([-score, score], axis=1)).astype(np.float32)
        else:
            # In float32 as in float64, which is wide enough for the difference to be the same once it is rounded.
            scores = np.empty((len(totals), 2), np.float32)
            scores[:, :1] = 1 - totals if is_probability else -totals
            scores[:, 1:] = totals
        return labels[best.astype(np.int64)], scores

    return run
