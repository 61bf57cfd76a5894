"""Test cases in text: tables, and graphs whose operands may be numbers."""

import re

_LITERAL = re.compile(r"(?:^|(?<= ))(?:\[[^\]%]*\]|-?\d[\d.]*|True|False|None)(?=[,)])")


def rows(text: str) -> list[list[str]]:
    """The cells of each row, which ``|`` parts; an indented line goes on with the row, ``#`` begins a comment."""
    lines = re.sub(r"\n +", " ", text.strip("\n")).split("\n")
    return [[cell.strip() for cell in line.split(" | ")] for line in lines if line and not line.startswith("# ")]


def with_constants(text: str) -> str:
    """IR text with a constant for each operand that is written as a value.

    To an operator of ONNX ``0.5`` is a Float(), ``2`` a Long(), ``[1, -1]`` a Long(2); to others they are Python's
    numbers and lists of them, as are ``True``, ``False`` and ``None``.
    """
    found: list[str] = []

    def constant(match: re.Match[str]) -> str:
        value, name = match[0], f"%constant.{len(found)}"
        if value == "None":
            type, value = "NoneType", ""
        elif re.search(r"(onnx|irc)::[^(]*$", head):
            type = "Float" if "." in value else "Long"
            type += f"({value.count(',') + 1})" if value.startswith("[") else "()"
            value = f"[value=tensor([{value.strip('[]')}])]"
        else:
            element = "bool" if value in ("True", "False") else "float" if "." in value else "int"
            type, value = element + "[]" * value.startswith("["), f"[value={value}]"
        found.append(f"{indent}{name} : {type} = prim::Constant{value}()")
        return name

    for line in text.split("\n"):
        head, bracket, operands = line.rpartition("(")
        indent = re.match(" *", line)[0]
        is_node = ("::" in head or "->" in head) and not line.endswith(":") and "#" not in line
        found.append(head + bracket + (_LITERAL.sub(constant, operands) if is_node else operands))
    return "\n".join(found)
