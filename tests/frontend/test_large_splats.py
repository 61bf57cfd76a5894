"""Constants whose elements are all equal may stand for more than there is room for."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import irc
from irc.frontend.onnx import import_model
from irc.frontend.onnx_export import export_model, save_model, tensors
from irc.ir import parse_module
from tests.effort import Tune

HUGE = "Float(99999999, 99999999) = prim::Constant[value=splat(1.)]()"
ADDED = f"graph(%x : Float(1)):\n  %w : {HUGE}\n  %r : Tensor = onnx::Add(%x, %w)\n  return (%r)\n"
RETURNED = f"graph(%x : Float(1)):\n  %w : {HUGE}\n  return (%w)\n"


def test_weights_that_no_disk_holds(tmp_path: Path) -> None:
    with pytest.raises(irc.Error, match=r"IRC501.* bytes, and only .* are free"):
        save_model(parse_module(ADDED), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [ADDED, RETURNED])
def test_weights_that_no_message_holds(text: str) -> None:
    with pytest.raises(irc.Error, match=r"^IRC352: "):
        export_model(parse_module(text))


def test_a_returned_constant_that_no_message_holds(tmp_path: Path) -> None:
    with pytest.raises(irc.Error, match=r"^IRC352: "):
        save_model(parse_module(RETURNED), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("dtype", "value", "size"), [("Float", "1.5", 37 * 4), ("Int4", "3", 19), ("Long", "-2", 296)])
def test_splats_are_written_in_pieces(dtype: str, value: str, size: int, tmp_path: Path, tune: Tune) -> None:
    tune("irc.frontend.onnx_export.tensors.PIECE", 8)
    text = (
        f"graph(%x : {dtype}(1, 37)):\n  %w : {dtype}(1, 37) = prim::Constant[value=splat({value})]()\n"
        f"  %r : {dtype}(1, 37) = onnx::Identity[since_version=21](%w)\n  return (%r)\n"
    )
    path = tmp_path / "m.onnx"
    save_model(parse_module(text), path, external_threshold=1)
    assert (tmp_path / "m.onnx.data").stat().st_size == size
    (weight,) = onnx.load_model(path).graph.initializer
    whole = parse_module(text).main.value("w").node.attributes["value"]
    assert weight.raw_data == tensors.raw(whole).tobytes()
    read = [n for n in import_model(path).main.nodes if n.kind == "prim::Constant"]
    assert np.array_equal(read[0].attributes["value"].numpy(), whole.numpy())
