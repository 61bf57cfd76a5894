"""The layers of irc import only downwards, and no module grows beyond what a reader takes in."""

import ast
import re
from collections.abc import Iterable

import pytest

from irc.ir.graph import gc_paused
from tests.layers import ROOT, Import, all_imports, allowed, circles, drawn, imports, layer_of, layers, picture, sources

MAX_LINES = 800

RUNTIME = (
    *("values", "array_memory", "arguments", "bounds", "plan_cache"),
    "kernels",
    "binding",
    *("execution", "destinations", "threads", "control_flow"),
    *("prepack", "growable", "storage", "memory_plan"),
    *("limits", "profile"),
    *("backends", "lowering", "plan"),
    *("arena", "boundary", "objects"),
    *("report", "file"),
    *("model", "session"),
)
"""The modules and sub-packages of irc.runtime, in this order: each imports only those before it, but for types."""


def violations(found: Iterable[Import], module: str) -> list[str]:
    """Those of the imports of a module that are against the order of the layers."""
    layer = layer_of(module)
    return [
        f"{module}:{each.line}: {layer.name} must not import {each.name}"
        for each in found
        if layer_of(each.name).name not in allowed(layer)
    ]


def runtime_violations(found: Iterable[Import], module: str) -> list[str]:
    """Those of the imports inside of irc.runtime that are against its order."""
    unit = module.split(".")[2]
    known = RUNTIME[: RUNTIME.index(unit) + 1]
    return [
        f"{module}:{each.line}: {unit} must not import {each.name}"
        for each in found
        if not each.is_for_types and layer_of(each.name).name == "runtime"
        if [*each.name.split("."), ""][2] not in known
    ]


REPEATED = re.compile(r"(?<!\\)\)(?:[?*+]|\{[\d,]+\})\+")
"""A group repeated possessively: before 3.11.5, Python matches ``(?:...)?+`` wrong if a part of it backtracks,
``(?>(?:...)?)`` right."""


def test_modules_keep_to_the_rules() -> None:
    """Layers and the parts of the runtime import only downwards; facts of the analysis are its own, so that how they
    are kept is to change without others; no module is too long, no group repeated possessively."""
    inside = {source.name.split(".")[2] for source in sources() if source.name.startswith("irc.runtime.")}
    assert inside == set(RUNTIME)
    found: list[str] = []
    for source in sources():
        name, lines = source.name, source.text.splitlines()
        found += violations(all_imports()[name], name)
        found += runtime_violations(all_imports()[name], name) if name.startswith("irc.runtime.") else []
        if layer_of(name).name != "alias":
            facts = [n for n in source.nodes if isinstance(n, ast.Attribute) and n.attr == "facts"]
            found += [f"{name}:{node.lineno}: the facts of the analysis" for node in facts]
        repeated = [n for n, line in enumerate(lines, 1) if REPEATED.search(line) and "``" not in line]
        found += [f"{name}:{number}: a group is repeated possessively" for number in repeated]
        found += [f"{name}: {len(lines)} lines"] if len(lines) > MAX_LINES else []
    assert not found, "\n".join(found)


def test_what_is_repeated_possessively() -> None:
    assert REPEATED.search(r"(?:a|b)*+") and REPEATED.search(r"(?:a){0,5}+")
    assert not REPEATED.search(r"(?>(?:a|b)*)\)++")


def test_every_layer_is_there() -> None:
    units = {source.name.split(".")[1] for source in sources() if "." in source.name}
    assert sorted(units | {"__init__"}) == sorted(unit for layer in layers() for unit in layer.units)
    assert {name for layer in layers() for name in layer.shuns} <= {layer.name for layer in layers()}


def test_modules_do_not_import_each_other_in_circles() -> None:
    assert circles(with_types=False) == []
    assert [circle for circle in circles(with_types=True) if len({layer_of(name) for name in circle}) > 1] == []


def test_the_picture_shows_what_is_imported() -> None:
    assert all_imports() and drawn() == picture(), "python -m tests.layers draws it anew"


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
    assert len(violations(imports(source, module), module)) == 1


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
    assert violations(imports(source, module, is_package), module) == []


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
    assert len(runtime_violations(imports(source, module), module)) == 1


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
    assert runtime_violations(imports(source, module), module) == []


INSIDES = {
    **{name: {name} for name in ("alias", "cli", "drawing", "frontend", "fuser", "ir", "ops", "passes", "runtime")},
    "check": {"tools"},
    "differential": {"alias", "frontend", "runtime"},
    "exports": {"frontend", "tools"},
    "fuzz": {"alias"},
    "kernels": {"frontend", "runtime"},
    "native": {"native", "runtime"},
    "programs": {"alias", "passes", "runtime"},
    "json_schemas.py": {"cli", "tools"},
    "test_catalog.py": {"tools"},
    "tools": {"tools"},
    "test_demo.py": {"demo"},
    "test_operator_plugins.py": {"ir", "runtime"},
    "test_operator_tables.py": {"alias", "passes", "tools"},
    "test_random_inputs.py": {"tools"},
}
"""The parts of irc whose private modules tests may import, by their folders or files."""

LOOKED_INTO = {
    ("cli/test_names.py", "irc.ir.text.names"),
    ("frontend/test_contrib_quantized.py", "irc.runtime.prepack"),  # which weights are unpacked once
    ("frontend/test_torchscript.py", "irc.runtime.objects"),
}
"""Where tests of one part look into another: this is to become less."""


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def modules_of(found: Iterable[Import]) -> set[str]:
    """The modules that are imported; a name that a package gives is of the package."""
    known = {source.name for source in sources()}
    return {each.name if each.name in known else each.name.rpartition(".")[0] for each in found}


def private_modules() -> set[str]:
    """Modules below a part of irc that no other part imports."""
    used = [(module, name) for module, found in all_imports().items() for name in modules_of(found)]
    shared = {name for module, name in used if part_of(name) != part_of(module)}
    return {source.name for source in sources() if source.name.count(".") > 1} - shared


def test_private_modules_are_imported_by_their_own_tests_only() -> None:
    private = private_modules()
    assert len(private) > 100
    found: set[tuple[str, str]] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        name = path.relative_to(ROOT / "tests").as_posix()
        own = INSIDES.get(name.partition("/")[0], ())
        with gc_paused():  # it would visit all nodes again and again
            imported = modules_of(imports(path.read_text("utf-8"), f"tests.{name[:-3].replace('/', '.')}"))
        found |= {(name, module) for module in imported & private if part_of(module) not in own}
    assert found == LOOKED_INTO
