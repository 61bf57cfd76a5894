"""Overloads that the same inputs fit: their results tell them apart."""

import pytest

from irc.errors import Error
from irc.ir import parse_graph

TEXT = """
graph(%e : Enum<__torch__.Colour>):
  %v : {} = prim::EnumValue(%e)
  return (%v)
"""


@pytest.mark.parametrize("type", ["int", "float", "str"])
def test_values_of_enumerations(type: str) -> None:
    parse_graph(TEXT.format(type)).verify()


def test_values_that_no_overload_gives() -> None:
    with pytest.raises(Error, match=r"IRC214.*the result of prim::EnumValue.* cannot be Device"):
        parse_graph(TEXT.format("Device")).verify()
