"""Delta debugging: smaller lists, and parts of a module with recorded values, that show a fault.

Source: Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002 (the algorithm ddmin).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count, product
from typing import Any, NamedTuple, TypeVar

import numpy as np

from irc.alias import analyze
from irc.errors import Error
from irc.ir import Graph, Module, Node, Tensor, Value
from irc.ir.clone import splice_subgraph
from irc.ir.kinds import CONSTANT, GROUP, IF, LOOPS, SCAN
from irc.ir.region_flow import carried
from irc.ir.types import BOOL, FLOAT, INT, STR, DType, ListType, TensorType, Type
from irc.runtime.backends import NUMPY
from irc.runtime.model import CompiledModel
from irc.runtime.values import is_array, is_sequence
from irc.tools.extract import assemble, cut_out, typed

T = TypeVar("T")

FEW = 8
"""Up to this many items, each is left out alone: halves would hardly be right."""

MOST_TRIALS = 400
"""How often one `minimise` looks at most: it gives the smallest that it has found."""


def minimise(items: Sequence[T], shows: Callable[[list[T]], bool], most: int | None = MOST_TRIALS) -> list[T]:
    """A part of ``items`` that still ``shows`` the fault, minimal if any one item is left out."""
    kept: list[T] = list(items)
    parts = 2
    left = count() if most is None else iter(range(most))

    def still(some: list[T]) -> bool:
        return next(left, None) is not None and shows(some)

    while len(kept) > FEW:
        size = -(-len(kept) // parts)
        bounds = [(i, i + size) for i in range(0, len(kept), size)]
        chunks: list[list[T]] = [kept[i:end] for i, end in bounds]
        others: list[list[T]] = [kept[:i] + kept[end:] for i, end in bounds]
        alone = next((chunk for chunk in chunks if still(chunk)), None)
        fewer = next((rest for rest in others if parts > 2 and still(rest)), None) if alone is None else None
        if alone is not None:
            kept, parts = alone, 2
        elif fewer is not None:
            kept, parts = fewer, max(parts - 1, 2)
        elif parts >= len(kept):
            break
        else:
            parts = min(len(kept), 2 * parts)
    for item in list(kept) if len(kept) > 1 else []:
        rest: list[T] = [other for other in kept if other is not item]
        if rest and still(rest):
            kept = rest
    return kept


BUDGET = 2**30
"""Bytes of values that are compared at once; of more, some are, and then those between two of them."""


def first_difference(
    names: Sequence[str], sizes: Sequence[int], differ: Callable[[Sequence[str]], list[bool]]
) -> int | None:
    """The position of the first of ``names``, values in order, that differs; None if none does.

    Args:
        names: of the values.
        sizes: their bytes.
        differ: whether each of some values differs; what comes after one that does is taken to differ too.
    """
    low, high = -1, len(names)
    while high - low > 1:
        every = max(1, -(-sum(sizes[low + 1 : high]) // BUDGET))
        chosen = list(range(low + 1, high))[::-1][::every][::-1]  # the last one is among them
        verdicts = differ([names[i] for i in chosen])
        wrong = next((i for i, is_wrong in zip(chosen, verdicts) if is_wrong), None)
        low, high = (chosen[-1], high) if wrong is None else (max([low, *(i for i in chosen if i < wrong)]), wrong)
    return high if high < len(names) else None


# -- parts ---------------------------------------------------------------------


class Part(NamedTuple):
    """A part of a module that can be run.

    Attributes:
        module: the part.
        feeds: its inputs, by name; None if nobody needs them.
        expected: its outputs, by name.
    """

    module: Module
    feeds: dict[str, Any] | None
    expected: dict[str, Any]


_SINGLE: frozenset[Type] = frozenset((INT, FLOAT, BOOL, STR))


class Work:
    """Counts what a search takes, and tells of it.

    Attributes:
        compilations: pipelines that ran, and models that were lowered without one.
        runs: of models.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.compilations = self.runs = 0
        self._tell = tell

    def tell(self, words: str) -> None:
        """Show what is being done, and how much has been."""
        if self._tell is not None:
            self._tell(f"{words} ({self.compilations} compilations, {self.runs} runs)")

    def run(self, module: Module, feeds: Mapping[str, Any], *, is_new: bool = True) -> dict[str, Any]:
        """The outputs of ``module`` on the interpreter; ``is_new`` unless its pipeline was counted."""
        self.compilations += is_new
        self.runs += 1
        known = {value.name for value in module.main.inputs}
        model = CompiledModel(module, backend=NUMPY)
        return model.run({name: value for name, value in feeds.items() if name in known})


class Parts:
    """The parts of a module, cut at values that one run of it has had.

    Args:
        module: the module, which is not changed.
        feeds: its inputs. None: parts have no inputs recorded.
        work: counts runs.
        known: values by name that need not be computed.
    """

    def __init__(
        self, module: Module, feeds: Mapping[str, Any] | None, work: Work, known: Mapping[str, Any] | None = None
    ) -> None:
        self.module, self.work, self.are_recorded = module, work, feeds is not None
        self.nodes = [node for node in module.main.nodes if node.kind != CONSTANT]
        self.db = analyze(module.main, module)
        self.known: dict[str, Any] = {**(feeds or {}), **(known or {})}
        self._uses: dict[Node, list[Value]] = {n: list(dict.fromkeys([*n.inputs, *n.captures()])) for n in self.nodes}

    def reads(self, node: Node) -> list[Value]:
        """What ``node`` reads, its blocks included; no constants."""
        return [value for value in self._uses[node] if value.made_by(CONSTANT) is None]

    def of(
        self, nodes: Collection[Node], outputs: Sequence[str] | None = None, record_outputs: bool = True
    ) -> Part | None:
        """The part of ``nodes`` and of those inseparable from them; None if values cannot be recorded.

        Its outputs are what others use of it, or those named.
        """
        inside = self._closed(nodes)
        block = self.module.main.block
        given = dict.fromkeys(v for n in self.nodes if n in inside for v in self.reads(n) if v.node not in inside)
        made = [node for node in self.nodes if node in inside and node.outputs]
        used = {v for n in made for v in n.outputs if any(u.ancestor_in(block) not in inside for u in v.iter_users())}
        used |= {n.outputs[0] for n in made if not any(v.has_uses for v in n.outputs)}  # what nobody needs is kept, too
        graph = self.module.main
        results = (
            [v for n in made for v in n.outputs if v in used] if outputs is None else list(map(graph.value, outputs))
        )
        results = [value for value in results if _may_be_kept(value.type)]
        if not results:
            return None
        is_written = self.db.any_writes() and any(map(self.db.has_writers, (*given, *results)))
        try:
            if outputs is None or self.db.any_writes():
                constants = {v.node for node in inside for v in self._uses.get(node, ()) if v.made_by(CONSTANT)}
                part = assemble(self.module, list(given), inside | constants, results)
            else:
                names = [value.name for value in given if value.name not in self.module.objects]
                part = cut_out(self.module, names, [value.name for value in results], only_needed=True)
            kept = [value.name for value in results] if record_outputs and not is_written else []
            if self.are_recorded and not self.record([*(value.name for value in part.main.inputs), *kept]):
                return None
        except Error:
            return None
        if not self.are_recorded:
            for value in part.main.inputs:
                value.type = self._inferred.value(value.name).type
            return Part(part, None, {})
        feeds = {v.name: self.known[v.name] for v in part.main.inputs if v.name in self.known}
        for value in part.main.inputs:
            value.type = _completed(value.type, feeds.get(value.name))
        if not is_written:
            return Part(part, feeds, {name: self.known[name] for name in kept})
        try:  # what a part computes of memory that others write, too, is something else than in the model
            return Part(part, feeds, self.work.run(part, feeds))
        except Error:
            return None

    def record(self, names: Iterable[str]) -> bool:
        """Run the module for unknown values of ``names``; False if one cannot be passed again."""
        defaults = self.module.defaults.keys() | self.module.objects.keys()
        wanted = [name for name in dict.fromkeys(names) if name not in self.known and name not in defaults]
        if wanted:
            self.known.update(self.values(wanted))
        return all(_can_be_given(self.known[name]) for name in wanted)

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        """The values of ``names`` in a run of the module; they are not kept."""
        return self.work.run(cut_out(self.module, None, names), self.known)

    def around(self, nodes: Collection[Node], steps: int) -> set[Node]:
        """``nodes``, and those from which, or to which, at most ``steps`` uses lead from them."""
        found, edge = set(nodes), set(nodes)
        block = self.module.main.block
        for _ in range(steps):
            near = {v.node for node in edge for v in self.reads(node)}
            near |= {user.ancestor_in(block) for n in edge for v in n.outputs for user in v.iter_users()}
            edge = {node for node in near if node is not None and not node.is_return} - found
            found |= edge
        return found

    @cached_property
    def _inferred(self) -> Graph:
        """A copy of the graph with inferred types: a part cannot infer those of its inputs."""
        try:
            return typed(self.module).main
        except Error:  # they contradict each other
            return self.module.main

    def _closed(self, nodes: Collection[Node]) -> set[Node]:
        """``nodes`` closed under producers of values that a part cannot be given."""
        found, pending = set(nodes), list(nodes)
        while pending:
            node = pending.pop()
            if node.kind == CONSTANT:
                continue
            more: list[Node | None] = []
            for value in self.reads(node):
                if not _may_be_kept(value.type):
                    more.append(value.node)
            fresh = {each for each in more if each is not None} - found
            found |= fresh
            pending += fresh
        return found


def fewest(part: Part, parts: Parts, shows: Callable[[Part], bool], most: int | None = MOST_TRIALS) -> Part:
    """``part`` without nodes and outputs that need not be there to show a fault; ``parts``: its own."""

    def still(smaller: Part | None) -> bool:
        nonlocal part
        if smaller is None or not shows(smaller):
            return False
        part = smaller
        return True

    minimise(parts.nodes, lambda nodes: still(parts.of(nodes)), most)
    rest = Parts(part.module, part.feeds, parts.work, part.expected)
    minimise([v.name for v in rest.module.main.outputs], lambda some: still(rest.of(rest.nodes, some)), most)
    return part


def _may_be_kept(type: Type) -> bool:
    """Whether values of ``type`` can be recorded and given: tensors, numbers, texts, and lists of these."""
    inner = type.elem if isinstance(type, ListType) else type
    return isinstance(inner, TensorType) or inner in _SINGLE


def _can_be_given(value: Any) -> bool:
    """Whether a value can be written to a file and read: a list that is empty cannot."""
    if is_sequence(value):
        return bool(value) and all(map(_can_be_given, value))
    return is_array(value) or isinstance(value, bool | int | float | complex | str)


def _completed(type: Type, value: Any) -> Type:
    """``type``, with the element type and the shape of ``value`` where nothing is known of them."""
    if not isinstance(type, TensorType) or not is_array(value):
        return type
    return TensorType(
        type.dtype or DType.from_numpy(value.dtype), tuple(value.shape) if type.shape is None else type.shape
    )


# -- what is inside of nodes ---------------------------------------------------


def opened(module: Module, at: int) -> list[Module]:
    """Copies of ``module`` with what node number ``at`` of its top block runs in place of that node.

    Two for each branch of an If, or for the first iteration of a loop: the second one also returns all that is computed
    there. One for the members of a fusion group. A copy computes something else than ``module``, which does not matter
    to those who look for a fault.
    """
    node = list(module.main.nodes)[at]
    if node.kind == GROUP:
        copy = module.copy()
        group = list(copy.main.nodes)[at]
        splice_subgraph(group)
        group.erase()
        return [copy]
    if node.kind != IF and node.kind not in LOOPS:
        return []
    found: list[Module] = []
    for number, more in product(range(len(node.blocks)), (False, True)):
        copy = module.copy()
        made = _open(list(copy.main.nodes)[at], number)
        if made is not None:
            copy.main.set_outputs(dict.fromkeys([*copy.main.outputs, *(made if more else ())]))
            found.append(copy)
    return found


def _open(node: Node, number: int) -> list[Value] | None:
    """Replace ``node`` by the contents of its block ``number``; the results, None if undecidable."""
    block, graph, returned = node.blocks[number], node.graph, 0
    if node.kind == SCAN:  # its first slices are not at hand
        return None
    if node.kind in LOOPS:
        flow = carried(node)
        returned = flow.returned
        first = ((0, np.zeros((), np.int64)), (True, np.array(True)))
        for param, (number, array) in zip(block.params, first[: flow.param]):
            is_tensor = isinstance(param.type, TensorType)
            attributes = {"value": Tensor.of(array) if is_tensor else number}
            type = Tensor.of(array).type if is_tensor else param.type
            constant = graph.create(CONSTANT, (), [type], attributes=attributes).insert_before(node)
            param.replace_all_uses_with(constant.output)
        for param, value in zip(block.params[flow.param :], node.inputs[flow.input :], strict=False):
            param.replace_all_uses_with(value)
    moved = list(block.nodes)
    for each in moved:
        each.move_before(node)
    for result, value in zip(node.outputs, block.returns[returned:], strict=False):
        result.replace_all_uses_with(value)
    node.erase()
    return [value for each in moved for value in each.outputs if each.kind != CONSTANT]
