"""What is written in loops, lists and tuples: the same results after passes, under every check, saved and loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from benchmarks import families
from irc.alias import analyze
from irc.ir import Graph, parse_graph
from tests.passes.helpers import assert_same_results, run_passes

NODES = 60
X = np.linspace(-3, 3, NODES - 5, dtype=np.float32)

INPUTS: dict[str, list[list[Any]]] = {
    "shift-written": [[X, iterations] for iterations in (0, 1, 2, NODES)],
    "extended": [[X, X[::-1]]],
    "tuples": [[X]],
    "pieces": [[X]],
}


@pytest.mark.parametrize("pipeline", ["in-place", "remove-mutation", "remove-mutation,in-place", "cse,fuse"])
@pytest.mark.parametrize("family", INPUTS)
def test_passes_keep_results(family: str, pipeline: str) -> None:
    before = parse_graph(families.text(family, NODES))
    after = before.copy()
    run_passes(after, pipeline)
    for inputs in INPUTS[family]:
        assert_same_results(before, after, *inputs)


@pytest.mark.parametrize("passes", ["", "default", "remove-mutation,default"])
@pytest.mark.parametrize("family", INPUTS)
def test_compiled_and_loaded_models_keep_results(family: str, passes: str, tmp_path: Path) -> None:
    before = parse_graph(families.text(family, NODES))
    names = [value.name for value in before.inputs]
    model = irc.compile(before.copy(), passes=passes)
    model.save(tmp_path / "model.irc")
    plain = irc.compile(before, passes="")
    for inputs in INPUTS[family]:
        feeds = dict(zip(names, inputs, strict=True))
        expected = plain.run(feeds)
        for found in (model.run(feeds), irc.load(tmp_path / "model.irc").run(feeds)):
            for value, reference in zip(_arrays(found), _arrays(expected), strict=True):
                np.testing.assert_array_equal(value, reference)


def _arrays(outputs: Any) -> list[Any]:
    return list(outputs.values()) if isinstance(outputs, dict) else list(outputs)


@pytest.mark.parametrize("count", [16, 17, 40])
@pytest.mark.parametrize("cut", ["split(%b, %one, %zero)", "unbind(%b, %zero)", "chunk(%b, %n, %zero)"])
def test_of_many_pieces_each_is_written_and_put_back(cut: str, count: int) -> None:
    graph = _pieces(cut, count)
    after = graph.copy()
    run_passes(after, "remove-mutation")
    assert not analyze(after).writing_nodes(), str(after)
    assert_same_results(graph, after, np.linspace(-2, 2, count, dtype=np.float32))


def _pieces(cut: str, count: int) -> Graph:
    """Pieces are written last first, every other one twice; the first is seen before and after."""
    text = ["graph(%x : Tensor):"]
    numbers = {"zero": 0, "one": 1, "n": count}
    text += [f"  %{name} : int = prim::Constant[value={value}]()" for name, value in numbers.items()]
    text += ["  %b : Tensor = aten::neg(%x)", f"  %l : Tensor[] = aten::{cut}"]
    text.append(f"  {', '.join(f'%s{i} : Tensor' for i in range(count))} = prim::ListUnpack(%l)")
    text.append("  %early : Tensor = aten::relu(%s0)")
    for i in reversed(range(count)):
        text.append(f"  %w{i} : Tensor = aten::add_(%s{i}, %s{i // 2}, %one)")
        text += [f"  %v{i} : Tensor = aten::mul_(%s{i}, %w{i})"] if i % 2 else []
    text += ["  %late : Tensor = aten::relu(%s0)", "  return (%b, %early, %late)"]
    return parse_graph("\n".join([*text, ""]))


def test_elements_of_lists_in_tuples_in_lists_are_written_themselves() -> None:
    text = ["graph(%x : Tensor):", "  %one : int = prim::Constant[value=1]()", "  %v0 : Tensor = aten::neg(%x)"]
    for i in range(4):
        text += [
            f"  %l{i} : Tensor[] = prim::ListConstruct(%x, %v{i})",
            f"  %t{i} : (Tensor[], Tensor) = prim::TupleConstruct(%l{i}, %v{i})",
            f"  %k{i} : Tensor[], %u{i} : Tensor = prim::TupleUnpack(%t{i})",
            f"  %e{i} : Tensor = aten::__getitem__(%k{i}, %one)",
            f"  %w{i} : Tensor = aten::add_(%e{i}, %u{i}, %one)",
            f"  %v{i + 1} : Tensor = aten::mul_(%u{i}, %w{i})",
        ]
    graph = parse_graph("\n".join([*text, "  return (%v0, %v4, %e1)", ""]))
    after = graph.copy()
    run_passes(after, "remove-mutation")
    assert not analyze(after).writing_nodes(), str(after)
    assert_same_results(graph, after, X)
