"""Enumerations, as PyTorch has them: constants, attributes, inputs and results."""

import io
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import EnumMember

torch = pytest.importorskip("torch")


class Colour(Enum):
    RED = 1.5
    GREEN = -2.0


class Layout(str, Enum):  # noqa: UP042  # as Python 3.10 had to write it
    """Members are strings, which they must not be taken for."""

    NCHW = "first"
    NHWC = "last"


class Level(IntEnum):
    LOW = 0
    HIGH = 1


class Painter(torch.nn.Module):
    layout: Layout  # or else TorchScript takes it for a string; it reads annotations as they are, not as text
    level: Level

    def __init__(self) -> None:
        super().__init__()
        self.colour = Colour.RED
        self.layout = Layout.NHWC
        self.level = Level.HIGH
        self.pair = (Colour.GREEN, 3)
        self.colours = [Colour.GREEN, Colour.RED]

    def forward(self, x, n: int):
        chosen = Colour.GREEN if n > 0 else self.colour
        if self.layout == Layout.NHWC:
            x = x + 1
        if chosen != Colour.RED:
            x = x * 2
        for colour in self.colours:
            if colour == chosen:
                x = x + colour.value
        colour, _ = self.pair
        return x, chosen.name, chosen.value, colour.name, self.layout.value, self.level.value, colour == chosen


def loaded() -> Any:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Painter()), file)
    file.seek(0)
    return torch.jit.load(file)


def inputs(model: Any, n: int) -> dict[str, Any]:
    return dict(zip((a.name for a in model.inputs), (np.ones(2, np.float32), n), strict=True))


@pytest.mark.parametrize("passes", ["none", "freeze", "default"])
@pytest.mark.parametrize(
    "make",
    [lambda: torch.jit.script(Painter()), lambda: torch.jit.freeze(torch.jit.script(Painter().eval())), loaded],
    ids=["scripted", "frozen", "loaded"],
)
def test_enumerations(make: Any, passes: str, tmp_path: Path) -> None:
    script = make()
    model = irc.compile(script, passes)
    model.save(tmp_path / "model.irc")
    for compiled in (model, irc.load(tmp_path / "model.irc")):
        for n in (1, -1):
            (got,) = compiled.run(inputs(compiled, n)).values()
            expected = script(torch.ones(2), n)
            np.testing.assert_array_equal(got[0], expected[0].numpy())
            assert got[1:] == expected[1:]
            assert [type(v) for v in got[1:]] == [type(v) for v in expected[1:]]


@torch.jit.script
def either(colour: Colour, other: Colour, n: int):
    return colour if n > 0 else other, [colour, other]


def test_members_go_in_and_come_out() -> None:
    model = irc.compile(either)
    names = [a.name for a in model.inputs]
    red = EnumMember(model.graph.inputs[0].type, "RED", 1.5)
    for given in (Colour.RED, red):
        (got,) = model.run(dict(zip(names, (given, Colour.GREEN, 1), strict=True))).values()
        assert got == (red, [red, EnumMember(red.type, "GREEN")])
        assert got[0].value == 1.5
    for wrong in ("RED", 1, None, Level.LOW, EnumMember.at("__torch__.Other.RED")):
        with pytest.raises(irc.Error, match="expected a member of Enum<") as caught:
            model.run(dict(zip(names, (wrong, Colour.GREEN, 1), strict=True)))
        assert caught.value.code == "IRC412"
