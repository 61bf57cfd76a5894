"""Tree ensembles: for each input row, the path down each tree, and the votes of its leaf.

Invariants:

- Columns, nodes and votes are those of a checked `irc.runtime.kernels.ml_trees.Forest`; every way down ends in a leaf.
- Votes of a row are added tree by tree, in their order, whatever the number of threads, which share the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from irc.ir.tensor import Array
from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import Emitter, register_type
from irc.native.loops import INT, finished, loop, loop_function, number, offset, paced_loop
from irc.native.target import Target, current, ir
from irc.ops.algebra import DOUBLE, SINGLE, AnyDType
from irc.runtime.kernels.ml_trees import LEAF, MODE_BITS, RECORD

_NARROW = ir.IntType(32)

_PLACES: Mapping[str, int] = {name: place for name, (_, place, *_) in (RECORD.fields or {}).items()}
"""Where the fields of a node's record are."""

_SIGNS = ("<=", "<", ">=", ">", "==", "!=")
"""By the number of a mode."""

_NANOSECONDS = 3.0
"""For a node, by estimate."""


class Form(NamedTuple):
    """What the code depends on.

    Attributes:
        dtype: of the input.
        totals: the element type of votes and what they make.
        modes: of comparisons, some of `_SIGNS`, by number.
    """

    dtype: AnyDType
    totals: AnyDType
    modes: tuple[int, ...]


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of rows.

    Attributes:
        row: bytes from one row of the input to the next.
        trees: how many there are.
        targets: of a row.
        work: of a row, in what `paced_loop` counts.
    """

    row: Any
    trees: Any
    targets: Any
    work: Any


def call_for_trees(x: Array, totals: Array, trees: int, modes: tuple[int, ...], depth: int) -> Call | None:
    """A call for arrays like these, with paths of up to ``depth`` steps; None if there is no code.

    It takes the input, roots, records of nodes, targets and weights of votes, and totals, which are 0 before.
    """
    if x.dtype not in (SINGLE, DOUBLE) or not x.size or not totals.size or not trees:
        return None
    layout = Layout(x.strides[0], trees, totals.shape[1], 2 * trees * (depth + 8))
    form, name, work = Form(x.dtype, totals.dtype, modes), "irc.trees", len(x) * trees * 8 * _NANOSECONDS
    make = partial(emit_trees, name, form, current())
    return Call.of_loops(name, f"{name} {form}", make, 6, layout, len(x), work)


def emit_trees(name: str, form: Form, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, and what it needs."""
    emitter, arrays, numbers, begin, end = loop_function(name, target, 1, 6, len(Layout._fields))
    _Trees(form, emitter, arrays, Layout(*numbers)).emit(begin, end)
    return finished(emitter)


class _Trees:
    def __init__(self, form: Form, emitter: Emitter, arrays: Sequence[Any], layout: Layout) -> None:
        self.form, self.emitter, self.builder, self.layout = form, emitter, emitter.builder, layout
        self.source, self.roots, self.nodes, self.targets, self.weights, self.totals = arrays

    def emit(self, begin: Any, end: Any) -> None:
        builder, layout = self.builder, self.layout
        size = number(self.form.totals.itemsize)
        with paced_loop(self.emitter, begin, end, 1, layout.work) as row:
            source = offset(builder, self.source, builder.mul(row, layout.row))
            totals = offset(builder, self.totals, builder.mul(builder.mul(row, layout.targets), size))
            with loop(builder, number(0), layout.trees) as tree:
                root = builder.load(offset(builder, self.roots, builder.mul(tree, number(8))), typ=INT)
                self._vote(self._leaf(source, root), totals)

    def _field(self, node: Any, name: str, kind: Any) -> Any:
        place = offset(self.builder, node, number(_PLACES[name]))
        return self.builder.load(place, typ=kind, align=4)

    def _number(self, node: Any, name: str) -> Any:
        return self.builder.sext(self._field(node, name, _NARROW), INT)

    def _leaf(self, source: Any, root: Any) -> Any:
        """The record of the leaf that a row comes to."""
        builder = self.builder
        before = builder.block
        look, go, done = (builder.append_basic_block() for _ in range(3))
        builder.branch(look)
        builder.position_at_end(look)
        at = builder.phi(INT)
        at.add_incoming(root, before)
        node = offset(builder, self.nodes, builder.mul(at, number(RECORD.itemsize)))
        flags = self._field(node, "flags", _NARROW)
        mode = builder.and_(flags, ir.Constant(_NARROW, (1 << MODE_BITS) - 1))
        builder.cbranch(builder.icmp_signed("==", mode, ir.Constant(_NARROW, LEAF)), done, go)
        builder.position_at_end(go)
        size = number(self.form.dtype.itemsize)
        place = offset(builder, source, builder.mul(self._number(node, "feature"), size))
        value = builder.load(place, typ=register_type(self.form.dtype), align=self.form.dtype.itemsize)
        if self.form.dtype == SINGLE:
            value = builder.fpext(value, ir.DoubleType())
        is_yes = self._is_yes(value, self._field(node, "split", ir.DoubleType()), mode)
        is_nan = builder.fcmp_unordered("uno", value, value)
        is_counted = builder.icmp_unsigned(">=", flags, ir.Constant(_NARROW, 1 << MODE_BITS))
        is_yes = builder.or_(is_yes, builder.and_(is_nan, is_counted))
        following = builder.select(is_yes, self._number(node, "yes"), self._number(node, "no"))
        at.add_incoming(following, builder.block)
        builder.branch(look)
        builder.position_at_end(done)
        return node

    def _is_yes(self, value: Any, split: Any, mode: Any) -> Any:
        builder = self.builder
        found = ir.Constant(ir.IntType(1), 0)
        for each in self.form.modes:
            sign = _SIGNS[each]
            compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
            holds = compare(sign, value, split)
            if len(self.form.modes) > 1:
                holds = builder.and_(holds, builder.icmp_signed("==", mode, ir.Constant(_NARROW, each)))
            found = builder.or_(found, holds)
        return found

    def _vote(self, leaf: Any, totals: Any) -> None:
        """Add the votes of a leaf, which are from number ``yes`` on, ``no`` in number."""
        builder, dtype = self.builder, self.form.totals
        kind, size = register_type(dtype), number(dtype.itemsize)
        first = self._number(leaf, "yes")
        with loop(builder, first, builder.add(first, self._number(leaf, "no"))) as vote:
            target = builder.load(offset(builder, self.targets, builder.mul(vote, number(8))), typ=INT)
            place = offset(builder, totals, builder.mul(target, size))
            weight = builder.load(
                offset(builder, self.weights, builder.mul(vote, size)), typ=kind, align=dtype.itemsize
            )
            total = builder.load(place, typ=kind, align=dtype.itemsize)
            builder.store(builder.fadd(total, weight), place, align=dtype.itemsize)
