"""ONNX types and IR types, both ways.

========================  =============================
``TypeProto``             IR
========================  =============================
``tensor_type``           ``TensorType(dtype, shape)``
``sequence_type``         ``ListType(elem)``
``optional_type``         ``OptionalType(elem)``
``map_type``              ``DictType(key, value)``
========================  =============================

A map's key becomes ``str`` or ``int``; the width of an integer key is not
kept (every operator that takes a map has int64 or string keys).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from onnx import helper

from irc.errors import Error
from irc.ir import CONSTANT, DType, Graph, Module, TensorType, Type
from irc.ir.clone import clone_node, clone_nodes
from irc.ir.declarations import declared_type
from irc.ir.region_flow import DECLARED_INPUTS, DECLARED_ROWS
from irc.ir.types import ANY, INT, STR, TENSOR, DictType, ListType, OptionalType, merged, without_names, without_shapes
from irc.ops import record
from irc.ops.inference import Known, NodeTypes
from irc.ops.shape_rules import types_told

if TYPE_CHECKING:
    from onnx import TensorShapeProto, TypeProto

    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.scan import RawGraph
    from irc.ir import Node


# Shared parts of the importer: places in messages, and texts that may not be UTF-8.


MAX_DEPTH = 64
"""How deep graphs and function calls may nest, together."""

Place = object
"""Where something is wrong: anything whose ``str`` names the place, so that names are made only for messages."""


def text(value: str, what: Place) -> str:
    """``value``, which protobuf gives as ``bytes`` if it is not UTF-8. Raises IRC121."""
    if not isinstance(value, str):  # type: ignore[reportUnnecessaryIsInstance]  # see above
        raise Error("IRC121", f"the text {value!r} is not UTF-8", str(what))
    return value


def texts(values: Iterable[str], what: Place) -> list[str]:
    """``values`` as a list, each checked as ``text`` does."""
    found = list(values)
    try:
        "".join(found)  # much faster than to look at each
    except TypeError:
        for value in found:
            text(value, what)
        raise
    return found


# -- types ---------------------------------------------------------------------


MAX_NESTING = 16
"""How deep types may nest; ``seq(map(int64, tensor(float)))`` has three levels."""

_INTEGERS = {d.onnx for d in DType if d.is_integer}
_BY_NAME = {d.name.lower(): d for d in DType}
_UNDEFINED = 0
_SAYS_NOTHING = re.compile(r"\?*|-\d+|(?i:none|null|nan|unk|unknown|undefined)")
"""What exporters write in place of the name of a size that they do not know: such sizes may differ."""

_LARGEST = (1 << 63) - 1


def from_proto(proto: TypeProto, where: Place, depth: int = 0) -> Type:
    """The IR type of a ``TypeProto``; ``TENSOR`` if it says nothing. Raises IRC131."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        dtype = element_type(tensor.elem_type, where)
        if not tensor.HasField("shape"):
            return TensorType(dtype)
        return TensorType(dtype, tuple([_dim(d, where) for d in tensor.shape.dim]))
    if kind == "sparse_tensor_type":  # its values are dense here, as those of sparse initializers
        sparse = proto.sparse_tensor_type
        shape = tuple([_dim(d, where) for d in sparse.shape.dim]) if sparse.HasField("shape") else None
        return TensorType(element_type(sparse.elem_type, where), shape)
    if kind is None:
        return TENSOR
    if depth == MAX_NESTING:
        raise Error("IRC131", f"types nest deeper than {MAX_NESTING} levels", str(where))
    if kind == "sequence_type":
        return ListType(from_proto(proto.sequence_type.elem_type, where, depth + 1))
    if kind == "optional_type":
        return OptionalType(from_proto(proto.optional_type.elem_type, where, depth + 1))
    if kind == "map_type":
        key = proto.map_type.key_type
        if key != DType.STRING.onnx and key not in _INTEGERS:
            raise Error("IRC131", f"a map's keys are integers or strings, not element type {key}", str(where))
        value = from_proto(proto.map_type.value_type, where, depth + 1)
        return DictType(STR if key == DType.STRING.onnx else INT, value)
    raise Error("IRC131", f"values of ONNX's {kind} are not supported", str(where))


def element_type(number: int, where: Place) -> DType | None:
    """The element type with ``TensorProto.DataType`` ``number``; None for UNDEFINED. Raises IRC131."""
    if number == _UNDEFINED:
        return None
    try:
        return DType.from_onnx(number)
    except KeyError:
        raise Error("IRC131", f"{number} is not an element type that irc knows", str(where)) from None


def _dim(dim: TensorShapeProto.Dimension, where: Place) -> int | str | None:
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        size = dim.dim_value
        if size < -1:
            raise Error("IRC131", f"a dimension of size {size}", str(where))
        return None if size < 0 else size  # -1 is how several exporters spell an unknown size
    if kind != "dim_param":
        return None
    name = text(dim.dim_param, where)
    return None if _SAYS_NOTHING.fullmatch(name) else name


def to_proto(type: Type) -> TypeProto:
    """The ``TypeProto`` of an IR type; TypeError for types that ONNX lacks, Error IRC350 for bad sizes."""
    if isinstance(type, TensorType):
        if any(isinstance(size, int) and size > _LARGEST for size in type.shape or ()):
            raise Error("IRC350", f"ONNX's sizes are at most {_LARGEST}; here is {type}")
        shape: Any = type.shape
        return helper.make_tensor_type_proto(type.dtype.onnx if type.dtype else _UNDEFINED, shape)
    if isinstance(type, ListType):
        return helper.make_sequence_type_proto(to_proto(type.elem))
    if isinstance(type, OptionalType):
        return helper.make_optional_type_proto(to_proto(type.elem))
    if isinstance(type, DictType):
        key = DType.STRING.onnx if type.key == STR else DType.INT64.onnx
        return helper.make_map_type_proto(key, to_proto(type.value))
    raise TypeError(f"ONNX has no type for {type}")


def from_schema(text: str) -> Type:
    """The IR type of a type string of an operator's schema, such as ``seq(map(int64, float))``."""
    text = text.strip()
    head, _, rest = text.partition("(")
    inner = rest.removesuffix(")")
    if head == "tensor":
        return TensorType(_BY_NAME.get(inner))
    if head == "seq":
        return ListType(from_schema(inner))
    if head == "optional":
        return OptionalType(from_schema(inner))
    if head == "map":
        key, _, value = inner.partition(",")
        return DictType(STR if key.strip() == "string" else INT, from_schema(value))
    return TensorType(_BY_NAME.get(head))  # a bare element type: the values of a map


def settle(inferred: Type | None, declared: Type | None) -> Type:
    """The type that a value starts with, from what irc infers and what the model declares.

    A declaration (``value_info``) adds what irc does not know yet,
    but never overrides the kind of value or its element type. Of what an operator that irc does not know gives,
    wherever that is passed on, only the declaration says anything.
    """
    if inferred is None or inferred is ANY:
        return declared or inferred or TENSOR
    if declared is None:
        return inferred
    return merged(inferred, declared, _settled)


def _settled(inferred: TensorType, declared: TensorType) -> TensorType:
    if inferred.dtype is not None and declared.dtype not in (None, inferred.dtype):
        return inferred
    shape = declared.shape if inferred.shape is None else inferred.shape
    return TensorType(inferred.dtype or declared.dtype, shape)


# Types that a node's outputs start with: those in the operator's schema, without shapes.
#
# Shape inference makes them exact later. What matters here is that the kind of
# every value (tensor, list, optional) is right from the start, because it
# decides which values may share memory.


_BY_RECORDS = frozenset(
    """
    ai.onnx.ml::ZipMap onnx::Optional onnx::OptionalGetElement onnx::SequenceAt onnx::SequenceConstruct
    onnx::SequenceEmpty onnx::SplitToSequence
    """.split()
)
"""Operators whose schemas relate an output's type to an input's, or to attributes, only in words: records do."""


def output_types(operator: Operator, node: Node, count: int) -> list[Type]:
    """The types of the first ``count`` outputs of ``node``, which has none yet, without shapes."""
    rule = record(operator.kind).shape if operator.kind in _BY_RECORDS else None
    if rule is not None:
        return list(map(without_shapes, types_told(rule, NodeTypes(node, Known()))))
    inputs = [value.type for value in node.inputs]
    last = len(operator.outputs) - 1
    found: list[Type] = []
    for number in range(count):
        output = operator.outputs[min(number, last)]
        type = output.fallback
        for position in output.like:
            # An absent input has no type to share, and one of unknown element type says too little.
            if position < len(inputs) and _says_something(inputs[position]):
                type = without_shapes(inputs[position])
                break
        found.append(type)
    return found


def _says_something(type: Type) -> bool:
    return type.dtype is not None if isinstance(type, TensorType) else isinstance(type, (ListType, OptionalType))


# Shapes that the body of a Loop or Scan declares: kept beside the node, as passes would trust them on its values.


Declared = tuple[str, "TypeProto | None"]


def keep_rows(node: Node, params: Sequence[Declared], body: RawGraph, first: int) -> None:
    """Keep the types of rows that ``body`` returns from output ``first`` on; it has these ``params``.

    The types are those that the body declares, or those that follow from what it declares of its parameters.
    """
    outputs = body.outputs[first:]
    rows = [_tensor([output, (output[0], body.declared.get(output[0]))]) for output in outputs]
    if any(row.shape is None for row in rows):
        given = [_tensor([param]) for param in params]
        if any(type.shape is not None for type in given):
            found = _inferred(node, given)[first:]
            rows = [type if row.shape is None else row for row, type in zip(rows, found, strict=True)]
    _keep(node, DECLARED_ROWS, rows)


def keep_inputs(node: Node, params: Sequence[Declared], body: RawGraph, states: int) -> None:
    """Keep the ranks that ``body``, a Scan's with parameters ``params``, declares of its inputs.

    A state has the same rank in all iterations, so what the body declares of the states that it returns counts too.
    """
    types = [_tensor([param, *body.outputs[i : min(i + 1, states)]]) for i, param in enumerate(params)]
    ranked = [type if type.shape is None else TensorType(type.dtype, (None,) * len(type.shape)) for type in types]
    _keep(node, DECLARED_INPUTS, ranked)


def _tensor(sources: Iterable[Declared]) -> TensorType:
    """The tensor type that several declarations of one value give together."""
    found = TensorType()
    for name, declared in sources:
        if declared is not None:
            found = _plain(settle(found, from_proto(declared, f"type of {name!r}")))
    return found


def _plain(type: Type) -> TensorType:
    found = without_names(type)
    return found if isinstance(found, TensorType) else TensorType()


def _keep(node: Node, key: str, types: Sequence[TensorType]) -> None:
    if any(type.shape is not None for type in types):
        node.attributes[key] = [str(type) for type in types]


def _inferred(node: Node, given: Sequence[TensorType]) -> list[TensorType]:
    """The types that the body of ``node`` returns for declared parameters; unknown on contradiction."""
    from irc.passes.shapes import Inference

    (body,) = node.blocks
    graph = Graph("body", node.graph.weights, node.graph.module)
    mapping = {param: graph.add_input(settle(param.type, type)) for param, type in zip(body.params, given, strict=True)}
    for value in node.captures():
        constant = value.made_by(CONSTANT)
        if constant is not None:
            graph.block.append(clone_node(constant, graph, mapping))
        else:
            mapping[value] = graph.add_input(value.type)
    clone_nodes(body, graph.block, mapping)
    try:
        Inference(graph).run()
    except Error:
        return [TensorType()] * len(body.returns)
    return [_plain(mapping[value].type) for value in body.returns]


# Contradictions between the types that a model declares for its outputs and those that its graph gives.


def check_outputs(module: Module) -> list[str]:
    """Notes about outputs with wrongly declared shapes, which do no harm.

    As ONNX Runtime does, irc refuses wrong element types, but not wrong sizes, which real models have: most often a
    batch size that has been changed since. Outputs that are inputs or weights are not checked.

    Raises:
        Error: IRC135 if the model declares another kind of value, or another element type, than a node gives.
    """
    found: list[str] = []
    for value in module.main.outputs:
        declared = declared_type(value, module.metadata)
        if declared is None or value.node is None or value.node.kind == CONSTANT:
            continue
        wrong = contradiction(value.type, declared)
        if wrong == "types":
            message = f"the model declares it as {declared}, but its node gives {value.type}: correct the declaration"
            raise Error("IRC135", message, f"output {value.name!r}")
        if wrong:
            found.append(f"the model declares its output {value.name!r} as {declared}; it is {value.type}")
    return found


def contradiction(type: Type, declared: Type) -> str | None:
    """Where ``type`` contradicts ``declared``: in "types", or only in "shapes"; None if it does not.

    What is not known contradicts nothing, and whether a value is optional does not matter.
    """
    while isinstance(type, OptionalType):
        type = type.elem
    while isinstance(declared, OptionalType):
        declared = declared.elem
    if isinstance(type, ListType) and isinstance(declared, ListType):
        return contradiction(type.elem, declared.elem)
    if not (isinstance(type, TensorType) and isinstance(declared, TensorType)):
        known = [t for t in (type, declared) if isinstance(t, ListType) or (isinstance(t, TensorType) and t.dtype)]
        return "types" if len(known) == 2 else None
    if type.dtype is not None and declared.dtype not in (None, type.dtype):
        return "types"
    if type.shape is None or declared.shape is None:
        return None
    sizes = [{a, b} for a, b in zip(type.shape, declared.shape) if isinstance(a, int) and isinstance(b, int)]
    return "shapes" if len(type.shape) != len(declared.shape) or any(len(pair) > 1 for pair in sizes) else None
