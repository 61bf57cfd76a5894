"""Who is right where oracle and irc differ: operators are compared one by one, a third votes.

The oracle is ONNX Runtime, or onnx.reference where that is not there. irc runs the model without passes. Each node of
the model is then given the operands that it has there, alone, in the oracle: a difference is the node's own, not one
that an earlier one has caused. Where a node's results differ, somebody else computes it from the same operands:

- ONNX Runtime, of the body of a function, or of the branch of an If, as a model of its own (it inlines functions of
  another operator set as if they were of the model's); the nodes in there are compared in the same way, as are those of
  the first iteration of a loop;
- ``onnx.reference``, where it is known to be right for the version of the operator;
- ONNX Runtime on operands of double precision.

Nobody decides about an operator whose results change as much if its operands change in their last digits.

If no node's results differ, the model itself makes differences in last digits large (by rounding, or by comparing), or
ONNX Runtime does not compute in the precision that the model states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from irc.errors import Error
from irc.frontend.onnx_export.parts import called, captured, reads
from irc.ir.types import DType
from irc.ops.onnx_signatures import find
from irc.runtime.values import is_array
from irc.tools.check import peers
from irc.tools.check.oracles import Oracle, Tolerance, difference, oracle_of, unoptimised
from irc.tools.check.peers import Unable, differs_by_choice, opset_of, with_data

# Models made of single nodes of another one, which read the values that they are given.


OWN = ", as it is made"
"""Ends the names of results, since readers of a value are given another one."""


def nodes_apart(
    proto: ModelProto,
    nodes: Sequence[NodeProto],
    values: Mapping[str, Any],
    constants: bool = True,
    shapes: bool = False,
) -> ModelProto | None:
    """A model of ``nodes`` of ``proto``, each reading ``values``; outputs are called ``name + OWN``.

    Args:
        proto: the model that the nodes are from.
        nodes: some nodes of its graph.
        values: what they read, by name.
        constants: whether constants of ``proto`` are constants there, too; else they are inputs.
        shapes: whether inputs state their shapes. ONNX Runtime refuses branches that do not fit them, also if these are
            not taken.

    Returns None if one of the values has a type that cannot be told from it, such as an empty list.
    """
    graph = onnx.GraphProto(name="nodes")
    kept = {tensor.name: tensor for tensor in proto.graph.initializer} if constants else {}
    for name in dict.fromkeys(name for node in nodes for name in reads(node)):
        if name in kept:
            graph.initializer.append(kept[name])
            continue
        type = type_of(values[name]) if name in values else None
        if type is None:
            return None
        if not shapes:
            type.tensor_type.ClearField("shape")
        graph.input.append(onnx.ValueInfoProto(name=name, type=type))
    for node in nodes:
        graph.node.append(node)
        graph.node[-1].output[:] = [name and name + OWN for name in node.output]
        graph.output.extend(onnx.ValueInfoProto(name=name + OWN) for name in node.output if name)
    return _model(proto, graph, proto.opset_import, proto.functions)


class Inner(NamedTuple):
    """What a node runs, as a model of its own.

    Attributes:
        model: the model.
        feeds: its inputs.
        is_whole: whether its outputs are the node's; not of loops, of which it is the first iteration.
    """

    model: ModelProto
    feeds: dict[str, Any]
    is_whole: bool


def inner_model(proto: ModelProto, node: NodeProto, values: Mapping[str, Any]) -> Inner | None:
    """What ``node`` runs on ``values``: a function's body, the taken branch, a first iteration.

    None for other operators, and where the type of a value cannot be told.
    """
    found = (f for f in proto.functions if (f.name, f.domain) == (node.op_type, node.domain))
    function: FunctionProto | None = next(found, None)
    try:
        if function is not None:
            return _body(proto, node, function, values)
        run = _RUNS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        return None if run is None else run(proto, node, values)
    except KeyError:  # a value is not there, or nobody knows its type
        return None


def _body(proto: ModelProto, call: NodeProto, function: FunctionProto, values: Mapping[str, Any]) -> Inner:
    graph = onnx.GraphProto(name=function.name)
    feeds = {own: values[passed] for own, passed in zip(function.input, call.input) if passed}
    graph.input.extend(_infos(feeds))
    attributes = {a.name: a for a in function.attribute_proto} | {a.name: a for a in call.attribute}
    graph.node.extend(_bound(function.node, attributes))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    return Inner(_model(proto, graph, function.opset_import, proto.functions), feeds, True)


def _branch(proto: ModelProto, node: NodeProto, values: Mapping[str, Any]) -> Inner:
    taken = "then_branch" if bool(np.asarray(values[node.input[0]]).reshape(-1)[0]) else "else_branch"
    return _inner(proto, node, taken, {}, values, True)


def _iteration(proto: ModelProto, node: NodeProto, values: Mapping[str, Any]) -> Inner:
    # Only the first: what a later one is given depends on what was computed before it.
    first = [np.array(0), np.array(True), *(values[name] for name in node.input[2:])]
    names = (info.name for info in _attribute(node, "body").g.input)
    return _inner(proto, node, "body", dict(zip(names, first)), values, False)


_RUNS = {"If": _branch, "Loop": _iteration}


def _inner(
    proto: ModelProto,
    node: NodeProto,
    name: str,
    passed: Mapping[str, Any],
    values: Mapping[str, Any],
    is_whole: bool,
) -> Inner:
    """The graph in the attribute ``name``, given ``passed`` as its inputs and ``values`` from around it."""
    graph = deepcopy(_attribute(node, name).g)
    read = list(captured(graph))
    del graph.input[:]
    kept = {tensor.name: tensor for tensor in proto.graph.initializer}
    graph.initializer.extend(kept[name] for name in dict.fromkeys(read) if name in kept)
    feeds = {**{name: values[name] for name in read if name not in kept}, **passed}
    graph.input.extend(_infos(feeds))
    return Inner(_model(proto, graph, proto.opset_import, proto.functions), feeds, is_whole)


def _attribute(node: NodeProto, name: str) -> AttributeProto:
    return {attribute.name: attribute for attribute in node.attribute}[name]


def _infos(feeds: Mapping[str, Any]) -> Iterator[ValueInfoProto]:
    for name, value in feeds.items():
        type = type_of(value)
        if type is None:
            raise KeyError(name)
        yield onnx.ValueInfoProto(name=name, type=type)


def _bound(nodes: Iterable[NodeProto], attributes: Mapping[str, AttributeProto]) -> Iterator[NodeProto]:
    """Copies of ``nodes`` of a function, with the attributes of a call."""
    for node in nodes:
        copy = deepcopy(node)
        del copy.attribute[:]
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in attributes:
                    copy.attribute.append(attributes[attribute.ref_attr_name])
                    copy.attribute[-1].name = attribute.name
                continue
            copy.attribute.append(attribute)
            for graph in (copy.attribute[-1].g, *copy.attribute[-1].graphs):
                inner = list(_bound(graph.node, attributes))
                if inner:
                    del graph.node[:]
                    graph.node.extend(inner)
        yield copy


def _model(proto: ModelProto, graph: GraphProto, opsets: Any, functions: Any) -> ModelProto:
    return onnx.ModelProto(
        ir_version=max(proto.ir_version, 8),
        graph=graph,
        opset_import=opsets,
        functions=called(graph.node, functions),
        producer_name=proto.producer_name,
    )


def type_of(value: Any) -> TypeProto | None:
    """The ONNX type of a tensor; None of anything else."""
    if not is_array(value):
        return None
    return onnx.helper.make_tensor_type_proto(DType.from_numpy(value.dtype).onnx, value.shape)


# -- votes ---------------------------------------------------------------------


Values = Mapping[str, Any]

AT_ONCE = 64
"""Nodes that are compared at once: the values of all of them may not fit in memory."""

_DEPTH = 8
"""Functions and branches in each other that are looked into."""


_NUDGES = 6
"""How often operands are changed in their last digits."""

_LAST_DIGITS = 4
"""By how many units in the last place."""

_SENSITIVE = 1e-3
"""How far results must change then, relative to the largest element, and by many times more than operands did."""


@dataclass(frozen=True)
class Vote:
    """One node of a model whose results differ between irc and the oracle.

    Attributes:
        oracle: its name.
        value: the first result that differs.
        operator: the node's operator.
        error: how far irc and the oracle are apart, relative to the largest element; infinite if the oracle cannot
            compute the node alone.
        by: the third party; "" if there is none.
        irc_is_right: whether it sides with irc; None if nobody could decide. True without a third party if the operator
            rounds inside, such that any result is as good.
    """

    oracle: str
    value: str
    operator: str
    error: float
    by: str = ""
    irc_is_right: bool | None = None

    def __str__(self) -> str:
        what = f"%{self.value}, of {self.operator}"
        if self.irc_is_right is None:
            apart = f"irc and {self.oracle} differ by {self.error:.1e} relative to max|ref|"
            return f"at {what}, {apart}, and nobody else could decide"
        if not self.by:
            return f"at {what}, last digits of operands change results as much as irc and {self.oracle} differ"
        stands, agree = (self.oracle, "irc") if self.irc_is_right else ("irc", self.oracle)
        return f"at {what}, {stands} stands alone: {agree} and {self.by} agree"


def votes(
    proto: ModelProto, folder: str, feeds: Values, tolerance: Tolerance, oracle: str = peers.ONNX_RUNTIME
) -> list[Vote]:
    """A vote for each node of the model whose results differ, in the order of the model.

    If none differ, there is one undecided vote for a node that the oracle cannot compute alone, if there is such a one.

    Args:
        proto: the model, which irc can import.
        folder: where its external data lies.
        feeds: its inputs.
        tolerance: how far results may be apart.
        oracle: the name of the oracle, one of `PEERS`.
    """
    return _Ballot(proto, folder, tolerance, oracle).votes(feeds)


PEERS: dict[str, peers.Peer] = {
    peers.ONNX_RUNTIME: peers.exact_onnxruntime,
    peers.REFERENCE: peers.reference_for_nodes,
}
"""Who computes single nodes, by name."""


@dataclass(frozen=True)
class _Ballot:
    """The votes on one model.

    Attributes:
        proto: the model.
        folder: where its external data lies.
        tolerance: how far results may be apart.
        oracle: the name of the oracle.
        depth: how many functions and branches in each other are looked into.
    """

    proto: ModelProto
    folder: str
    tolerance: Tolerance
    oracle: str
    depth: int = _DEPTH

    def votes(self, feeds: Values) -> list[Vote]:
        """A vote for each node whose results differ."""
        ours = unoptimised(with_data(self.proto, self.folder))
        known = set(ours.values)
        nodes = [node for node in self.proto.graph.node if node.op_type != "Constant" and any(node.output)]
        found: list[Vote] = []
        alone: list[Vote] = []
        for start in range(0, len(nodes), AT_ONCE):
            chunk = nodes[start : start + AT_ONCE]
            names = dict.fromkeys(name for node in chunk for name in (*reads(node), *node.output) if name in known)
            values = {**feeds, **ours.run(feeds, list(names))}
            for node, theirs in self.each(chunk, values):
                if theirs is None:
                    alone.append(Vote(self.oracle, next(filter(None, node.output)), _label(node), float("inf")))
                elif (vote := self.vote(node, values, theirs)) is not None:
                    found.append(vote)
        return found or self.differing(alone, feeds, ours)[:1]

    def differing(self, alone: Sequence[Vote], feeds: Values, ours: Oracle) -> list[Vote]:
        """The votes on nodes that the oracle cannot compute alone, if their values differ in the model."""
        names = [vote.value for vote in alone]
        if not names:
            return []
        try:
            theirs = oracle_of(self.oracle, PEERS[self.oracle], self.proto, self.folder).run(feeds, names)
        except Unable:
            return list(alone)
        values = ours.run(feeds, names)
        return [v for v in alone if not difference(values[v.value], theirs[v.value], self.tolerance.strict())[1]]

    def each(self, nodes: Sequence[NodeProto], values: Values) -> Iterator[tuple[NodeProto, dict[str, Any] | None]]:
        """Each of ``nodes`` with the results that the oracle has for it alone, by name; None if it has none."""
        peer = PEERS[self.oracle]
        found = self.computed(nodes, values, peer)
        for node in nodes:
            yield node, self.computed([node], values, peer) if found is None else found

    def computed(
        self, nodes: Sequence[NodeProto], values: Values, peer: peers.Peer, constants: bool = True
    ) -> dict[str, Any] | None:
        """The results of ``nodes``, each computed from ``values``; None if the peer cannot do it."""
        model = nodes_apart(self.proto, nodes, values, constants)
        if model is None:
            return None
        made = [name for node in nodes for name in node.output if name]
        try:
            results = peer(model, self.folder)(_fed(model, values), [name + OWN for name in made])
        except Unable:
            return None
        return dict(zip(made, results, strict=True))

    def vote(self, node: NodeProto, values: Values, theirs: Values) -> Vote | None:
        """The vote on one node; None if irc and the oracle agree on it."""
        strict = self.tolerance.strict()
        for name in (name for name in node.output if name in values and name in theirs):
            error, same = difference(values[name], theirs[name], strict)
            if not same:
                break
        else:
            return None
        undecided = Vote(self.oracle, name, _label(node), error)
        inner = inner_model(self.proto, node, values) if self.depth else None
        if inner is not None:
            vote = self.inside(inner, node, values, theirs, undecided)
            if vote is not undecided:
                return vote
        asked = self.third_parties(node, values)
        told = (self.decided(undecided, values, theirs, third, by) for by, third in asked)
        found = next((vote for vote in told if vote is not undecided), undecided)
        if found is undecided and _is_sensitive(self.proto, node, values, error):
            return replace(undecided, irc_is_right=True)
        if found is None or found.irc_is_right:
            return found
        operands = [values.get(name) for name in node.input]
        is_chosen = differs_by_choice(node, opset_of(self.proto), name, operands)
        explained = "what docs/reference/conformance.md explains"
        return replace(undecided, by=explained, irc_is_right=True) if is_chosen else found

    def decided(self, undecided: Vote, values: Values, theirs: Values, third: Values, by: str) -> Vote | None:
        """A third party's vote; ``undecided`` if it sides with nobody, None if with both."""
        names = [name for name in third if name in values and name in theirs]
        irc_is_right = all(difference(values[name], third[name], self.tolerance)[1] for name in names)
        oracle_is_right = all(difference(theirs[name], third[name], self.tolerance)[1] for name in names)
        if irc_is_right and oracle_is_right:
            return None
        if irc_is_right or oracle_is_right:
            return replace(undecided, by=by, irc_is_right=irc_is_right)
        return undecided

    def inside(self, inner: Inner, node: NodeProto, values: Values, theirs: Values, outer: Vote) -> Vote | None:
        """The vote on what ``node`` runs, a function, branch or iteration, as a model; ``outer`` if undecided."""
        model, feeds, is_whole = inner
        outputs = [output.name for output in model.graph.output]
        try:
            found = dict(zip(outputs, PEERS[self.oracle](model, self.folder)(feeds, outputs)))
            differing = replace(self, proto=model, depth=self.depth - 1).votes(feeds)
            ours = unoptimised(model).run(feeds, outputs)
        except (Unable, Error):
            return outer
        if differing:
            return next((vote for vote in differing if not vote.irc_is_right), differing[0])
        if not all(difference(ours[name], found[name], self.tolerance)[1] for name in outputs):
            return None  # no operator differs: the last digits of some, which grow
        if not is_whole:
            return outer
        third = {name: found[own] for name, own in zip(node.output, outputs) if name in values}
        return self.decided(outer, values, theirs, third, f"{self.oracle}, of its body alone,")

    def third_parties(self, node: NodeProto, values: Values) -> Iterator[tuple[str, dict[str, Any]]]:
        """Who else can compute ``node``, and what they compute."""
        for by, peer in reversed(PEERS.items()):
            found = self.computed([node], values, peer, constants=False) if by != self.oracle else None
            if found is not None:
                yield by, found
        wide = _widened(self.proto, node, values)
        if wide is not None:
            found = self.computed([node], wide, peers.exact_onnxruntime, constants=False)
            if found is not None:
                yield "ONNX Runtime in float64", {name: _as(found[name], values.get(name)) for name in found}


def _fed(model: ModelProto, values: Values) -> dict[str, Any]:
    return {info.name: values[info.name] for info in model.graph.input}


def _label(node: NodeProto) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else f"onnx::{node.op_type}"


def _widened(proto: ModelProto, node: NodeProto, values: Values) -> dict[str, Any] | None:
    """The operands of ``node`` in double precision, if the operator takes it; None if nothing changes."""
    versions = [opset.version for opset in proto.opset_import if opset.domain == node.domain]
    schema = find(f"{node.domain or 'onnx'}::{node.op_type}", *versions[:1]) if versions else None
    if schema is None:
        return None
    takes = {c.type_param_str for c in schema.type_constraints if "tensor(double)" in c.allowed_type_strs}
    wide: dict[str, Any] = {}
    for i, name in enumerate(node.input):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        value = values.get(name)
        if formal.type_str in takes and is_array(value) and value.dtype in (np.float32, np.float16):
            wide[name] = value.astype(np.float64)
    return {**values, **wide} if wide else None


def _is_sensitive(proto: ModelProto, node: NodeProto, values: Values, error: float) -> bool:
    """Whether irc's results change as much as ``error`` if operands change in their last digits.

    A recurrent operator that quantises its states does: what is midway between two numbers becomes either.
    """
    alone = nodes_apart(proto, [node], values, constants=False, shapes=True)
    if alone is None:
        return False
    names = [name + OWN for name in node.output if name]
    feeds, rng, farthest = _fed(alone, values), np.random.default_rng(0), 0.0
    try:
        plain = unoptimised(alone)
        before = plain.run(feeds, names)
        for _ in range(_NUDGES):
            after = plain.run({name: _nudged(rng, value) for name, value in feeds.items()}, names)
            farthest = max(farthest, *(difference(after[n], before[n], Tolerance())[0] for n in names))
    except Error:
        return False
    last = max((float(np.finfo(x.dtype).eps) for x in feeds.values() if _is_float(x)), default=0.0)
    return farthest > max(_SENSITIVE, 16 * _LAST_DIGITS * last, error / 4)


def _is_float(value: Any) -> bool:
    return is_array(value) and value.dtype in (np.float16, np.float32, np.float64)


def _nudged(rng: np.random.Generator, value: Any) -> Any:
    """``value`` with other last digits, if it is a tensor of floats."""
    if not _is_float(value):
        return value
    last = _LAST_DIGITS * float(np.finfo(value.dtype).eps)
    return np.asarray(value * (1 + last * rng.uniform(-1, 1, list(value.shape))), value.dtype)


def _as(found: Any, ours: Any) -> Any:
    """``found`` with the element type of ``ours``, if both are tensors of floats."""
    if is_array(found) and is_array(ours) and found.dtype == np.float64:
        with np.errstate(all="ignore"):
            return found.astype(ours.dtype)
    return found
