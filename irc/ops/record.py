"""The record of an operator, all that irc knows of it, and the families in which records are stated.

A family is a module of `irc.ops`. It states the facts of an operator in one or several statements (a schema row with
tags, a function that is its scalar semantics, an `Operator` with further fields), which together are one record. No two
statements may set the same field.

Schema rows are text, an overload a line, with *tags* after a bar for what else is known of the operator:

====================  ================================================================================================
``pointwise``         on tensors, which broadcast as in NumPy, each element of the result depends on the one at its
                      place in each operand; the shape rule is the operator's own
``pointwise=RULE``    likewise, and this tells the result's element type, which is all that a shape rule needs:
                      ``common``, that of the operands; ``float``, that one, or float32 if it is bools' or integers';
                      ``bool``; ``first``, that of the first operand; ``first-if-float``, that one, if it is floats';
                      ``wider``, another one even if all operands have one float type: the shape rule tells which
``takes=KINDS``       the kinds of element types that the first operand may have
``takes-both=KINDS``  those that the type may be of that the first two operands have in common
``in-place``          ``X_`` takes what ``X`` takes and writes the result into the first operand: it needs no row
``in-place=KINDS``    likewise, but the first operand of ``X_`` must be of these kinds
``out=any``           of this row: the result is converted to the element type of a tensor given as ``out=``, if results
                      in place are (no float into integers); else it must have it
``out=dtype``         of this row: the argument ``dtype`` is the element type of ``out`` if it is not given
``out=none``          no overload takes ``out=``
``copied``            of this row of a view: ``X_copy`` takes what ``X`` takes and gives what ``X`` shows, in memory of
                      its own: it needs no row
``layout=WORDS``      how it treats memory layouts; several words are separated by ``+``:
                      ``seen``, it gives something else, or fails, if an operand lies otherwise;
                      ``storage``, likewise if the memory of an operand begins elsewhere: a view may show a part of it;
                      ``view-or-copy``, its result shares memory with the first operand or not, as its layout has it;
                      ``anew``, its result lies in one way, however its operands do;
                      ``contiguous``, its result is contiguous, unless it is given a memory format;
                      ``like-first``, its result lies as the first operand does, without its gaps, unless it is given
                      a memory format;
                      ``in-order``, its result is contiguous if the first operand is: a view, or a copy;
                      ``part``, likewise, if it shows a part along the first dimension with steps of 1;
                      ``varies``, it is pointwise, but its result may be contiguous where the operand is not;
                      ``gaps``, its result is memory of its own that may have gaps, and begin with one
====================  ================================================================================================

Those that are not of a row are of the operator, whichever of its rows has them. Kinds are NumPy's characters: ``b`` of
bool, ``u`` and ``i`` of integers, ``f`` of floats, ``c`` of complex numbers. An operator without such a tag takes all
kinds, or its kernel tells. Empty lines, and those that begin with ``#``, say nothing. A line with words in braces, as
in ``aten::{sin cos}(Tensor self) -> Tensor``, is a row for each of them, which ``{}`` behind repeats. ``{options}``
stands for the options of operators that make tensors, ``{like}`` for these and the memory format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum, Flag, IntEnum, auto
from functools import wraps
from types import MappingProxyType
from typing import Any, Literal

from irc.ir import Node, Shape, TensorType, Type
from irc.ops.algebra import PRIMITIVES, Expression
from irc.ops.inference import Contents, NodeTypes, OperandTypes
from irc.ops.regions import RegionRule
from irc.ops.scalar import Function, ScalarSemantics
from irc.ops.views import View

ShapeRule = Callable[["NodeTypes"], "Type | Sequence[Type]"]
"""Gives the types of a node's outputs; missing trailing ones are left as they are."""

Reshaping = Callable[[Any, Shape], "Shape | None"]
"""Gives the shape of a node's result, of what a family's shape rules are given and the shape of the first operand."""

ContentsRule = Callable[["NodeTypes"], "Contents | None"]
"""Gives the elements of a node's result, a small integer tensor; None if they are not known."""

Check = Callable[["NodeTypes"], None]
"""Raises IRC310 if the node does not have what its operator requires."""

ReducedAxes = Callable[["Node", int], "Sequence[int] | None"]
"""The axes, of a first operand of this rank, along which a node reduces; None if they are not known."""

Size = Callable[["OperandTypes"], "float | None"]
"""The most bytes that the results take of the operands with which a node is run; None if the shape rule tells them."""

Count = Callable[["NodeTypes", int], int]
"""A number of operations of a node whose first result has this many elements. TypeError if it depends on a size that
is not known (None among the sizes that are multiplied)."""


AllowedValues = tuple[object, ...] | Literal["number", "integer", "integers"]
"""What an attribute may be."""


class Effects(Flag):
    """Effects of an operator that no alias annotation can express."""

    NONE = 0
    RANDOM = auto()
    """Advances the state of a random number generator: nothing may merge, drop or reorder such nodes."""
    SIDE_EFFECT = auto()
    """Acts on the world (prints, raises, reads a clock): it is never removed, and nothing is moved past it."""


class Movement(Enum):
    """How an operator moves elements: each element of the result is one of the first operand's.

    `GATHERED` is looser: elements may come from other operands, too.
    """

    IN_ORDER = "all elements, each once, in their order: only the shape is another"
    PERMUTED = "all elements, each once, in another order"
    SELECTED = "some elements, or some of them several times"
    GATHERED = "elements of several operands, or those that the contents of other operands name"


REARRANGING = (Movement.IN_ORDER, Movement.PERMUTED)
"""The result has all elements of the first operand, each once."""

MOVING = (*REARRANGING, Movement.SELECTED)
"""Shapes and attributes tell which element of the first operand each element of the result is."""


class Change(IntEnum):
    """What a write changes of the tensors in the memory that it writes; each includes those before it."""

    ELEMENTS = 0
    """Elements only, or what a container holds."""
    SHAPE = 1
    """Shape and strides of a tensor, which then shows the same elements."""
    MEMORY = 2
    """Which part of its storage a tensor shows, or which storage."""


@dataclass(frozen=True, eq=False)
class Operator:
    """What irc knows of an operator. A field that is left out has the value for the common operator.

    Attributes:
        kind: namespace and name, such as ``onnx::Relu``.
        rows: schema rows in PyTorch's notation, an overload each, or a single one. A row may leave the kind out:
            ``(Tensor(a) x) -> Tensor(a)``, or ``.overload(Tensor x) -> Tensor``. ONNX's signatures are those of the
            onnx package; a row states only that results may share memory with inputs.
        effects: what it does besides computing results and writing memory.
        random_switch: the argument that disables random numbers if it is false or zero.
        changes: what it changes of the tensor that it writes.
        pointwise: whether each element of the result depends only on the element at its place in each operand, which
            broadcast as in NumPy, and the kernel takes ``out=``. (For ``aten::``: `result_type`.)
        scalar: what a pointwise operator computes of one element of each operand; oldest version first.
        result_type: of pointwise ``aten::`` operators, how the element type of the result follows from those of the
            operands, "" if its shape rule alone tells; see the tags above. None for all others.
        takes: the kinds of element types that the first operand may have; "" for all.
        takes_both: those that the common type of the first two operands may have; "" for all.
        in_place: ``X_`` takes what ``X`` takes and needs no row: the kinds of element types that its first operand
            may have, "" for all; None if there is no such form.
        out: how the rows (names with overload) treat a tensor given as ``out=``; see the tags above.
        shape: tells the types of the results from those of the operands. None: they are as declared.
        contents: tells the elements of the result, in the arithmetic on shapes that exporters write.
        requires: what the specification asks of attributes, and of operands' ranks, sizes and constants, beyond types.
        movement: how it moves elements, if it does nothing else.
        covers_operand: whether the first result shows all of the first operand's memory, in its order; implied by the
            `movement` `IN_ORDER`.
        view: how the view is taken again of other memory, and how new contents of a view reach its base; None if either
            cannot be said.
        region: where a view lies in what it is a view of; None if nothing is known of that.
        keeps_elements: of a view that may show no elements though the operand has some, whether that of a node shows
            some. None: all do.
        scatters: whether the result is the first operand but for some elements.
        overwrites: whether it writes all elements of its first operand, and reads none of them.
        shaped_like_first: whether the result has the shape of the first operand, although others may have more axes.
        commutative: whether two operands may change places, to the bit.
        reads_first: of a pointwise operator of two tensors, whether its in-place form has read both at a place when it
            writes there, so that both may be one tensor. True of commutative ones anyway.
        keeps_type: of others than ONNX's, the kinds of element types that the result has if the first operand has
            them, and no other operand widens it, so that the in-place form may be put in its place; "" if none.
        macs: if it sums products, the multiply-accumulates of a node, which bound what constant folding may take.
        flops: of an operator that sums no products and is not pointwise, the arithmetic operations of a node; None:
            one for each element of the operand if it reduces, else none.
        reduces: the axes along which it reduces rows of the first operand, each by itself.
        epilogues: whether pointwise operators behind it may be fused with it.
        widened: the operands of which constants of 16-bit floats are worth keeping as float32, in which it computes.
        value_operands: the operands whose contents decide the shapes of results; all else follows from shapes and
            attributes. None: the results may have any shape. Of ONNX's with a shape rule, (), where nothing is stated.
        contents_from: what decides the contents of results: "operands", "shapes" of these alone, or "chance", too.
        needed_outputs: how many outputs nodes must have; later ones may be left out. None: all.
        attributes: what attributes must be beyond what the onnx package says: one of several values, or of irc's own
            operators a "number", or, and then they must be given, an "integer" or "integers".
        expanded: whether models import it as its function body.
        early: how ONNX Runtime takes it in opsets before it came to be, and writes it into models of these: as it is
            since, "as-is", or "lenient", with any other attributes and types that differ; "" if it does not.
        decomposed: whether exports write it as several operators where the opset lacks it, so that function bodies that
            irc writes may have it in all.
        changes_meaning: versions that compute something else than the ones before, although their schemas only take
            more.
        kernel: the module of `irc.runtime.kernels` that has its kernels; "" for that of its namespace.
        copied: the rows (names with overload) of a view for which ``X_copy`` gives the same in memory of its own.
        layout: words on memory layouts, that is the order and the strides in which the elements of tensors lie: whether
            it sees those of operands, and how its result lies; see the tags above.
        size: where the shape rule cannot tell how large results are, as they are strings or lists, or contents decide
            their shapes: the most bytes that they take, of the operands that it is run with; see `irc.ops.sizes`. None
            of it: the shape rule can. None: it always can, or they are not much larger than what it is given.
    """

    kind: str
    rows: Sequence[str] = ()
    effects: Effects = Effects.NONE
    random_switch: str | None = None
    changes: Change = Change.ELEMENTS
    pointwise: bool = False
    scalar: tuple[ScalarSemantics, ...] = ()
    result_type: str | None = None
    takes: str = ""
    takes_both: str = ""
    in_place: str | None = None
    out: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    shape: ShapeRule | None = None
    contents: ContentsRule | None = None
    requires: tuple[Check, ...] = ()
    movement: Movement | None = None
    covers_operand: bool = False
    view: View | None = None
    region: RegionRule | None = None
    keeps_elements: Callable[[Node], bool] | None = None
    scatters: bool = False
    overwrites: bool = False
    shaped_like_first: bool = False
    commutative: bool = False
    reads_first: bool = False
    keeps_type: str = ""
    macs: Count | None = None
    flops: Count | None = None
    reduces: ReducedAxes | None = None
    epilogues: bool = False
    widened: tuple[int, ...] = ()
    value_operands: tuple[int, ...] | None = None
    contents_from: Literal["operands", "shapes", "chance"] = "operands"
    needed_outputs: int | None = None
    attributes: Mapping[str, AllowedValues] = field(default_factory=lambda: MappingProxyType({}))
    expanded: bool = False
    early: Literal["", "as-is", "lenient"] = ""
    decomposed: bool = False
    changes_meaning: tuple[int, ...] = ()
    kernel: str = ""
    copied: tuple[str, ...] = ()
    layout: frozenset[str] = frozenset()
    size: Size | None = None

    def __post_init__(self) -> None:
        rows = (self.rows,) if isinstance(self.rows, str) else self.rows
        whole = tuple(f"{self.kind}{row}" if str(row)[:1] in ("(", ".") else row for row in rows)
        object.__setattr__(self, "rows", whole)

    @property
    def name(self) -> str:
        """The kind without its namespace."""
        return self.kind.rpartition("::")[2]

    def semantics(self, version: int | None = None) -> ScalarSemantics | None:
        """The scalar semantics at ``version`` (None: the newest); None if there are none."""
        for each in reversed(self.scalar):
            if version is None or each.since <= version:
                return each
        return None


_DEFAULTS: dict[str, Any] = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory()
    for each in fields(Operator)
    if each.name != "kind"
}

_JOINED = ("rows", "scalar", "requires", "copied")
"""Fields of which each statement may have a part."""


def kind_of(row: str) -> str:
    """``aten::add_`` of the row ``aten::add_.Tensor(...) -> ...``."""
    namespace, _, rest = row.partition("(")[0].strip().rpartition("::")
    return f"{namespace}::{rest.partition('.')[0]}"


# -- rows with tags ---

_BAR = " | "

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_ABBREVIATIONS = (("{like}", "{options}, MemoryFormat? memory_format=None"), ("{options}", _OPTIONS))

_WORDS = re.compile(r"(.*)\{(\w+(?: \w+)+)\}(.*)")  # the last ones in braces

_TAGS = {
    "pointwise": "result_type",
    "takes": "takes",
    "takes-both": "takes_both",
    "in-place": "in_place",
    "copied": "copied",
    "out": "out",
    "layout": "layout",
}
"""Tag -> the field of the record that its value is."""


def _statements(text: str) -> Iterator[Operator]:
    """What the rows in ``text`` state, one by one; ValueError for an unknown tag."""
    for abbreviation, meaning in _ABBREVIATIONS:
        text = text.replace(abbreviation, meaning)
    lines = [each for each in map(str.strip, text.splitlines()) if each and not each.startswith("#")]
    for line in (row for each in lines for row in _rows(each)):
        row, _, words = line.partition(_BAR)
        facts: dict[str, Any] = {}
        for word in words.split():
            tag, _, value = word.partition("=")
            if tag not in _TAGS:
                raise ValueError(f"there is no tag {tag!r}: {line}")
            if _TAGS[tag] in facts:
                raise ValueError(f"the tag {tag!r} is there twice: {line}")
            facts[_TAGS[tag]] = _field(tag, value, row)
        yield Operator(kind_of(row), (row,), **facts)


def _rows(line: str) -> Iterator[str]:
    """``line`` for each of the words in braces."""
    found = _WORDS.fullmatch(line)
    if found is None:
        yield line
        return
    before, words, after = found.groups()
    for word in words.split():
        yield from _rows(f"{before}{word}{after.replace('{}', word)}")


def _field(tag: str, value: str, row: str) -> Any:
    name = row.partition("(")[0]
    if tag in ("copied", "out"):
        return {name: value} if tag == "out" else (name,)
    return frozenset(value.split("+")) if tag == "layout" else value


# -- families ---


class Family:
    """The records of one module.

    Args:
        namespace: of the kinds that are given without one.
        rows: schema rows with tags.
    """

    def __init__(self, namespace: str = "", rows: str = "") -> None:
        self._prefix = f"{namespace}::"
        self.stated: dict[str, dict[str, Any]] = {}
        """Kind -> the fields that are stated of it."""
        self.add(_statements(rows))

    @property
    def records(self) -> dict[str, Operator]:
        """Kind -> record."""
        return {kind: Operator(kind, **_in_order(facts)) for kind, facts in self.stated.items()}

    def add(self, *statements: Operator | ScalarSemantics | Iterable[Operator]) -> None:
        """Add statements; those of an operator that has a record complete it."""
        for statement in statements:
            if isinstance(statement, Operator):
                self.state(statement.kind, facts_of(statement))
            elif isinstance(statement, ScalarSemantics):
                is_pointwise = not statement.kind.startswith("aten::")
                self.state(statement.kind, {"scalar": (statement,)} | ({"pointwise": True} if is_pointwise else {}))
            else:
                self.add(*statement)

    def each(self, names: str, **facts: Any) -> None:
        """State the same facts of several operators, whose names are separated by spaces."""
        self._state_each(names.split(), facts)

    def primitives(self, names: str, since: int = 1, **properties: Any) -> None:
        """State that operators compute primitives of their names in lower case, or as in ``Div=divide``.

        Before the version ``since``, they do not broadcast.
        """
        for name, _, of in (word.partition("=") for word in names.split()):
            found = ScalarSemantics(f"{self._prefix}{name}", PRIMITIVES[of or name.lower()], since, **properties)
            self.add(found, *([replace(found, since=1, broadcasts=False)] if since > 1 else []))

    def semantics(self, kind: str, **properties: Any) -> Callable[[Function], Function]:
        """Make a function the scalar semantics of ``kind``."""

        def enter(function: Function) -> Function:
            self.add(ScalarSemantics(kind, function, **properties))
            return function

        return enter

    def unary(self, name: str, function: Callable[[Expression], Expression], **properties: Any) -> None:
        """State what an operator computes of its operand; keyword-only parameters are attributes."""
        self.semantics(self._prefix + name, **properties)(function)

    def binary(self, name: str, function: Callable[[Expression, Expression], Expression], **properties: Any) -> None:
        """State what an operator computes of its two operands."""
        self.semantics(self._prefix + name, **properties)(function)

    def shape(self, *names: str) -> Callable[[ShapeRule], ShapeRule]:
        """Make a function the shape rule of these operators."""
        return self._attach("shape", names)

    def reshapes(self, *names: str) -> Callable[[Reshaping], Reshaping]:
        """Make a function tell a result's shape from the first operand's, whose element type it has."""

        def enter(rule: Reshaping) -> Reshaping:
            @wraps(rule)
            def told(c: Any) -> Type:
                x: TensorType = c.tensor(0)
                return TensorType(x.dtype, None if x.shape is None else rule(c, x.shape))

            self.shape(*names)(told)
            return rule

        return enter

    def contents(self, *names: str) -> Callable[[ContentsRule], ContentsRule]:
        """Make a function the rule for the contents of the results of these operators."""
        return self._attach("contents", names)

    def reduces(self, *names: str) -> Callable[[ReducedAxes], ReducedAxes]:
        """Make a function tell the axes along which these operators reduce."""
        return self._attach("reduces", names)

    def macs(self, *names: str) -> Callable[[Count], Count]:
        """Make a function tell the multiply-accumulates of these operators."""
        return self._attach("macs", names)

    def requires(self, *names: str) -> Callable[[Check], Check]:
        """Make a function a check of nodes of these operators, after those stated before."""
        return self._attach("requires", names)

    def _attach(self, field: str, names: Iterable[str]) -> Callable[[Any], Any]:
        """What makes a function the value, or another part, of a field of these operators."""

        def enter(function: Any) -> Any:
            self._state_each(names, {field: (function,) if field in _JOINED else function})
            return function

        return enter

    def _state_each(self, names: Iterable[str], facts: Mapping[str, Any]) -> None:
        for name in names:
            self.state(name if "::" in name else self._prefix + name, facts)

    def state(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Complete the facts of ``kind``; ValueError if a field without parts was set before."""
        known = self.stated.setdefault(kind, {})
        for name, value in facts.items():
            before = known.setdefault(name, value)
            if before is value or before == value:
                continue
            if name in _JOINED:
                known[name] = (*before, *value)
            elif isinstance(value, Mapping):
                known[name] = {**before, **value}
            else:
                raise ValueError(f"{kind} has {name} twice: {before!r} and {value!r}")


def facts_of(statement: Operator) -> dict[str, Any]:
    """The fields of ``statement`` that are not left out, but for the kind."""
    return {name: told for name, default in _DEFAULTS.items() if (told := getattr(statement, name)) != default}


def joined(families: Iterable[Family]) -> Family:
    """What ``families`` state, which may complete each other's records."""
    whole = Family()
    for family in families:
        for kind, facts in family.stated.items():
            whole.state(kind, facts)
    return whole


def _in_order(facts: dict[str, Any]) -> dict[str, Any]:
    """``facts`` with the oldest scalar semantics first."""
    if len(facts.get("scalar", ())) < 2:
        return facts
    return facts | {"scalar": tuple(sorted(facts["scalar"], key=lambda each: each.since))}
