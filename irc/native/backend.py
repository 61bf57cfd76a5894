"""The backend ``native``: fusion groups, and operators that NumPy computes slowly, as machine code.

This module imports neither llvmlite nor what emits code before something is compiled: importing them takes as long as
many models run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from irc import ops
from irc.fuser.policy import is_anchor
from irc.ir import CONSTANT, TensorType, is_none
from irc.ir.graph import gc_paused
from irc.native.availability import unavailable, unusable
from irc.native.inner_loops import LOOPS, Compiling
from irc.native.packed import PACKED
from irc.ops.algebra import SINGLE, Apply, Expression, Primitive, walk
from irc.ops.axes import reduces
from irc.ops.pointwise import result_like
from irc.ops.scalar import trace
from irc.runtime.backends import (
    ArrayType,
    Backend,
    CompiledSteps,
    Declined,
    PlannedStep,
    Unsupported,
)
from irc.runtime.binding import fits, functional
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.registry import takes_out, takes_outs
from irc.runtime.lowering import Bound
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Tensor, Value
    from irc.native.groups import Anchored, Group
    from irc.runtime.control_flow import Iterate
    from irc.runtime.kernels.registry import Kernel
    from irc.runtime.memory_plan import FormRecorder
    from irc.runtime.plan import Plan
    from irc.runtime.values import Array

_CONVOLUTIONS = (
    "convolution",
    "_convolution",
    "_convolution_mode",
    *(f"conv{transposed}{rank}d" for transposed in ("", "_transpose") for rank in (1, 2, 3)),
)
_PADS = (
    "pad",
    "constant_pad_nd",
    *(f"{kind}_pad{rank}d" for kind in ("reflection", "replication") for rank in (1, 2, 3)),
)
_POOLING = (f"{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3))
_WINDOWS = ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "Pad", "MaxPool", "AveragePool")
_PRODUCTS = ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul")
_LINEAR = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
_OF_ONNX = (*_WINDOWS, *_PRODUCTS, *_LINEAR, "RNN", "GRU", "LSTM")
_OF_ML = ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "SVMClassifier", "SVMRegressor")
ASKING = frozenset(
    [
        *("irc::attention", "com.microsoft::DynamicQuantizeLSTM"),
        *(f"onnx::{name}" for name in _OF_ONNX),
        *(f"ai.onnx.ml::{name}" for name in _OF_ML),
        *(f"aten::{name}" for name in (*_CONVOLUTIONS, *_PADS, *_POOLING)),
    ]
)
"""Kinds whose kernels ask for inner loops (`irc.runtime.bounds`)."""

FAMILIES = {
    "onnx::Conv": "convolution",
    "onnx::MatMul": "product",
    "onnx::Gemm": "product",
    "onnx::MaxPool": "pooling",
    "onnx::AveragePool": "pooling",
    "onnx::Concat": "concatenation",
    "irc::attention": "attention",
    "onnx::MatMulInteger": "product of integers",
    "onnx::DynamicQuantizeLinear": "quantization",
    "onnx::Pad": "padding",
    "onnx::Reshape": "copying",
    "onnx::Gather": "gathering",
    **{f"aten::{name}": "product of TorchScript" for name in ("matmul", "mm", "bmm", "linear", "addmm", "baddbmm")},
}
"""Kinds by families, of which some have an inline cache (`irc.native.inline_cache.CACHED`), and some are in tables
(`irc.native.step_calls`)."""

COPYING = frozenset(["onnx::Reshape", "onnx::Flatten"])
"""Kinds whose kernels ask for them if the first operand does not lie in C order."""

KEEPING_LAYOUT = frozenset(["aten::batch_norm", "aten::group_norm"])
"""Kinds of operators that reduce rows, whose results lie as the first operand does."""


class Native(Backend):
    """Compiles groups and single operators with llvmlite."""

    name: ClassVar[str] = "native"
    checks: ClassVar[bool] = True

    def __init__(self) -> None:
        self._groups: dict[Graph, Group | Anchored] = {}
        self._bound = Bound(backend=self)

    def refuses(self, group: Graph) -> Declined | None:
        reason = unavailable()
        if reason:
            return Declined(reason)
        if len(set(group.outputs)) < len(group.outputs):
            return Declined("two results are one array")
        if any(value.node is None or value.node.kind == CONSTANT for value in group.outputs):
            return Declined("a result is an operand or a constant")
        for node in group.nodes:
            if node.kind == CONSTANT or is_anchor(node) or reduces(node):
                continue
            if ops.semantics(node.kind, node.version) is None:
                return Declined(f"there is no code for {node.kind}")
        epilogue = [node for node in group.nodes if node.kind != CONSTANT and not is_anchor(node)]
        if len(epilogue) == 1 and len(group.nodes) > 1:  # natively in place as well, where NumPy is slow
            return Declined("one operator behind a product is as fast by itself")
        return None

    def compile_group(self, group: Graph, operands: tuple[ArrayType, ...]) -> Kernel | Declined:
        reason = unusable()
        if reason:
            return Declined(reason)
        try:
            with gc_paused():
                found = self._groups.get(group)
                if found is None:
                    found = self._groups[group] = self._of_group(group)
                kernel = found.kernel(operands)
            has_torch_s = any(node.kind.startswith("aten::") for node in group.nodes)
            is_laid_out = has_torch_s and any(map(reduces, group.nodes))
            return _of_ordered(kernel) if is_laid_out else kernel
        except Unsupported as error:
            return Declined(str(error))

    def overwrites(self, group: Graph, operands: tuple[ArrayType, ...]) -> Sequence[tuple[int, int]]:
        return self._groups[group].overwrites(operands)

    def compile_steps(self, steps: Sequence[PlannedStep]) -> Sequence[CompiledSteps]:
        if unusable():
            return ()
        from irc.native.tables import tables_of

        with gc_paused():
            return tables_of(steps, self._groups)

    def compile_loop(self, loop: Node, plan: Plan, known: FormRecorder) -> Iterate | None:
        if unusable():
            return None
        from irc.native.iterations import compiled_loop

        with gc_paused():
            return compiled_loop(loop, plan, known, self._groups)

    def packed(self, weights: Mapping[str, Array]) -> Mapping[str, Array]:
        return {} if unusable() else PACKED.to_save(weights)

    def use_packed(self, weights: Mapping[str, Tensor], packed: Mapping[str, Tensor]) -> object:
        return PACKED.use(weights, packed) if packed and not unusable() else None

    def _of_group(self, group: Graph) -> Group | Anchored:
        from irc.native.groups import Anchored, Group

        run = list(group.nodes), list(group.inputs), list(group.outputs)
        if any(map(is_anchor, group.nodes)) and not any(map(reduces, group.nodes)):
            return Anchored(*run, self._bound)
        return Group(*run)

    def bind(self, node: Node, kernel: Kernel) -> Kernel:
        if unavailable():
            return kernel
        if node.kind in ASKING:
            asking = with_loops(kernel)
            if node.kind not in FAMILIES:
                return asking
            from irc.native.inline_cache import CACHED

            cached = CACHED.get(FAMILIES[node.kind])
            return asking if cached is None else cached(node, asking)
        if node.kind in COPYING:
            return _by_order(kernel, with_loops(kernel))
        if node.kind == "onnx::Gather":
            return _gathering(kernel)
        if reduces(node):
            native = _bound(node, kernel, [i for i, value in enumerate(node.inputs) if is_tensor(value)])
            return _by_order(native, kernel) if node.kind in KEEPING_LAYOUT else native
        if node.kind.startswith("aten::") and is_slow_in_torch(node):
            return _torch_bound(node, kernel)
        writes = node.kind.endswith("_")
        if not node.kind.startswith("onnx::") or any(map(is_none, node.inputs)) or not (writes or takes_out(kernel)):
            return kernel
        plain = functional(node) if writes else node
        if plain is None or not _is_slow_on_numpy(plain):
            return kernel
        return _overwriting(plain, kernel) if writes else _bound(node, kernel, range(len(node.inputs)))


def _gathering(kernel: Kernel) -> Kernel:
    """``kernel`` of Gather, whose result may have a place: then tables can gather."""

    def run(x: Array, indices: Array, out: Array | None = None) -> Array:
        found: Array = kernel(x, indices)
        if out is None:
            return found
        out[...] = found
        return out

    return run


def _overwriting(node: Node, kernel: Kernel) -> Kernel:
    """Runs the in-place variant of ``node``, which ``kernel`` computes, natively where there is code."""
    like = result_like(node.kind)
    native = _Operator(node, range(len(node.inputs)))

    def run(first: Array, *others: Array) -> Any:
        operands = (first, *others)
        if not (first.flags.c_contiguous and fits(first, operands, like)):
            return kernel(*operands)
        made = native.run(operands, first)
        return kernel(*operands) if made is NotImplemented else first

    return run


def with_loops(kernel: Kernel) -> Kernel:
    """``kernel``, with machine code for its inner loops."""

    def call(*operands: Any, **given: Any) -> Any:
        scope = CURRENT.scope
        before, scope.loops = scope.loops, LOOPS
        try:
            return kernel(*operands, **given)
        finally:
            scope.loops = before

    def run(*operands: Any) -> Any:
        return call(*operands)

    def run_into(*operands: Any, out: Array | None = None) -> Any:
        return call(*operands, out=out)

    def run_into_several(*operands: Any, outs: Sequence[Array] | None = None) -> Any:
        return call(*operands, outs=outs)

    return run_into if takes_out(kernel) else run_into_several if takes_outs(kernel) else run


def _by_order(ordered: Kernel, otherwise: Kernel) -> Kernel:
    """``ordered`` if the first operand lies in C order, which is quick to find out, else another kernel."""

    def run(*operands: Any) -> Any:
        return (ordered if operands[0].flags.c_contiguous else otherwise)(*operands)

    def run_into(*operands: Any, out: Array | None = None) -> Any:
        return (ordered if operands[0].flags.c_contiguous else otherwise)(*operands, out=out)

    return run_into if takes_out(ordered) and takes_out(otherwise) else run


def _of_ordered(kernel: Kernel) -> Kernel:
    """``kernel``, whose results are in C order, for operands for which TorchScript's would be, too."""

    def run(*operands: Array, out: Any = None) -> Any:
        if any(is_array(x) and not x.flags.c_contiguous for x in operands):
            raise Unsupported("operands lie in other orders than C's, which results then may, too")
        return kernel(*operands, out=out)

    return run


def is_tensor(value: Value) -> bool:
    """Whether an operand is an array: neither absent nor a number or list, as TorchScript has them."""
    return isinstance(value.type, TensorType) and not is_none(value)


def _is_slow_on_numpy(node: Node) -> bool:
    """Whether ``node`` is a pointwise operator that is more than one cheap ufunc."""
    record = ops.semantics(node.kind, node.version) if node.kind.startswith("onnx::") else None
    if record is None or node.kind in ("onnx::Cast", "onnx::Clip", "onnx::Pow") or not record.broadcasts:
        return False
    semantics = record.resolve(node.attributes)
    if isinstance(semantics, Primitive):
        return semantics.ulp > 0.5 or (record.variadic and len(node.inputs) > 2)
    return _takes_several_ufuncs(trace(semantics, [SINGLE] * len(node.inputs)))


def is_bound_to_code(node: Node) -> bool:
    """Whether `Native.bind` has code for ``node``, which is of ONNX and not in place."""
    return reduces(node) or (not any(map(is_none, node.inputs)) and _is_slow_on_numpy(node))


def _takes_several_ufuncs(expression: Expression) -> bool:
    """Whether NumPy computes ``expression`` by more than one cheap ufunc."""
    applied = [x for x in walk(expression) if isinstance(x, Apply)]
    return len(applied) > 1 or any(x.primitive.ulp > 0.5 for x in applied)


def is_slow_in_torch(node: Node) -> bool:
    """Whether ``node``, pointwise of TorchScript or its in-place variant, is more than one cheap ufunc."""
    record = ops.semantics(node.kind.removesuffix("_"))
    if record is None or record.name == "pow" or len(node.outputs) != 1:
        return False
    return _takes_several_ufuncs(trace(record.resolve(), [SINGLE] * record.arity))


def _torch_bound(node: Node, kernel: Kernel) -> Kernel:
    """As `_bound`, of an operator some of whose operands are constants, and need not be arrays."""
    places = [i for i, value in enumerate(node.inputs) if value.node is None or value.node.kind != CONSTANT]
    if not node.kind.endswith("_"):
        return _bound(node, kernel, places)
    native = _Operator(node, places)

    def write(x: Any, *rest: Any) -> Any:
        made = native.run((x, *rest), None)
        if made is NotImplemented or made.dtype != x.dtype or made.shape != x.shape or not x.flags.writeable:
            return kernel(x, *rest)
        if any(stride == 0 and size > 1 for stride, size in zip(x.strides, x.shape)):
            return kernel(x, *rest)  # which refuses
        np.copyto(x, made)
        return x

    return write


def group_of(node: Node, places: Sequence[int]) -> Group:
    """A group of ``node`` alone, whose operands are those at ``places``, and others constants or absent."""
    from irc.native.groups import Group

    others = [value.node for i, value in enumerate(node.inputs) if i not in places]
    constants = [each for each in others if each is not None and each.kind == CONSTANT]
    return Group([*constants, node], [node.inputs[i] for i in places], list(node.outputs))


class _Operator:
    """The native kernels of one operator, of those operands that are at ``places``."""

    def __init__(self, node: Node, places: Sequence[int]) -> None:
        self._places = None if list(places) == list(range(len(node.inputs))) else places
        self._run = Compiling(lambda: group_of(node, places)).run

    def run(self, given: Sequence[Any], out: Any) -> Any:
        """The result, or results; `NotImplemented` if there is no code for such operands."""
        return self._run(given if self._places is None else [given[i] for i in self._places], out)


def _bound(node: Node, kernel: Kernel, places: Sequence[int]) -> Kernel:
    """Runs ``node`` natively for operands at ``places`` that there is code for, else by ``kernel``."""
    native, takes = _Operator(node, places), takes_out(kernel)

    def run(*operands: Any, out: Any = None) -> Any:
        made = native.run(operands, out)
        if made is not NotImplemented:
            return made
        if takes or out is None:
            return kernel(*operands, out=out) if takes else kernel(*operands)
        np.copyto(out, kernel(*operands))
        return out

    def run_without(*operands: Any) -> Any:
        return run(*operands)

    return run if takes or (reduces(node) and len(node.outputs) == 1) else run_without
