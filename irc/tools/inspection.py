"""`inspect`: what a model takes, gives, consists of and costs, and what of it irc cannot run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from irc.compiler import fallbacks, load_module
from irc.errors import Error, suggestion
from irc.ir import Graph, Module, Type, callee, module_of, with_subgraphs
from irc.ir.declarations import declared_type
from irc.ops.opaque import is_opaque, opaque_operators
from irc.passes import PassManager
from irc.runtime.file import is_saved, read
from irc.runtime.model import CompiledModel
from irc.runtime.plan import without_kernels
from irc.support.formatting import count, one_line
from irc.tools.costs import Costs, costs

MOST_OPERATORS = 16
"""How many operators the text lists before it sums up the rest."""


@dataclass
class Interface:
    """An input or output: its name, its type as IR text, and whether an input may be left out."""

    name: str
    type: str
    optional: bool = False


@dataclass
class Inspection:
    """What a model is.

    Attributes:
        name: its file, or its graph.
        producer: what wrote it, and the version of that.
        ir_version: of ONNX; "" where the model comes from somewhere else.
        opsets: domain -> version of its operator set.
        bytes: of its files; None where it was read from none.
        inputs, outputs: in order. An output has the type that irc infers, else the declared one.
        dynamic: named size -> where it occurs; sizes without a name are called by input or output and axis, ``x[0]``.
        functions: functions that the model, or an operator that irc expands, calls -> how often.
        costs: operators, with those in functions; operations; parameters and bytes of weights.
        unknown: operators that irc does not know, and only passes through -> nodes.
        not_run: others without a kernel -> nodes.
        reference: operators that ``onnx.reference`` computes, slowly, for want of a kernel of irc's own -> nodes.
    """

    name: str = ""
    producer: str = ""
    ir_version: str = ""
    opsets: dict[str, int] = field(default_factory=dict[str, int])
    bytes: int | None = None
    inputs: list[Interface] = field(default_factory=list[Interface])
    outputs: list[Interface] = field(default_factory=list[Interface])
    dynamic: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    functions: dict[str, int] = field(default_factory=dict[str, int])
    costs: Costs = field(default_factory=Costs)
    unknown: dict[str, int] = field(default_factory=dict[str, int])
    not_run: dict[str, int] = field(default_factory=dict[str, int])
    reference: dict[str, int] = field(default_factory=dict[str, int])

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers, ready for JSON."""
        return {**asdict(self), "costs": self.costs.to_dict()}

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """A label and lines for each of its properties."""
        about = [self.name, f"{self.bytes:,} bytes" if self.bytes is not None else "", self.producer]
        yield "model", [", ".join(filter(None, about))]
        sets = ", ".join(f"{domain} {version}" for domain, version in self.opsets.items())
        yield "operator sets", [f"{sets} (IR version {self.ir_version})"] if sets else []
        for label, values in (("inputs", self.inputs), ("outputs", self.outputs)):
            yield label, [f"%{v.name} : {v.type}{' (may be left out)' if v.optional else ''}" for v in values]
        yield "open sizes", [f"{name}: {', '.join(places)}" for name, places in self.dynamic.items()]
        yield (
            "weights",
            [f"{self.costs.parameters:,} parameters, {self.costs.weight_bytes:,} bytes"]
            + [f"  {dtype} {n:,} bytes" for dtype, n in self.costs.weights.items() if len(self.costs.weights) > 1],
        )
        sizes = ", ".join(f"{name}={size}" for name, size in self.costs.sizes.items())
        yield "a run", [f"{self.costs.macs:,} MACs, {self.costs.flops:,} FLOPs{f' for {sizes}' if sizes else ''}"]
        left_out = [f"{kind} ({n})" for kind, n in self.costs.uncounted.items()]
        yield "not counted", [f"for sizes that are not known: {', '.join(left_out)}"] if left_out else []
        yield "operators", self._operators()
        yield "functions", [f"{name} ({n})" for name, n in self.functions.items()]
        yield "unknown", [f"{operator}: {count(n, 'node')}" for operator, n in self.unknown.items()]
        yield "cannot run", [f"{kind}: {count(n, 'node')}" for kind, n in self.not_run.items()]
        yield "slow", [f"{kind}: {count(n, 'node')}, by onnx.reference" for kind, n in self.reference.items()]

    def _operators(self) -> list[str]:
        """A line for each operator, those with most operations first."""
        rows = sorted(self.costs.operators.items(), key=lambda row: (-row[1].flops, -row[1].nodes, row[0]))
        lines = [f"{cost.nodes:>7,}  {cost.flops:>17,}  {kind}" for kind, cost in rows[:MOST_OPERATORS]]
        if rest := rows[MOST_OPERATORS:]:
            nodes, flops = sum(cost.nodes for _, cost in rest), sum(cost.flops for _, cost in rest)
            lines.append(f"{nodes:>7,}  {flops:>17,}  {len(rest)} others")
        nodes = sum(cost.nodes for cost in self.costs.operators.values())
        return [f"{'nodes':>7}  {'FLOPs':>17}  operator", *lines, f"{nodes:>7,}  {self.costs.flops:>17,}  in all"]

    def __str__(self) -> str:
        rows = [(label, lines) for label, lines in self.rows() if lines]
        width = max(len(label) for label, _ in rows)
        return "\n".join(
            f"{'' if i else label:<{width}}  {one_line(line)}".rstrip()
            for label, lines in rows
            for i, line in enumerate(lines)
        )


def inspect(model: Any, sizes: Mapping[str, int] | None = None) -> Inspection:
    """A model's interface, contents and cost, and what irc cannot run; the model is not changed.

    Args:
        model: what `irc.compile` takes, what it gives, or the path of a ``.irc`` file.
        sizes: of named dimensions of inputs, which operations are counted for; 1 for those that are not given.

    Raises:
        Error: IRC1xx the model cannot be imported, IRC5xx the file cannot be read, IRC308 its functions are too large,
            IRC311 no input has a dimension of such a name.
    """
    module, name = module_in(model)
    for graph in module.graphs.values():  # of all that the file has: unknown operators in functions, too
        graph.verify()
    calls = Counter(called for node in with_subgraphs(*module.graphs.values()) if (called := callee(node)))
    whole = module.copy()
    PassManager("inline,shape-inference").run(whole)
    graph, metadata = whole.main, module.metadata
    outputs = [(value.name, _type_of_output(whole, i)) for i, value in enumerate(graph.outputs)]
    opsets = {
        key.removeprefix("opset_import."): int(n) for key, n in metadata.items() if key.startswith("opset_import.")
    }
    found = Inspection(
        name,
        " ".join(filter(None, (metadata.get("producer_name"), metadata.get("producer_version")))),
        metadata.get("ir_version", ""),
        opsets,
        sum(os.path.getsize(path) for path in module.sources if os.path.exists(path)) if any(module.sources) else None,
        [Interface(v.name, str(v.type), v.name in module.defaults) for v in graph.inputs],
        [Interface(name, str(type)) for name, type in outputs],
        functions=dict(calls),
        costs=costs(graph, sizes),
    )
    for value, type in [*((v.name, v.type) for v in graph.inputs), *outputs]:
        for axis, size in enumerate(type.shape or ()):
            if not isinstance(size, int):
                place = f"{value}[{axis}]"
                found.dynamic.setdefault(place if size is None else str(size), []).append(place)
    for size in (sizes or {}).keys() - found.dynamic.keys():
        raise Error("IRC311", f"the model has no open size {size!r}; {suggestion(size, found.dynamic)}", name)
    found.unknown = {operator: len(nodes) for operator, nodes in opaque_operators(graph).items()}
    found.not_run = dict(Counter(node.kind for node in without_kernels(graph) if not is_opaque(node.kind)))
    found.reference = fallbacks(graph)
    return found


def module_in(model: Any) -> tuple[Module, str]:
    """The module of whatever `irc.compile` takes or gives, or of a ``.irc`` file, and a name for it."""
    if isinstance(model, CompiledModel):
        return module_of(model.graph), model.report.name
    if isinstance(model, Module | Graph):
        module = module_of(model) if isinstance(model, Graph) else model
        return module, module.main.name
    if isinstance(model, str | os.PathLike):
        path = os.fspath(cast("str | os.PathLike[str]", model))
        if is_saved(path):
            return read(path)[0], path
    return load_module(model)


def _type_of_output(module: Module, index: int) -> Type:
    """The inferred type of an output; the declared one if nothing of its shape is inferred."""
    value = module.main.outputs[index]
    declared = declared_type(value, module.metadata)
    return value.type if declared is None or value.type.shape is not None else declared
