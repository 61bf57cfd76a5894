"""Writing a function body: nodes of standard operators, appended one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from irc.errors import Error
from irc.frontend.onnx.types import Place
from irc.ir.kinds import ATTENTION
from irc.ir.types import NONE, DType, Type
from irc.ops import record
from irc.ops.onnx_signatures import find, versions

FAR = 2**63 - 1
"""Where slices end that go to the end."""

Operand = str | int | Sequence[int]
"""The name of a value, or int64 constants."""


class Body:
    """The body of one node; it may depend on the node's inputs, wanted outputs and attributes.

    Attributes:
        nodes: what has been written.
        types: the types of the node's inputs by name, without shapes where they are not known.
        outputs: the names of the outputs that are wanted.
        attributes: all attributes of the operator, by name.
        opset: that of its nodes.
    """

    def __init__(
        self,
        types: Mapping[str, Type],
        outputs: Collection[str],
        attributes: Mapping[str, Any],
        where: Place,
        opset: int,
    ) -> None:
        self.nodes: list[NodeProto] = []
        self.types = types
        self.outputs = outputs
        self.attributes = attributes
        self.opset = opset
        self._where = where
        self._constants: dict[object, str] = {}
        self._made = 0

    def __call__(self, op_type: str, *operands: Operand, **attributes: Any) -> str:
        """Append a node; the name of its output."""
        return self.several(1, op_type, *operands, **attributes)[0]

    def several(self, count: int, op_type: str, *operands: Operand, **attributes: Any) -> list[str]:
        """Append a node with ``count`` outputs in the newest form; their names. Last operands may be "".

        In an older one it has the form that this has.

        Raises:
            TooOldError: the opset has no operator for it.
        """
        while operands and operands[-1] == "":
            operands = operands[:-1]
        older = _OLDER.get(op_type)
        if older is not None and self.opset < older.since:
            return older.write(self, count, operands, attributes)
        return self.as_it_is(count, op_type, operands, attributes)

    def as_it_is(
        self, count: int, op_type: str, operands: Sequence[Operand], attributes: Mapping[str, Any]
    ) -> list[str]:
        """Append a node in the form that the opset has; its outputs' names. Raises TooOldError if it has none.

        Operators that exports decompose need not be in the opset.
        """
        schema = find(f"onnx::{op_type}", opset_with(op_type, self.opset))
        if schema is None or schema.deprecated or attributes.keys() - schema.attributes:
            raise TooOldError
        is_negative = min(attributes.get("axis", 0), *attributes.get("axes", ()), 0) < 0 and self.opset < _NEGATIVE
        if is_negative or not schema.min_input <= len(operands) <= schema.max_input:
            raise TooOldError
        names = [self._fresh() for _ in range(count)]
        inputs = [operand if isinstance(operand, str) else self.integers(operand) for operand in operands]
        node: NodeProto = helper.make_node(op_type, inputs, names, **attributes)
        self.nodes.append(node)
        return names

    def attention(self, inputs: Sequence[str], **attributes: Any) -> str:
        """Append an `irc::attention`, with "" for inputs that there are not; its output."""
        inputs = list(inputs)
        while not inputs[-1]:
            inputs.pop()
        name = self._fresh()
        domain, _, operator = ATTENTION.partition("::")
        self.nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        return name

    def slice(self, x: str, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]) -> str:
        """Append a Slice at constant places, in the form that the opset has; its output."""
        if self.opset < 10:
            return self("Slice", x, starts=starts, ends=ends, axes=axes)
        return self("Slice", x, starts, ends, axes)

    def choose(self, condition: str, *branches: Callable[[], Sequence[str]]) -> list[str]:
        """Append an If on a boolean scalar, each of ``branches`` appending one branch; return its outputs."""
        graphs: list[GraphProto] = []
        for branch in branches:
            nodes, constants = self.nodes, self._constants
            self.nodes, self._constants = [], dict(constants)
            results = [helper.make_empty_tensor_value_info(name) for name in branch()]
            graphs.append(helper.make_graph(self.nodes, f"branch{len(graphs)}", [], results))
            self.nodes, self._constants = nodes, constants
        first, second = graphs
        return self.several(len(first.output), "If", condition, then_branch=first, else_branch=second)

    def integers(self, value: int | Sequence[int], dtype: Any = np.int64) -> str:
        """A constant. Raises IRC127 if attributes make it too large."""
        try:
            return self.constant(np.array(value, dtype))
        except OverflowError:
            self.wrong(f"attributes ask for sizes that are too large: {value}")

    def number(self, value: float, like: str) -> str:
        """A constant of the type of the input ``like``."""
        made = self.constant(np.array(value, np.float32))
        return made if self.dtype(like) is DType.FLOAT else self.cast(made, like)

    def cast(self, x: str, like: str) -> str:
        """``x`` in the element type of the input ``like``."""
        dtype = self.dtype(like)
        return self("CastLike", x, like) if dtype is None else self("Cast", x, to=dtype.onnx)

    def constant(self, value: np.ndarray[Any, Any]) -> str:
        """A constant; the same one for the same value."""
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            self._constants[key] = self("Constant", value=numpy_helper.from_array(value))
        return self._constants[key]

    def has(self, name: str) -> bool:
        """Whether the node has this input."""
        return name in self.types

    def optional(self, name: str) -> str:
        """The name of an input; "" if the node does not have it."""
        return name if name in self.types else ""

    def rank(self, name: str) -> int | None:
        """How many axes an input has, if that is known."""
        return self.types.get(name, NONE).rank

    def size(self, name: str, axis: int) -> int | None:
        """How long an input is along an axis, if that is known."""
        shape = self.types.get(name, NONE).shape
        found = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
        return found if isinstance(found, int) else None

    def dtype(self, name: str) -> DType | None:
        """The element type of an input, if that is known."""
        return self.types.get(name, NONE).dtype

    def refuse(self, what: str) -> NoReturn:
        """Say that irc has no body for this. Raises IRC123."""
        raise Error("IRC123", f"{what}, which irc does not support", str(self._where))

    def wrong(self, what: str) -> NoReturn:
        """Say that the node is wrong. Raises IRC127."""
        raise Error("IRC127", what, str(self._where))

    def _fresh(self) -> str:
        self._made += 1
        return f"t{self._made}"


class TooOldError(Exception):
    """The opset of a body has no operator for what is to be written."""


def opset_with(op_type: str, opset: int) -> int:
    """The opset of an operator's version in a body of ``opset``, or one that exports can decompose."""
    kind = f"onnx::{op_type}"
    return max(opset, versions(kind)[0]) if record(kind).decomposed else opset


_NEGATIVE = 11
"""The first opset in which all axes may be negative."""


class _Older(NamedTuple):
    """How an operator is written before opset ``since``: ``write`` appends nodes, returns their outputs."""

    since: int
    write: Callable[[Body, int, Sequence[Operand], dict[str, Any]], list[str]]


def _axes_as_attribute(op_type: str) -> Callable[[Body, int, Sequence[Operand], dict[str, Any]], list[str]]:
    def write(b: Body, count: int, operands: Sequence[Operand], attributes: dict[str, Any]) -> list[str]:
        if len(operands) < 2:
            return b.as_it_is(count, op_type, operands, attributes)
        x, axes = operands
        if isinstance(axes, str):
            raise TooOldError
        given = [axes] if isinstance(axes, int) else list(axes)
        return b.as_it_is(count, op_type, [x], {**attributes, "axes": given})

    return write


def _shape(b: Body, count: int, operands: Sequence[Operand], attributes: dict[str, Any]) -> list[str]:
    (whole,) = b.as_it_is(count, "Shape", operands, {})
    if not attributes:
        return [whole]
    return [b.slice(whole, [attributes.get("start", 0)], [attributes.get("end", FAR)], [0])]


def _split(b: Body, count: int, operands: Sequence[Operand], attributes: dict[str, Any]) -> list[str]:
    kept = {key: value for key, value in attributes.items() if key != "num_outputs"}
    x, *sizes = operands
    if sizes and b.opset < _AXES_ARE_INPUTS:
        if isinstance(sizes[0], str | int):
            raise TooOldError
        return b.as_it_is(count, "Split", [x], {**kept, "split": list(sizes[0])})
    return b.as_it_is(count, "Split", operands, kept)


def _opposite(op_type: str) -> Callable[[Body, int, Sequence[Operand], dict[str, Any]], list[str]]:
    def write(b: Body, count: int, operands: Sequence[Operand], attributes: dict[str, Any]) -> list[str]:
        return b.as_it_is(count, "Not", b.as_it_is(count, op_type, operands, attributes), {})

    return write


_AXES_ARE_INPUTS = 13

_OLDER = {
    **{name: _Older(_AXES_ARE_INPUTS, _axes_as_attribute(name)) for name in ("ReduceSum", "Squeeze", "Unsqueeze")},
    "Shape": _Older(15, _shape),
    "Split": _Older(18, _split),
    "LessOrEqual": _Older(12, _opposite("Greater")),
    "GreaterOrEqual": _Older(12, _opposite("Less")),
}
"""Operators that changed their form."""


# Rows of the table of operators of other domains: a signature in words, and a function that writes the body.


MICROSOFT = "com.microsoft"

Default = float | int | str | tuple[float, ...] | tuple[str, ...] | None
"""The value of an attribute that a node does not give; (): it has none; None: a node must give it."""

_NUMBERS = {"float": 1, "int": 2, "string": 3, "floats": 6, "ints": 7}
"""Type of attributes -> its number in ``AttributeProto``."""


Writer = Callable[[Body], "tuple[str, ...] | str"]

_VARIADIC = "..."


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """An operator.

    Attributes:
        name: its name.
        domain: its domain.
        attributes: name -> (``AttributeProto`` type number, default).
        inputs: name -> whether it may be absent.
        outputs: likewise.
        is_variadic: whether the last input may be repeated; bodies refer to each by its name and a number.
        body: appends the operator's nodes to a body, and returns its outputs; no wanted one may be missing.
        since: the first opset of the standard operators that has all that bodies use.
        lowest: the first opset in which a body might be written otherwise.
        is_lenient: whether nodes may have other attributes, which mean nothing.
    """

    name: str
    domain: str
    attributes: dict[str, tuple[int, Default]]
    inputs: dict[str, bool]
    outputs: dict[str, bool]
    is_variadic: bool
    body: Writer
    since: int
    lowest: int = 11
    is_lenient: bool = False

    def opsets(self, opset: int) -> Iterator[int]:
        """The opsets that a body may be of in a model of ``opset``, nearest first; the last surely has it."""
        first = max(opset, min(self.lowest, self.since))
        yield from range(first, self.since)
        yield max(first, self.since)

    def input_names(self, count: int) -> list[str]:
        """The names of the inputs of a node with ``count`` of them."""
        *names, last = self.inputs
        repeated = [f"{last}{i}" for i in range(count - len(names))] if self.is_variadic else [last]
        return [*names, *repeated]

    @property
    def kind(self) -> str:
        """The kind of its nodes; once imported, a model has none of them."""
        return f"{self.domain or 'onnx'}::{self.name}"

    def __str__(self) -> str:
        inputs, outputs = (
            ", ".join(f"{name}{'?' if may_be_absent else ''}" for name, may_be_absent in formals.items())
            for formals in (self.inputs, self.outputs)
        )
        return f"{self.kind}({inputs}{_VARIADIC if self.is_variadic else ''}) -> {outputs}"


ROWS: dict[tuple[str, str], Row] = {}
"""(domain, name) -> the operator."""


def operator(
    signature: str,
    attributes: str = "",
    since: int = 18,
    domain: str = MICROSOFT,
    lowest: int = 11,
    lenient: bool = False,
) -> Callable[[Writer], Writer]:
    """Enter a row; what is decorated writes bodies.

    Args:
        signature: ``Name(input, optional?) -> output, optional?``; ``inputs...``, the last, may be any number.
        attributes: ``int required, float with_default = 1, float without =``.
        since: the opset of bodies.
        domain: that of the operator.
        lowest: the first opset that bodies might be written for.
        lenient: whether nodes may have other attributes.
    """
    left, _, outputs = signature.partition("->")
    name, _, inputs = left.strip().removesuffix(")").partition("(")
    read = dict(map(_attribute, _words(attributes)))
    formals = _formals(inputs.removesuffix(_VARIADIC)), _formals(outputs), inputs.endswith(_VARIADIC)

    def enter(body: Writer) -> Writer:
        ROWS[domain, name] = Row(name, domain, read, *formals, body, since, lowest, lenient)
        return body

    return enter


def _attribute(text: str) -> tuple[str, tuple[int, Default]]:
    declared, has_default, default = text.partition("=")
    type, name = declared.split()
    value = default.strip()
    if not has_default or not value:
        return name, (_NUMBERS[type], None if not has_default else "" if type == "string" else ())
    return name, (_NUMBERS[type], {"float": float, "int": int}.get(type, str)(value))


def _formals(text: str) -> dict[str, bool]:
    return {word.removesuffix("?"): word.endswith("?") for word in _words(text)}


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
