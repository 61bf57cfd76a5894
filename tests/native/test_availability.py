"""Where there is no native code, NumPy computes everything, and one note says why."""

import gc
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.effort import slow_if
from tests.graphs import typed_ir
from tests.processes import python

pytest.importorskip("llvmlite")

import irc
from irc.ir import parse_graph
from irc.native import availability, selftest
from irc.native.functions import FUNCTIONS
from irc.native.target import named

ROOT = Path(__file__).parent.parent.parent

GROUP = typed_ir("x: Float(3, 5)", "a = Exp(x); c = Gelu(Mul(a, x))", "c")

RUN = f"""
import sys, warnings
import numpy as np
import irc
from irc.ir import parse_graph
text = '''{GROUP}'''
x = np.linspace(-2, 2, 15, dtype=np.float32).reshape(3, 5)
with warnings.catch_warnings(record=True) as notes:
    warnings.simplefilter("always")
    models = [irc.compile(parse_graph(text), backend=name) for name in ("auto", "native", "numpy")]
    results = [[*model.run({{"x": x}}).values()][0] for model in models for _ in range(2)]
for found in results:
    np.testing.assert_allclose(found, results[-1], rtol=1e-5)
print([model.counters.compiled for model in models])
print([*models[0].report.declined] or "nothing declined")
for note in notes:
    print("note:", note.message)
"""


def output(environment: dict[str, str], code: str = RUN) -> str:
    found = python(ROOT, "-c", code, **environment)
    assert found.returncode == 0, found.stderr
    return found.stdout


def output_of_new(code: str) -> str:
    """Of a process that begins with nothing imported."""
    given = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize("cpu", ["", "x86-64", "x86-64-v2"])
def test_processors_that_this_machine_is(cpu: str) -> None:
    assert output({"IRC_NATIVE_CPU": cpu}).splitlines() == ["[1, 1, 0]", "nothing declined"]


@pytest.mark.parametrize(
    "cpu", slow_if(["x86-65", "pentium", "i386", "+avx", "no such processor"], ["pentium", "i386", "+avx"])
)
def test_unknown_processors(cpu: str) -> None:
    compiled, declined, *notes = output({"IRC_NATIVE_CPU": cpu}).splitlines()
    assert compiled == "[0, 0, 0]"
    assert f"IRC_NATIVE_CPU is {cpu!r}; it may be x86-64, " in declined
    assert len(notes) == 1
    assert "NumPy computes everything" in notes[0]


HIDDEN = "import sys\nsys.modules['llvmlite'] = None\n"
"""Then there is no such package."""


def test_without_llvmlite() -> None:
    code = HIDDEN + RUN.replace('("auto", "native", "numpy")', '("auto", "auto", "numpy")')
    assert output_of_new(code).splitlines() == ["[0, 0, 0]", "nothing declined"]
    named = HIDDEN + RUN.replace('("auto", "native", "numpy")', '("native", "native", "numpy")')
    compiled, declined = output_of_new(named).splitlines()
    assert compiled == "[0, 0, 0]"
    assert "pip install 'irc[native]'" in declined


@pytest.fixture
def self_test(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Takes what changes the results of the self-test's code, as if this process had tested nothing yet."""
    right = selftest._computed

    def distort(change: Any) -> None:
        def computed(results: Any, operands: Any) -> Any:
            return change(right(results, operands), operands)

        monkeypatch.setattr(selftest, "_computed", computed)

    _forget_tests()
    yield distort
    _forget_tests()


def _forget_tests() -> None:
    availability.unusable.cache_clear()
    availability._unusable.cache_clear()


def check_declined(what: str) -> None:
    x = np.linspace(-2, 2, 15, dtype=np.float32).reshape(3, 5)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        for _ in range(2):
            model = irc.compile(parse_graph(GROUP), backend="native")
            model.run({"x": x})
            assert model.counters.compiled == 0
            assert what in str(model.report.declined)
    assert len(notes) == 1
    assert what in str(notes[0].message)


@pytest.mark.parametrize("name", list(selftest._FUNCTIONS))
@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x * 1.001,
        lambda x: np.where(np.isnan(x), 0, x).astype(x.dtype),
        lambda x: np.where(x == 0, np.float32(-0.0), x).astype(x.dtype) if not x[0] else -x,
    ],
    ids=["inexact", "no NaN", "signs"],
)
def test_wrong_functions(name: str, wrong: Any, self_test: Any) -> None:
    index = list(selftest._FUNCTIONS).index(name)

    def distorted(made: Any, operands: Any) -> Any:
        return [wrong(x) if i == index else x for i, x in enumerate(made)] if len(operands) == 1 else made

    self_test(distorted)
    check_declined("self-test")


@pytest.mark.parametrize("index", range(len(selftest._ARITHMETIC)))
def test_wrong_arithmetic(index: int, self_test: Any) -> None:
    def distorted(made: Any, operands: Any) -> Any:
        if len(operands) > 1:
            x = made[index]
            x[-1, -1] = not x[-1, -1] if x.dtype == bool else 17
        return made

    self_test(distorted)
    check_declined("self-test")


def test_another_exception(self_test: Any) -> None:
    def distorted(made: Any, operands: Any) -> Any:
        raise OSError("no memory may be executed")

    self_test(distorted)
    check_declined("OSError: no memory may be executed")


@pytest.mark.parametrize("is_frozen", [False, True])
def test_what_others_keep_from_garbage_collection_stays_so_and_nothing_else(is_frozen: bool) -> None:
    _forget_tests()
    gc.unfreeze()
    if is_frozen:
        gc.freeze()
    assert availability.unusable() == "" and bool(gc.get_freeze_count()) == is_frozen
    gc.freeze()  # as tests/conftest.py does


def test_here() -> None:
    assert set(selftest._FUNCTIONS) <= set(FUNCTIONS)
    assert selftest.failure() == ""


def test_levels_of_x86_64() -> None:
    plain = named("x86-64")
    assert not plain.has_fma
    assert not plain.has_f16c
    assert plain.vector_bytes == 16


LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"


def test_compiling_imports_no_llvmlite(tmp_path: Path) -> None:
    """`irc compile` as a process takes what it takes without native code."""
    code = f"""
import sys
from irc.cli import main
assert main(["compile", {str(LIGHT)!r}, "-o", {str(tmp_path / "out.irc")!r}]) == 0
print(sorted(name for name in sys.modules if name.startswith(("llvmlite", "irc.native"))))
"""
    assert output_of_new(code).splitlines()[-1].strip("[]").replace("'", "").split(", ") == [
        "irc.native",
        "irc.native.availability",
        "irc.native.backend",
        "irc.native.inline_cache",
        "irc.native.inner_loops",
        "irc.native.packed",
    ]
