"""Fixing the sizes of named dimensions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.errors import Error
from irc.ir import MAX_SIZE, Module, parse_graph, parse_module
from irc.ir.declarations import OUTPUT_TYPE, fixed_sizes, read_sizes, sizes_text
from irc.passes import FixSizes, PassManager, parse_pipeline, print_pipeline
from tests.effort import examples
from tests.graphs import ir
from tests.passes.helpers import run_passes

BATCH = 'fix-sizes{sizes="batch=2"}'


FUNCTION = ir("""
    x: Float(batch) -> y
    f: Function = prim.Constant(name="f"); y: Float(batch) = prim.CallFunction(f, x)

    f | a: Float(batch) -> r
    r: Float(batch) = Exp(a)
""")


def test_what_is_declared_of_outputs_and_the_record() -> None:
    module = parse_module(FUNCTION.replace("%x : Float(batch)", "%x : Float(batch), %z : Float(n)"))
    module.metadata[f"{OUTPUT_TYPE}y"] = "Float(batch)[]"
    run_passes(module, BATCH)
    assert module.metadata == {f"{OUTPUT_TYPE}y": "Float(2)[]", "irc.sizes": "batch=2"}
    run_passes(module, 'fix-sizes{sizes="n=5,batch=2"}')
    assert fixed_sizes(module.metadata) == fixed_sizes(module.copy().metadata) == {"batch": 2, "n": 5}
    assert irc.compile(module.graphs["f"], "none").sizes == {}


# -- what is wrong ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("bach=1", r"no named dimension 'bach'; did you mean 'batch'\?"),
        ("rows=1", r"no named dimension 'rows'; it has 'batch', 'm \+ n', 'm'"),
        ("n=1", "no named dimension 'n'; "),
        ("batch=1,other=2", "no named dimension 'other'"),
    ],
)
def test_names_that_inputs_do_not_have(sizes: str, message: str) -> None:
    """Those of other values may be of any size."""
    text = 'graph(%x : Float(batch, "m + n"), %l : Float(m)[]):\n  %y : Float(rows) = onnx::NonZero(%x)\n  return (%y)'
    graph = parse_graph(text)
    before = str(graph)
    with pytest.raises(Error, match=f"^IRC311: .*{message}"):
        PassManager([FixSizes(sizes)]).run(graph)
    assert str(graph) == before


def test_a_model_without_names() -> None:
    with pytest.raises(Error, match=r"IRC311: the model has no named dimension 'batch'; it has none"):
        irc.compile(parse_graph("graph(%x : Tensor, %y : Float(2)):\n  return (%x)"), sizes={"batch": 1})


def test_what_has_been_fixed_stays() -> None:
    module = parse_module("graph(%x : Float(batch)):\n  return (%x)")
    run_passes(module, BATCH)
    with pytest.raises(Error, match=r"IRC311: dimension 'batch' is 2 already: it cannot be 3"):
        run_passes(module, 'fix-sizes{sizes="batch=3"}')


@pytest.mark.parametrize(
    "text",
    ["batch", "batch=", "=1", " =1", '""=1', "batch=-1", "batch=1.5", f"batch={MAX_SIZE + 1}", "a=1,", ",", "a=1 b=2"],
)
def test_texts_that_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected NAME=SIZE,\.\.\. with integers below 2\*\*63, not "):
        FixSizes(text)
    with pytest.raises(Error, match=r"(?s)IRC303.*pass 'fix-sizes': expected NAME=SIZE.*\^\^"):
        parse_pipeline(f"cse,{print_pipeline((unchecked(text),))}")


def unchecked(text: str) -> FixSizes:
    made = FixSizes()
    object.__setattr__(made, "sizes", text)
    return made


def test_a_size_that_is_given_twice() -> None:
    with pytest.raises(Error, match=r"IRC303.*the size of 'a' is given twice"):
        parse_pipeline('fix-sizes{sizes="a=1,a=1"}')


@pytest.mark.parametrize(
    "sizes",
    [
        {"a": -1},
        {"a": "1"},
        {"a": True},
        {"a": 1.0},
        {"a": None},
        {1: 1},
        {None: 1},
        {"": 1},
        [1],
        "a=1",
        {"a": MAX_SIZE + 1},
    ],
)
def test_what_are_no_sizes_in_python(sizes: Any) -> None:
    with pytest.raises(Error, match=r"IRC303: sizes are integers from 0 on by name, such as {'batch': 1}, not "):
        irc.compile(parse_graph("graph(%x : Float(a)):\n  return (%x)"), sizes=sizes)


# -- texts -----------------------------------------------------------------------


@given(st.dictionaries(st.text(st.characters(codec=None), min_size=1), st.integers(0, MAX_SIZE), max_size=3))
def test_any_names_round_trip(sizes: dict[str, int]) -> None:
    made = FixSizes.of(sizes)
    assert read_sizes(made.sizes) == sizes
    assert parse_pipeline(print_pipeline((made,))) == (made,)
    assert fixed_sizes({"irc.sizes": sizes_text(sizes)}) == sizes


def test_metadata_of_strangers_say_nothing() -> None:
    assert fixed_sizes({"irc.sizes": "batch=one", "metadata_props.irc.sizes": "n=4"}) == {"n": 4}
    assert fixed_sizes({"irc.sizes": '"\\q"=1'}) == {}


# -- fixed models compute what the others do -------------------------------------

STEPS = {
    "relu": "%Y : Tensor = onnx::Relu(%X)",
    "swap": "%Y : Tensor = onnx::Transpose[perm=[1, 0, 2]](%X)",
    "twice": "%Y : Tensor = onnx::Concat[axis=1](%X, %X)",
    "fold": """%Y_s : Tensor = onnx::Shape[start=0, end=2](%X)
      %Y_p : Tensor = onnx::ReduceProd[keepdims=1](%Y_s)
      %Y_l : Tensor = onnx::Concat[axis=0](%one, %Y_p, %four)
      %Y : Tensor = onnx::Reshape[allowzero=1](%X, %Y_l)""",
    "expand": """%Y_s : Tensor = onnx::Shape(%X)
      %Y_r : Tensor = onnx::Slice(%X, %zero, %one, %one)
      %Y : Tensor = onnx::Expand(%Y_r, %Y_s)""",
    "positions": """%Y_s : Tensor = onnx::Shape[start=1, end=2](%X)
      %Y_n : Tensor = onnx::Squeeze(%Y_s)
      %Y_p : Tensor = onnx::Range(%start, %Y_n, %step)
      %Y_f : Tensor = onnx::Cast[to=1](%Y_p)
      %Y_c : Tensor = onnx::Unsqueeze(%Y_f, %one)
      %Y : Tensor = onnx::Mul(%X, %Y_c)""",
    "all but the first": "%Y : Tensor = onnx::Slice(%X, %one, %large, %one)",
    "loop": """%Y_s : Tensor = onnx::Shape[start=0, end=1](%X)
      %Y_n : Tensor = onnx::Squeeze(%Y_s)
      %Y : Tensor = onnx::Loop(%Y_n, %yes, %X)
        block0(%Y_i : Long(), %Y_go : Bool(), %Y_c : Tensor):
          %Y_d : Tensor = onnx::Sin(%Y_c)
          -> (%Y_go, %Y_d)""",
    "one of two": """%Y_s : Tensor = onnx::Shape[start=0, end=1](%X)
      %Y_e : Tensor = onnx::Equal(%Y_s, %one)
      %Y_b : Tensor = onnx::Squeeze(%Y_e)
      %Y : Tensor = prim::If(%Y_b)
        block0():
          %Y_1 : Tensor = onnx::Neg(%X)
          -> (%Y_1)
        block1():
          %Y_2 : Tensor = onnx::Exp(%X)
          -> (%Y_2)""",
}
"""Each makes of %X, of rank 3, a %Y of rank 3."""


def program(steps: list[str]) -> Module:
    numbers = {
        "zero": ("1", 0),
        "one": ("1", 1),
        "four": ("1", 4),
        "large": ("1", 1 << 40),
        "start": ("", 0),
        "step": ("", 1),
    }
    lines = [f"%{name} : Long({d}) = prim::Constant[value=tensor([{n}])]()" for name, (d, n) in numbers.items()]
    lines += ["%yes : Bool() = prim::Constant[value=tensor([1])]()", "%v0 : Tensor = onnx::Add(%x, %y)"]
    lines += [STEPS[step].replace("%X", f"%v{i}").replace("%Y", f"%v{i + 1}") for i, step in enumerate(steps)]
    body = "\n  ".join(lines)
    return parse_module(f"graph(%x : Float(a, b, 4), %y : Float(a, 1, 4)):\n  {body}\n  return (%v{len(steps)})\n")


@examples(150)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6),
    st.fixed_dictionaries({"a": st.integers(0, 3), "b": st.integers(0, 3)}),
    st.sampled_from([["a"], ["b"], ["b", "a"]]),
)
def test_results_are_those_of_the_model_that_takes_all_sizes(
    steps: list[str], sizes: dict[str, int], fixed: list[str]
) -> None:
    module = program(steps)
    fix = {name: sizes[name] for name in fixed}
    rng = np.random.default_rng(0)
    feeds = {v: rng.normal(size=(sizes["a"], n, 4)).astype(np.float32) for v, n in (("x", sizes["b"]), ("y", 1))}
    try:
        (wanted,) = irc.compile(module).run(feeds).values()
    except Error as error:  # such sizes are impossible, which may be known now before the run
        if error.code == "IRC309":  # a mistake in a pass
            raise
        with pytest.raises(Error, match=r"IRC(310|4\d\d)"):
            irc.compile(module, sizes=fix).run(feeds)
        return
    model = irc.compile(module, sizes=fix, instruments=["verify-each", "verify-changed"])
    (found,) = model.run(feeds).values()
    assert model.sizes == fix
    assert found.dtype == wanted.dtype and np.array_equal(found, wanted, equal_nan=True)


def test_files_keep_them(tmp_path: Path) -> None:
    model = irc.compile(program(["fold", "twice"]), sizes={"a": 2})
    assert model.report.pipeline.startswith('fix-sizes{sizes="a=2"},inline,')
    assert parse_pipeline(model.report.pipeline)[0] == FixSizes("a=2")
    model.save(tmp_path / "m.irc")
    loaded = irc.load(tmp_path / "m.irc")
    assert loaded.sizes == {"a": 2} and str(loaded.inputs[0].type) == "Float(2, b, 4)"
    x, y = (np.zeros((1, n, 4), np.float32) for n in (5, 1))
    with pytest.raises(Error, match=r"^IRC413: input 'x': expected 2 on axis 0, .*; the model was compiled for a=2$"):
        loaded.run({"x": x, "y": y})
    with pytest.raises(Error, match=r"^IRC413: .*got shape \[1, 2, 4\]$"):
        irc.compile(program(["relu"]).main.copy(), "none").run({"x": x, "y": np.zeros((1, 2, 4), np.float32)})
