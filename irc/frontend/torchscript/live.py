"""Live ``torch.jit`` modules, functions and graphs. irc never imports torch: the caller has.

A graph is read from its text, which keeps names, types and scopes. What the text
rounds or leaves out, the contents of constant tensors, is then taken from the
graph's nodes, which are in the same order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.frontend.torchscript import copy_into_outs
from irc.frontend.torchscript.attributes import Read, is_plain
from irc.ir import CONSTANT, Array, Graph, Module, Node, Tensor, Value, parse_module, types, with_subgraphs
from irc.ir.objects import map_leaves, with_members
from irc.ir.types import DType, FutureType, TensorType, Type, rebuilt, without_facts

# Numbers that traces hold as tensors without dimensions.
#
# For ``2 * x`` a trace has a constant tensor of int64, marked as a number: it does not decide the element type of the
# product. Files lose the mark, but PyTorch's optimizer treats such operands as numbers in any case.


_WITH_NUMBERS = frozenset({"aten::add", "aten::sub", "aten::mul", "aten::div"})
"""Operators whose second operand may be a number, and is one in PyTorch where it is such a constant."""

_KINDS: dict[str, Type] = {"i": types.INT, "u": types.INT, "f": types.FLOAT, "c": types.COMPLEX}


def use_numbers(graph: Graph) -> None:
    """Turn constant tensors without dimensions in ``graph`` that stand for numbers into numbers."""
    numbers: dict[Value, Value] = {}
    for node in list(with_subgraphs(graph)):
        if node.kind in _WITH_NUMBERS and len(node.inputs) > 1 and isinstance(node.inputs[0].type, TensorType):
            constant = node.inputs[1]
            tensor = None if constant.node is None else constant.node.attributes.get("value")
            if isinstance(tensor, Tensor) and not tensor.shape and tensor.numpy().dtype.kind in _KINDS:
                if constant not in numbers:
                    numbers[constant] = _number(constant, tensor)
                node.replace_input(1, numbers[constant])


def _number(constant: Value, tensor: Tensor) -> Value:
    assert constant.node is not None
    array = tensor.numpy()
    graph, attributes = constant.node.graph, {"value": array.item()}
    return (
        graph.create(CONSTANT, (), (_KINDS[array.dtype.kind],), attributes=attributes)
        .insert_after(constant.node)
        .output
    )


# -- live ----------------------------------------------------------------------


_MAX_CALL_DEPTH = 64
"""How deeply calls are inlined."""

_AS_INTEGERS = {d: f"int{d.bits}" for d in DType if d.is_float and 8 <= d.bits <= 16 and d is not DType.FLOAT16}
"""Element types that torch cannot hand to NumPy, and integers of their size."""

_BY_NAME = {dtype.numpy_name: dtype for dtype in _AS_INTEGERS}


def graph_of(source: Any) -> tuple[Any, Any]:
    """The ``torch._C.Graph`` of a live object, with methods inlined, and the module it is of, or None.

    Raises:
        Error: IRC140 if the object has no graph.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(source, torch.nn.Module | torch.jit.ScriptFunction | torch._C.Graph):
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise Error("IRC140", f"expected IR text, a torch.jit module or function, or a torch graph, not a {kind}")
    script = None
    if isinstance(source, torch.nn.Module):
        if not isinstance(source, torch.jit.ScriptModule):
            raise Error("IRC140", "this is a module of plain PyTorch: give torch.jit.script(module), or a trace of it")
        script = source._c
    graph = (source if is_graph(source) else _function(source).graph).copy()
    calls = _calls(graph)
    behind: set[str] = set()
    for _ in range(_MAX_CALL_DEPTH):  # usually all at once; functions that ran without optimization one level a time
        behind |= set() if script is None else _look_behind_interfaces(graph, script)
        torch._C._jit_pass_inline(graph)
        torch._C._jit_pass_inline_fork_wait(graph)  # what is forked may call, and fork, again
        before, calls = calls, _calls(graph)
        if not calls or calls == before:  # those through an interface of one of several objects stay
            break
    for node in _walk(graph):
        if node.kind() == "prim::PythonOp":
            raise Error("IRC140", f"it calls Python, {node.pyname()}(...), which irc cannot", _place(node))
        if node.kind() == "prim::ConstantMKLDNNTensor":
            message = "a constant is laid out for MKL-DNN; give the module as it was before optimize_for_inference"
            raise Error("IRC143", message, _place(node))
        if node.kind() == "prim::SetAttr" and node.s("name") in behind:
            message = f"it calls methods through the interface of {node.s('name')!r} and changes which object that is"
            raise Error("IRC140", message, _place(node))
    return graph, script


def is_graph(source: Any) -> bool:
    """Whether a live object is a ``torch._C.Graph`` itself."""
    return isinstance(source, sys.modules["torch"]._C.Graph)


def _function(source: Any) -> Any:
    """The function that a call of a module or function runs; the first of overloads."""
    if isinstance(source, sys.modules["torch"].jit.ScriptFunction):
        return source
    for name in ("forward", "forward__0"):
        if source._c._has_method(name):
            return source._c._get_method(name)
    raise Error("IRC140", "the module has no method called forward to import", type(source).__name__)


def names_of(source: Any) -> list[str]:
    """The names of the inputs of a module or function, if they differ from each other.

    (In an inlined graph, inputs that a called function returns have the names of that function's results.)
    """
    if is_graph(source):
        return []
    names = [argument.name for argument in _function(source).schema.arguments]
    return names if len(set(names)) == len(names) else []


def defaults_of(source: Any) -> dict[int, Any]:
    """The default values of inputs of a module or function, by the number of the input."""
    if is_graph(source):
        return {}
    given = enumerate(_function(source).schema.arguments)
    defaults = {i: argument.default_value for i, argument in given if argument.has_default_value()}
    return {i: value for i, value in defaults.items() if _holds_plain(value)}


def _holds_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_holds_plain, value))  # pyright: ignore[reportUnknownArgumentType]
    return is_plain(value)


def _look_behind_interfaces(graph: Any, script: Any) -> set[str]:
    """Give module attributes whose type is an interface the class of their value; returns their names."""
    objects = {next(graph.inputs()).unique(): script}
    found: set[str] = set()
    for node in _walk(graph):
        if node.kind() == "prim::GetAttr" and node.input().unique() in objects:
            name, attribute = node.s("name"), node.output()
            value = _attribute(objects[node.input().unique()], name)
            if attribute.type().kind() == "InterfaceType":
                found.add(name)
                attribute.setType(_class_of(value))
            if attribute.type().kind() == "ClassType":
                objects[attribute.unique()] = value
    return found


def _attribute(owner: Any, name: str) -> Any:
    """An attribute of an object: torch's own, or, if Python defines its class, a Python copy.

    Raises:
        KeyError: there is none.
        Error: IRC142 if torch cannot convert it.
    """
    if not isinstance(owner, sys.modules["torch"]._C.ScriptObject):
        if not hasattr(owner, name):
            raise KeyError(name)
        return getattr(owner, name)
    if not owner.hasattr(name):
        raise KeyError(name)
    try:
        return owner.getattr(name)
    except RuntimeError as error:  # it is of a class that came out of a file, and that Python knows nothing of
        reason = str(error).rpartition("PyTorch. ")[2]
        raise Error("IRC142", f"PyTorch cannot show it to Python: {reason}", f"attribute {name!r}") from None


def _class_of(value: Any) -> Any:
    """The type of an object that `_attribute` returned, in torch's terms."""
    torch = sys.modules["torch"]
    return value._type() if isinstance(value, torch._C.ScriptObject) else torch._C._jit_try_infer_type(value).type()


def _calls(graph: Any) -> set[int]:
    """The calls in ``graph`` by the unique numbers of their results; counts could agree by chance."""
    calls = ("prim::CallFunction", "prim::CallMethod", "prim::fork")
    return {node.output().unique() for node in _walk(graph) if node.kind() in calls}


def _place(node: Any) -> str:
    """The line of source that a node comes from."""
    return node.sourceRange().strip().partition("\n")[0]


def module_of(graph: Any, filename: str, *, of_example: bool) -> Module:
    """The module of a live graph, with the exact contents of its constants.

    Args:
        graph: the graph.
        filename: what errors call it.
        of_example: whether what it says of shapes may be those of the example that it is a trace of. Then inputs keep
            their element types and ranks alone, and other values nothing: what a `squeeze` leaves is the example's too.
    """
    module = parse_module(str(graph), filename=filename)
    _complete(module.main, graph)
    copy_into_outs(module)  # first: overloads that take numbers convert nothing
    use_numbers(module.main)
    _forget_futures(module.main)
    if of_example:
        inputs = {value: rebuilt(value.type, _without_sizes) for value in module.main.inputs}
        for value in module.main.values():
            if value.made_by(CONSTANT) is None:
                value.type = inputs.get(value) or without_facts(value.type)
    return module


def _without_sizes(type: Type) -> Type:
    if type.shape is None:
        return type
    return TensorType(type.dtype, (None,) * len(type.shape))


def _forget_futures(graph: Graph) -> None:
    """Replace each future by its value, which is known from the start, as forked calls are inlined."""
    if any(node.kind == "prim::fork" for node in graph.walk()):
        return
    for node in list(graph.walk()):
        if node.kind == "aten::wait":
            node.output.replace_all_uses_with(node.inputs[0])
            node.erase()
    for value in graph.values():
        value.type = rebuilt(value.type, lambda type: type.elem if isinstance(type, FutureType) else type)


def reader_of(script: Any) -> Read:
    """A function that reads attributes of a live module. A tensor that it reads twice is one array."""
    arrays: dict[int, tuple[Any, Array]] = {}

    def read(path: tuple[str, ...], type: Type) -> Any:
        owner = script
        for name in path:
            owner = _attribute(owner, name)
        return map_leaves(owner, partial(_plain, path=".".join(path), arrays=arrays))

    return read


def _plain(value: Any, path: str, arrays: dict[int, tuple[Any, Array]]) -> Any:
    """A torch value as NumPy's, Python's or irc's; ``arrays``: tensors and their arrays, by identity."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        if id(value) not in arrays:
            arrays[id(value)] = value, array_of(value, f"attribute {path!r}")
        return arrays[id(value)][1]
    return str(value) if isinstance(value, torch.device) else value


def array_of(tensor: Any, where: str) -> Array:
    """The elements of a torch tensor, in the same memory where they are on the CPU.

    Raises:
        Error: IRC143 if NumPy cannot hold them (sparse, quantized, on no device).
    """
    tensor = tensor.detach()
    name = str(tensor.dtype).removeprefix("torch.")
    try:
        tensor = tensor.resolve_conj().resolve_neg().cpu()
        dtype = _BY_NAME.get(name)
        if dtype is None:
            return tensor.numpy()
        integers = getattr(sys.modules["torch"], _AS_INTEGERS[dtype])
        return tensor.view(integers).numpy().view(dtype.numpy)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise Error("IRC143", f"irc cannot hold this tensor of {name}: {error}", where) from None


# -- constants -----------------------------------------------------------------


def _complete(graph: Graph, live: Any) -> None:
    """Give the constants of ``graph`` the contents of those of ``live``."""
    stack = [(graph, live)]
    while stack:
        mine, its = stack.pop()
        for node, other in zip(mine.walk(), _walk(its), strict=True):
            if node.kind == CONSTANT:
                _complete_constant(node, other)
            subgraph = node.attributes.get("Subgraph")
            if isinstance(subgraph, Graph):
                stack.append((subgraph, other.g("Subgraph")))


def _walk(live: Any) -> Iterator[Any]:
    """All nodes in pre-order, as ``Graph.walk`` goes."""
    stack = [iter(live.nodes())]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node
        stack.extend(iter(block.nodes()) for block in reversed(list(node.blocks())))


def _complete_constant(node: Node, live: Any) -> None:
    if not live.hasAttribute("value"):
        return
    kind = live.kindOf("value")
    if kind == "t":
        node.attributes["value"] = _constant(node, live.t("value"))
    elif kind == "ts":
        node.attributes["value"] = [_constant(node, tensor) for tensor in live.ts("value")]
    elif kind == "ival":
        try:
            value = map_leaves(with_members(live.output().toIValue(), node.output.type), partial(_with_tensors, node))
        except UnicodeDecodeError:  # a string that is no UTF-8, which Python cannot hold: as the text has it
            return
        if value is not None:
            node.attributes["value"] = value


def _with_tensors(node: Node, value: Any) -> Any:
    """The content of a constant with its tensors; None if only its text is available."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return _constant(node, value)
    return value if is_plain(value) else None


def _constant(node: Node, tensor: Any) -> Tensor:
    where = f"%{node.output.name} = prim::Constant"
    array = np.array(array_of(tensor, where), copy=True)
    return node.graph.weights.hold(node.output.name, Tensor.of(array))
