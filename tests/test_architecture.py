"""The layers of irc import only downwards, and no module grows beyond what a reader takes in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "irc"
MAX_LINES = 800

# In this order: a layer imports only those before it. What else it must know nothing of stands beside it.
LAYERS: dict[str, set[str]] = {
    "ir": set(),
    "ops": set(),
    "alias": set(),
    "passes": set(),
    "fuser": set(),
    "runtime": {"passes", "fuser"},
    "native": {"passes"},
    "frontend": {"fuser", "runtime", "native"},
}
EVERYWHERE = ["errors", "support"]  # each may import those before it
RUNTIME = (
    *("values", "array_memory", "arguments", "bounds", "plan_cache", "kernel_checks"),
    "kernels",
    "binding",
    *("execution", "steps", "threads", "control_flow"),
    *("prepack", "growable", "live_memory", "storage", "memory_plan"),
    *("limits", "profile"),
    *("backends", "groups", "lowering", "plan"),
    *("arena", "boundary", "objects"),
    *("report", "file"),
    *("model", "session"),
)
"""The modules and sub-packages of irc.runtime, in this order: each imports only those before it, but for types."""

TOP = "the top"  # compiler, cli, backend...: what puts the layers together, and `irc` itself


def allowed(layer: str) -> set[str]:
    """The layers that ``layer`` may import, itself included."""
    if layer in EVERYWHERE:
        return set(EVERYWHERE[: EVERYWHERE.index(layer) + 1])
    if layer == TOP:
        return {*LAYERS, TOP, *EVERYWHERE}
    names = list(LAYERS)
    return {*names[: names.index(layer) + 1], *EVERYWHERE} - LAYERS[layer]


def layer_of(module: str) -> str:
    """The layer of ``irc.<layer>.…``."""
    name = module.split(".")[1] if "." in module else ""
    return name if name in LAYERS or name in EVERYWHERE else TOP


def imports(source: str, module: str, is_package: bool, types: bool = True) -> Iterator[tuple[int, str]]:
    """Line and full name of every module of irc that ``source`` imports, wherever in it; or not just for ``types``."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    tree = ast.parse(source)
    for node in [] if types else list(ast.walk(tree)):
        if isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING":
            node.body.clear()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            # `from irc import ir` imports irc.ir; from anywhere deeper than irc.runtime, the origin says enough.
            deep = origin not in ("irc", "irc.runtime")
            names = [origin] if deep else [f"{origin}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        for name in names:
            if name.split(".")[0] == "irc":
                yield node.lineno, name


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    layer = layer_of(module)
    return [
        f"{module}:{line}: {layer} must not import {name}"
        for line, name in imports(source, module, is_package)
        if layer_of(name) not in allowed(layer)
    ]


def runtime_violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """The imports inside of irc.runtime that are against its order."""
    unit = module.split(".")[2]
    known = RUNTIME[: RUNTIME.index(unit) + 1]
    return [
        f"{module}:{line}: {unit} must not import {name}"
        for line, name in imports(source, module, is_package, types=False)
        if layer_of(name) == "runtime" and [*name.split("."), ""][2] not in known
    ]


def modules() -> Iterator[tuple[Path, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_layers_import_only_those_above_them() -> None:
    found = [
        violation
        for path, module in modules()
        for violation in violations(path.read_text("utf-8"), module, path.name == "__init__.py")
    ]
    assert not found, "\n".join(found)


def test_the_runtime_can_be_read_from_the_bottom_up() -> None:
    inside = [(path, module) for path, module in modules() if module.startswith("irc.runtime.")]
    assert {module.split(".")[2] for _, module in inside} == set(RUNTIME)
    found = [
        violation
        for path, module in inside
        for violation in runtime_violations(path.read_text("utf-8"), module, path.name == "__init__.py")
    ]
    assert not found, "\n".join(found)


def test_the_facts_of_the_analysis_are_its_own() -> None:
    """Others ask questions: how facts are kept is to change without them."""
    found = [
        f"{module}:{node.lineno}"
        for path, module in modules()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if layer_of(module) != "alias" and isinstance(node, ast.Attribute) and node.attr == "facts"
    ]
    assert not found


def test_every_layer_is_there() -> None:
    assert {layer_of(module) for _, module in modules()} == {*LAYERS, *EVERYWHERE, TOP}


def test_no_module_is_too_long() -> None:
    lengths = {module: len(path.read_text("utf-8").splitlines()) for path, module in modules()}
    assert {module: n for module, n in lengths.items() if n > MAX_LINES} == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("irc.ir.graph", "import irc.alias"),
        ("irc.ir.graph", "def f():\n    from irc.passes.registry import find"),
        ("irc.ir.graph", "from irc import compiler"),
        ("irc.ir.graph", "import irc"),
        ("irc.ir.graph", "from ..alias import db"),
        ("irc.ir.graph", "from .. import alias"),
        ("irc.alias.db", "from irc.runtime.plan import Plan"),
        ("irc.passes.fold", "import importlib\nimportlib.import_module('irc.runtime.kernels')"),
        ("irc.passes.fold", "from irc.frontend.onnx import import_model"),
        ("irc.runtime.plan", "from irc.passes import PassManager"),
        ("irc.runtime.plan", "if TYPE_CHECKING:\n    import irc.frontend.onnx"),
        ("irc.frontend.onnx", "from irc.fuser import groups"),
        ("irc.errors", "from irc.ir import Node"),
        ("irc.errors", "from irc.support.files import replacing"),
        ("irc.support.files", "from irc.ir import Node"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source", "is_package"),
    [
        ("irc.ir.graph", "import numpy, irc.errors\nfrom irc.ir.types import Type\nfrom . import node", False),
        ("irc.ir", "from .graph import Graph", True),
        ("irc.alias.db", "from irc import ir\nfrom ..ir.node import Node", False),
        ("irc.fuser.fuse", "from irc.passes import Pass\nfrom irc.alias import AliasDb", False),
        ("irc.compiler", "import irc.fuser, irc.runtime, irc.frontend.onnx, irc.cli", False),
        ("irc.support.files", "from irc.errors import Error", False),
    ],
)
def test_an_allowed_import_is_not(module: str, source: str, is_package: bool) -> None:
    assert violations(source, module, is_package) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("irc.runtime.kernels.pool", "from irc.runtime.growable import append"),
        ("irc.runtime.kernels.pool", "def f():\n    from irc.runtime import growable"),
        ("irc.runtime.kernels.pool", "from ..growable import append"),
        ("irc.runtime.kernels.pool", "from .. import growable"),
        ("irc.runtime.kernels.pool", "import irc.runtime.growable"),
        ("irc.runtime.kernels.pool", "import importlib\nimportlib.import_module('irc.runtime.growable')"),
        ("irc.runtime.model", "from irc.runtime import check_size"),
        ("irc.runtime.model", "import irc.runtime"),
        ("irc.runtime.model", "if not TYPE_CHECKING:\n    from irc.runtime.session import Session"),
        ("irc.runtime.model", "if TYPE_CHECKING:\n    pass\nelse:\n    from irc.runtime.session import Session"),
    ],
)
def test_an_import_against_the_order_of_the_runtime_is_found(module: str, source: str) -> None:
    assert len(runtime_violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("irc.runtime.kernels.pool", "from irc.runtime.bounds import pace\nfrom irc.runtime.kernels import support"),
        (
            "irc.runtime.kernels.pool",
            "from irc.runtime import bounds\nfrom . import support\nfrom ..values import Array",
        ),
        ("irc.runtime.kernels.pool", "if TYPE_CHECKING:\n    from irc.runtime.plan import Plan"),
        ("irc.runtime.kernels.pool", "from irc.ir import Node\nimport irc.errors"),
    ],
)
def test_an_import_along_the_order_of_the_runtime_is_not(module: str, source: str) -> None:
    assert runtime_violations(source, module) == []


def test_no_group_is_repeated_possessively() -> None:
    """Before 3.11.5, Python matches ``(?:...)?+`` wrong if a part of it backtracks, ``(?>(?:...)?)`` right."""
    pattern = re.compile(r"(?<!\\)\)(?:[?*+]|\{[\d,]+\})\+")
    assert pattern.search(r"(?:a|b)*+") and pattern.search(r"(?:a){0,5}+") and not pattern.search(r"(?>(?:a|b)*)\)++")
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line) and "``" not in line
    ]
    assert not found
