"""The record of an operator: all that irc knows of it, in one place, and the families that records are stated in.

A family is a module of `irc.ops`. It states the facts of an operator in one or several statements (a schema row with
tags, a function that is its scalar semantics, an `Operator` with further fields), which together are one record. No two
statements may set the same field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum, Flag, IntEnum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from irc.ops.scalar import Function, ScalarSemantics

if TYPE_CHECKING:
    from irc.ir.types import Type
    from irc.ops.inference import Contents, NodeTypes

ShapeRule = Callable[["NodeTypes"], "Type | Sequence[Type]"]
"""Gives the types of a node's outputs; missing trailing ones are left as they are."""

ContentsRule = Callable[["NodeTypes"], "Contents | None"]
"""Gives the elements of a node's result, a small integer tensor; None if they are not known."""

Check = Callable[["NodeTypes"], None]
"""Raises IRC310 if the node does not have what its operator requires."""


class Effects(Flag):
    """Effects of an operator that no alias annotation can express."""

    NONE = 0
    RANDOM = auto()
    """Advances the state of a random number generator: nothing may merge, drop or reorder such nodes."""
    SIDE_EFFECT = auto()
    """Acts on the world (prints, raises, reads a clock): it is never removed, and nothing is moved past it."""


class Movement(Enum):
    """How an operator moves elements: each element of the result is one of the first operand's."""

    IN_ORDER = "all elements, each once, in their order: only the shape is another"
    PERMUTED = "all elements, each once, in another order"
    SELECTED = "some elements, or some of them several times"


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
            operands, "" if its shape rule alone tells; see `irc.ops.tags`. None for all others.
        takes: the kinds of element types that the first operand may have; "" for all.
        takes_both: those that the common type of the first two operands may have; "" for all.
        in_place: ``X_`` takes what ``X`` takes and needs no row: the kinds of element types that its first operand
            may have, "" for all; None if there is no such form.
        out: how the rows (names with overload) treat a tensor given as ``out=``; see `irc.ops.tags`.
        shape: tells the types of the results from those of the operands. None: they are as declared.
        contents: tells the elements of the result, in the arithmetic on shapes that exporters write.
        requires: what the specification asks of attributes, and of operands' ranks, sizes and constants, beyond types.
        movement: how it moves elements, if it does nothing else.
        scatters: whether the result is the first operand but for some elements.
        commutative: whether two operands may change places, to the bit, and the result has their type.
        keeps_type: the kinds of element types that the result has if the first operand has them, so that the in-place
            form may be put in its place; "" if none.
        contracts: whether it sums products: each element of a result takes many multiplications.
        epilogues: whether pointwise operators behind it may be fused with it.
        value_operands: the operands whose contents decide the shapes of results; all else follows from shapes and
            attributes. None: the results may have any shape.
        kernel: the module of `irc.runtime.kernels` that has its kernels; "" for that of its namespace.
        copied: the rows (names with overload) of a view for which ``X_copy`` gives the same in memory of its own.
        layout: words on memory layouts, that is the order and the strides in which the elements of tensors lie: whether
            it sees those of operands, and how its result lies; see `irc.ops.tags`.
        object_size: estimates the bytes of the strings or lists that it makes of the operands that it is called with.
            None: they are not much larger than what it is given.
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
    scatters: bool = False
    commutative: bool = False
    keeps_type: str = ""
    contracts: bool = False
    epilogues: bool = False
    value_operands: tuple[int, ...] | None = None
    kernel: str = ""
    copied: tuple[str, ...] = ()
    layout: frozenset[str] = frozenset()
    object_size: Callable[..., float] | None = None

    def __post_init__(self) -> None:
        rows = (self.rows,) if isinstance(self.rows, str) else self.rows
        whole = tuple(f"{self.kind}{row}" if str(row)[:1] in ("(", ".") else row for row in rows)
        object.__setattr__(self, "rows", whole)

    @classmethod
    def of(cls, *rows: str, **facts: Any) -> Operator:
        """The record of the operator that ``rows`` are of, with kind and overload."""
        return cls(kind_of(rows[0]) if isinstance(rows[0], str) else "", rows, **facts)  # type: ignore[reportUnnecessaryIsInstance]

    @property
    def name(self) -> str:
        """The kind without its namespace."""
        return self.kind.rpartition("::")[2]

    def semantics(self, version: int | None = None) -> ScalarSemantics | None:
        """The scalar semantics at ``version`` (None: the newest); None if there are none."""
        return next((each for each in reversed(self.scalar) if version is None or each.since <= version), None)


_DEFAULTS: dict[str, Any] = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory()
    for each in fields(Operator)
    if each.name != "kind"
}


def merged(first: Operator, second: Operator) -> Operator:
    """One record of two statements on an operator; ValueError if both set a field other than rows, out and scalar."""
    told: dict[str, Any] = {}
    for name, default in _DEFAULTS.items():
        mine, its = getattr(first, name), getattr(second, name)
        if its in (default, mine):
            continue
        if mine == default:
            told[name] = its
        elif name in ("rows", "scalar", "copied"):
            told[name] = (*mine, *its)
        elif name == "out":
            told[name] = {**mine, **its}
        else:
            raise ValueError(f"{first.kind} has {name} twice: {mine!r} and {its!r}")
    return replace(first, **told) if told else first


def each(kinds: str, **facts: Any) -> Iterator[Operator]:
    """A statement of the same facts on each of ``kinds``, several separated by spaces."""
    return (Operator(kind, **facts) for kind in kinds.split())


def kind_of(row: str) -> str:
    """``aten::add_`` of the row ``aten::add_.Tensor(...) -> ...``."""
    namespace, _, rest = row.partition("(")[0].strip().rpartition("::")
    return f"{namespace}::{rest.partition('.')[0]}"


class Family:
    """The records of one module.

    Args:
        namespace: of the kinds that are given without one.
        statements: of its operators.
    """

    def __init__(self, namespace: str = "", statements: Iterable[Operator] = ()) -> None:
        self._prefix = f"{namespace}::"
        self.records: dict[str, Operator] = {}
        for statement in statements:
            self._enter(statement)

    def add(self, *statements: Operator | ScalarSemantics | Iterable[Operator]) -> None:
        """Add statements; those of an operator that has a record complete it."""
        for statement in statements:
            if isinstance(statement, Operator):
                self._enter(statement)
            elif isinstance(statement, ScalarSemantics):
                self._enter(
                    Operator(statement.kind, scalar=(statement,), pointwise=not statement.kind.startswith("aten::"))
                )
            else:
                for one in statement:
                    self._enter(one)

    def add_broadcasting_since(self, version: int, *operators: ScalarSemantics) -> None:
        """Add ``operators`` from ``version`` on, and before it as operators that do not broadcast."""
        for each in operators:
            self.add(replace(each, since=version), replace(each, broadcasts=False))

    def semantics(self, kind: str, **properties: Any) -> Callable[[Function], Function]:
        """Make a function the scalar semantics of ``kind``."""

        def enter(function: Function) -> Function:
            self.add(ScalarSemantics(kind, function, **properties))
            return function

        return enter

    def shape(self, *kinds: str) -> Callable[[ShapeRule], ShapeRule]:
        """Make a function the shape rule of ``kinds``."""
        return self._attach("shape", kinds)

    def contents(self, *kinds: str) -> Callable[[ContentsRule], ContentsRule]:
        """Make a function the rule for the contents of the results of ``kinds``."""
        return self._attach("contents", kinds)

    def _attach(self, field: str, kinds: Iterable[str]) -> Callable[[Any], Any]:
        def enter(function: Any) -> Any:
            for kind in kinds:
                self._enter(Operator(kind if "::" in kind else self._prefix + kind, **{field: function}))
            return function

        return enter

    def _enter(self, statement: Operator) -> None:
        known = self.records.get(statement.kind)
        record = statement if known is None else merged(known, statement)
        if len(record.scalar) > 1:
            record = replace(record, scalar=tuple(sorted(record.scalar, key=lambda each: each.since)))
        self.records[statement.kind] = record


def gathered(families: Iterable[Family]) -> dict[str, Operator]:
    """The records of ``families``, which may complete each other's."""
    whole = Family()
    for family in families:
        whole.add(family.records.values())
    return whole.records
