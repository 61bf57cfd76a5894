"""Steps that make unions of values of different types, and tell what they are."""

from functools import partial

from irc.ir import types
from tests.programs.any_steps import bag, cast, cast_to, put_and_take, take
from tests.programs.control_steps import MAX_DEPTH, condition, fork
from tests.programs.kinds import Boxed, Kind, blended, ir_type
from tests.programs.maker import Maker
from tests.programs.torch_steps import Step


def blend(m: Maker) -> None:
    """One of two values that are there already and of different types."""
    a = m.tensor()
    b = m.find(lambda k: blended(m.kind(a), k) is not None)
    kind = None if b is None else blended(m.kind(a), m.kind(b))
    if b is not None and kind is not None:
        node = m.node_with_blocks("prim::If", [condition(m)])
        for value in m.pick([(a, b), (b, a)]):
            node.add_block().set_returns([value])
        m.finish(node, [kind])


def tell_apart(m: Maker) -> None:
    """Which of two kinds something is; in each block it is that."""
    if m.depth >= MAX_DEPTH:
        return
    x = m.find(lambda k: isinstance(k, Boxed) and len(k.kinds) == 2)
    if x is None:
        blend(m)
        return
    kinds: tuple[Kind, ...] = m.kind(x).kinds
    asked = {"types": [ir_type(kinds[0], False)]}
    truth = m.builder.op("prim::isinstance", x, type=types.BOOL, attributes=asked)
    fork(m, truth, [partial(cast_to, x=x, kind=kind) for kind in kinds])


STEPS: dict[str, tuple[Step, ...]] = {"unions": (blend, tell_apart, tell_apart, bag, put_and_take, take, cast)}
