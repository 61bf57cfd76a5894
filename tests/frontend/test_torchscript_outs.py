"""Overloads with ``out=``."""

from __future__ import annotations

import numpy as np
import pytest

import irc
from irc.frontend.torchscript import import_torchscript

TEXT = """
graph(%x : Tensor, %y : Tensor, %out : Tensor):
  %q : Tensor = aten::div(%x, %y, %out)
  %r : Tensor = aten::relu(%q)
  return (%r, %out, %q)
"""


@pytest.mark.parametrize("passes", ["none", "default", "default,in-place"])
def test_results_are_written_into_given_tensors(passes: str) -> None:
    module = import_torchscript(TEXT)
    module.verify()
    model = irc.compile(module, passes)
    feeds = {"x": np.array([1.0, -4]), "y": np.array([2.0, 8]), "out": np.zeros(2)}
    r, out, q = model.run(feeds).values()
    np.testing.assert_array_equal(out, [0.5, -0.5])
    np.testing.assert_array_equal(q, [0.5, -0.5])
    np.testing.assert_array_equal(r, [0.5, 0])


def test_tensors_that_do_not_fit_are_refused() -> None:
    model = irc.compile(import_torchscript(TEXT))
    with pytest.raises(irc.Error, match="cannot take the shape"):
        model.run({"x": np.array([1.0, 4]), "y": np.array([2.0, 8]), "out": np.zeros((2, 2))})


def test_maxima_of_two_tensors_are_no_results_to_be_written() -> None:
    module = import_torchscript("""
graph(%x : Tensor, %y : Tensor):
  %z : Tensor = aten::max(%x, %y)
  return (%z)
""")
    assert [node.kind for node in module.main.nodes] == ["aten::max"]
