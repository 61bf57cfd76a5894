"""The standard's own tests: every case of ``onnx.backend.test`` through `irc.backend`, optimised and not.

Expected values that are random draws (bernoulli) cannot be met; ``tests/kernels/test_random.py`` tests what they are
drawn from. Operators that irc refuses are listed, and refused with a clear error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import load_model_tests

import irc.backend

REFUSED = r"^test_gradient_of_add(_and_mul)?_cpu$"
"""Training: irc computes no gradients."""

RANDOM = r"^test_bernoulli(_double|_seed)?(_expanded)?_cpu$"

LAST_BIT = r"^test_squeezenet_cpu$"
"""As shipped, its weights are all equal and its classes tie at 9e9, where rounding is 1,000: which class wins depends
on whether the sums of equal features are equal to the last bit. Optimised, irc computes one of them."""


class Optimised(irc.backend.IrcBackend):
    """The default pipeline."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """True: a model that irc refuses fails its test."""
        return True


class Unoptimised(Optimised):
    """No passes at all."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> irc.backend.IrcBackendRep:
        return super().prepare(model, device, passes="none", **kwargs)


class Suite(BackendTest):
    """The suite, with a comparison that also takes scalars in sequences (onnx's asks for their length)."""

    @classmethod
    def assert_similar_outputs(
        cls, ref_outputs: Any, outputs: Any, rtol: float, atol: float, model_dir: str | None = None
    ) -> None:
        if isinstance(outputs, np.ndarray) and outputs.ndim == 0:
            ref_outputs, outputs = [ref_outputs], [outputs]
        super().assert_similar_outputs(ref_outputs, outputs, rtol, atol, model_dir)


def _cases(backend: type[Optimised], *excluded: str) -> dict[str, Any]:
    cases = Suite(backend, __name__).test_cases
    left_out = re.compile("|".join((REFUSED, RANDOM, "_cuda$", *excluded)))
    for case in cases.values():
        for name in [name for name in vars(case) if name.startswith("test_") and left_out.search(name)]:
            delattr(case, name)
    return {f"{backend.__name__}{name}": case for name, case in cases.items()}


with np.errstate(all="ignore"):  # the suite divides by zero to see what that gives
    globals().update(_cases(Optimised))
    globals().update(_cases(Unoptimised, LAST_BIT))


@pytest.fixture(autouse=True)
def models_in_a_temporary_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite writes the inputs of real models under ``ONNX_HOME``."""
    monkeypatch.setenv("ONNX_HOME", str(tmp_path_factory.getbasetemp()))


def _simple(name: str) -> onnx.ModelProto:
    case = next(c for c in load_model_tests(kind="simple") if c.name == name)
    return onnx.load(Path(case.model_dir) / "model.onnx")


@pytest.mark.parametrize("name", ["test_gradient_of_add", "test_gradient_of_add_and_mul"])
def test_what_is_refused_says_so(name: str) -> None:
    with pytest.raises(irc.Error, match="Gradient"):
        irc.backend.prepare(_simple(name))
