"""What is kept although it could be computed again: bounded, and told of in ``docs/explanation/alias-updates.md``."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import irc.alias
from irc.alias import memory_types
from irc.ir import ListType, TensorType, types
from irc.ops import record
from tests.alias.test_docs import DOCS

MODULES = [import_module(m.name) for m in pkgutil.walk_packages(irc.alias.__path__, "irc.alias.")]
MODULES.append(types)
OF_SCHEMAS = {"compile_schema"}
"""As many entries as there are rows."""


def caches(module: ModuleType) -> list[Any]:
    own = [f for f in vars(module).values() if getattr(f, "__module__", None) == module.__name__]
    return [f for f in own if hasattr(f, "cache_parameters")]


CACHES = [cache for module in MODULES for cache in caches(module)]


@pytest.mark.parametrize("cache", CACHES, ids=lambda c: c.__name__)
def test_caches_of_the_process_have_an_end(cache: Any) -> None:
    of_kinds = vars(record)["cache_parameters"]()["maxsize"]
    assert cache.__name__ in OF_SCHEMAS or cache.cache_parameters()["maxsize"] in (types.REMEMBERED, of_kinds)


def test_types_of_new_sizes_do_not_pile_up() -> None:
    assert types.parts in CACHES
    for i in range(types.REMEMBERED + 100):
        assert memory_types.has_memory(ListType(TensorType(shape=(i, 7, 3, 11))))
    assert memory_types.atoms.cache_info().currsize == types.REMEMBERED


def test_the_table_of_caches_is_complete() -> None:
    table = (DOCS.parent / "alias-updates.md").read_text().partition("## Caches")[2].partition("Two invariants")[0]
    filled = re.compile(r"^(_?[A-Z_]+)(?:: .*)? = \{\}$", re.MULTILINE)  # and empty at first
    tables = {name for m in MODULES for name in filled.findall(Path(str(m.__file__)).read_text())}
    tables.remove("_BY_HAND")  # which is none, but filled likewise
    missing = [name for name in [*tables, *(c.__name__ for c in CACHES)] if f"`{name}`" not in table]
    assert not missing
