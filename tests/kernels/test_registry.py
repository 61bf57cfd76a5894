"""Where kernels are found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.runtime import kernels
from irc.runtime.kernels import registry
from tests.kernels.helpers import NodeStandIn


def test_every_module_that_registers_kernels_is_a_family():
    folder = Path(kernels.__file__).parent
    registers = re.compile(r"^\s*@?kernel\(", re.MULTILINE)
    modules = {path.stem for path in folder.glob("*.py") if registers.search(path.read_text())}
    assert modules - {"registry"} <= set(kernels.FAMILIES)


def test_binders_serve_from_their_version_to_the_next(monkeypatch):
    monkeypatch.setattr(registry, "_BINDERS", {})
    found = {since: registry.kernel("acme::X", since=since)(lambda node: None) for since in (7, 13, 1)}
    assert registry.registered() == {"acme::X": (1, 7, 13)}
    for version, since in ((1, 1), (6, 1), (7, 7), (12, 7), (13, 13), (99, 13), (None, 13)):
        assert registry.find_binder("acme::X", version) is found[since]
    assert registry.find_binder("acme::X", 0) is None
    assert registry.find_binder("acme::Y", 1) is None


def test_bind():
    node: Any = NodeStandIn("onnx::Relu", 14, {}, [None], [None])
    np.testing.assert_array_equal(kernels.bind(node)(np.array([-1.0, 2.0])), [0, 2])
    node = NodeStandIn("acme::Relu", 3, {}, [None], [None])
    with pytest.raises(Error, match=r"cannot compute acme::Relu, version 3") as error:
        kernels.bind(node)
    assert error.value.code == "IRC321"
