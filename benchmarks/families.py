"""Families of graphs that grow: the same structure with 1,000 or 1,000,000 nodes.

A family is IR text, which irc and PyTorch read alike (but for ``sequences`` and ``types``),
so that both analyse and fuse the very same graph. Each stresses one way in which a compiler's time can
grow faster than its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

TENSOR = "Tensor"
TYPED = "Float(64, 64, strides=[64, 1], requires_grad=0, device=cpu)"
"""A tensor type that says all that PyTorch's fuser asks for."""

CHAINS = 20
NEST = 10
"""Loops inside each other: text indents each level, so a nest of depth n would have n² characters."""

Lines = Iterator[str]


def chain(n: int, t: str) -> Lines:
    """Functional operators and views of them, each on the last."""
    yield f"graph(%v0 : {t}):"
    for i in range(n):
        yield f"  %v{i + 1} : {t} = aten::{('relu', 't', 'neg', 't')[i % 4]}(%v{i})"
    yield f"  return (%v{n})"


def in_place(n: int, t: str) -> Lines:
    """In-place operators, each on the result of the last."""
    yield f"graph(%x : {t}):"
    yield f"  %v0 : {t} = aten::neg(%x)"
    for i in range(n - 1):
        yield f"  %v{i + 1} : {t} = aten::{('relu_', 'neg_')[i % 2]}(%v{i})"
    yield f"  return (%v{n - 1})"


def lists(n: int, t: str) -> Lines:
    """Lists that are made, appended to and read; what they hold came in as a list of unknown contents."""
    yield f"graph(%v0 : {t}, %given : Tensor[]):"
    yield "  %zero : int = prim::Constant[value=0]()"
    for i in range(n // 5):
        yield f"  %a{i} : {t} = aten::__getitem__(%given, %zero)"
        yield f"  %l{i} : Tensor[] = prim::ListConstruct(%v{i})"
        yield f"  %m{i} : Tensor[] = aten::append(%l{i}, %a{i})"
        yield f"  %e{i} : {t} = aten::__getitem__(%l{i}, %zero)"
        yield f"  %v{i + 1} : {t} = aten::neg(%e{i})"
    yield f"  return (%v{n // 5})"


def one_list(n: int, t: str) -> Lines:
    """One list that holds the results of n operators."""
    yield f"graph(%x : {t}):"
    yield "  %zero : int = prim::Constant[value=0]()"
    for i in range(n - 3):
        yield f"  %v{i} : {t} = aten::relu(%x)"
    yield f"  %l : Tensor[] = prim::ListConstruct({', '.join(f'%v{i}' for i in range(n - 3))})"
    yield f"  %y : {t} = aten::cat(%l, %zero)"
    yield "  return (%y)"


def branches(n: int, t: str) -> Lines:
    """Ifs one after the other, with ten nodes each."""
    yield f"graph(%v0 : {t}, %c : bool):"
    for i in range(n // 10):
        yield f"  %v{i + 1} : {t} = prim::If(%c)"
        for block, kinds in enumerate((("relu", "t", "neg", "t", "relu"), ("neg", "t", "relu", "t"))):
            yield f"    block{block}():"
            last = f"%v{i}"
            for k, kind in enumerate(kinds):
                yield f"      %b{i}_{block}_{k} : {t} = aten::{kind}({last})"
                last = f"%b{i}_{block}_{k}"
            yield f"      -> ({last})"
    yield f"  return (%v{n // 10})"


def loops(n: int, t: str) -> Lines:
    """Nests of ten loops inside each other, one nest after the other, each loop carrying two values."""
    yield f"graph(%p0 : {t}, %q0 : {t}, %n : int):"
    yield "  %true : bool = prim::Constant[value=1]()"
    for i in range(n // (2 * NEST)):
        yield from _nest(i, t)
    yield f"  return (%p{n // (2 * NEST)}, %q{n // (2 * NEST)})"


def _nest(i: int, t: str) -> Lines:
    p, q = f"%p{i}", f"%q{i}"
    for depth in range(NEST):
        indent = "    " * depth
        outs = (f"%p{i + 1}", f"%q{i + 1}") if depth == 0 else (f"%p{i}_{depth}o", f"%q{i}_{depth}o")
        yield f"{indent}  {outs[0]} : {t}, {outs[1]} : {t} = prim::Loop(%n, %true, {p}, {q})"
        p, q = f"%p{i}_{depth}i", f"%q{i}_{depth}i"
        yield f"{indent}    block0(%t{i}_{depth} : int, {p} : {t}, {q} : {t}):"
        yield f"{indent}      %r{i}_{depth} : {t} = aten::relu({p})"
    for depth in reversed(range(NEST)):
        # The two change places, so that the back edge matters.
        inner = f"%p{i}_{depth + 1}o" if depth + 1 < NEST else f"%q{i}_{depth}i"
        yield f"{'    ' * depth}      -> (%true, {inner}, %r{i}_{depth})"


def barriers(n: int, t: str) -> Lines:
    """A chain that an operator which cannot be fused cuts at every tenth node: n / 10 fusion groups of 9."""
    yield f"graph(%v0 : {t}):"
    for i in range(n):
        call = f"aten::mm(%v{i}, %v0)" if i % 10 == 9 else f"aten::{('relu', 'neg')[i % 2]}(%v{i})"
        yield f"  %v{i + 1} : {t} = {call}"
    yield f"  return (%v{n})"


def writes(n: int, t: str) -> Lines:
    """Multiplications with an in-place operator as every third node."""
    yield f"graph(%v0 : {t}):"
    for i in range(n):
        call = f"aten::neg_(%v{i})" if i % 3 == 2 else f"aten::mul(%v{i}, %v{i})"
        yield f"  %v{i + 1} : {t} = {call}"
    yield f"  return (%v{n})"


def parallel(n: int, t: str) -> Lines:
    """Twenty chains, interleaved, each with a barrier at every tenth of its nodes: what fuses is far apart."""
    chains = range(CHAINS)
    yield f"graph({', '.join(f'%v0_{c} : {t}' for c in chains)}):"
    for i in range(n // CHAINS):
        for c in chains:
            x = f"%v{i}_{c}"
            call = f"aten::mm({x}, {x})" if i % 10 == 9 else f"aten::{('relu', 'neg')[i % 2]}({x})"
            yield f"  %v{i + 1}_{c} : {t} = {call}"
    yield f"  return ({', '.join(f'%v{n // CHAINS}_{c}' for c in chains)})"


def groups(n: int, t: str) -> Lines:
    """Trees of ten pointwise operators each, that share only their input: n / 11 fusion groups."""
    yield f"graph(%x : {t}):"
    yield "  %zero : int = prim::Constant[value=0]()"
    count = (n - 3) // 11
    for i in range(count):
        yield f"  %g{i}_0 : {t} = aten::mm(%x, %x)"
        for k in range(10):
            call = f"aten::mul(%g{i}_{k}, %g{i}_{max(0, k - 2)})" if k % 3 == 2 else f"aten::relu(%g{i}_{k})"
            yield f"  %g{i}_{k + 1} : {t} = {call}"
    yield f"  %l : Tensor[] = prim::ListConstruct({', '.join(f'%g{i}_10' for i in range(count))})"
    yield f"  %y : {t} = aten::cat(%l, %zero)"
    yield "  return (%y)"


def in_turn(n: int, t: str) -> Lines:
    """One tensor that is read and written in turn."""
    yield f"graph(%x : {t}):"
    yield "  %one : int = prim::Constant[value=1]()"
    yield f"  %b : {t} = aten::neg(%x)"
    for i in range(n // 2 - 1):
        yield f"  %r{i} : {t} = aten::relu(%b)"
        yield f"  %w{i} : {t} = aten::add_(%b, %r{i}, %one)"
    yield "  return (%b)"


def parts(n: int, t: str) -> Lines:
    """A part of one tensor that is taken and written, an element of one list that is read and appended to, in turn."""
    yield f"graph(%x : {t}):"
    yield "  %zero : int = prim::Constant[value=0]()"
    yield "  %one : int = prim::Constant[value=1]()"
    yield f"  %b : {t} = aten::neg(%x)"
    yield "  %l : Tensor[] = prim::ListConstruct(%x)"
    for i in range(n // 5 - 1):
        yield f"  %s{i} : Tensor = aten::select(%b, %zero, %zero)"
        yield f"  %w{i} : Tensor = aten::add_(%s{i}, %one, %one)"
        yield f"  %e{i} : {t} = aten::__getitem__(%l, %zero)"
        yield f"  %r{i} : {t} = aten::relu(%e{i})"
        yield f"  %m{i} : Tensor[] = aten::append(%l, %r{i})"
    yield "  return (%b, %l)"


def rows(n: int, t: str) -> Lines:
    """Rows of one tensor, each taken, written twice and read."""
    yield f"graph(%x : {t}):"
    yield "  %zero : int = prim::Constant[value=0]()"
    yield f"  %b : {t} = aten::neg(%x)"
    for i in range(n // 5 - 1):
        yield f"  %i{i} : int = prim::Constant[value={i}]()"
        yield f"  %s{i} : Tensor = aten::select(%b, %zero, %i{i})"
        yield f"  %w{i} : Tensor = aten::zero_(%s{i})"
        yield f"  %v{i} : Tensor = aten::fill_(%s{i}, %i{i})"
        yield f"  %r{i} : Tensor = aten::relu(%s{i})"
    yield "  return (%b)"


def nested_rows(n: int, t: str) -> Lines:
    """Parts of one tensor, each of the last, each written."""
    yield f"graph(%v0 : {t}):"
    yield "  %zero : int = prim::Constant[value=0]()"
    yield "  %one : int = prim::Constant[value=1]()"
    for i in range(n // 2 - 1):
        yield f"  %v{i + 1} : Tensor = aten::narrow(%v{i}, %zero, %zero, %one)"
        yield f"  %w{i} : Tensor = aten::zero_(%v{i + 1})"
    yield "  return (%v0)"


def views(n: int, t: str) -> Lines:
    """Views of one tensor, each of the last, each written."""
    yield f"graph(%x : {t}):"
    yield f"  %v0 : {t} = aten::neg(%x)"
    for i in range(n // 2):
        yield f"  %v{i + 1} : {t} = aten::t(%v{i})"
        yield f"  %w{i} : {t} = aten::relu_(%v{i + 1})"
    yield "  return (%v0)"


def layers(n: int, t: str) -> Lines:
    """One value that each of n / 2 layers reads, between operators that cannot be fused with it: a mask, say."""
    yield f"graph(%x : {t}):"
    yield f"  %a : {t} = aten::neg(%x)"
    yield f"  %z0 : {t} = aten::mm(%x, %x)"
    for i in range(n // 2 - 1):
        yield f"  %b{i} : {t} = aten::mul(%a, %z{i})"
        yield f"  %z{i + 1} : {t} = aten::mm(%b{i}, %x)"
    yield f"  return (%z{n // 2 - 1})"


def nests(n: int, t: str) -> Lines:
    """Ifs one after the other with an If inside, which read twice what the last gave, or write it."""
    yield f"graph(%v0 : {t}, %c : bool):"
    for i in range(n // 6):
        yield f"  %v{i + 1} : {t} = prim::If(%c)"
        yield "    block0():"
        yield f"      %r{i} : {t} = aten::relu(%v{i})"
        yield f"      %o{i} : {t} = prim::If(%c)"
        yield "        block0():"
        yield f"          %s{i} : {t} = aten::relu(%v{i})"
        yield f"          -> (%s{i})"
        yield "        block1():"
        yield f"          %t{i} : {t} = aten::neg_(%v{i})"
        yield f"          -> (%t{i})"
        yield f"      -> (%o{i})"
        yield "    block1():"
        yield f"      %w{i} : {t} = aten::neg_(%v{i})"
        yield f"      -> (%w{i})"
    yield f"  return (%v{n // 6})"


def wide_tuple(n: int, t: str) -> Lines:
    """One tuple of n / 2 results, taken apart, all of which are written."""
    count = range(n // 2)
    yield f"graph(%x : {t}):"
    for i in count:
        yield f"  %a{i} : {t} = aten::neg(%x)"
    yield f"  %t : ({', '.join(t for _ in count)}) = prim::TupleConstruct({', '.join(f'%a{i}' for i in count)})"
    yield f"  {', '.join(f'%b{i} : {t}' for i in count)} = prim::TupleUnpack(%t)"
    for i in count:
        yield f"  %w{i} : {t} = aten::relu_(%b{i})"
    yield "  return (%w0)"


def appended(n: int, t: str) -> Lines:
    """A chain of operators that may run in place, every other result of which is also appended to one list."""
    yield f"graph(%v0 : {t}, %x : {t}):"
    yield "  %one : int = prim::Constant[value=1]()"
    yield "  %l : Tensor[] = prim::ListConstruct(%x)"
    for i in range(n // 3):
        yield f"  %a{i} : {t} = aten::add(%v{i}, %x, %one)"
        yield f"  %v{i + 1} : {t} = aten::relu(%a{i})"
        yield f"  %m{i} : Tensor[] = aten::append(%l, %a{i})"
    yield f"  return (%v{n // 3})"


def sequences(n: int, t: str) -> Lines:
    """ONNX's sequences, each the last with one tensor more, of which one is read."""
    yield f"graph(%x : {t}):"
    yield "  %first : Long() = prim::Constant[value=tensor([0])]()"
    yield "  %s0 : Tensor[] = onnx::SequenceConstruct(%x)"
    for i in range(n // 3):
        yield f"  %a{i} : {t} = onnx::Relu(%x)"
        yield f"  %s{i + 1} : Tensor[] = onnx::SequenceInsert(%s{i}, %a{i})"
        yield f"  %g{i} : Tensor = onnx::SequenceAt(%s{i + 1}, %first)"
    yield f"  return (%g0, %s{n // 3})"


def shift(n: int, t: str) -> Lines:
    """A loop in which n / 2 tensors move on by one place in each iteration, beside a list."""
    return _shifting(n, t, "aten::t", ", %l : Tensor[]")


def shift_written(n: int, t: str) -> Lines:
    """A loop in which n / 2 tensors are written, and move on by one place in each iteration."""
    return _shifting(n, t, "aten::relu_")


def _shifting(n: int, t: str, operator: str, more: str = "") -> Lines:
    """A loop in which n / 2 tensors move on by one place in each iteration, through ``operator``."""
    count = range(n // 2)
    yield f"graph(%x : {t}, %n : int{more}):"
    yield "  %true : bool = prim::Constant[value=1]()"
    for i in count:
        yield f"  %a{i} : {t} = aten::neg(%x)"
    results, carried = (", ".join(f"%{name}{i} : {t}" for i in count) for name in "ru")
    yield f"  {results} = prim::Loop(%n, %true, {', '.join(f'%a{i}' for i in count)})"
    yield f"    block0(%i : int, {carried}):"
    for i in count:
        yield f"      %b{i} : {t} = {operator}(%u{i})"
    yield f"      -> (%true, {', '.join(f'%b{min(i + 1, count[-1])}' for i in count)})"
    yield "  return (%r0)"


def extended(n: int, t: str) -> Lines:
    """A chain of operators that may run in place: every other one reads one list, and its result is appended there."""
    yield f"graph(%v0 : {t}, %x : {t}):"
    yield "  %zero : int = prim::Constant[value=0]()"
    yield "  %one : int = prim::Constant[value=1]()"
    yield "  %l : Tensor[] = prim::ListConstruct(%x)"
    for i in range(n // 4):
        yield f"  %e{i} : {t} = aten::__getitem__(%l, %zero)"
        yield f"  %a{i} : {t} = aten::add(%v{i}, %e{i}, %one)"
        yield f"  %v{i + 1} : {t} = aten::relu(%a{i})"
        yield f"  %m{i} : Tensor[] = aten::append(%l, %a{i})"
    yield f"  return (%v{n // 4})"


def tuples(n: int, t: str) -> Lines:
    """Tuples of what was written last, which is taken out again, and written."""
    yield f"graph(%x : {t}):"
    yield f"  %v0 : {t} = aten::neg(%x)"
    for i in range(n // 3):
        yield f"  %t{i} : ({t}, {t}) = prim::TupleConstruct(%v{i}, %x)"
        yield f"  %p{i} : {t}, %q{i} : {t} = prim::TupleUnpack(%t{i})"
        yield f"  %v{i + 1} : {t} = aten::relu_(%p{i})"
    yield f"  return (%v{n // 3})"


def pieces(n: int, t: str) -> Lines:
    """One tensor that is split into n pieces, each of which is written."""
    count = range(n - 5)
    yield f"graph(%x : {t}):"
    yield "  %one : int = prim::Constant[value=1]()"
    yield "  %zero : int = prim::Constant[value=0]()"
    yield f"  %b : {t} = aten::neg(%x)"
    yield "  %l : Tensor[] = aten::split(%b, %one, %zero)"
    yield f"  {', '.join(f'%s{i} : Tensor' for i in count)} = prim::ListUnpack(%l)"
    for i in count:
        yield f"  %w{i} : Tensor = aten::relu_(%s{i})"
    yield "  return (%b)"


def types(n: int, t: str) -> Lines:
    """Results of operators that are not known, each of another type."""
    yield f"graph(%x : {t}):"
    for i in range(n):
        elements = ", ".join((t, "int")[i >> bit & 1] for bit in range(n.bit_length()))
        yield f"  %u{i} : ({elements}, {t}) = foreign::call(%x)"
    yield "  return (%x)"


FAMILIES: dict[str, Callable[[int, str], Lines]] = {
    "chain": chain,
    "in-place": in_place,
    "lists": lists,
    "one-list": one_list,
    "branches": branches,
    "loops": loops,
    "barriers": barriers,
    "writes": writes,
    "parallel": parallel,
    "groups": groups,
    "in-turn": in_turn,
    "parts": parts,
    "rows": rows,
    "nested-rows": nested_rows,
    "views": views,
    "layers": layers,
    "nests": nests,
    "wide-tuple": wide_tuple,
    "appended": appended,
    "sequences": sequences,
    "shift": shift,
    "shift-written": shift_written,
    "extended": extended,
    "tuples": tuples,
    "pieces": pieces,
    "types": types,
}


def text(family: str, nodes: int, tensor: str = TENSOR) -> str:
    """The IR text of one family, with about ``nodes`` nodes, all tensors of the type ``tensor``."""
    return "\n".join(FAMILIES[family](nodes, tensor)) + "\n"
