"""Values for the inputs of a model, made up from a seed."""

from irc.tools.random_inputs.draw import (
    MAX_ELEMENTS,
    Style,
    assumed_sizes,
    assumption,
    can_be_made_up,
    given_sizes,
    seeded_inputs,
    sizes_of_shapes,
    with_named_sizes,
)

__all__ = [
    "MAX_ELEMENTS",
    "Style",
    "assumed_sizes",
    "assumption",
    "can_be_made_up",
    "given_sizes",
    "seeded_inputs",
    "sizes_of_shapes",
    "with_named_sizes",
]
