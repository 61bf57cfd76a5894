"""Which output of a model is which input in the next step of a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from irc.errors import Error, suggestion
from irc.ir.types import TensorType, may_be_equal
from irc.runtime.results import results_of

if TYPE_CHECKING:
    from irc.runtime.arguments import Argument
    from irc.runtime.model import CompiledModel

CONVENTIONS = (("past_key_values.", "present."), ("past_", "present_"), ("past.", "present."))
"""How exporters call a cache as an input and as an output, up to what follows."""


def find_bindings(model: CompiledModel) -> dict[str, str]:
    """The pairs of an input and an output whose names follow a convention and whose types agree.

    Raises:
        Error: IRC417 there is none.
    """
    results = results_of(model.outputs)
    named = [
        (a, results[present + a.name.removeprefix(past)].argument)
        for a in model.inputs
        for past, present in reversed(CONVENTIONS)  # so that the first of several stays
        if a.name.startswith(past) and present + a.name.removeprefix(past) in results
    ]
    misfits = [misfit for a, result in named if (misfit := _misfit(a, result)) is not None]
    pairs = {a.name: result.name for a, result in named if _misfit(a, result) is None}
    if pairs:
        return pairs
    if misfits:
        raise Error(
            "IRC417",
            f"no output that is called like an input can be that in the next step, give pairs from input to output: "
            f"{some(misfits)}",
        )
    conventions = " or ".join(f"{past}* and {present}*" for past, present in CONVENTIONS)
    inputs, outputs = ([*map(repr, names)] for names in ([a.name for a in model.inputs], results))
    raise Error(
        "IRC417",
        f"no input is called like an output, as {conventions} are: give "
        f"pairs from input to output; inputs are {some(inputs)}, outputs {some(outputs)}",
    )


def check_bindings(model: CompiledModel, pairs: Mapping[str, str]) -> dict[str, str]:
    """``pairs``, from input to output.

    Raises:
        Error: IRC417 there are none, no such input or output, or they are not tensors of one type.
    """
    if not isinstance(pairs, Mapping) or not pairs:  # type: ignore[reportUnnecessaryIsInstance]
        raise Error("IRC417", "pairs must be a dict from input to output, which is not empty")
    inputs = {a.name: a for a in model.inputs}
    outputs = {name: result.argument for name, result in results_of(model.outputs).items()}
    for name, output in pairs.items():
        if not isinstance(name, str) or not isinstance(output, str):  # type: ignore[reportUnnecessaryIsInstance]
            raise Error(
                "IRC417", f"pairs go from the name of an input to the name of an output: {{{name!r}: {output!r}}}"
            )
        if name not in inputs and output not in outputs and name in outputs and output in inputs:
            raise Error("IRC417", f"pairs go from input to output: {{{output!r}: {name!r}}}, not the other way round")
        misfit = _misfit(_known(name, inputs, "input"), _known(output, outputs, "output"))
        if misfit is not None:
            raise Error("IRC417", misfit)
    return dict(pairs)


def _misfit(past: Argument, present: Argument) -> str | None:
    """The reason why ``present`` can never be ``past``; None if it can."""
    if not isinstance(past.type, TensorType) or not isinstance(present.type, TensorType):
        return f"only tensors can be handed on: {past.name!r} is {past.type}, {present.name!r} {present.type}"
    if not may_be_equal(past.type, present.type):
        return f"output {present.name!r}, {present.type}, can never be input {past.name!r}, {past.type}"
    return None


def _known(name: str, among: Mapping[str, Argument], what: str) -> Argument:
    if name not in among:
        raise Error("IRC417", f"the model has no {what} {name!r}; {suggestion(name, among)}")
    return among[name]


def some(words: Iterable[str]) -> str:
    """The first twenty of ``words``, with a note if there are more."""
    words = list(words)
    return ", ".join(words[:20]) + (", ..." if len(words) > 20 else "")
