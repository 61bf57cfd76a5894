"""Torch's own answers to the calls of ``tests/runtime/test_aten_corners.py``."""

from typing import Any

import numpy as np
import pytest

import irc
from irc.frontend.torchscript.live import graph_of
from tests.differential.helpers import Typed, compare
from tests.runtime.test_aten_corners import CALLS, EXACT, REFUSALS
from tests.runtime.test_aten_edges import REFUSED, STRIDES, VALUES

torch: Any = pytest.importorskip("torch")


def _given(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of which text can tell the types."""
    return tuple(Typed(a, "int[]") if isinstance(a, list) and not a else a for a in arguments)


@pytest.mark.parametrize(("kind", "arguments", "expected"), [*CALLS, *EXACT, *REFUSALS])
def test_torch_agrees(kind: str, arguments: tuple[Any, ...], expected: Any) -> None:
    outputs = len(expected) if isinstance(expected, tuple) else 1
    compare(kind if "::" in kind else f"aten::{kind}", *_given(arguments), outputs=outputs)


RESULTS = {"embedding_bag": 4, "linalg_cholesky_ex": 2, "native_dropout": 2, "unique_consecutive": 3}


@pytest.mark.parametrize(("kind", "arguments", "expected"), [*VALUES, *REFUSED, *STRIDES])
def test_torch_agrees_at_the_edges(kind: str, arguments: tuple[Any, ...], expected: Any) -> None:
    compare(f"aten::{kind}", *_given(arguments), outputs=RESULTS.get(kind, 1))


@pytest.mark.filterwarnings("ignore")  # TorchScript is deprecated
def test_calls_left_by_runs_without_optimization_are_inlined() -> None:
    module = torch.jit.script(torch.nn.Sequential(torch.nn.Upsample(scale_factor=2), torch.nn.GroupNorm(2, 4)).eval())
    x = torch.arange(36.0).reshape(1, 4, 3, 3)
    with torch.jit.optimized_execution(False):
        expected = module(x)
    model = irc.compile(module)
    (found,) = model.run({model.inputs[0].name: x.numpy()}).values()
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-6)


class Negate(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x


Interface: Any = None


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


def through_interface(which: str = "one") -> Any:
    class Step(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pass

    class Caller(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.step = Negate()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.step.forward(x)

    class Chooser(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = torch.nn.ModuleList([Negate(), Scale()])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            step: Interface = self.steps[x.dim()]
            return step.forward(x)

    class Changer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.step = Negate()
            self.other = Scale()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.step.forward(x)
            self.step = self.other
            return x

    module: Any = {"one": Caller, "either": Chooser, "changed": Changer}[which]
    globals()["Interface"] = torch.jit.interface(Step)  # where TorchScript looks annotations up
    if which != "either":
        module.__annotations__ = {"step": Interface, "other": Interface}
    return module()


class Around(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("module", "passes", "left"),
    [
        (lambda: Around(Negate()), 1, 0),
        (lambda: Around(Around(Around(Negate()))), 3, 0),  # each shows one call, and hides the next
        (through_interface, 1, 0),
        (lambda: Around(through_interface()), 2, 0),
        (lambda: through_interface("either"), 1, 1),
        (lambda: Around(through_interface("either")), 2, 1),
    ],
)
def test_calls_are_inlined_until_that_changes_nothing(
    module: Any, passes: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = torch.jit.script(module())
    with torch.jit.optimized_execution(False):
        script(torch.ones(2))
    counted: list[Any] = []
    inline = torch._C._jit_pass_inline
    monkeypatch.setattr(torch._C, "_jit_pass_inline", lambda graph: counted.append(graph) or inline(graph))
    graph, _ = graph_of(script)
    assert (len(counted), str(graph).count("prim::CallMethod")) == (passes, left)


@pytest.mark.filterwarnings("ignore")
def test_calls_through_interfaces() -> None:
    x = torch.arange(4.0) - 1
    for module in (through_interface(), Around(through_interface())):
        model = irc.compile(torch.jit.script(module))
        np.testing.assert_array_equal(next(iter(model.run({"x": x.numpy()}).values())), -x.numpy())
    with pytest.raises(irc.Error, match=r"IRC323(.|\n)*CallMethod.*which method that is"):
        irc.compile(torch.jit.script(through_interface("either")))
    with pytest.raises(irc.Error, match=r"IRC140.*interface of 'step'"):
        irc.compile(torch.jit.script(through_interface("changed")))


def test_strings_that_are_no_utf8() -> None:
    text = """graph():
  %0 : str = prim::Constant[value="\\377a"]()
  %1 : int = prim::Constant[value=1]()
  %2 : (str, int) = prim::TupleConstruct(%0, %1)
  return (%2)
"""
    graph = torch._C.parse_ir(text)
    torch._C._jit_pass_constant_propagation(graph)
    assert list(irc.compile(graph).run({}).values()) == [("\udcffa", 1)]


IMAGES = np.random.default_rng(0).random((2, 8, 2, 4)).astype(np.float32)
CHANNELS_LAST = np.ascontiguousarray(IMAGES.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("x", [IMAGES, CHANNELS_LAST])
@pytest.mark.parametrize("kind", ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
@pytest.mark.parametrize("by", [1, 2, 8])
def test_shuffles_make_new_memory_in_the_format_of_the_old(kind: str, by: int, x: Any) -> None:
    compare(f"aten::{kind}", x, by)


@pytest.mark.parametrize("size", [(7, 3), (10, 12), (3, 9), (1, 2)])
@pytest.mark.parametrize("kind", ["upsample_bilinear2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"])
@pytest.mark.parametrize("corners", [False, True])
def test_bytes_are_interpolated_in_fixed_point(kind: str, size: tuple[int, int], corners: bool) -> None:
    image = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 6), np.uint8)
    compare(f"aten::{kind}", image, list(size), corners, None, None)


@pytest.mark.parametrize("exponent", [2, 0.5, -1, -0.5, 3, 0])
def test_powers_of_complex_numbers(exponent: float) -> None:
    compare("aten::pow", np.array([2j, -1, 1 - 1j], np.complex64), exponent)


def either(x: int | torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if isinstance(x, int):
        return y + x
    return y * x


def anything(x: Any, y: torch.Tensor) -> torch.Tensor:
    if isinstance(x, int):
        return y + x
    if isinstance(x, torch.Tensor):
        return y * x
    return y


class OfAnyType(torch.nn.Module):
    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return either(2, y) + either(y, y) + anything(3, y) + anything(y, y) + anything([y], y)


@pytest.mark.filterwarnings("ignore")
def test_branches_that_no_run_takes_may_cast_anything_to_anything() -> None:
    x = torch.arange(4.0)
    model = irc.compile(torch.jit.script(OfAnyType()))
    np.testing.assert_array_equal(next(iter(model.run({"y": x.numpy()}).values())), OfAnyType()(x).numpy())
