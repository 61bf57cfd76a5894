"""The scripted YOLOv3, its boxes decoded in place, detects what it does in PyTorch, whatever passes have run."""

from collections import Counter
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import irc
from irc.frontend.torchscript import import_torchscript
from irc.ir import DType, Module, types
from irc.passes import PassManager
from tests.differential.conftest import Report
from tests.programs.interpreter import interpret
from tests.programs.test_types import TypeCheck

DATA = Path(__file__).parent.parent / "data"
PIPELINES = (
    "none",
    "remove-mutation",
    "in-place",
    "remove-mutation,in-place",
    "default",
    "default,in-place",
    "default,remove-mutation",
    "default,remove-mutation,in-place",
)
SIZES = (64,)


@cache
def model() -> Any:
    """In evaluation mode, its statistics those of random images: so no layer's values fade away."""
    spec = util.spec_from_file_location("scripted_yolov3", DATA / "yolov3.py")
    assert spec is not None
    assert spec.loader is not None
    found = util.module_from_spec(spec)
    spec.loader.exec_module(found)
    torch.manual_seed(0)
    yolo = found.YOLOv3()
    for layer in yolo.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.momentum = None  # a plain average of what it sees
    with torch.no_grad():
        yolo.train()(torch.rand(2, 3, 128, 128))
    return yolo.eval()


@cache
def expected(size: int) -> tuple[np.ndarray, np.ndarray]:
    """An image of ``size`` x ``size`` pixels, and what PyTorch detects in it."""
    image = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(size))
    with torch.no_grad():
        return image.numpy(), model()(image).numpy()


def read(source: str) -> Module:
    if source == "live":
        return import_torchscript(torch.jit.script(model()))
    parts = {f"y{i}": getattr(model(), f"y{i}") for i in (1, 2, 3)}
    numbers = {f"{name}.{x}": getattr(part, x) for name, part in parts.items() for x in ("stride", "no", "na")}
    weights = {name: tensor.numpy() for name, tensor in model().state_dict().items()}
    return import_torchscript((DATA / "yolov3_torchscript.ir").read_text(), weights | numbers)


imported = cache(read)
"""Compiling does not change what it is given."""


@pytest.mark.parametrize("passes", PIPELINES)
@pytest.mark.parametrize("source", ["dump", "live"])
def test_it_detects_what_it_does_in_pytorch(source: str, passes: str, report: Report) -> None:
    compiled = irc.compile(imported(source), passes=passes)
    writes = [node for node in compiled.graph.walk() if node.kind.endswith("_") and not node.kind.endswith("__")]
    errors: list[float] = []
    for size in SIZES:
        image, wanted = expected(size)
        (found,) = compiled.run({"x": image}).values()
        assert wanted.std() > 1
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5 * scale)
        errors.append(float(np.abs(found - wanted).max() / scale))
    nodes = len([n for n in compiled.graph.walk() if n.kind != "prim::Constant"])
    report(f"scripted YOLOv3, {source}, {passes}: {nodes} nodes, {len(writes)} in place, off by {max(errors):.1e}")
    if passes in ("default,remove-mutation", "default,remove-mutation,in-place"):  # no element types, so no variants
        assert not writes
    elif passes.startswith("remove-mutation"):  # what is left: the batches that training would count
        assert {node.kind for node in writes} == {"aten::add_"}
        assert all("num_batches_tracked" in node.inputs[0].name for node in writes)
    else:
        assert writes


TYPED = "freeze,canonicalize,constant-fold,shape-inference"


@cache
def typed(passes: str) -> Module:
    """The dump with the type of the image given, after ``passes``."""
    module = read("dump")
    (image,) = (value for value in module.main.inputs if value.name == "x")
    image.type = types.tensor(DType.FLOAT, (1, 3, *SIZES * 2))
    PassManager(passes).run(module)
    return module


def test_inferred_types_are_true_of_a_run() -> None:
    graph = typed(f"{TYPED},dce").main
    tensors = [v.type for n in graph.walk() for v in n.outputs if n.kind.startswith("aten::")]
    known = [t for t in tensors if isinstance(t, types.TensorType) and t.dtype is not None and t.shape is not None]
    assert len(known) > 300
    image, _ = expected(*SIZES)
    interpret(graph, [image if v.name == "x" else None for v in graph.inputs], TypeCheck())


@pytest.mark.parametrize("passes", [f"{TYPED},in-place", "default,in-place"])
def test_a_typed_image_lets_operators_write_in_place(passes: str, report: Report) -> None:
    compiled = irc.compile(typed("freeze"), passes=passes)
    kinds = Counter(node.kind for node in compiled.graph.walk())
    if passes != "default,in-place":  # which has fused most
        assert (kinds["aten::leaky_relu_"], kinds["aten::leaky_relu"]) == (72, 0)
        assert (kinds["aten::add_"], kinds["aten::add"]) == (26, 0)
    image, wanted = expected(*SIZES)
    (found,) = compiled.run({"x": image}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5 * np.abs(wanted).max())
    report(f"scripted YOLOv3, image typed, {passes}: {sum(n for k, n in kinds.items() if k.endswith('_'))} in place")
