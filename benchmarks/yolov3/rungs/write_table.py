"""Who writes what, as a table of writes with the locations that each reaches."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.yolov3.rungs.searching import SearchingDag
from irc.alias.facts import WORLD, Element
from irc.alias.location_sets import EMPTY, LocationSet, SetIndex, intersects
from irc.alias.write_index import WriteLog
from irc.ir import Node
from irc.ops.record import Change


class WriteTable(WriteLog):
    """One row a write: element, and the locations it denotes. Rows are kept by node and by nothing else.

    Args:
        dag: finds locations.
    """

    def __init__(self, dag: SearchingDag) -> None:
        super().__init__()
        self.dag = dag
        self.rows: dict[Node, list[tuple[Element, LocationSet]]] = {}
        self._union: LocationSet | None = EMPTY
        """All that is written; None when it has to be found again."""
        self.observer: Callable[[LocationSet, bool], object] | None = None

    def __bool__(self) -> bool:
        return bool(self.rows)

    def add(self, node: Node, element: Element, change: Change = Change.ELEMENTS) -> None:
        super().add(node, element, change)
        self.entries.clear()  # which is where logs keep rows
        self.rows.setdefault(node, []).append((element, self.dag.locations(element)))
        self._changed()

    # -- updates ---------------------------------------------------------

    def grown(self, elements: set[Element]) -> None:
        """``elements`` may denote more than before: every row is looked at again."""
        for row in self.rows.values():
            self.dag.counters.rescans += len(row)
            for i, (element, _) in enumerate(row):
                if element in elements:
                    row[i] = (element, self.dag.locations(element))
                    self._union = None

    def changed(self, element: Element) -> None:
        self.grown({element})

    def remove(self, node: Node) -> None:
        for element, _ in self.rows.pop(node, ()):
            self.metadata.pop((node, element), None)
        self._changed()

    def redirect(self, old: Element, new: Element) -> None:
        for node, row in self.rows.items():
            for i, (element, _) in enumerate(row):
                if element == old:
                    row[i] = (new, self.dag.locations(new))
            change = self.metadata.pop((node, old), Change.ELEMENTS)
            if change:
                self.metadata[node, new] = max(change, self.metadata.get((node, new), change))
        self._changed()

    def _changed(self) -> None:
        self._union = None
        if self.observer is not None:
            self.observer(EMPTY, True)  # anything may have changed

    def settle(self) -> None:
        """Rows are right at any time."""

    def renest(self, node: Node) -> None:
        """Nothing is kept by nesting."""

    # -- queries ---------------------------------------------------------

    def touches(self, locations: LocationSet) -> bool:
        if self._union is None:
            self._union = self.dag.sets.union_all(written for row in self.rows.values() for _, written in row)
        return intersects(self._union, locations)

    def changes_metadata(self, locations: LocationSet, least: Change) -> bool:
        changed = [self.dag.locations(e) for (_, e), c in self.metadata.items() if c >= least]
        return any(intersects(denoted, locations) for denoted in changed)

    def elements(self, node: Node) -> list[Element]:
        return [element for element, _ in self._inside(node)]

    def locations(self, node: Node) -> LocationSet:
        return self.dag.sets.union_all(written for _, written in self._inside(node))

    def acts_on_world_between(self, first: Node, last: Node) -> bool:
        node = first.next
        while node is not None and node is not last:
            if WORLD in self.elements(node):
                return True
            node = node.next
        return False

    def written_between(self, locations: LocationSet, first: Node | None, last: Node) -> bool:
        assert last.block is not None
        around = [node.ancestor_in(last.block) for node in self.writing(locations)]
        before = [node for node in around if node is not None and node.is_before(last)]
        return any(first is None or first.is_before(node) for node in before)

    def writes_any(self, node: Node, locations: LocationSet) -> bool:
        return any(intersects(written, locations) for _, written in self._inside(node))

    def writes_itself(self, node: Node, locations: LocationSet) -> bool:
        return any(intersects(written, locations) for _, written in self.rows.get(node, ()))

    def is_in_order(self) -> bool:
        """Nothing is kept in order."""
        return True

    def writing(self, locations: LocationSet) -> list[Node]:
        return [node for node, row in self.rows.items() if any(intersects(w, locations) for _, w in row)]

    def few_writing(self, locations: LocationSet, most: int) -> list[Node] | None:
        found = self.writing(locations)
        return found if len(found) <= most else None

    def own(self, node: Node) -> list[Element]:
        return [element for element, _ in self.rows.get(node, ())]

    def writing_just(self, locations: LocationSet) -> list[Node]:
        return [node for node, row in self.rows.items() if any(written == locations for _, written in row)]

    def written_sets(self) -> SetIndex:
        found = SetIndex(self.dag.sets)
        for locations in dict.fromkeys(written for row in self.rows.values() for _, written in row):
            found.add(locations)
        return found

    def nodes(self) -> list[Node]:
        return list(self.rows)

    def _inside(self, node: Node) -> list[tuple[Element, LocationSet]]:
        found = list(self.rows.get(node, ()))
        if node.blocks:
            for inner in node.nested():
                found += self.rows.get(inner, ())
        return found
