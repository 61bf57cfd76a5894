"""The layers of irc import only downwards, and no module grows beyond what a reader takes in."""

from __future__ import annotations

import ast
import re

import pytest

from tests.layers import PACKAGE, all_imports, allowed, circles, drawn, imports, layer_of, layers, modules, picture

MAX_LINES = 800

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


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    layer = layer_of(module)
    return [
        f"{module}:{found.line}: {layer.name} must not import {found.name}"
        for found in imports(source, module, is_package)
        if layer_of(found.name).name not in allowed(layer)
    ]


def runtime_violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """The imports inside of irc.runtime that are against its order."""
    unit = module.split(".")[2]
    known = RUNTIME[: RUNTIME.index(unit) + 1]
    return [
        f"{module}:{found.line}: {unit} must not import {found.name}"
        for found in imports(source, module, is_package)
        if not found.is_for_types and layer_of(found.name).name == "runtime"
        if [*found.name.split("."), ""][2] not in known
    ]


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
        if layer_of(module).name != "alias" and isinstance(node, ast.Attribute) and node.attr == "facts"
    ]
    assert not found


def test_every_layer_is_there() -> None:
    units = {module.split(".")[1] for _, module in modules() if "." in module}
    assert sorted(units | {"__init__"}) == sorted(unit for layer in layers() for unit in layer.units)
    assert {name for layer in layers() for name in layer.shuns} <= {layer.name for layer in layers()}


def test_modules_do_not_import_each_other_in_circles() -> None:
    assert circles(with_types=False) == []
    assert [circle for circle in circles(with_types=True) if len({layer_of(name) for name in circle}) > 1] == []


def test_the_picture_shows_what_is_imported() -> None:
    assert all_imports() and drawn() == picture(), "python -m tests.layers draws it anew"


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
        ("irc.compiler", "import irc.cli"),
        ("irc.compiler", "def f():\n    from irc.tools.check.models import check_compiled"),
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
        ("irc.cli.run", "import irc.fuser, irc.runtime, irc.frontend.onnx, irc.compiler, irc.tools", False),
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
