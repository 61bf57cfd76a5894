"""Where PyTorch's analysis is wrong: the cases of ``docs/explanation/alias-analysis.md``, its answer beside irc's.

Each test fails when PyTorch mends its answer. The second half of case 4 (updates)
and the wrong half of 6 cannot be asked from Python; irc's side is in ``tests/alias``.
"""

from typing import Any

import pytest
import torch

import irc
from irc.ir import parse_graph
from irc.ir.schema import parse_schema
from tests.alias import missed
from tests.differential.both import Both, run
from tests.differential.refusals import INSIDE, RANDOM, Refusal
from tests.graphs import ir


def cases(both: Both, a: str, b: str) -> set[int]:
    """The cases in what irc answers to: why may these share?"""
    return set(missed.cases(both.db, both[a], both[b])) - {0}


def jit(theirs: Any, *arguments: Any) -> Any:
    """What PyTorch computes of its graph with the optimisation that rests on its alias analysis: merging."""
    theirs = theirs.copy()
    torch._C._jit_pass_cse(theirs)
    return run(theirs, *arguments)


def test_1_what_is_swapped_is_written() -> None:
    both = Both(
        ir("""
        n: int; x: Tensor -> p, q
        a = relu(x); b = sigmoid(x); p, q = prim.Loop(n, True, a, b)
        with block(i=int, u=Tensor, v=Tensor): w = zero_(u); yield True, v, u
    """)
    )
    assert both.db.has_writers(both["b"]) and not both.they_write(both["b"])
    assert both.db.may_contain_alias(both["v"], both["u"]) and not both.they_contain(both["v"], both["u"])
    assert cases(both, "v", "u") == {1}


def test_1_what_the_last_iteration_returned_is_written() -> None:
    both = Both(
        ir("""
        n: int; x: Tensor -> both
        a = relu(x); k = sigmoid(x); r = add(k, k, 0); p = prim.Loop(n, True, a)
        with block(i=int, u=Tensor): w = zero_(u); yield True, k
        s = add(k, k, 0); before = neg(r); both: "(Tensor, Tensor)" = prim.TupleConstruct(before, neg(s))
    """)
    )
    assert both.db.has_writers(both["k"]) and not both.they_write(both["k"])
    assert both.db.writes_between(both["k"], both["r"].node, both["s"].node)
    before, after = run(both.theirs, 2, torch.ones(1))
    assert before != after, "the second iteration writes %k"
    before, after = jit(both.theirs, 2, torch.ones(1))
    assert before == after, "PyTorch merges what is different"


def test_1_constants_are_not_written() -> None:
    """What a loop swaps and writes is made anew in each call. (PyTorch's issue 75794.)"""
    both = Both(
        ir("""
        n: int -> both
        t: bool = prim.Constant(value=1); a = zeros([1], None, None, None, None)
        b = zeros([1], None, None, None, None); p, q = prim.Loop(n, t, a, b)
        with block(i=int, u=Tensor, v=Tensor): w = add_(u, 1, 1); yield t, v, u
        both: "(Tensor, Tensor)" = prim.TupleConstruct(p, q)
    """)
    )
    assert both.db.has_writers(both["b"]) and not both.they_write(both["b"])
    torch._C._jit_pass_constant_propagation(both.theirs)
    function = torch._C._create_function_from_graph("f", both.theirs)
    with torch.jit.optimized_execution(False):
        assert [[t.item() for t in function(2)] for _ in range(2)] == [[1, 1], [1, 2]], "PyTorch writes a constant"
    compiled = irc.compile(both.graph, "constant-fold,cse,dce")
    assert [[t.item() for t in compiled.run({"n": 2})["both"]] for _ in range(2)] == [[1, 1], [1, 1]]


def test_2_a_loop_may_make_no_iteration() -> None:
    both = Both(
        ir("""
        n: int; x: Tensor -> both
        a = neg(x); b = prim.Loop(n, True, a)
        with block(i=int, u=Tensor): v = add(u, 1, 1); yield True, v
        d = mul(a, 1); w = add_(b, 1, 1); e = mul(a, 1); before = neg(d)
        both: "(Tensor, Tensor)" = prim.TupleConstruct(before, neg(e))
    """)
    )
    assert both.db.has_writers(both["a"]) and not both.they_write(both["a"])
    assert cases(both, "b", "a") == {2}
    before, after = run(both.theirs, 0, torch.ones(1))
    assert before != after, "with no iteration, %b is %a"
    before, after = jit(both.theirs, 0, torch.ones(1))
    assert before == after, "PyTorch merges what is different"
    d, w = both["d"].node, both["w"].node
    assert d is not None and w is not None
    assert not both.db.can_move_after(d, w)
    assert both.they_move(d, w, before=False), "PyTorch moves a multiplication past the write"


CONTAINERS = {
    "a list": ("%l : Tensor[]", "", "aten::cat(%l, %z)"),
    "stack": ("%l : Tensor[]", "", "aten::stack(%l, %z)"),
    "a list in a list": ("%ll : Tensor[][]", "%l : Tensor[] = aten::__getitem__(%ll, %z)", "aten::cat(%l, %z)"),
    "list +": ("%l : Tensor[]", "%m : Tensor[] = aten::add(%l, %l)", "aten::cat(%m, %z)"),
    "values": ("%dict : Dict(int, Tensor)", "%l : Tensor[] = aten::values(%dict)", "aten::cat(%l, %z)"),
    "einsum": (
        "%l : Tensor[]",
        '%n : NoneType = prim::Constant()\n  %q : str = prim::Constant[value="i,i->i"]()',
        "aten::einsum(%q, %l, %n)",
    ),
}

MAKE: dict[str, Any] = {
    "a list in a list": lambda x: [[x]],
    "values": lambda x: {0: x},
    "einsum": lambda x: [x, x.clone()],
}


@pytest.mark.parametrize("what", CONTAINERS)
def test_3_writes_into_what_containers_hold(what: str) -> None:
    """``cat(l); l[0].add_(1); cat(l)``."""
    given, first, use = CONTAINERS[what]
    both = Both(f"""
graph({given}):
  %z : int = prim::Constant[value=0]()
  {first or "%unused : int = prim::Constant[value=0]()"}
  %r : Tensor = {use}
  %e : Tensor = aten::__getitem__(%l, %z)
  %w : Tensor = aten::add_(%e, %e, %z)
  %v : Tensor = aten::zero_(%w)
  %s : Tensor = {use}
  %before : Tensor = aten::neg(%r)
  %after : Tensor = aten::neg(%s)
  %both : (Tensor, Tensor) = prim::TupleConstruct(%before, %after)
  return (%both)
""")
    container = both.graph.inputs[0]
    assert both.db.has_writers(container) and not both.they_write(container)
    assert both.db.writes_between(container, both["r"].node, both["s"].node)
    before, after = run(both.theirs, MAKE.get(what, lambda x: [x])(torch.ones(1)))
    assert before.sum() != after.sum()
    before, after = jit(both.theirs, MAKE.get(what, lambda x: [x])(torch.ones(1)))
    assert before.sum() == after.sum(), "PyTorch merges what is different"


class Lists(torch.nn.Module):
    """What TorchScript makes of ``cat(held); held[0].zero_(); cat(held)``."""

    def __init__(self) -> None:
        super().__init__()
        self.held = [torch.ones(1)]

    def forward(self):
        before = torch.cat(self.held)
        self.held[0].zero_()
        after = torch.cat(self.held)
        return -before, -after


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_3_writes_into_what_attributes_hold() -> None:
    theirs = torch.jit.script(Lists()).graph.copy()
    both = Both(parse_graph(str(theirs)), theirs)
    (object_,) = both.graph.inputs
    first, last = (n for n in both.graph.nodes if n.kind == "aten::cat")
    for value in (object_, first.inputs[0], last.inputs[0]):
        assert both.db.has_writers(value) and not both.they_write(value)
    assert both.db.writes_between(first.inputs[0], first, last)
    before, after = run(theirs, torch.jit.script(Lists())._c)
    assert before != after
    before, after = jit(theirs, torch.jit.script(Lists())._c)
    assert before == after, "PyTorch merges what is different"


@pytest.mark.parametrize("given", ["Any, %y : Tensor", "Any, %y : Tensor[]"])
def test_4_what_types_do_not_tell_apart(given: str) -> None:
    both = Both(f"graph(%x : {given}):\n  return (%x)\n")
    assert both.db.may_alias(both["x"], both["y"])
    assert not both.they_contain(both["x"], both["y"])
    assert cases(both, "x", "y") == {4}


def test_lists_of_different_types_are_apart() -> None:
    """Both hold tensors, but a write into one is no write into the other."""
    both = Both(ir("x: Tensor?[]; y: Tensor[]; t: Tensor", 'w: "Tensor[]" = append(y, t)', "x"))
    assert not both.db.may_alias(both["x"], both["y"])
    assert both.db.may_contain_alias(both["x"], both["y"]) and both.they_contain(both["x"], both["y"])
    assert not both.db.has_writers(both["x"]) and not both.they_write(both["x"])


def test_4_an_any_that_is_a_tensor_is_written() -> None:
    both = Both(
        ir("""
        l: Any[]; x: Tensor -> a
        a = relu(x); m: "Any[]" = append(l, a); e: Any = __getitem__(l, 0); w = zero_(prim.unchecked_cast(e))
    """)
    )
    assert both.db.has_writers(both["a"]) and not both.they_write(both["a"])


@pytest.mark.parametrize("kind", ["broadcast_tensors", "meshgrid", "atleast_1d"])
def test_5_lists_of_views(kind: str) -> None:
    both = Both(f"""
graph(%x : Tensor):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %m : Tensor[] = aten::{kind}(%l)
  %v : Tensor = aten::__getitem__(%m, %z)
  %w : Tensor = aten::zero_(%v)
  return (%a)
""")
    assert run(both.theirs, torch.ones(2)).sum() == 0, "%a is written"
    assert both.db.has_writers(both["a"])
    assert 5 in cases(both, "v", "a")
    if kind == "broadcast_tensors":  # of lists used in just one place, PyTorch knows few operators to keep none
        assert not both.they_write(both["a"])


@pytest.mark.parametrize("call", ["type_as(%a, %x)", "atleast_1d(%a)", "dropout(%a, %p, %off)"])
def test_5_results_that_are_the_operand(call: str) -> None:
    both = Both(f"""
graph(%x : Tensor):
  %p : float = prim::Constant[value=0.5]()
  %off : bool = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %v : Tensor = aten::{call}
  %w : Tensor = aten::zero_(%v)
  return (%a)
""")
    assert run(both.theirs, torch.ones(2)).sum() == 0, "%a is written"
    assert both.db.has_writers(both["a"]) and not both.they_write(both["a"])
    assert cases(both, "v", "a") == {5}


def test_6_cycles_of_containers() -> None:
    """A holds B and C, B holds A: what was asked before must not matter.

    To PyTorch, containers hold what was there when they were made; what is stored later is one with the wildcard of
    its type, and so is the container. Wildcards hold those of the types inside: a cycle would take a type that
    contains itself, and of these the analysis dies (``test_crashes``). So Python cannot ask for its wrong answer.
    """
    text = ir("""
        x: Tensor -> x
        c: "Any[]" = prim.ListConstruct(x); a: "Any[]" = prim.ListConstruct(c); b: "Any[]" = prim.ListConstruct(a)
        w: "Any[]" = append(a, b)
    """)
    cold, warm = Both(text), Both(text)
    assert cold.db.may_contain_alias(cold["b"], cold["c"])
    assert warm.db.may_contain_alias(warm["a"], warm["c"])
    assert warm.db.may_contain_alias(warm["b"], warm["c"])
    names = ("a", "b", "c", "w", "x")
    pairs = [(p, q) for p in names for q in names]
    answers = set[tuple[bool, ...]]()
    for first in pairs:
        both = Both(text)
        both.they_contain(both[first[0]], both[first[1]])
        answers.add(tuple(both.they_contain(both[p], both[q]) for p, q in pairs))
    assert len(answers) == 1, "here PyTorch's wildcards hide that its closures depend on the order"


def test_7_what_escapes_as_a_union() -> None:
    """PyTorch's union of unknown memory points to that of its members, not back: what is read as a member is missed."""
    both = Both(
        ir("""
        l: Union(Tensor, Tensor[])[]; c: bool; x: Tensor -> a
        a = relu(x); k: "Tensor[]" = prim.ListConstruct(x); e: "Union(Tensor, Tensor[])" = a if c else k
        m: "Union(Tensor, Tensor[])[]" = append(l, e); u: "Union(Tensor, Tensor[])" = __getitem__(l, 0)
        t = prim.unchecked_cast(u); w = zero_(t)
    """)
    )
    assert run(both.theirs, [], True, torch.ones(2)).sum() == 0, "%a is written"
    assert both.db.has_writers(both["a"]) and not both.they_write(both["a"])
    assert both.db.may_alias(both["t"], both["a"]) and not both.they_contain(both["t"], both["a"])
    assert cases(both, "t", "a") == {7}


@pytest.mark.parametrize(
    "text",
    [
        "a::b((Tensor(a!), int) x) -> Tensor(a)",
        "a::b(Dict(str, Tensor(a!)) x) -> Tensor(a)",
        "a::b(Future(Tensor(a!)) x) -> Tensor(a)",
    ],
)
def test_8_annotations_inside_other_types(text: str) -> None:
    assert str(parse_schema(text)) == text
    assert str(torch._C.parse_schema(text)) == text.replace("(a!)", "", 1)


# -- what PyTorch does not heed when it moves nodes --------------------------------


RAISES = ir("""
    x: Tensor; c: bool -> w
    m: str = prim.Constant(value="stop"); k = prim.If(c)
    with block(): prim.RaiseException(m, None); u = prim.Uninitialized(); yield u
    with block(): v = prim.Uninitialized(); yield v
    w = zero_(x)
""")


def test_writes_move_before_what_raises_in_a_branch() -> None:
    """Whoever catches the exception sees what was written. Outside of branches PyTorch moves nothing past it."""
    both = Both(RAISES)
    k, w = both["k"].node, both["w"].node
    assert k is not None and w is not None

    def left() -> float:
        x = torch.ones(1)
        with pytest.raises(torch.jit.Error):
            run(both.theirs, x, True)
        return x.item()

    assert left() == 1
    assert not both.db.can_move_before(w, k)
    assert both.they_move(w, k, before=True)
    assert left() == 0
    outside = Both("""
graph(%x : Tensor):
  %m : str = prim::Constant[value="stop"]()
  %none : NoneType = prim::Constant()
   = prim::RaiseException(%m, %none)
  %w : Tensor = aten::zero_(%x)
  %y : Tensor = aten::relu(%w)
  return (%y)
""")
    (raises,) = (n for n in outside.graph.nodes if n.kind == "prim::RaiseException")
    w = outside["w"].node
    assert w is not None
    assert not outside.db.can_move_before(w, raises) and not outside.they_move(w, raises, before=True)


def test_random_numbers_are_drawn_in_another_order() -> None:
    both = Both(
        ir("""
        n: int -> c
        s = prim.ListConstruct(n); a = rand(s, None, None, None, None); b = rand(s, None, None, None, None)
        c: "(Tensor, Tensor)" = prim.TupleConstruct(a, b)
    """)
    )
    a, b = both["a"].node, both["b"].node
    assert a is not None and b is not None

    def drawn() -> list[list[float]]:
        torch.manual_seed(0)
        return [t.tolist() for t in run(both.theirs, 2)]

    before = drawn()
    assert not both.db.can_move_before(b, a)
    assert Refusal(both, b, a, before=True).excuses == {RANDOM}
    assert both.they_move(b, a, before=True)
    assert drawn() == before[::-1]


def test_refusals_are_excused_only_by_what_stands_in_the_way() -> None:
    """The write is plain to see, so that something raises elsewhere, and that lists hold tensors, excuses nothing."""
    both = Both(
        RAISES.replace(
            "  return (%w)", "  %l : Tensor[] = prim::ListConstruct(%x)\n  %y : Tensor = aten::relu(%x)\n  return (%y)"
        )
    )
    k, w, y = (both[name].node for name in "kwy")
    assert k is not None and w is not None and y is not None
    assert not both.db.can_move_before(y, w) and Refusal(both, y, w, before=True).excuses == set()
    assert not both.db.can_move_before(y, k) and Refusal(both, y, k, before=True).excuses == {INSIDE}
