"""Writes that nothing sees, because a later one overwrites all that they write: found, and none that is seen."""

from collections.abc import Callable
from itertools import product
from random import Random

import numpy as np
import pytest

from irc.alias import analyze
from irc.alias.overwrites import Coverage, dead_stores
from irc.ir import Graph, Node, parse_graph
from irc.passes import PassManager
from tests.alias.view_programs import SHAPES, WRITING, check, overwriting_program
from tests.programs.interpreter import Interpreter, Observer

Array = np.ndarray
NUMBERS = (-3, -2, -1, 0, 1, 2, 3, 9)
CONSTANTS = "  %none : NoneType = prim::Constant()\n" + "".join(
    f"  {'%m' if n < 0 else '%c'}{abs(n)} : int = prim::Constant[value={n}]()\n" for n in NUMBERS
)


def _name(number: int | None) -> str:
    return "%none" if number is None else f"{'%m' if number < 0 else '%c'}{abs(number)}"


def _views() -> dict[str, Callable[[Array], Array]]:
    """Views of `%x`, as operators and as they are in NumPy."""
    found: dict[str, Callable[[Array], Array]] = {}
    for low, high, step in product((None, -2, 0, 1, 3), (None, -1, 1, 2, 9), (1, 2)):
        text = f"aten::slice(%x, %c0, {_name(low)}, {_name(high)}, {_name(step)})"
        found[text] = lambda x, low=low, high=high, step=step: x[low:high:step]
    for dim, at in product((0, 1, -1), (-2, 0, 1)):
        found[f"aten::select(%x, {_name(dim)}, {_name(at)})"] = lambda x, dim=dim, at=at: np.take(x, at, dim)
    for start, length in product((-2, 0, 1), (0, 1, 2)):
        places = [start + i for i in range(length)]
        found[f"aten::narrow(%x, %c0, {_name(start)}, {_name(length)})"] = lambda x, at=places: np.take(x, at, 0)
    return found


def test_what_covers_a_view_shows_all_of_it_at_all_sizes() -> None:
    views = _views()
    names = dict(zip(views, range(len(views))))
    body = "".join(f"  %v{number} : Tensor = {text}\n" for text, number in names.items())
    graph = parse_graph(f"graph(%x : Tensor):\n{CONSTANTS}{body}  return (%x)\n")
    found_by = Coverage()
    shown: dict[str, list[set[int] | None]] = {}
    for text, take in views.items():
        shown[text] = []
        for size in range(6):
            try:
                shown[text].append(set(take(np.arange(3 * size).reshape(size, 3)).ravel().tolist()))
            except IndexError:
                shown[text].append(None)
    found = 0
    for a, b in product(views, views):
        both = [(x, y) for x, y in zip(shown[a], shown[b]) if x is not None and y is not None]
        is_covered = found_by.covers(graph.value(f"v{names[a]}"), graph.value(f"v{names[b]}"))
        assert not is_covered or all(x >= y for x, y in both), f"{a} does not show all of {b}"
        found += is_covered
    assert found > 400


HEAD = f"graph(%x : Tensor, %y : Tensor, %i : int, %t : bool):\n{CONSTANTS}  %b : Tensor = aten::clone(%x, %none)\n"
PARTS = """
  %s : Tensor = aten::slice(%b, %c0, %c0, %c2, %c1)
  %t1 : Tensor = aten::slice(%b, %c0, %c0, %c3, %c1)
  %r : Tensor = aten::slice(%b, %c0, %c2, %c3, %c1)
"""


def of_body(body: str) -> Graph:
    return parse_graph(f"{HEAD}{PARTS}{body}  return (%b)\n")


UNSEEN = {
    "the same part": ("%w : Tensor = aten::neg_(%s)", "%z : Tensor = aten::zero_(%s)"),
    "a smaller part": ("%w : Tensor = aten::neg_(%s)", "%z : Tensor = aten::copy_(%t1, %y, %t)"),
    "a part of the whole": ("%w : Tensor = aten::neg_(%s)", "%z : Tensor = aten::fill_(%b, %c1)"),
    "the same part, as the result of a write": ("%w : Tensor = aten::neg_(%s)", "%z : Tensor = aten::zero_(%w)"),
    "a part that is taken again": (
        "%p : Tensor = aten::select(%b, %c0, %i)",
        "%w : Tensor = aten::neg_(%p)",
        "%q : Tensor = aten::select(%b, %c0, %i)",
        "%z : Tensor = aten::zero_(%q)",
    ),
    "a part, while another is read": (
        "%w : Tensor = aten::neg_(%s)",
        "%e : Tensor = aten::exp(%r)",
        "%n : int = aten::size(%s, %c0)",
        "%z : Tensor = aten::zero_(%s)",
    ),
}
SEEN = {
    "a part that is read": ("%w : Tensor = aten::neg_(%s)", "%e : Tensor = aten::exp(%s)"),
    "a part of which something larger is read": ("%w : Tensor = aten::neg_(%s)", "%e : Tensor = aten::exp(%t1)"),
    "a part that is copied by its write": ("%w : Tensor = aten::neg_(%s)", "%z : Tensor = aten::copy_(%s, %b, %t)"),
    "a larger part": ("%w : Tensor = aten::neg_(%t1)",),
    "a part that a branch reads": (
        "%w : Tensor = aten::neg_(%s)",
        "%e : Tensor = prim::If(%t)",
        "  block0():",
        "    %d : Tensor = aten::exp(%b)",
        "    -> (%d)",
        "  block1():",
        "    -> (%y)",
    ),
    "a part that is read by way of its storage": (
        "%l : int[] = prim::ListConstruct(%c1)",
        "%w : Tensor = aten::neg_(%s)",
        "%e : Tensor = aten::as_strided_copy(%r, %l, %l, %c0)",
    ),
    "a part of what unknown code keeps": ("%k : Tensor = my::keep(%b)", "%w : Tensor = aten::neg_(%s)", "my::look()"),
    "random numbers": ("%w : Tensor = aten::uniform_(%s, %u, %u, %none)",),
    "another row": (
        "%p : Tensor = aten::select(%b, %c0, %i)",
        "%j : int = aten::add(%i, %c1)",
        "%s0 : Tensor = aten::select(%b, %c0, %j)",
        "%w : Tensor = aten::neg_(%p)",
        "%z0 : Tensor = aten::zero_(%s0)",
    ),
    "a tensor whose shape changes": ("%w : Tensor = aten::neg_(%s)", "%q : Tensor = aten::t_(%b)"),
}


@pytest.mark.parametrize("case", UNSEEN)
def test_a_write_that_nothing_sees_goes(case: str) -> None:
    graph = of_body("".join(f"  {line}\n" for line in UNSEEN[case]))
    found = dead_stores(analyze(graph))
    assert [node.output.name for node in found] == ["w"]
    stats = PassManager("dce").run(graph).stats
    assert stats["dce.stores"] == 1 and "neg_" not in str(graph) and "exp" not in str(graph)


@pytest.mark.parametrize("case", SEEN)
def test_a_write_that_something_may_see_stays(case: str) -> None:
    lines = (*SEEN[case], *["%last : Tensor = aten::zero_(%s)"] * ("copy_" not in SEEN[case][-1]))
    float_ = "  %u : float = prim::Constant[value=0.5]()\n"
    graph = of_body(float_ + "".join(f"  {line}\n" for line in lines))
    assert not dead_stores(analyze(graph))


def test_a_write_to_what_is_declared_unknown_stays() -> None:
    graph = of_body("".join(f"  {line}\n" for line in UNSEEN["the same part"]))
    db = analyze(graph)
    db.set_wildcard(graph.value("s"))
    assert not dead_stores(db)


def test_writes_over_one_another_go_but_for_the_last() -> None:
    writes = "".join(f"  %w{i} : Tensor = aten::neg_({'%s' if i % 3 else f'%w{i - 3}'})\n" for i in range(3, 60))
    graph = of_body(f"  %w0 : Tensor = aten::neg_(%s)\n{writes}  %z : Tensor = aten::zero_(%b)\n")
    while PassManager("dce").run(graph).changed:
        pass
    assert "neg_" not in str(graph) and "zero_(%b)" in str(graph)


@pytest.mark.parametrize("place", ["%c{}", "%c0"])
def test_the_work_grows_as_the_number_of_writes(place: str, spy) -> None:
    look = spy(Coverage, "covers")
    for count in (100, 400):
        before = look.call_count
        numbers = "".join(f"  %n{i} : int = prim::Constant[value={i}]()\n" for i in range(count))
        parts = "".join(
            f"  %s{i} : Tensor = aten::select(%x, %n0, {place.format(i).replace('c', 'n')})\n"
            f"  %w{i} : Tensor = aten::zero_(%s{i})\n"
            for i in range(count)
        )
        found = dead_stores(analyze(parse_graph(f"graph(%x : Tensor):\n{numbers}{parts}  return (%x)\n")))
        assert len(found) == (count - 1) * (place == "%c0")
        assert look.call_count - before <= 8 * count


def check_programs(first: int, count: int) -> None:
    found = [check(Random(number), overwriting_program) for number in range(first, first + count)]
    assert sum(unseen for _, unseen in found) > 4 * count, "writes that are said to be seen by nothing are rare"


def test_nothing_sees_what_is_said_to_be_unseen() -> None:
    check_programs(0, 60)


class _Failures(Observer):
    """Whether a write has failed, so that the run would have ended."""

    failed = False

    def left_out(self, node: Node) -> None:
        self.failed |= node.kind in WRITING


def check_passes(first: int, count: int) -> None:
    """What programs leave in their input is the same after passes, where they run to the end."""
    compared = removed = 0
    for number in range(first, first + count):
        random = Random(number)
        module = overwriting_program(random)
        changed = module.copy()
        pipeline = random.choice(["dce", "cse,dce", "(cse,dce)*2", "remove-mutation,cse,dce"])
        removed += PassManager(pipeline, ["verify-alias"]).run(changed).stats.get("dce.stores", 0)
        for shape in random.sample(SHAPES, 3):
            left: list[Array] = []
            failed = False
            for each in (module, changed):
                x, failures = np.arange(np.prod(shape), dtype=np.float32).reshape(shape), _Failures()
                with np.errstate(all="ignore"):
                    Interpreter(each, failures, lenient=True).block(each.main.block, [x, 1, 2], {})
                left.append(x)
                failed |= failures.failed
            if not failed:
                np.testing.assert_array_equal(*left, err_msg=f"{pipeline}, {shape}\n{module}")
                compared += 1
    assert compared > count / 4 and removed > count, "writes that go are rare"


def test_programs_without_their_unseen_writes_do_the_same() -> None:
    check_passes(0, 40)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_nothing_sees_what_is_said_to_be_unseen_in_many_programs(block: int) -> None:
    check_programs(10_000 + 300 * block, 300)
    check_passes(10_000 + 200 * block, 200)
