"""What the tables say of operators (docs/explanation/architecture.md lists them) goes together."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import numpy as np
import onnx.defs
import pytest

from irc import ops
from irc.alias import must, rules
from irc.errors import Error
from irc.ir import Builder, Graph, Tensor
from irc.ir.kinds import DOMAINS, SUBGRAPHS
from irc.ops import Family
from irc.ops.record import MOVING, Movement
from irc.passes.canonicalize import match
from irc.runtime.kernels.aten import element_types
from irc.runtime.kernels.aten.pointwise import ELEMENTWISE
from irc.runtime.kernels.registry import find_binder, registered
from irc.runtime.plan import lower
from irc.tools.random_inputs.readers import ARITHMETIC, READERS
from tests.layers import sources
from tests.operators import POINTWISE, TORCH_POINTWISE, records_for_a_while
from tests.operators import TORCH as TORCH_RECORDS


def is_known(kind: str) -> bool:
    """Whether ``kind`` is an operator: of ONNX, or with schema rows, or with an alias rule of its own."""
    namespace, _, name = kind.rpartition("::")
    if namespace in DOMAINS:
        return onnx.defs.has(name.removesuffix("_"), DOMAINS[namespace])
    return bool(ops.schemas(kind)) or rules.has_rule(kind)


def test_readers_of_inputs_are_known():
    assert [kind for kind, _ in (*READERS, *ARITHMETIC) if not is_known(kind)] == []
    assert {kind for kind, _ in ARITHMETIC} <= POINTWISE | TORCH_POINTWISE


def test_torch_s_elementwise_operators_are_pointwise():
    not_so = {"glu", "prelu"}  # an element of these depends on several elements of an operand, or on its channel
    assert {f"aten::{name}" for name in ELEMENTWISE - not_so} <= TORCH_POINTWISE
    assert not_so <= ELEMENTWISE


def test_tags_are_read():
    text = "  aten::f(Tensor self) -> Tensor | pointwise=bool in-place\n  aten::f.out(Tensor a) -> Tensor | out=any"
    found = Family("aten", text).records["aten::f"]
    assert list(found.rows) == ["aten::f(Tensor self) -> Tensor", "aten::f.out(Tensor a) -> Tensor"]
    assert (found.result_type, found.in_place, found.takes, found.out) == ("bool", "", "", {"aten::f.out": "any"})


@pytest.mark.parametrize("tags", ["pointless", "in-place in-place=f", "out=any out=none"])
def test_tags_that_are_refused(tags):
    with pytest.raises(ValueError, match=r"no tag 'pointless'|twice"):
        Family("aten", f"aten::f(Tensor self) -> Tensor | {tags}")


def test_tags_mean_something():
    """What rules there are for results, the module that registers these tells when it is imported."""
    taken = [kinds for each in TORCH_RECORDS.values() for kinds in (each.takes, each.takes_both, each.in_place or "")]
    assert {kind for kinds in taken for kind in kinds} == set("buifc")
    assert {how for each in TORCH_RECORDS.values() for how in each.out.values()} == {"any", "dtype", "none"}


def test_what_is_taken_in_place_is_less_than_otherwise():
    for each in TORCH_RECORDS.values():
        assert not each.in_place or set(each.in_place) < set(each.takes or "buifc"), each


def test_both_tags_of_kinds_count():
    with records_for_a_while({"aten::f": ops.Operator("aten::f", takes="uifc", takes_both="buif")}):
        run = element_types.refusing("f", lambda x, y: None)
    given = {kind: np.zeros(1, kind) for kind in "?fF"}
    assert run(given["f"], given["?"]) is None
    for first, second in ("?f", "fF", "FF"):
        with pytest.raises(Error, match="IRC423"):
            run(given[first], given[second])


SWITCHED = [each.kind for each in ops.records() if each.random_switch is not None]

TABLES = {
    "pointwise": POINTWISE | TORCH_POINTWISE,
    "records": {each.kind for each in ops.records()},
    "kept types": {each.kind + "_" for each in ops.records() if each.keeps_type},
    "subgraphs": SUBGRAPHS,
    "alias rules": rules._BY_KIND,
    "rewrites": {kind for kinds, *_ in match.RULES for kind in kinds},
    "kernels": {kind for kind in registered() if kind.split("::")[0] in ("aten", "irc", "prim", *DOMAINS)},
    "handing on": must._SAME,
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_name_operators_that_there_are(table):
    assert sorted(kind for kind in TABLES[table] if not is_known(kind)) == []


@pytest.mark.parametrize("kind", SWITCHED)
def test_what_turns_random_numbers_off_is_an_argument(kind):
    switch = ops.record(kind).random_switch
    if kind.startswith("onnx::"):
        assert switch in {argument.name for argument in onnx.defs.get_schema(kind.removeprefix("onnx::")).inputs}
    else:
        assert any(switch == argument.name for row in ops.schemas(kind) for argument in row.arguments)


def test_tables_of_some_operators_are_parts_of_those_of_more():
    of_pointwise = [each for each in ops.records() if each.commutative or each.reads_first]
    assert {each.kind for each in of_pointwise} <= POINTWISE | TORCH_POINTWISE
    assert {each.kind for each in TORCH_RECORDS.values() if each.keeps_type} <= TORCH_POINTWISE


IN_PLACE = {each.kind for each in TORCH_RECORDS.values() if each.shape is not None and each.name.endswith("_")}
"""Of torch's operators, those that write the first operand, and change no shape."""

MOVERS = {each.kind: each.movement for each in ops.records("onnx") if each.movement in MOVING}
CHANGED_IN_PART = {each.kind for each in ops.records() if each.scatters}


WITH_CONTENTS = {each.kind for each in ops.records() if each.contents is not None}


def test_these_have_a_kernel_and_a_shape_rule():
    run = POINTWISE | TORCH_POINTWISE | IN_PLACE | CHANGED_IN_PART | MOVERS.keys()
    assert [kind for kind in run if find_binder(kind, None) is None] == []
    assert [kind for kind in run | WITH_CONTENTS if ops.record(kind).shape is None] == []


MOVED = {
    "onnx::DepthToSpace": ([], {"blocksize": 2}),
    "onnx::Expand": ([[3, 4, 2, 2]], {}),
    "onnx::Reshape": ([[2, -1]], {}),
    "onnx::Slice": ([[1], [0], [1], [-2]], {}),
    "onnx::SpaceToDepth": ([], {"blocksize": 2}),
    "onnx::Split": ([[4]], {"axis": 1}),
    "onnx::Squeeze": ([[0]], {}),
    "onnx::Tile": ([[1, 2, 1, 1]], {}),
    "onnx::Unsqueeze": ([[0, 2]], {}),
}
"""Other operands and attributes, of operators that need some."""


@pytest.mark.parametrize("kind", sorted(MOVERS))
def test_movers_give_elements_of_the_first_operand(kind):
    x = np.arange(16).reshape(1, 4, 2, 2)
    operands, attributes = MOVED.get(kind, ([], {}))
    graph = Graph()
    b = Builder(graph)
    inputs = [b.constant(Tensor.of(np.array(given))) for given in (x, *operands)]
    graph.set_outputs([b.op(kind, *inputs, attributes=attributes)])
    (found,) = lower(graph).run([])
    assert set(found.flat) <= set(x.flat)
    if MOVERS[kind] is not Movement.SELECTED:
        assert sorted(found.flat) == list(x.flat)
        assert (list(found.flat) == list(x.flat)) == (MOVERS[kind] is Movement.IN_ORDER)


def test_importing_irc_reads_no_records():
    script = """
import irc.alias, irc.frontend, irc.fuser, irc.native, irc.passes, irc.passes.canonicalize, irc.runtime, irc.cli
from irc.ops import registry
print(registry._read)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


MOST_MODULES = 6
"""An operator is named in the modules of its record and its kernel, and where something treats it specially."""

NAMED = ("onnx::Conv", "onnx::Relu", "onnx::LayerNormalization", "onnx::Softmax", "onnx::MaxPool")


def names_in(tree: ast.Module) -> Iterator[str]:
    """The names in a module that operators may have: strings that are names or lists of them, and schema rows."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            words = node.value.split()
            if all(re.fullmatch(r"[\w:.]+", word) for word in words):
                yield from words
            yield from re.findall(r"^\s*([\w:.]+)\(", node.value, re.MULTILINE)


@cache
def modules_that_name() -> dict[str, set[str]]:
    """Name, without namespace, overload and the number of an operand -> modules."""
    found: dict[str, set[str]] = {}
    for source in sources():
        for name in names_in(source.tree):
            found.setdefault(name.rpartition("::")[2].partition(".")[0], set()).add(source.name)
    return found


@pytest.mark.parametrize("kind", [*NAMED, "aten::add_", "aten::cat"])
def test_an_operator_is_named_in_few_modules(kind):
    named = modules_that_name()[kind.rpartition("::")[2]]
    assert named and len(named) <= MOST_MODULES, sorted(named)


def test_names_are_found():
    source = """
'''Conv is not named here.'''
kinds = ["onnx::Conv", "Relu Softmax", "such as MaxPool, say"]
rows = '''
  aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
'''
"""
    assert {*names_in(ast.parse(source))} == {"onnx::Conv", "Relu", "Softmax", "aten::add_.Tensor"}
