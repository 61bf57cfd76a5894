"""IR text of small graphs from statements that read like Python: `ir("x: Float(2)", "y = Neg(Relu(x))", "y")`."""

import ast
from collections.abc import Iterable
from itertools import count

from irc.ir import parse_module
from irc.passes.shapes import Inference

ELEMENTS = {int: "Long", float: "Float", bool: "Bool"}


def ir(inputs: str, body: str, outputs: str, **groups: tuple[str, str, str]) -> str:
    """IR text of a graph with such inputs, statements and outputs; ``groups`` are its subgraphs, by their names.

    Inputs are names and types, ``x, y: Float(2, 3); w: @Float(3)``; those with an @ are weights. Statements assign
    nested calls, of ONNX's operators, of others by their domain (``aten.relu(x)``), or of groups; keywords are
    attributes. Numbers and lists of numbers are constants, tensors for ONNX's operators, Python's values for others;
    None is absent. Only those results have types whose statements tell them: ``y: Float(2, 3) = Neg(x)``,
    ``s: "Tensor[]" = SequenceConstruct(x)``.
    """
    subgraphs = [f"with prim::{name} = graph{_graph(*parts, groups)}" for name, parts in groups.items()]
    return "\n".join([f"graph{_graph(inputs, body, outputs, groups)}", *subgraphs])


def _graph(inputs: str, body: str, outputs: str, groups: Iterable[str]) -> str:
    lines: list[str] = []
    numbers = count()

    def operand(node: ast.expr, of: str) -> str:
        if isinstance(node, ast.Name):
            return f"%{node.id}"
        name = f"%_{next(numbers)}"
        if isinstance(node, ast.Call):
            assign(name, node)
        else:
            kind, text = _constant(ast.literal_eval(node), of.startswith("onnx::"))
            lines.append(f"{name} : {kind} = prim::Constant{text and f'[value={text}]'}()")
        return name

    def assign(results: str, call: ast.Call) -> None:
        name = ast.unparse(call.func)
        kind = f"prim::{name}" if name in groups else name.replace(".", "::") if "." in name else f"onnx::{name}"
        operands = ", ".join(operand(each, kind) for each in call.args)
        attributes = ", ".join(f"{each.arg}={ast.unparse(each.value)}".replace("'", '"') for each in call.keywords)
        lines.append(f"{results} = {kind}{f'[{attributes}]' if attributes else ''}({operands})")

    for statement in ast.parse(body.replace("; ", "\n")).body:
        assert isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call)
        if isinstance(statement, ast.AnnAssign):
            kind = ast.unparse(statement.annotation).strip("'")
            assign(f"%{ast.unparse(statement.target)} : {kind}", statement.value)
        else:
            (target,) = statement.targets
            assign(_names(ast.unparse(target).strip("()")), statement.value)
    given = [part.split(":", 1) for part in inputs.split(";") if part]
    typed = [(name.strip(), kind.strip()) for names, kind in given for name in names.split(",")]
    weights = [f'%{name} : {kind[1:]} = prim::Constant[value=@"{name}"]()' for name, kind in typed if kind[0] == "@"]
    parameters = ", ".join(f"%{name} : {kind}" for name, kind in typed if kind[0] != "@")
    body_lines = [f"  {line}" for line in (*weights, *lines)]
    return "\n".join([f"({parameters}):", *body_lines, f"  return ({_names(outputs)})", ""])


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


def typed_ir(inputs: str, body: str, outputs: str, **groups: tuple[str, str, str]) -> str:
    """Like `ir`, but results have the types that shape inference finds."""
    module = parse_module(ir(inputs, body, outputs, **groups))
    Inference(module.main).run()
    return str(module)
