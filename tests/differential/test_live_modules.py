"""Live TorchScript modules through irc: results, writes and state over several calls equal PyTorch's."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import irc
from irc.frontend.torchscript import import_torchscript
from irc.ir.kinds import NAMES
from irc.ir.types import DType, TensorType
from irc.runtime.model import CompiledModel
from tests.differential.helpers import numpy_of
from tests.differential.zoo import SCRIPTED, TRACED, scripted, traced
from tests.differential.zoo.images import ResNet
from tests.differential.zoo.language import CallsPython, Recorded
from tests.differential.zoo.state import Cache, Constants, Instances, Norms, TwoOfOne

torch: Any = pytest.importorskip("torch")

# TorchScript is deprecated; traces lose what depends on values, which is as it should be.
pytestmark = pytest.mark.filterwarnings("ignore")

PIPELINES = ("none", "default", "default,remove-mutation,dce", "default,in-place")


def to_numpy(value: Any) -> Any:
    """A copy in NumPy's arrays."""
    if isinstance(value, torch.Tensor):
        return numpy_of(value).copy(order="K")
    if isinstance(value, list | tuple):
        return type(value)(to_numpy(v) for v in value)
    if isinstance(value, dict):
        return {k: to_numpy(v) for k, v in value.items()}
    return value


def assert_same(mine: Any, its: Any, where: str = "result", rtol: float = 1e-4) -> None:
    if isinstance(its, torch.Tensor):
        expected = numpy_of(its.resolve_conj().resolve_neg())
        assert mine.shape == expected.shape, where
        assert mine.dtype == expected.dtype, where
        if mine.dtype.kind in "biu":
            np.testing.assert_array_equal(mine, expected, err_msg=where)
        else:
            np.testing.assert_allclose(
                mine.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=rtol / 10, err_msg=where
            )
    elif isinstance(its, list | tuple):
        assert len(mine) == len(its), where
        for i, (m, t) in enumerate(zip(mine, its)):
            assert_same(m, t, f"{where}[{i}]", rtol)
    elif isinstance(its, dict):
        assert list(mine) == list(its), where
        for key in its:
            assert_same(mine[key], its[key], f"{where}[{key!r}]", rtol)
    else:
        assert type(mine) is type(its) and mine == its, where


def run(model: CompiledModel, inputs: list[Any]) -> Any:
    feeds = {value.name: value_ for value, value_ in zip(model.inputs, inputs, strict=True)}
    results = list(model.run(feeds).values())
    return results[0] if len(results) == 1 else results


def check(script: Any, inputs: list[Any], passes: str, calls: int = 3) -> CompiledModel:
    """Several calls of one module."""
    model = irc.compile(script, passes)
    rtol = 2e-2 if any(p.dtype in (torch.float16, torch.bfloat16) for p in parameters(script)) else 1e-4
    for call in range(calls):
        given = copy.deepcopy(inputs)
        arrays = to_numpy(given)
        with torch.no_grad():
            expected = script(*given)
        assert_same(run(model, arrays), expected, f"{passes}, call {call}", rtol)
        assert_same(arrays, inputs, f"{passes}, inputs after call {call}", 0)  # torch may have written its own
    return model


def parameters(script: Any) -> list[Any]:
    return list(script.parameters()) if hasattr(script, "parameters") else []


@pytest.fixture(autouse=True)
def same_weights() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("passes", PIPELINES)
@pytest.mark.parametrize("name", SCRIPTED)
def test_scripted(name: str, passes: str) -> None:
    made, inputs = SCRIPTED[name]
    check(scripted(made), inputs, passes)


@pytest.mark.parametrize("passes", PIPELINES)
@pytest.mark.parametrize("name", TRACED)
def test_traced(name: str, passes: str) -> None:
    made, inputs = TRACED[name]
    check(traced(made, *copy.deepcopy(inputs)), inputs, passes)


@pytest.mark.parametrize("passes", PIPELINES)
def test_traces_take_other_sizes_than_their_examples(passes: str) -> None:
    def step(x, pair: tuple[torch.Tensor, torch.Tensor]):
        a, b = pair
        rows = torch.cat([x.squeeze(0), a.new_zeros(a.shape[0], x.shape[-1])])
        return rows.sum(0) + b, rows.view(-1)

    script = torch.jit.trace(step, (torch.zeros(1, 2, 3), (torch.ones(4, 3), torch.ones(3))))
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(2))
    traced_net = torch.jit.trace(net.eval(), torch.randn(2, 3, 8, 8))
    around = torch.jit.script(torch.nn.Sequential(traced_net))
    for shape in ((2, 3, 8, 8), (5, 3, 6, 9)):
        check(traced_net, [torch.randn(*shape)], passes, 2)
        check(around, [torch.randn(*shape)], passes, 2)
    for rows, columns in ((2, 3), (7, 5)):
        pair = torch.randn(rows, columns), torch.randn(columns)
        check(script, [torch.randn(1, rows, columns), pair], passes, 2)
    model = irc.compile(traced_net, passes)
    with pytest.raises(irc.Error, match=r"IRC412.*float32"):
        model.run({model.inputs[0].name: np.zeros((2, 3, 8, 8))})
    with pytest.raises(irc.Error, match=r"IRC413.*4 dimensions"):
        model.run({model.inputs[0].name: np.zeros((3, 8, 8), np.float32)})


@pytest.mark.parametrize("passes", PIPELINES)
@pytest.mark.parametrize("made", [Norms, ResNet])
def test_training_mode(made: Callable[[], Any], passes: str) -> None:
    inputs = [torch.randn(6, 4, 3)] if made is Norms else [torch.randn(2, 3, 32, 32)]
    script = torch.jit.script(made().train())
    model = check(script, inputs, passes)
    assert "aten::batch_norm" in {node.kind for node in model.graph.walk()}


class OtherNames(torch.nn.Module):
    """Operators by names that PyTorch replaces in what it traces, but not in modules that a trace calls."""

    def forward(self, x):
        y = torch.special.expit(torch.negative(x)).multiply(torch.arctan(x)).subtract(torch.absolute(x))
        y = torch.where(torch.greater(x, 0), torch.divide(y, 2), torch.special.expm1(y))
        y = torch.row_stack([torch.linalg.matmul(y, y.swapaxes(0, 1)), torch.ger(y[0], y[1])])
        z = y.clone().absolute_().clip_(0.1, 2.0).true_divide_(3.0)
        return torch.concat([z, torch.special.softmax(y, 1)], 1), torch.special.logsumexp(torch.special.round(y), 1)


@pytest.mark.parametrize("passes", PIPELINES)
def test_other_names_of_operators(passes: str) -> None:
    inner, x = OtherNames(), torch.randn(4, 4)
    model = check(torch.jit.trace(torch.nn.Sequential(torch.nn.Identity(), inner), x), [x], passes)
    assert not {node.kind for node in model.graph.walk()} & {"aten::greater", "aten::absolute_", "aten::special_expit"}


def sums_and_numbers(x: Any) -> Any:
    """Python's numbers, beside tensors without dimensions: a trace holds them as tensors of 64 bits."""
    total = x.sum()
    half = total.half()
    whole = x.long().sum()
    return -0.5 * total, 1.5 + half, total - 2, 3 / total, half / 7, whole * 1.5, whole * 2, total * 1j, x * 0.1


@pytest.mark.parametrize("passes", PIPELINES)
def test_numbers_in_traces_do_not_decide_element_types(passes: str, tmp_path: Path) -> None:
    x = torch.randn(3)
    script = torch.jit.trace(sums_and_numbers, x)
    script.save(str(tmp_path / "traced.pt"))
    check(script, [x], passes)
    check(torch.jit.load(str(tmp_path / "traced.pt")), [x], passes)


def into_given_tensors(x: Any, y: Any) -> Any:
    total, quotient, rows = torch.empty_like(x), torch.zeros_like(x), torch.zeros(6, 3, dtype=torch.float64)
    torch.add(x, y, alpha=2, out=total)
    torch.div(x, y, out=quotient)
    torch.matmul(quotient, y, out=total[:, :])
    torch.cat([x, total], 0, out=rows[:])
    return total, quotient, rows, torch.sum(x, 1, out=torch.empty(3))


@pytest.mark.parametrize("passes", PIPELINES)
def test_results_that_are_written_into_given_tensors(passes: str) -> None:
    inputs = [torch.randn(3, 3), torch.rand(3, 3) + 1]
    check(torch.jit.trace(into_given_tensors, inputs), inputs, passes)


def test_other_names_are_those_that_torch_replaces() -> None:
    replaced = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name not in NAMES or any(a.is_out for a in schema.arguments):
            continue
        given = [a for a in schema.arguments if not a.kwarg_only]
        parameters = ", ".join(f"{a.name}_: {a.type.annotation_str}" for a in given)
        call = f"torch.ops.aten.{schema.name[6:]}({', '.join(f'{a.name}_' for a in given)})"
        function = torch.jit.CompilationUnit(f"def f({parameters}):\n    return {call}\n").f
        replaced[schema.name] = [node.kind() for node in function.graph.nodes()][-1]
    assert replaced == {name: NAMES[name] for name in replaced}
    assert {name for name in NAMES if not name.endswith("_")} <= replaced.keys()


@pytest.mark.parametrize("passes", PIPELINES)
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_traced_convolutions_with_padding_by_name_and_normalised_weights(padding: str, passes: str) -> None:
    with_norm = torch.nn.utils.parametrizations.weight_norm
    net = torch.nn.Sequential(
        torch.nn.Conv1d(4, 6, 3, padding=padding),
        with_norm(torch.nn.Conv1d(6, 4, 4, padding=padding, dilation=2), dim=2),
        with_norm(torch.nn.Linear(24 if padding == "same" else 16, 3)),
    ).eval()
    x = torch.randn(2, 4, 24)
    model = check(torch.jit.trace(net, x), [x], passes)
    if passes == "default":
        assert "aten::_weight_norm" not in {node.kind for node in model.graph.walk()}


# -- caches --------------------------------------------------------------------


class Decoder(torch.nn.Module):
    """Attention to a cache that each step makes longer, and returns in a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, x, past_k, past_v):
        b, t, _ = x.shape
        q = self.q(x).view(b, t, 2, 4).transpose(1, 2)
        k = torch.cat([past_k, self.k(x).view(b, t, 2, 4).transpose(1, 2)], 2)
        v = torch.cat([past_v, self.v(x).view(b, t, 2, 4).transpose(1, 2)], dim=-2)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 2.0, -1)
        return (weights @ v).transpose(1, 2).reshape(b, t, 8), k, v


@pytest.mark.parametrize("passes", PIPELINES)
@pytest.mark.parametrize("way", ["traced", "scripted"])
def test_sessions_extend_caches_that_come_in_tuples(way: str, passes: str) -> None:
    net = Decoder().eval()
    empty = torch.zeros(2, 2, 0, 4)
    past = torch.zeros(2, 2, 5, 4)
    if way == "traced":
        module = import_torchscript(torch.jit.trace(net, (torch.randn(2, 3, 8), past, past)))
    else:
        module = import_torchscript(torch.jit.script(net))
        for value in module.main.inputs[1:]:
            value.type = TensorType(DType.FLOAT, (None,) * (3 if value.name == "x" else 4))
    session = irc.Session(irc.compile(module, passes), {"past_k": "output.1", "past_v": "output.2"})
    k = v = empty
    feeds = {"past_k": to_numpy(k), "past_v": to_numpy(v)}
    moves = 0
    for step in range(50):
        x = torch.randn(2, 1 if step else 3, 8)
        with torch.no_grad():
            expected, k, v = net(x, k, v)
        found = session.run({"x": to_numpy(x), **feeds}, outputs=["output"] if step % 2 else ["output.0", "output.1"])
        feeds = {}
        assert_same(
            found["output"] if step % 2 else (found["output.0"], found["output.1"], session.caches["past_v"]),
            (expected, k, v),
        )
        if passes == "default":
            moves += session.counters.copied_bytes > 0
            assert session.counters.copied_bytes == 0 or session.counters.copies == 2
            assert step < 3 or session.counters.copies == 2 or session.counters.in_place >= 2
    assert moves <= 5


class WithDefaults(torch.nn.Module):
    def forward(
        self,
        x,
        mask: torch.Tensor | None = None,
        scale: float = 2,
        flag: bool = True,
        how: str = "no",
        sizes: tuple[int, float] = (1, 2.5),
        more: list[int] | None = None,
    ):
        if mask is not None:
            x = x * mask
        if flag and how == "no":
            x = x + sizes[1]
        return x * scale, len(more) if more is not None else sizes[0]


@pytest.mark.parametrize("passes", PIPELINES)
def test_default_values(passes: str, tmp_path: Path) -> None:
    script = torch.jit.script(WithDefaults())
    model = irc.compile(script, passes)
    model.save(tmp_path / "m.irc")
    x = torch.arange(3.0)
    for again in (model, irc.load(tmp_path / "m.irc"), irc.compile(model.module)):
        assert [a.name for a in again.inputs if a.optional] == ["mask", "scale", "flag", "how", "sizes", "more"]
        for given in (
            {},
            {"mask": x},
            {"scale": -1.5, "flag": False},
            {"how": "yes", "more": [1, 2, 3]},
            {"sizes": (4, 0.5)},
        ):
            assert_same(list(again.run(to_numpy({"x": x, **given})).values()), [script(x, **given)])
        with pytest.raises(irc.Error, match=r"IRC410.*'x'"):
            again.run({})


def test_default_values_of_functions() -> None:
    def scaled(x, by: int = 3):
        return x * by

    model = irc.compile(torch.jit.script(scaled))
    assert model.run({"x": np.ones(1, np.float32)})["output"].tolist() == [3]


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_of_overloads_the_first(kind: Callable[..., Any]) -> None:
    net = kind(3, 4).eval()  # of tensors; the second is of packed sequences
    model = irc.compile(torch.jit.script(net))
    x, names = torch.randn(5, 3), [a.name for a in model.inputs]
    with torch.no_grad():
        assert_same(list(model.run({names[0]: to_numpy(x)}).values()), [net(x)])


class NamedAfterWhatItCalls(torch.nn.Module):
    """Its inputs are what is called returns, or have the names of results."""

    def __init__(self) -> None:
        super().__init__()
        self.pre, self.fc = torch.nn.Identity(), torch.nn.Linear(4, 4)

    def forward(self, x, mask, n: int = 2):
        h, x = self.pre(x), self.pre(mask)
        for _ in range(n):
            mask = self.fc(h) * mask
        return mask, x


def same(x):
    return x


def adds_up(x, n: int = 2, self_1: int = 1):
    y = same(x)
    for _ in range(n):
        x = x + y * self_1
    return x


def swaps(a, b):
    a, b = same(b), same(a)
    return a - b


@pytest.mark.parametrize("passes", PIPELINES)
@pytest.mark.parametrize("made", [NamedAfterWhatItCalls, adds_up, swaps])
def test_inputs_are_called_as_torch_calls_them(made: Any, passes: str, tmp_path: Path) -> None:
    script = torch.jit.script(made().eval() if isinstance(made, type) else made)
    script.save(str(tmp_path / "saved.pt"))
    of_module = isinstance(script, torch.nn.Module)
    names = [a.name for a in (script.forward.schema if of_module else script.schema).arguments][of_module:]
    given = {name: 3 if name in ("n", "self_1") else torch.randn(4, 4) for name in names}
    for live in (script, torch.jit.load(str(tmp_path / "saved.pt"))):
        model = irc.compile(live, passes)
        assert [value.name for value in model.inputs] == names
        with torch.no_grad():
            expected = script(**given)
        assert_same(list(model.run(to_numpy(given)).values()), [expected])


def test_inputs_without_names_are_called_as_torch_calls_them() -> None:
    traced = torch.jit.trace(lambda *terms: terms[0] + terms[1], (torch.ones(2), torch.ones(2)))
    names = [a.name for a in traced.schema.arguments]
    assert [value.name for value in irc.compile(traced).inputs] == names == ["argument_0", "argument_1"]


# -- ways in -------------------------------------------------------------------


def test_functions_and_graphs() -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    inner = torch.jit.script(double)

    def outer(x, n: int = 3):
        return inner(x) + n

    function = torch.jit.script(outer)
    assert [n.kind() for n in function.graph.nodes()].count("prim::CallFunction") == 1
    x = torch.arange(4.0)
    for source in (function, function.graph, function.inlined_graph, str(function.inlined_graph)):
        module = import_torchscript(source)
        found = irc.compile(module).run({"x": x.numpy(), "n": 5})
        np.testing.assert_array_equal(found["output"], function(x, 5).numpy())
    assert [n.kind() for n in function.graph.nodes()].count("prim::CallFunction") == 1  # left as it was


@pytest.mark.parametrize("passes", PIPELINES)
def test_forks(passes: str) -> None:
    """Calls in what is forked, and forks in what is called; futures in lists, written through, and in branches."""

    def add(x, y):
        return torch.add(x, y)

    def forks_again(x):
        return torch.jit.wait(torch.jit.fork(add, x, torch.jit.wait(torch.jit.fork(add, x, x))))

    class Forks(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x, n: int, again: bool):
            first = torch.jit.fork(self.linear, x)
            later: list[torch.jit.Future[torch.Tensor]] = [first]
            for i in range(n):
                later.append(torch.jit.fork(add, x, torch.full_like(x, i)))
            pair = torch.jit.fork(forks_again, x), first
            if again:
                x = torch.jit.wait(pair[0])
            torch.jit.wait(later[0]).add_(1)
            for future in later:
                x = x + torch.jit.wait(future)
            return x, torch.jit.wait(pair[1])

    model = check(torch.jit.script(Forks()), [torch.randn(2, 3), 3, True], passes)
    assert not any("Future" in str(value.type) for value in model.graph.values())
    check(torch.jit.script(forks_again), [torch.randn(2, 3)], passes)


def test_graphs_with_weights_of_their_own() -> None:
    script = scripted(lambda: torch.nn.Linear(3, 2))
    x = torch.randn(4, 3)
    weights = dict(script.named_parameters())
    with pytest.raises(irc.Error, match=r"IRC143.*requires grad"):
        import_torchscript(script.graph, weights)
    arrays = {name: w.detach().numpy() for name, w in weights.items()}
    for source in (script.graph, str(script.graph)):
        found = irc.compile(import_torchscript(source, arrays)).run({"input": x.numpy()})
        np.testing.assert_allclose(found["output"], script(x).detach().numpy(), rtol=1e-6)


def test_saved_and_frozen_modules(tmp_path: Path) -> None:
    made, inputs = SCRIPTED["residual network"]
    script = scripted(made)
    torch.jit.save(script, tmp_path / "net.pt")
    check(torch.jit.load(tmp_path / "net.pt"), inputs, "default", calls=1)
    check(torch.jit.freeze(script), inputs, "default", calls=1)


def test_lists_of_tensors_that_freezing_folds() -> None:
    """Indices, which text shows as torch displays tensors, or not at all."""

    class Indices(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            y = x.clone()
            y[torch.tensor([0, 2]), :, torch.tensor([1, 1])] = torch.tensor([[1.5, 2, 3], [4, 5, 6]])
            chosen = y[torch.tensor([True, False, True, False])]
            return y, chosen, x[:, torch.tensor([2, 0])], x[torch.arange(0)], x[torch.arange(50) % 4]

    traced = torch.jit.freeze(torch.jit.trace(Indices().eval(), torch.randn(4, 3, 5)))
    assert "annotate(List[Optional[Tensor]], [None,  2  0 [ CPULongType{2} ]])" in str(traced.graph)
    check(traced, [torch.randn(4, 3, 5)], "default", calls=1)


def test_submodules_and_methods() -> None:
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(x)

        @torch.jit.export
        def other(self, x):
            return self.layer(x) * 2

    script = scripted(Two)
    x = torch.randn(2, 3)
    found = irc.compile(script.layer).run({"input": x.numpy()})["output"]
    np.testing.assert_allclose(found, script(x).detach().numpy(), rtol=1e-5)
    arrays = {name: w.detach().numpy() for name, w in script.named_parameters()}
    found = irc.compile(import_torchscript(script.other.graph, arrays)).run({"x": x.numpy()})["output"]
    np.testing.assert_allclose(found, script.other(x).detach().numpy(), rtol=1e-5)


def test_constants_keep_every_bit() -> None:
    script = traced(Constants, torch.randn(3, 5))
    live = import_torchscript(script)
    given = [n for n in script.inlined_graph.nodes() if n.kind() == "prim::Constant" and "value" in n.attributeNames()]
    tensors = [n.t("value") for n in given if n.kindOf("value") == "t"]
    held = [n.attributes.get("value") for n in live.main.nodes if n.kind == "prim::Constant"]
    arrays = [value.numpy() for value in held if hasattr(value, "numpy")]
    assert len(arrays) == len(tensors) >= 3
    for array, tensor in zip(arrays, tensors, strict=True):
        np.testing.assert_array_equal(array, tensor.numpy())


def test_what_is_changed_is_a_copy() -> None:
    script = scripted(Cache)
    before = {name: b.clone() for name, b in script.named_buffers()}
    module = import_torchscript(script)
    model = irc.compile(module)
    first = run(model, [np.ones((2, 2, 4), np.float32)])
    assert first[2] == 2
    for name, buffer in script.named_buffers():
        assert torch.equal(buffer, before[name])
    script.keys.fill_(5)
    assert run(irc.compile(module), [np.ones((2, 2, 4), np.float32)])[2] == 2
    np.testing.assert_array_equal(run(irc.compile(module), [np.ones((2, 1, 4), np.float32)])[1][:, 2:6], 0)


def test_state_in_files(tmp_path: Path) -> None:
    """A saved model goes on where it was, as a saved module does; what is compiled again begins anew."""
    script = scripted(Cache)
    x = torch.randn(2, 2, 4)
    model = irc.compile(script)
    with torch.no_grad():
        first = script(x)
    assert_same(run(model, [x.numpy()]), first)
    model.save(tmp_path / "cache.irc")
    torch.jit.save(script, tmp_path / "cache.pt")
    loaded, its = irc.load(tmp_path / "cache.irc"), torch.jit.load(tmp_path / "cache.pt")
    for _ in range(2):
        with torch.no_grad():
            expected = its(x)
        assert_same(run(loaded, [x.numpy()]), expected)
        assert_same(run(model, [x.numpy()]), expected)
    assert_same(run(irc.compile(model.module), [x.numpy()]), first)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("passes", ["none", "default"])
def test_profiled_parts_and_fields_with_defaults(passes: str) -> None:
    script = torch.jit.script(Recorded())
    x = torch.randn(3)
    assert_same(run(irc.compile(script, passes), [x.numpy()]), tuple(script(x)))


# -- what is refused -----------------------------------------------------------


class Plain(torch.nn.Module):
    def forward(self, x):
        return x


class NoForward(torch.nn.Module):
    pass


class Sparse(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sparse", torch.eye(3).to_sparse())

    def forward(self, x):
        return torch.matmul(self.sparse, x)


class Convolved(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(2, 3, 3)

    def forward(self, x):
        return self.convolution(x)


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (Plain, "IRC140", "plain PyTorch: give torch.jit.script"),
        (lambda: torch.jit.script(NoForward()), "IRC140", "no method called forward"),
        (lambda: torch.jit.script(CallsPython()), "IRC140", "it calls Python, look"),
        (lambda: torch.zeros(3), "IRC140", "not a torch.Tensor"),
        (lambda: torch.jit.script(Sparse()), "IRC143", "attribute 'sparse'"),
        (
            lambda: torch.jit.optimize_for_inference(torch.jit.script(Convolved().eval())),
            "IRC143",
            "laid out for MKL-DNN",
        ),
    ],
)
def test_refused(source: Callable[[], Any], code: str, words: str) -> None:
    for importing in (import_torchscript, irc.compile):
        with pytest.raises(irc.Error, match=words) as caught:
            importing(source())
        assert caught.value.code == code


def test_instances_of_classes_that_only_a_file_knows(tmp_path: Path) -> None:
    torch.jit.save(scripted(Instances), tmp_path / "net.pt")
    with ZipFile(tmp_path / "net.pt") as net, ZipFile(tmp_path / "other.pt", "w") as other:
        for item in net.namelist():
            other.writestr(item, net.read(item).replace(b"Gains", b"Costs"))
    with pytest.raises(irc.Error, match=r"PyTorch cannot show it to Python: \S*Costs is not found") as caught:
        irc.compile(torch.jit.load(tmp_path / "other.pt"))
    assert caught.value.code == "IRC142"


@pytest.mark.parametrize("name", ["float64", "bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "uint16", "complex32"])
def test_element_types_as_attributes(name: str) -> None:
    class Cast(torch.nn.Module):
        def __init__(self, dtype: torch.dtype) -> None:
            super().__init__()
            self.dtype = dtype

        def forward(self, x):
            return x.to(self.dtype)

    model = irc.compile(torch.jit.script(Cast(getattr(torch, name))))
    feeds = {"x": np.array([1, 2, 4], np.float32)}
    if name == "complex32":
        with pytest.raises(irc.Error, match="no element type for torch's number 8"):
            model.run(feeds)
    else:
        (found,) = model.run(feeds).values()
        assert found.dtype.name == name
        np.testing.assert_array_equal(found.astype(np.float32), feeds["x"])


def test_operators_without_kernels() -> None:
    """Where a run need not come to them they are noted, else they are refused."""

    def derived(x):
        return torch.special.airy_ai(x)

    def choose(x, padded: bool):
        return torch.special.airy_ai(x) if padded else x + 1

    x = np.eye(3, dtype=np.float32)
    model = irc.compile(torch.jit.script(choose))
    assert any("aten::special_airy_ai" in note for note in model.report.notes)
    np.testing.assert_array_equal(model.run({"x": x, "padded": False})["output"], x + 1)
    with pytest.raises(irc.Error, match=r"IRC323.*airy_ai"):
        model.run({"x": x, "padded": True})
    with pytest.raises(irc.Error, match=r"IRC323.*\n.*airy_ai"):
        irc.compile(torch.jit.script(derived))


@pytest.mark.parametrize("passes", ["", "default"])
@pytest.mark.parametrize("turn", ["data", "u", "again", "part"])
def test_tensors_of_one_memory_and_one_tensor_twice(turn: str, passes: str, tmp_path: Path) -> None:
    script = torch.jit.script(TwoOfOne(turn))
    model = irc.compile(script, passes=passes)
    model.save(tmp_path / "m.irc")
    models = [model, irc.load(tmp_path / "m.irc")]
    for _ in range(3):
        expected = script(torch.ones(()))
        for each in models:
            found = each.run({"x": np.ones((), np.float32)})["output"]
            assert_equal_nested(found, expected)


def assert_equal_nested(found: Any, expected: Any) -> None:
    if isinstance(expected, torch.Tensor):
        assert found.shape == tuple(expected.shape)
        np.testing.assert_array_equal(found, expected.numpy())
    else:
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_equal_nested(one, other)
