"""Where kernels are found."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.ops import records
from irc.runtime import kernels
from irc.runtime.kernels import registry
from tests.kernels.helpers import NodeStandIn


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each module is imported in a process of its own")
def test_records_name_the_modules_of_kernels():
    """Importing the module that one names registers the operator; no module registers an operator of another."""
    script = """
import os, sys
from irc.runtime.kernels import registry
for module in registry.all_modules():
    if os.fork() == 0:
        registry._load(module)
        print(module, *registry._BINDERS, flush=True)
        os._exit(0)
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    registers = {module: set(kinds) for module, *kinds in map(str.split, done.stdout.splitlines())}
    assert registers.keys() == set(registry.all_modules())
    for kind in set().union(*registers.values()):
        module = registry.module_of(kind)
        assert kind in registers[module], f"{kind} is not registered by {module}"
    for each in records():
        if each.kernel and each.kind != "onnx::SwiGLU":
            assert each.kind in registers[each.kernel]


def test_every_module_that_registers_kernels_is_named():
    folder = Path(kernels.__file__).parent
    registers = re.compile(r"^\s*@?kernel\(", re.MULTILINE)
    modules = {path.stem for path in folder.glob("*.py") if registers.search(path.read_text())}
    assert modules - {"registry"} <= set(registry.all_modules())


def test_modules_are_imported_when_they_are_needed():
    script = """
import sys, irc
from irc.runtime.kernels import registry
registry.find_binder("onnx::Conv", None)
print(*(m.rpartition(".")[2] for m in sys.modules if m.startswith("irc.runtime.kernels.")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & set(registry.all_modules()) == {"convolution"}


@pytest.mark.usefixtures("own_registries")
def test_binders_serve_from_their_version_to_the_next():
    before = registry.registered()
    found = {since: registry.kernel("acme::X", since=since)(lambda node: None) for since in (7, 13, 1)}
    assert registry.registered() == before | {"acme::X": (1, 7, 13)}
    for version, since in ((1, 1), (6, 1), (7, 7), (12, 7), (13, 13), (99, 13), (None, 13)):
        assert registry.find_binder("acme::X", version) is found[since]
    assert registry.find_binder("acme::X", 0) is None
    assert registry.find_binder("acme::Y", 1) is None


def test_bind():
    node: Any = NodeStandIn("onnx::Relu", 14, {}, [None], [None])
    np.testing.assert_array_equal(kernels.bind(node)(np.array([-1.0, 2.0])), [0, 2])
    node = NodeStandIn("acme::Relu", 3, {}, [None], [None])
    with pytest.raises(Error, match=r"^IRC321: .*cannot compute acme::Relu, version 3"):
        kernels.bind(node)
