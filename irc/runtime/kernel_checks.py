"""Checks of kernels: what is wrong with failed operands, and with other packages' results.

Kernels expect what the operator allows, which models that pass the importer's checks and
the verifier respect. Other models, and files that were changed, may give a kernel numbers of a
wrong type, a sequence, or fewer operands than it expects, and Python then fails somewhere inside
the kernel. Checking all operands before each call would slow down every run, so they are checked after a failure.

What kernels of other packages return is checked in each call, so that a mistake is not blamed on the next operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irc.errors import Error, misfit
from irc.ir.types import DType, TensorType, Type
from irc.ops.onnx_signatures import check_form, onnx_name
from irc.ops.onnx_signatures import misfit as type_misfit
from irc.ops.plugins import name_of
from irc.ops.signatures import resolve, schemas, takes
from irc.runtime.arguments import as_type
from irc.runtime.values import describe, is_array, is_mapping, is_sequence, is_tuple
from irc.support.formatting import count

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.ir.schema import Schema
    from irc.runtime.kernels.registry import Binder, Kernel


_SHOWN = 3
"""Overloads that a message names."""


def what_is_wrong(node: Node, inputs: Sequence[Any]) -> Error | None:
    """What is wrong with ``node`` or its operands' types, ``inputs``; None if nothing is known to be."""
    malformed = fault_of_form(node)
    if malformed is not None:
        return malformed
    if node.kind.startswith("irc::"):  # made by passes, from what takes tensors only
        odd = next((value for value in inputs if not is_array(value)), None)
        return None if odd is None else Error("IRC421", f"{node.kind} takes tensors, not {describe(odd)}")
    wrong = type_misfit(node.kind, node.version, tuple(map(onnx_type, inputs)))
    return None if wrong is None else Error("IRC421", wrong)


def fault_of_form(node: Node) -> Error | None:
    """What is wrong with attributes of ``node``, or operands' number and declared types, if known."""
    try:
        check_form(node)
        _check_operands(node)
    except Error as error:
        return Error(error.code, error.message.partition("\n")[0])  # without the node's text, which runs have not shown
    return None


def _check_operands(node: Node) -> None:
    """Error IRC213 if no overload of ``node`` takes this number of arguments, of types like these.

    (IRC423: of open types, nothing is said.)
    """
    rows, given = schemas(node.kind), [value.type for value in node.inputs]
    shown = " or ".join(map(str, rows[:_SHOWN])) + (" or others" if len(rows) > _SHOWN else "")
    needed = [sum(not argument.has_default for argument in row.arguments) for row in rows]
    found = len(given)
    if rows and not any(n <= found and (row.is_vararg or found <= len(row.arguments)) for n, row in zip(needed, rows)):
        raise Error("IRC213", f"{node.kind} does not take {count(found, 'argument')}: it is {shown}")
    if rows and not any(type.is_open for type in given) and not takes(node.kind, given):
        arguments = ", ".join(map(str, given))
        raise Error("IRC423", f"{node.kind} does not take arguments of the types ({arguments}): it is {shown}")


def onnx_type(value: Any) -> str | None:
    """A run-time value's type as ONNX, or else Python, writes it; None if unknown, or absent."""
    if is_array(value):
        try:
            return onnx_name(TensorType(DType.from_numpy(value.dtype)))
        except KeyError:
            return None
    if is_sequence(value):
        element = onnx_type(value[0]) if value else None
        return "seq(" if element is None else f"seq({element})"
    return "map(" if is_mapping(value) else None if value is None else type(value).__name__


def checked(kernel: Kernel, node: Node, binder: Binder, takes_out: bool = False) -> Kernel:
    """``kernel``, made by ``binder`` for ``node``, with results checked and NumPy scalars converted.

    A scalar becomes an array or a number, by the type of the result. Trailing inputs that the kernel requires and the
    node does not have are given as None. The node may have fewer results than the operator's schema row promises.

    It raises IRC401 if a result is not of the type that the node promises or their number differs; with ``takes_out``,
    also if the kernel is given the array for its result and returns another.

    Raises:
        Error: IRC304 if it cannot be called with the inputs of the node, IRC213 if these fit no schema row.
    """
    types = [output.type for output in node.outputs]
    name = name_of(binder)
    schema = resolve(node)
    promised = len(types) if schema is None or schema.is_varret else max(len(schema.returns), len(types))
    kernel = _called(kernel, node, f"the kernel that {name} makes", schema)

    def one(value: Any, type: Type) -> Any:
        try:
            return as_type(value, type, "", is_strict=True)
        except Error as error:
            what = f"its kernel, by {name}, returns {describe(value)} where {type} is promised"
            raise Error("IRC401", ": ".join(filter(None, (what, error.where, error.message)))) from None

    def run_one(*inputs: Any) -> Any:
        return one(kernel(*inputs), types[0])

    def run_into(*inputs: Any, out: Any = None) -> Any:
        if out is None:
            return one(kernel(*inputs), types[0])
        result = kernel(*inputs, out=out)
        if result is not out:
            raise Error("IRC401", f"its kernel, by {name}, returns {describe(result)}, not what it is given as out")
        return out if types[0].shape is None else one(out, types[0])

    def run_many(*inputs: Any) -> Any:
        results = kernel(*inputs)
        if not is_tuple(results) or len(results) not in (promised, len(types)):
            raise Error("IRC401", f"its kernel, by {name}, returns {describe(results)}, not a tuple of {promised}")
        found = tuple(map(one, results, types))
        return found if len(types) > 1 else found[0]

    if not types:
        return kernel  # called for its effects
    if promised > 1:
        return run_many
    return run_into if takes_out else run_one


def _called(kernel: Kernel, node: Node, what: str, schema: Schema | None) -> Kernel:
    """``kernel`` called with ``node``'s inputs, and None for missing trailing arguments of ``schema``."""
    names = [value.name for value in node.inputs]
    wrong = misfit(what, kernel, *names)
    if not wrong:
        return kernel
    rows = schemas(node.kind)
    if rows and schema is None:
        raise Error("IRC213", f"the inputs do not fit {' or '.join(map(str, rows))}")
    formals = () if schema is None else schema.arguments[len(names) :]
    left_out = (None,) * len(formals)
    if not formals or misfit(what, kernel, *names, *(formal.name for formal in formals)):
        raise Error("IRC304", wrong)

    def run(*inputs: Any, **given: Any) -> Any:
        return kernel(*inputs, *left_out, **given)

    return run
