"""Native code touches nothing but its operands and results, which lie next to pages that may not be touched."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite")

HERE = Path(__file__).parent


TESTS = {
    "attention": ["test_arrays_of_a_call"],
    "blas": ["test_products_have_the_bits_of_the_kernel"],
    "convolutions": ["test_random_windows"],
    "loops": [
        "test_code_of_a_scan_touches_its_arrays_and_nothing_else",
        "test_code_of_a_loop_touches_its_arrays_and_nothing_else",
    ],
    "moves": [
        "test_copies",
        "test_gathered_rows",
        "test_padding",
        "test_rows_of_a_concatenation",
        "test_rows_along_several_axes",
        "test_rows_behind_others",
    ],
    "packed": ["test_weights_in_blocks_of_features"],
    "pointwise": ["test_rows", "test_any_layouts", "test_groups_write_into_an_array_that_is_given"],
    "products": [
        *("test_sums_are_exact", "test_integers_with_a_zero_point"),
        *("test_codes_of_4_bits", "test_floats_of_one_row"),
    ],
    "quantization": ["test_random_numbers", "test_linear_quantization_and_back"],
    "recurrent": ["test_steps_may_lie_anywhere"],
    "rows": ["test_rows_in_any_layout", "test_reductions_in_any_layout", "test_images_in_any_layout"],
    "row_groups": ["test_code_of_a_group_reads_its_operands_and_nothing_else"],
    "svm": ["test_classifiers"],
    "trees": ["test_there_is_code_for_floats"],
    "windows": ["test_depthwise_convolution", "test_maxima", "test_means", "test_columns"],
}
"""Those that take operands by `placed` and results by `fresh`."""


@pytest.mark.parametrize("end", ["first", "last"])
@pytest.mark.parametrize("cpu", ["", pytest.param("x86-64", marks=pytest.mark.slow)])
def test_nothing_else_is_touched(cpu: str, end: str) -> None:
    chosen = [f"{HERE}/test_{name}.py::{test}" for name, tests in TESTS.items() for test in tests]
    command = [sys.executable, "-m", "pytest", "-v", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *chosen]
    given = {**os.environ, "IRC_NATIVE_CPU": cpu, "IRC_GUARDED": end, "PYTEST_ADDOPTS": ""}
    found = subprocess.run(command, env=given, capture_output=True, text=True, cwd=HERE.parent.parent)
    assert found.returncode == 0, (found.stdout + found.stderr)[-8000:]  # of a fault, the test that was running


@pytest.mark.parametrize("end", ["first", "last"])
@pytest.mark.parametrize("index", [-1, 5])
def test_a_stray_access_ends_the_process(end: str, index: int) -> None:
    reads = f"""
import ctypes, numpy as np
from tests.native.guarded import guarded
x = guarded(np.arange(5, dtype=np.uint8), {end!r})
print(ctypes.string_at(x.ctypes.data, 5).hex(), flush=True)
ctypes.string_at(x.ctypes.data + {index}, 1)
"""
    found = subprocess.run([sys.executable, "-c", reads], capture_output=True, text=True, cwd=HERE.parent.parent)
    is_beyond = (end == "first") == (index < 0)
    assert found.stdout.split() == [np.arange(5, dtype=np.uint8).tobytes().hex()]
    assert found.returncode == (-signal.SIGSEGV if is_beyond else 0), found.stderr


@pytest.mark.parametrize("is_empty", [True, False])
def test_writing_to_what_is_read_only_ends_the_process(is_empty: bool) -> None:
    writes = f"""
import ctypes, numpy as np
from tests.native.guarded import guarded
x = guarded(np.zeros({0 if is_empty else 5}, np.uint8), "last", is_read_only=True)
ctypes.memset(x.ctypes.data, 0, 1)
"""
    found = subprocess.run([sys.executable, "-c", writes], capture_output=True, text=True, cwd=HERE.parent.parent)
    assert found.returncode == -signal.SIGSEGV, found.stderr
