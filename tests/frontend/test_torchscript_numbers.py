"""Constants of traces that are tensors without dimensions, and numbers to PyTorch."""

import numpy as np
import pytest

import irc
from irc.frontend.torchscript.live import use_numbers
from irc.ir import parse_module
from tests.graphs import ir_module


@pytest.mark.parametrize("operator", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize(
    ("constant", "of_half"), [("Double()", "float16"), ("Long()", "float16"), ("Double(1)", "float64")]
)
def test_numbers_do_not_decide_element_types(operator: str, constant: str, of_half: str) -> None:
    module = parse_module(f"""
graph(%x : Tensor):
  %c : {constant} = prim::Constant[value=splat(2)]()
  %y : Tensor = aten::{operator}(%x, %c)
  %z : Tensor = aten::{operator}(%y, %c)
  %w : Tensor = aten::relu(%c)
  return (%z, %w)
""")
    use_numbers(module.main)
    module.verify()
    found = irc.compile(module).run({"x": np.array(6, np.float16)})
    assert found["z"].dtype == of_half
    assert found["w"].dtype != np.float16  # as a tensor it stays what it is


def test_numbers_in_groups_are_numbers() -> None:
    module = ir_module("""
        x: Tensor -> y
        y = FusionGroup_0(x)

        with FusionGroup_0 | x: Tensor -> y
        c: Double() = prim.Constant(value=splat(2)); y = mul(x, c)
    """)
    use_numbers(module.main)
    module.verify()
    assert irc.compile(module).run({"x": np.array(6, np.float16)})["y"].dtype == np.float16
