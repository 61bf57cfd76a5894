"""Whether an installed irc works: run by ``make dist`` in an empty environment, away from the checkout.

It imports nothing but what installing irc brings.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import irc
from irc.alias import analyze
from irc.ir import parse_graph

TEXT = """graph(%x : Float(batch, 3)):
  %w : Float(3) = prim::Constant[value=tensor([1., 2., 3.])]()
  %a : Float(batch, 3) = onnx::Mul(%x, %w)
  %y : Float(batch, 3) = onnx::Relu(%a)
  return (%y)
"""


def main() -> None:
    """Compile, run, save, load, export, analyse; and the same by the command."""
    assert "site-packages" in irc.__file__, f"{irc.__file__} is not installed"
    assert (Path(irc.__file__).parent / "py.typed").exists()
    graph = parse_graph(TEXT)
    x = np.float32([[1, -1, 2]])
    expected = [[1, 0, 6]]
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        irc.export(graph, folder / "model.onnx")
        model = irc.compile(folder / "model.onnx", check=True)
        assert model.run({"x": x})["y"].tolist() == expected
        model.save(folder / "model.irc")
        assert irc.load(folder / "model.irc").run({"x": x})["y"].tolist() == expected
        assert not analyze(graph).may_alias(graph.value("a"), graph.value("y"))
        command = Path(sys.executable).with_name("irc")
        for arguments in (
            ["--version"],
            ["compile", "model.onnx", "-o", "again.onnx"],
            ["run", "model.irc", "--seed", "0"],
            ["operators", "Conv"],
            ["report", "model.irc", "-o", "model.html"],
        ):
            subprocess.run([str(command), *arguments], cwd=folder, check=True, capture_output=True)
    print(f"irc {irc.__version__} works in {sys.prefix}")


if __name__ == "__main__":
    main()
