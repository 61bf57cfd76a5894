"""Parts of what is concatenated or stacked: what is made in its place, outside of planned memory."""

from types import SimpleNamespace

import numpy as np
import pytest

import irc
from irc.alias.location_sets import members
from irc.ir import parse_graph
from irc.runtime import execution
from irc.runtime.plan import lower
from tests.effort import Tune
from tests.graphs import ir, ir_graph
from tests.programs.interpreter import interpret
from tests.programs.running import copied

LIST = "l: 'Tensor[]' = prim.ListConstruct"
SHAPES = {"x": (1, 4, 8), "y": (1, 4, 8), "w": (0,), "q": (1, 8, 4), "s": (1, 4, 4)}
CASES: dict[str, tuple[str, str, int]] = {  # statements, outputs, and how many results are in their places
    "results": (f"{LIST}(relu(x), mul(y, 2)); c = cat(l, 1)", "c", 3),
    "a result of another part": (f"a = relu(x); {LIST}(a, mul(a, y)); c = cat(l, 1)", "c", 3),
    "results that are stacked": (f"{LIST}(relu(x), mul(y, 2)); c = stack(l, 0)", "c", 3),
    "results along the last but one axis": (f"{LIST}(relu(x), mul(y, 2)); c = cat(l, -2)", "c", 3),
    "views of results": (f"a = view(relu(x), [2, 2, 8]); {LIST}(a, view(exp(y), [2, 2, 8])); c = cat(l, 0)", "c", 3),
    "an empty vector": (f"{LIST}(relu(x), relu(w), exp(y)); c = cat(l, 1)", "c", 3),
    "no elements": (f"{LIST}(relu(w), exp(w)); c = cat(l, 0)", "c", 0),
    "what is written before": (f"a = relu(x); i = neg_(a); {LIST}(exp(y), i); c = cat(l, 1)", "c", 4),
    "what is written once it is in the list": (f"a = relu(x); {LIST}(a, exp(y)); i = neg_(a); c = cat(l, 1)", "c", 4),
    "layers": (
        f"m = select(select(s, 0, 0), 0, 0); a = batch_norm(x, m, m, m, exp(m), False, 0.1, 0.001, False); "
        f"i = relu_(a); b = batch_norm(x, None, None, None, None, True, 0.1, 0.001, False); "
        f"{LIST}(avg_pool1d(y, [3], [1], [1]), i, max_pool1d(y, [3], [1], [1]), b); c = cat(l, 1)",
        "c",
        6,
    ),
    "parts of parts": (
        f"m: 'Tensor[]' = prim.ListConstruct(relu(x), exp(y)); {LIST}(neg(y), cat(m, 1)); c = cat(l, 1)",
        "c",
        5,
    ),
    "an input that is concatenated, as a part": (
        f"m: 'Tensor[]' = prim.ListConstruct(x, y); {LIST}(neg(y), cat(m, 1)); c = cat(l, 1)",
        "c",
        2,
    ),
    "an input": (f"{LIST}(relu(x), y); c = cat(l, 1)", "c", 1),
    "a slice": (f"{LIST}(relu(x), slice(exp(y), 1, 0, 2)); c = cat(l, 1)", "c", 1),
    "a transposed tensor": (f"{LIST}(exp(y), transpose(relu(q), 1, 2)); c = cat(l, 1)", "c", 1),
    "one tensor twice": (f"a = relu(x); {LIST}(a, exp(y), a); c = cat(l, 1)", "c", 0),
    "one tensor, and a view of it": (f"a = relu(x); {LIST}(a, view(a, [1, 4, 8])); c = cat(l, 1)", "c", 0),
    "what is read later": (f"a = relu(x); {LIST}(a, exp(y)); c = cat(l, 1); d = neg(a)", "c, d", 1),
    "what is written later": (f"a = relu(x); {LIST}(a, exp(y)); c = cat(l, 1); i = add_(a, 1); d = neg(a)", "c, d", 2),
    "what has a view that is written later": (
        f"a = relu(x); v = select(a, 1, 0); {LIST}(a, exp(y)); c = cat(l, 1); i = add_(v, 1); d = neg(c)",
        "c, d, v",
        2,
    ),
    "a result that is written later": (f"{LIST}(relu(x), exp(y)); c = cat(l, 1); i = add_(c, 1)", "c", 4),
    "an output": (f"a = relu(x); {LIST}(a, exp(y)); c = cat(l, 1)", "c, a", 1),
    "a list that is an output": (f"{LIST}(relu(x), exp(y)); c = cat(l, 1)", "c, l", 0),
    "a list that something is appended to": (
        f"{LIST}(relu(x), exp(y)); k: 'Tensor[]' = append(l, neg(y)); c = cat(l, 1)",
        "c",
        0,
    ),
    "a tensor in another list": (
        f"a = relu(x); m: 'Tensor[]' = prim.ListConstruct(a); {LIST}(a, exp(y)); c = cat(l, 1)",
        "c, m",
        1,
    ),
    "two element types": (f"{LIST}(relu(x), gt(y, 0)); c = cat(l, 1)", "c", 0),
    "two element types of one size": (f"{LIST}(relu(x), to(y, 3, False, False)); c = cat(l, 1)", "c", 0),
    "columns": (f"{LIST}(relu(x), exp(y)); c = cat(l, 2)", "c", 0),
    "what two results are made of": (
        f"a = relu(x); m: 'Tensor[]' = prim.ListConstruct(a, exp(y)); d = cat(m, 1); {LIST}(neg(y), a); c = cat(l, 1)",
        "c, d",
        4,
    ),
    "what is transposed in place": (f"a = relu(s); i = transpose_(a, 1, 2); {LIST}(a, exp(s)); c = cat(l, 1)", "c", 1),
    "what lies where a copied part goes": (
        f"a = relu(s); b = slice(view(a, [1, 2, 8]), 1, 0, 2); i = transpose_(a, 1, 2); {LIST}(reshape(i, [1, 2, 8]), "
        "b, exp(y)); c = cat(l, 1)",
        "c",
        1,
    ),
    "branches, of which one reads what it might write over": (
        f"a = relu(x); b: bool = gt(size(x, 1), size(s, 1))\nr = prim.If(b)\nwith block(): yield a\n"
        f"with block(): f = flip(a, [1]); e = add(flip(a, [2]), f); yield e\n{LIST}(exp(y), r); c = cat(l, 1)",
        "c",
        3,
    ),
    "results in a loop": (
        "n: 'Tensor[]' = prim.ListConstruct()\nprim.Loop(5, True)\nwith block(i=int): "
        f"{LIST}(mul(x, i), exp(y)); c = cat(l, 1); k: 'Tensor[]' = append(n, c); yield True",
        "n",
        5,
    ),
    "a result whose shape changes": (f"{LIST}(relu(masked_select(x, gt(x, 0)))); c = cat(l, 0)", "c", 0),
    "what asks where storage begins": (
        f"{LIST}(relu(x), exp(y)); c = cat(l, 1); n: int = storage_offset(c)",
        "c, n",
        0,
    ),
}


def feeds_of(seed: int, shapes: dict[str, tuple[int, ...]] = SHAPES) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(-4, 4, shape).astype(np.float32) for name, shape in shapes.items()}


def graph_of(statements: str, outputs: str) -> irc.ir.Graph:
    return ir_graph("x, y: Float(1, 4, 8); w: Float(0); q: Float(1, 8, 4); s: Float(1, 4, 4)", statements, outputs)


@pytest.mark.parametrize("case", CASES)
def test_what_is_made_in_its_place(case: str, tune: Tune) -> None:
    tune("irc.runtime.destinations.LEAST", 0)
    statements, outputs, count = CASES[case]
    graph = graph_of(statements, outputs)
    plan, earlier = lower(graph), []
    for i in range(4):
        feeds, run = list(feeds_of(i % 2 if i else 9).values()), execution.Run()
        wanted = copied(interpret(graph, copied(feeds)))
        earlier += zip(wanted, plan.run(feeds, run))
        for a, b in earlier:  # results of earlier runs stay what they were
            np.testing.assert_array_equal(a, b)
    assert run.in_place == count


VIEW = "p: Float(1, 4, 8)", "s: Long(3) = prim.Constant(value=tensor([1, 2, 16])); r = Reshape(p, s)", "r"
OF_ONNX: dict[str, tuple[str, int]] = {  # statements, and how many results are in their places
    "parts of parts": ("c = Concat(Neg(y), Concat(Relu(x), Exp(y), axis=1), axis=1)", 5),
    "parts of parts, in a loop": (
        "n: Long() = prim.Constant(value={3}); go: Bool() = prim.Constant(value={1}); r, c = Loop(n, go, x)\n"
        "with block(i=Long(), g=Bool(), h=Tensor): d = Concat(Neg(h), Concat(Relu(x), Exp(h), axis=1), axis=1); "
        "e = Slice(d, 4, 8, 1); yield g, e, d",
        7,
    ),
    "what a group shows of what is written later": (
        "a = Neg(x); g = FusionGroup_0(a); i = Neg_(a); c = Concat(g, Exp(view), axis=1)",
        2,
    ),
    "what something is appended to": ("c = irc.append_(Relu(x), Neg(y), axis=1)", 0),
    "what is appended": ("b = irc.append_(Relu(x), Neg(y), axis=1); c = Concat(Exp(y), b, axis=1)", 0),
}


@pytest.mark.parametrize("case", OF_ONNX)
def test_what_onnx_makes_in_its_place(case: str, tune: Tune) -> None:
    tune("irc.runtime.destinations.LEAST", 0)
    statements, count = OF_ONNX[case]
    inputs = "x, y: Float(1, 4, 8); view: Float(1, 2, 16)"
    graph, plain = (
        parse_graph(ir(inputs, text, "c", **({"FusionGroup_0": VIEW} if "Group" in text else {})))
        for text in (statements, statements.replace("irc.append_", "Concat"))
    )
    plan = lower(graph)
    for i in range(4):
        feeds, run = list(feeds_of(i, {"x": (1, 4, 8), "y": (1, 4, 8), "view": (1, 2, 16)}).values()), execution.Run()
        (wanted,), (found,) = interpret(plain, copied(feeds)), plan.run(feeds, run)
        np.testing.assert_array_equal(found, wanted)
    assert run.in_place == count


@pytest.mark.parametrize(
    ("group", "count"), [("r = Neg(p); s = Exp(p) | r, s", 3), ("r = Neg(p) | r, r", 1), ("r = Neg(p) | p, r", 0)]
)
def test_results_of_groups(group: str, count: int, tune: Tune) -> None:
    """Of which two are one array, or one is an operand."""
    tune("irc.runtime.destinations.LEAST", 0)
    body, returned = group.split(" | ")
    text = "a = Neg(x); g[Tensor], h[Tensor] = FusionGroup_0(a); c = Concat(g, h, axis=1)"
    graph = parse_graph(ir("x: Float(1, 4, 8)", text, "c", FusionGroup_0=("p: Float(1, 4, 8)", body, returned)))
    plan = lower(graph)
    for i in range(4):
        feeds, run = list(feeds_of(i, {"x": (1, 4, 8)}).values()), execution.Run()
        (wanted,), (found,) = interpret(graph, copied(feeds)), plan.run(feeds, run)
        np.testing.assert_array_equal(found, wanted)
    assert run.in_place == count


def test_a_run_that_has_no_memory_beforehand(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError

    tune("irc.runtime.destinations.LEAST", 0)
    plan, feeds = lower(graph_of(*CASES["results"][:2])), list(feeds_of(1).values())
    (wanted,) = plan.run(feeds)
    monkeypatch.setattr("irc.runtime.destinations.np", SimpleNamespace(empty=refuse, ndarray=np.ndarray))
    (found,) = plan.run(feeds)
    np.testing.assert_array_equal(found, wanted)


def test_shapes_that_contents_decide(tune: Tune) -> None:
    """Operands lie as they did, and the result is of another shape."""
    tune("irc.runtime.destinations.LEAST", 0)
    text = "r = Resize(Neg(x), None, None, sizes, mode='nearest'); c = Concat(r, Exp(y), axis=1)"
    plan = lower(ir_graph("x, y: Tensor; sizes: Long(4)", text, "c"))
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    for rows in (4, 4, 4, 8, 4):
        (found,) = plan.run([x, np.ones((1, 2, rows, 2), np.float32), np.array([1, 1, rows, 2])])
        np.testing.assert_array_equal(found[0, 0], np.repeat(-x[0, 0], rows // 2, 0))
        assert found.shape == (1, 3, rows, 2)


def test_branches_whose_results_have_other_forms(tune: Tune) -> None:
    """Each makes what it made when it ran last, not what the result was made of last."""
    tune("irc.runtime.destinations.LEAST", 0)
    text = (
        "r = prim.If(p)\nwith block(): a = neg(x); yield a\nwith block(): b = neg(slice(x, 1, 0, 2)); yield b\n"
        f"{LIST}(r, exp(y)); c = cat(l, 1)"
    )
    plan = lower(ir_graph("x, y: Float(1, 4, 8); p: bool", text, "c"))
    x, y = list(feeds_of(1).values())[:2]
    for is_whole in (True, True, False, False, True, True, True, False, False, False, True):
        (found,) = plan.run([x, y, is_whole])
        np.testing.assert_array_equal(found, np.concatenate([-x[:, : 4 if is_whole else 2], np.exp(y)], 1))


def test_numbers_of_other_types(tune: Tune) -> None:
    """Equal ones, of which a result has another element type."""
    tune("irc.runtime.destinations.LEAST", 0)
    plan = lower(ir_graph("x: Tensor; n: Scalar", f"{LIST}(mul(x, n), mul(x, n)); c = cat(l, 0)", "c"))
    for number in (2, 2, 2, 2.0, 2.0, 2.0, 2):
        (found,) = plan.run([np.array([1, 2], np.int32), number])
        assert found.dtype == (np.int32 if isinstance(number, int) else np.float32)
        assert found.tolist() == [2, 4, 2, 4]


def test_strings(tune: Tune) -> None:
    tune("irc.runtime.destinations.LEAST", 0)
    plan = lower(ir_graph("x, y: Tensor", "c = Concat(Concat(x, y, axis=0), y, axis=0)", "c"))
    for _ in range(3):
        (found,) = plan.run([np.array(["a"], object), np.array(["b", "c"], object)])
        assert found.tolist() == ["a", "b", "c", "b", "c"]


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_models_compute_the_same_bits(backend: str, passes: str, tune: Tune) -> None:
    found = []
    for least in (0, 1 << 30):
        tune("irc.runtime.destinations.LEAST", least)
        for statements, outputs, _ in CASES.values():
            model = irc.compile(graph_of(statements, outputs), passes=passes, backend=backend)
            runs = [list(model.run(feeds_of(i)).values()) for i in (9, 0, 0, 1)]
            found.append([x.tobytes() if isinstance(x, np.ndarray) else repr(x) for run in runs for x in run])
    assert found[: len(CASES)] == found[len(CASES) :]


@pytest.mark.parametrize("parts", ["relu(x), exp(y)", "neg(y), cat(m, 1)"])
def test_layouts_are_what_they_are_elsewhere(parts: str, tune: Tune) -> None:
    """Also if they change from run to run, with shapes and element types or without."""
    tune("irc.runtime.destinations.LEAST", 0)
    inner = "m: 'Tensor[]' = prim.ListConstruct(neg(x), sign(y))"
    graph = ir_graph("x, y: Tensor", f"{inner}; {LIST}({parts}); c = cat(l, 1)", "c")
    plan, first = lower(graph), (1, 4, 2, 3)
    changes = [(first, "F"), ((1, 4, 3, 2), "C"), (first, "C"), (first, "I")]
    for shape, order in [(first, "C")] * 3 + [(first, "I")] * 3 + [*changes, *changes] + [(first, "F")] * 4:
        images = np.arange(24, dtype=np.int32 if order == "I" else np.float32).reshape(1, *shape[2:], shape[1])
        x = images.transpose(0, 3, 1, 2) if order == "F" else images.reshape(shape)
        (found,) = plan.run([x, x])
        (wanted,) = lower(graph).run([x, x])
        assert (found.strides, found.dtype) == (wanted.strides, wanted.dtype)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("reverse", [False, True])
def test_what_a_list_holds_is_needed_in_each_iteration(reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of the list's memory comes first, its own, a part that is written over, or what others know."""
    monkeypatch.setattr("irc.alias.classes.members", lambda found: sorted(members(found), reverse=reverse))
    body = "c = cat(l, 1); d = add_(c, 1); k: 'Tensor[]' = append(n, d); yield True"
    loop = f"n: 'Tensor[]' = prim.ListConstruct()\nprim.Loop(3, True)\nwith block(i=int): {body}"
    for parts in ("y, slice(cache, 1, 1, 8)", "slice(cache, 1, 0, 7), y"):
        graph = ir_graph("x: Float(1, 8); y: Float(1, 1)", f"cache = relu(x); {LIST}({parts}); {loop}", "n")
        feeds = list(feeds_of(1, {"x": (1, 8), "y": (1, 1)}).values())
        (wanted,), (found,) = interpret(graph, copied(feeds)), lower(graph).run(feeds)
        np.testing.assert_array_equal(found, wanted)


def test_a_limit_is_not_reached_by_what_an_earlier_run_made(tune: Tune) -> None:
    tune("irc.runtime.destinations.LEAST", 0)
    graph = ir_graph("x: Float(1, 4, 8); y: Float(1, n, 8)", f"{LIST}(relu(x), exp(y)); c = cat(l, 1)", "c")
    model, limits = irc.compile(graph, passes="none", backend="numpy"), irc.Limits(bytes=10_000)
    many, few = (feeds_of(0, {"x": (1, 4, 8), "y": (1, rows, 8)}) for rows in (1000, 2))
    for feeds, given in [(many, None)] * 3 + [(few, limits)] * 3 + [(many, None)]:
        (found,) = model.run(feeds, limits=given).values()
        np.testing.assert_array_equal(found, np.concatenate([np.maximum(feeds["x"], 0), np.exp(feeds["y"])], 1))
