"""The cost of a graph: operations by operator, parameters, bytes by type.

A multiply-accumulate (MAC) is a product that is added to a sum. A floating-point operation (FLOP) is one primitive of
arithmetic on one element, integers included: an addition, a comparison, an exponential; a MAC is two of them. Moving
and converting elements counts nothing. Both follow from the operators' records in `irc.ops`: ``macs``, ``flops``, and
the scalar semantics of pointwise operators.

Each node counts once: both branches of an If, the body of a loop once however often it runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import CONSTANT, GROUP, Graph, Node, Tensor, TensorType, module_of, with_subgraphs
from irc.ir.objects import tensors_of
from irc.ops import ScalarSemantics, record
from irc.ops.algebra import CAST, SINGLE, Apply, walk
from irc.ops.axes import reduces
from irc.ops.inference import Known, NodeTypes
from irc.ops.pointwise import is_elementwise_kind
from irc.ops.shape_rules import sizes
from irc.passes import FixSizes, PassManager
from irc.passes.inline import Inline
from irc.passes.shapes import ShapeInference


@dataclass(frozen=True)
class Cost:
    """The nodes of an operator, and the multiply-accumulates and operations of running them."""

    nodes: int = 0
    macs: int = 0
    flops: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.nodes + other.nodes, self.macs + other.macs, self.flops + other.flops)


@dataclass
class Costs:
    """What a run of a graph computes, and what its weights take.

    Attributes:
        operators: by operator, constants left out.
        parameters: elements of all distinct constants.
        weights: their bytes, by element type. A constant whose elements are all equal is stored as one.
        sizes: named dimensions of inputs, and others such as ``x[0]``, and the sizes that they were taken to have.
        uncounted: operators of which nodes have results of unknown sizes, and how many: their operations are missing.
    """

    operators: dict[str, Cost] = field(default_factory=dict[str, Cost])
    parameters: int = 0
    weights: dict[str, int] = field(default_factory=dict[str, int])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    uncounted: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def macs(self) -> int:
        """The multiply-accumulates of a run."""
        return sum(cost.macs for cost in self.operators.values())

    @property
    def flops(self) -> int:
        """The floating-point operations of a run."""
        return sum(cost.flops for cost in self.operators.values())

    @property
    def weight_bytes(self) -> int:
        """The bytes of all weights."""
        return sum(self.weights.values())

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts and numbers, ready for JSON."""
        return {"macs": self.macs, "flops": self.flops, **asdict(self)}


def costs(graph: Graph, given: Mapping[str, int] | None = None) -> Costs:
    """What a run of ``graph`` computes, and what its weights take; the graph is not changed.

    Args:
        graph: where some sizes are not known, they are inferred in a copy of it.
        given: sizes of named dimensions of inputs. Those that are not given are taken to be 1, and are in the result's
            ``sizes``.
    """
    assumed: dict[str, int] = {}
    nodes = list(with_subgraphs(graph))
    weights, parameters = weights_of(nodes)
    if not all(isinstance(v.type, TensorType) and v.type.static_shape is not None for n in nodes for v in n.outputs):
        graph, assumed = _with_sizes(graph, given or {})
        nodes = list(with_subgraphs(graph))
    found, uncounted = Costs(parameters=parameters, weights=weights, sizes=assumed), Counter[str]()
    for node in nodes:
        if node.kind in (CONSTANT, GROUP):
            continue
        cost = node_cost(node)
        uncounted[node.kind] += cost is None
        found.operators[node.kind] = found.operators.get(node.kind, Cost()) + (cost or Cost(1))
    found.operators = dict(sorted(found.operators.items()))
    found.uncounted = {kind: n for kind, n in sorted(uncounted.items()) if n}
    return found


def node_cost(node: Node) -> Cost | None:
    """What a run of ``node`` alone computes; None if that depends on sizes that are not known."""
    operator = record(node.kind)
    types = NodeTypes(node, Known())
    is_counted = operator.macs or operator.flops or is_elementwise_kind(node.kind) or reduces(node)
    if not is_counted or not any(isinstance(value.type, TensorType) for value in node.outputs):
        return Cost(1)
    shape = node.outputs[0].type.static_shape
    if shape is None:
        return None
    elements = math.prod(shape)
    try:
        if operator.macs is not None:
            macs = operator.macs(types, elements)
            return Cost(1, macs, 2 * macs)
        if operator.flops is not None:
            return Cost(1, 0, operator.flops(types, elements))
        if is_elementwise_kind(node.kind):
            return Cost(1, 0, elements * _primitives(node, operator.semantics(node.version)))
        return Cost(1, 0, math.prod(sizes(types, 0)))
    except (TypeError, ValueError, LookupError):  # a size that is not known; operands that the operator does not take
        return None


def _primitives(node: Node, scalar: ScalarSemantics | None) -> int:
    """How many primitives give an element of the result of a pointwise operator."""
    if scalar is None:
        return 1
    if scalar.variadic:
        return max(0, len(node.inputs) - 1)
    dtypes: list[np.dtype[Any] | None] = []
    for value in node.inputs[: scalar.arity]:
        dtype = value.type.dtype
        is_tensor = isinstance(value.type, TensorType)
        dtypes.append(None if not is_tensor else dtype.numpy if dtype and dtype.numpy.kind in "biuc" else SINGLE)
    try:
        expression = scalar.expression(dtypes + [None] * (scalar.arity - len(dtypes)), node.attributes)
    except Exception:  # attributes and types that semantics do not take; the operator runs by other means, or fails
        return 1
    return sum(isinstance(each, Apply) and each.primitive is not CAST for each in walk(expression))


def weights_of(nodes: list[Node]) -> tuple[dict[str, int], int]:
    """Bytes by element type, and elements, of the distinct constants of ``nodes``."""
    tensors: dict[int, Tensor] = {id(tensor): tensor for node in nodes for tensor in tensors_of(node)}
    stored = Counter[str]()
    for tensor in tensors.values():
        stored[tensor.dtype.name.lower()] += tensor.dtype.numpy.itemsize if tensor.is_splat else tensor.nbytes
    return dict(stored.most_common()), sum(tensor.numel for tensor in tensors.values())


def _with_sizes(graph: Graph, given: Mapping[str, int]) -> tuple[Graph, dict[str, int]]:
    """A copy of ``graph`` with numbers for open input sizes, and all that follows; the sizes."""
    copy = graph.module.copy() if graph.module is not None and graph.is_main else module_of(graph)
    found: dict[str, int] = {}
    for name in _open_sizes(copy.main):
        found[name] = given.get(name, 1)
    named = {d for value in copy.main.inputs for d in value.type.shape or () if isinstance(d, str)}
    fixed = {name: size for name, size in found.items() if name in named}
    try:
        PassManager([Inline(), *([FixSizes.of(fixed)] if fixed else [])]).run(copy)
        for value in copy.main.inputs:
            if isinstance(value.type, TensorType) and value.type.shape is not None:
                shape = [found[f"{value.name}[{i}]"] if d is None else d for i, d in enumerate(value.type.shape)]
                value.type = TensorType(value.type.dtype, tuple(shape))
        PassManager([ShapeInference()]).run(copy)
    except Error:  # the sizes contradict each other: what was known before is counted
        return graph, {}
    return copy.main, found


def _open_sizes(graph: Graph) -> Iterator[str]:
    """The names of dimensions of inputs that are tensors; those without one are called by input and axis."""
    for value in graph.inputs:
        if isinstance(value.type, TensorType):
            for i, size in enumerate(value.type.shape or ()):
                if not isinstance(size, int):
                    yield f"{value.name}[{i}]" if size is None else str(size)
