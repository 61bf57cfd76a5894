"""One mutant: a model, and what is done to it."""

import random
from collections.abc import Callable

import onnx

from tests.fuzz.models import hostile
from tests.fuzz.models.mutations import BYTES, STRUCTURED

__all__ = ["BYTES", "STRUCTURED", "hostile", "mutant"]


def mutant(seeds: list[str], read: Callable[[str], bytes], number: int, start: int) -> tuple[str, str, bytes]:
    """The mutant of that number: name of the model, of the last mutation, and the bytes."""
    rng = random.Random(start * 1_000_003 + number)
    seed = rng.choice(seeds)
    data = read(seed)
    if rng.random() < 0.15:
        name = rng.choice([*BYTES])
        return seed, name, BYTES[name](data, rng)
    model = onnx.load_model_from_string(data)
    name = ""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        name = rng.choice([*STRUCTURED])
        STRUCTURED[name](model, rng)
    return seed, name, model.SerializeToString()
