"""The layers of irc: their table in docs/explanation/architecture.md, and what they import, by the source.

``python -m tests.layers`` writes the table of imports there anew; ``tests/figures.py`` draws the same.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import networkx

from irc.ir.graph import gc_paused

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "irc"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
BEGIN, END = "<!-- drawn by python -m tests.layers -->", "<!-- end of what is drawn -->"
ROW = re.compile(r"^\| (`irc/[^|]*) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Layer:
    """A row of the table.

    Attributes:
        name: the first of its units.
        units: modules and packages directly below ``irc``, which may import each other.
        shuns: layers above it that it nevertheless does not import.
    """

    name: str
    units: tuple[str, ...]
    shuns: frozenset[str]


class Import(NamedTuple):
    """An import of a module of irc.

    Attributes:
        line: where.
        name: the full name of the module.
        is_for_types: whether only type checkers follow it.
        is_deferred: whether it is made when a function is called, not when the module is imported.
    """

    line: int
    name: str
    is_for_types: bool
    is_deferred: bool


def _units(cell: str) -> tuple[str, ...]:
    return tuple(name.removeprefix("irc/").rstrip("/").removesuffix(".py") for name in re.findall(r"`([^`]+)`", cell))


@cache
def layers() -> tuple[Layer, ...]:
    """The layers that the page states, from the lowest to the highest."""
    return tuple(
        Layer(_units(first)[0], _units(first), frozenset(_units(last)))
        for first, _, last in ROW.findall(PAGE.read_text("utf-8"))
    )


def layer_of(module: str) -> Layer:
    """The layer of ``irc.<unit>.…``; that of the package itself is the highest."""
    unit = module.split(".")[1] if "." in module else "__init__"
    return next((layer for layer in layers() if unit in layer.units), layers()[-1])


def allowed(layer: Layer) -> set[str]:
    """The names of the layers that ``layer`` may import, itself included."""
    return {other.name for other in layers()[: layers().index(layer) + 1]} - layer.shuns


class Source(NamedTuple):
    """A module of irc: its full name, where it is, what it says, and that parsed."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]


@cache
def sources() -> tuple[Source, ...]:
    """Every module of irc, parsed once for all who look."""
    found: list[Source] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text("utf-8")
        with gc_paused():  # it would visit all nodes again and again
            tree = ast.parse(text)
            found.append(Source(name, path, text, tree, tuple(_nodes(tree))))
    return tuple(found)


def _nodes(tree: ast.Module) -> list[ast.AST]:
    """All nodes below ``tree``; faster than `ast.walk`."""
    found: list[Any] = [tree]
    for node in found:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


@cache
def _module_names() -> frozenset[str]:
    return frozenset(source.name for source in sources())


def imports(source: str | Sequence[ast.AST], module: str, is_package: bool = False) -> Iterator[Import]:
    """Every import of a module of irc in ``source``, a text or all nodes of one, wherever in it."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    nodes = _nodes(ast.parse(source)) if isinstance(source, str) else source
    deferring = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    deferred = [(n.lineno, n.end_lineno or 0) for n in deferring]
    conditions = [n for n in nodes if isinstance(n, ast.If) and _last_name(n.test) == "TYPE_CHECKING"]
    guarded = [(n.body[0].lineno, n.body[-1].end_lineno or 0) for n in conditions]
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            for name in _imported(node, package):
                if name.split(".")[0] == "irc":
                    line = node.lineno
                    yield Import(line, name, _is_within(guarded, line), _is_within(deferred, line))


def _is_within(spans: list[tuple[int, int]], line: int) -> bool:
    return any(first <= line <= last for first, last in spans)


def _last_name(node: ast.AST) -> str:
    """``c`` of ``a.b.c``; "" for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _imported(node: ast.AST, package: list[str]) -> list[str]:
    """The modules that a statement or call imports, of a name that may be a module or not only the certain part."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        origin = ".".join([*base, *([node.module] if node.module else [])])
        # `from irc import ir` imports irc.ir; `from irc import __version__` needs no module.
        names = [f"{origin}.{alias.name}" for alias in node.names if alias.name != "__version__"]
        # Below irc and irc.runtime, names stand for modules whether these exist or not: tests make some up.
        return [name if origin in ("irc", "irc.runtime") or name in _module_names() else origin for name in names]
    if isinstance(node, ast.Call) and _last_name(node.func) in ("import_module", "__import__"):
        return [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []


@cache
def all_imports() -> dict[str, list[Import]]:
    """The imports of every module of irc."""
    return {
        source.name: list(imports(source.nodes, source.name, source.path.name == "__init__.py")) for source in sources()
    }


def circles(with_types: bool) -> list[list[str]]:
    """Modules whose imports form circles: those that are made at once, and, if wanted, those for types."""
    graph = networkx.DiGraph()
    for module, found in all_imports().items():
        for each in found:
            name = each.name if each.name in _module_names() else each.name.rpartition(".")[0]
            if each.is_deferred or (each.is_for_types and not with_types) or name in ("irc", module):
                continue
            graph.add_edge(module, name)
            # Packages are imported before what is in them.
            above = [".".join(name.split(".")[:n]) for n in range(2, name.count(".") + 1)]
            if not with_types:
                graph.add_edges_from((module, package) for package in above if not module.startswith(package))
    return [sorted(circle) for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]


@cache
def _edges() -> dict[tuple[str, str], bool]:
    """Which layer imports which, and whether it does for types only."""
    edges: dict[tuple[str, str], bool] = {}
    for module, found in all_imports().items():
        for each in found:
            edge = layer_of(module).name, layer_of(each.name).name
            edges[edge] = edges.get(edge, True) and each.is_for_types
    return edges


def _names() -> list[str]:
    return [layer.name for layer in layers() if layer.name not in ("errors", "support")]


def direct_imports() -> list[tuple[str, str, bool]]:
    """The imports of layers that others do not imply, by the page's table: from, to, and whether for types only."""
    header, *rows = [line for line in drawn().splitlines() if not line.startswith("```")]
    names = header.split()
    spans = {name: re.search(rf"\b{name}\b", header).span() for name in names}  # type: ignore[union-attr]
    signs = {(row.split()[0], name): row[start:end].strip() for row in rows for name, (start, end) in spans.items()}
    graph = networkx.DiGraph([edge for edge, sign in signs.items() if sign])
    direct = sorted(networkx.transitive_reduction(graph).edges, key=lambda edge: [names.index(name) for name in edge])
    return [(a, b, signs[a, b] == "t") for a, b in direct]


def picture() -> str:
    """A table of all imports of layers."""
    edges, names = _edges(), _names()
    widest = max(map(len, names))
    signs = [[" " if (a, b) not in edges or a == b else "t" if edges[a, b] else "x" for b in names] for a in names]
    rows = [
        f"{a:{widest}}  " + "  ".join(f"{sign:^{len(b)}}" for sign, b in zip(row, names, strict=True))
        for a, row in zip(names, signs, strict=True)
    ]
    lines = ["```text", " " * (widest + 2) + "  ".join(names), *rows, "```"]
    return "\n".join(line.rstrip() for line in lines)


def drawn() -> str:
    """The table that the page has."""
    return PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0].strip()


if __name__ == "__main__":
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{picture()}\n\n{END}{rest.partition(END)[2]}", "utf-8")
