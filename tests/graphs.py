"""IR text of small graphs from statements that read like Python: `ir("x: Float(2)", "y = Neg(Relu(x))", "y")`."""

import ast
import re
from collections.abc import Iterable
from itertools import count
from textwrap import dedent

from irc.ir import Graph, Module, parse_graph, parse_module
from irc.passes.shapes import Inference

ELEMENTS = {int: "Long", float: "Float", bool: "Bool"}

RESULTS = {"prim::ListConstruct": "int[]", "aten::size": "int", "aten::stride": "int[]"}
RESULTS |= dict.fromkeys([f"aten::{name}" for name in ("unbind", "split", "chunk", "tensor_split")], "Tensor[]")
"""What operators give, where a statement does not tell and it is no Tensor."""


def ir(inputs: str, body: str | None = None, outputs: str = "", **groups: tuple[str, str, str]) -> str:
    """IR text of a graph with such inputs, statements and outputs; ``groups`` are its subgraphs, by their names.

    Inputs are names and types, ``x, y: Float(2, 3); w: @Float(3)``; those with an @ are weights. Statements assign
    nested calls, of ONNX's operators, of torch's (``relu(x)``), of others by their domain (``prim.min(x)``), or of
    groups; keywords are attributes. Numbers and lists of numbers are constants, tensors for ONNX's operators, Python's
    values for others; None is absent. Only those results have types whose statements tell them:
    ``y: Float(2, 3) = Neg(x)``, ``s: "Tensor[]" = SequenceConstruct(x)``, of several ``v[Float(2)], i[Long(2)] = ...``.
    The blocks of a node follow it::

        r = prim.Loop(n, True, a)
        with block(i=int, p=Tensor): s = neg(p); yield True, s

    An If whose blocks are empty is an expression: ``r = x if c else y``.

    A text alone has inputs and outputs in its first line; functions and groups follow after empty lines::

        x: Tensor -> y
        f: Function = prim.Constant(name="f"); y = FusionGroup_0(prim.CallFunction(f, x))

        with FusionGroup_0 | x: Tensor -> y
        y = relu(x)

        f | x: Tensor -> y
        y = neg(x)
    """
    if body is not None:
        parts = [f"graph{_graph(inputs, body, outputs, groups)}"]
        return "\n".join([*parts, *(f"with prim::{each} = graph{_graph(*of, groups)}" for each, of in groups.items())])
    found: list[str] = []
    sections = re.split(r"\n\s*\n", dedent(inputs).strip("\n "))
    heads = [re.fullmatch(r"(?:(with )?(\w+) \| )?(.*?) ?-> ?(.*)", each.partition("\n")[0]) for each in sections]
    names = [head[2] for head in heads if head and head[1]]
    for head, section in zip(heads, sections):
        assert head is not None, section
        kind = f"with prim::{head[2]} = graph" if head[1] else f"graph {head[2]}" if head[2] else "graph"
        found.append(kind + _graph(head[3], section.partition("\n")[2], head[4], names))
    return "\n".join(found)


def ir_module(*parts: str) -> Module:
    """The module of such IR text, see `ir`."""
    return parse_module(ir(*parts))


def ir_graph(*parts: str) -> Graph:
    """The graph of such IR text, see `ir`."""
    return parse_graph(ir(*parts))


def typed_graph(*parts: str) -> Graph:
    """Like `ir_graph`, but results have the types that shape inference finds."""
    return parse_graph(typed_ir(*parts))


def _graph(inputs: str, body: str, outputs: str, groups: Iterable[str]) -> str:
    given = [part.split(":", 1) for part in inputs.split(";") if part]
    typed = [(name.strip(), kind.strip()) for names, kind in given for name in names.split(",")]
    weights = [f'  %{name} : {kind[1:]} = prim::Constant[value=@"{name}"]()' for name, kind in typed if kind[0] == "@"]
    parameters = ", ".join(f"%{name} : {kind}" for name, kind in typed if kind[0] != "@")
    lines = _Lines(groups)
    lines.add(ast.parse(dedent(body).strip()).body, "  ")
    return "\n".join([f"({parameters}):", *weights, *lines.made, f"  return ({_names(outputs)})", ""])


class _Lines:
    """The lines of a graph as they are made, statement by statement."""

    def __init__(self, groups: Iterable[str]) -> None:
        self.groups, self.made, self.numbers = groups, list[str](), count()

    def add(self, statements: list[ast.stmt], indent: str) -> None:
        blocks = count()
        for statement in statements:
            match statement:
                case ast.With([ast.withitem(ast.Call(keywords=keywords))], inner):
                    params = ", ".join(f"%{each.arg} : {_text(each.value)}" for each in keywords)
                    self.made.append(f"{indent}  block{next(blocks)}({params}):")
                    self.add(inner, f"{indent}    ")
                    continue
                case ast.Expr(ast.Yield(value)):
                    values = value.elts if isinstance(value, ast.Tuple) else [value] * (value is not None)
                    given = ", ".join([self.operand(each, "", indent) for each in values])
                    self.made.append(f"{indent}-> ({given})")
                case ast.Expr(value):
                    self.assign("", value, indent)
                case ast.AnnAssign(target, kind, value):
                    self.assign(f"%{_text(target)} : {_text(kind)}", value, indent)
                case ast.Assign([target], value=value):
                    targets = target.elts if isinstance(target, ast.Tuple) else [target]
                    self.assign(", ".join(map(_result, targets)), value, indent)
            blocks = count()

    def operand(self, node: ast.expr, of: str, indent: str) -> str:
        if isinstance(node, ast.Name):
            return f"%{node.id}"
        name = f"%_{next(self.numbers)}"
        if isinstance(node, ast.Call | ast.IfExp):
            self.assign(name, node, indent)
        else:
            kind, text = _constant(ast.literal_eval(node), of.startswith("onnx::"))
            self.made.append(f"{indent}{name} : {kind} = prim::Constant{text and f'[value={text}]'}()")
        return name

    def assign(self, results: str, node: ast.expr, indent: str) -> None:
        if isinstance(node, ast.IfExp):
            test, *given = (self.operand(each, "", indent) for each in (node.test, node.body, node.orelse))
            self.made.append(f"{indent}{results} = prim::If({test})")
            for number, value in enumerate(given):
                self.made += [f"{indent}  block{number}():", f"{indent}    -> ({value})"]
            return
        kind = self.kind(ast.unparse(node.func))
        operands = ", ".join([self.operand(each, kind, indent) for each in node.args])
        attributes = ", ".join(f"{each.arg}={ast.unparse(each.value)}".replace("'", '"') for each in node.keywords)
        told = f" : {RESULTS[kind]}" if kind in RESULTS and ":" not in results else ""
        made = f"{kind}{f'[{attributes}]' if attributes else ''}({operands})"
        self.made.append(f"{indent}{results}{told} = {made}" if results else f"{indent}{made}")

    def kind(self, name: str) -> str:
        if "." in name or name in self.groups:
            return "::".join(name.rsplit(".", 1)) if "." in name else f"prim::{name}"
        return f"{'aten' if name.strip('_')[0].islower() else 'onnx'}::{name}"


def _text(node: ast.expr) -> str:
    return ast.unparse(node).strip("'")


def _result(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return f"%{_text(node.value)} : {_text(node.slice)}"
    return f"%{_text(node)}"


def _names(text: str) -> str:
    return ", ".join(f"%{name.strip()}" for name in text.split(",") if name.strip())


def _constant(value: object, is_tensor: bool) -> tuple[str, str]:
    """The type and the text of a constant."""
    if value is None:
        return "NoneType", ""
    numbers = value if isinstance(value, list) else [value]
    element = type(numbers[0]) if numbers else int
    if is_tensor:
        kind = f"{ELEMENTS[element]}({len(numbers) if numbers is value else ''})"
        return kind, f"tensor<{kind}>({numbers})"
    return element.__name__ + "[]" * (numbers is value), repr(value).replace("'", '"')


def typed_ir(inputs: str, body: str | None = None, outputs: str = "", **groups: tuple[str, str, str]) -> str:
    """Like `ir`, but results have the types that shape inference finds."""
    module = parse_module(ir(inputs, body, outputs, **groups))
    Inference(module.main).run()
    return str(module)
