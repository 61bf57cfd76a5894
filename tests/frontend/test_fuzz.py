"""Whatever is done to a model, importing it gives a module that verifies or an irc.Error, never anything else."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx
import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

import irc.errors
from irc.frontend.onnx import import_model
from irc.ir import parse_module, structurally_equal
from tests.effort import examples
from tests.frontend.helpers import CONTROL, DATA

SOURCES = [
    CONTROL.SerializeToString(),
    (DATA / "light" / "light_squeezenet.onnx").read_bytes(),
    (DATA / "simple" / "test_sequence_model4" / "model.onnx").read_bytes(),
]


def import_or_refuse(source: Any) -> None:
    refusal = None
    try:
        module = import_model(source)
        for tensor in module.weights.values():
            tensor.numpy()
    except irc.errors.Error as error:
        refusal = error
    if refusal is not None:
        assert refusal.code.startswith("IRC1")
        assert refusal.message
        return
    with suppress(irc.errors.Error):  # types that do not fit, say, are the verifier's to find
        module.verify()
    assert structurally_equal(parse_module(str(module), module.weights), module) is None


def test_the_sources_are_fine(tmp_path: Path) -> None:
    for data in SOURCES:
        import_model(onnx.load_model_from_string(data)).verify()


@examples(150)
@given(
    st.sampled_from(SOURCES),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6),
    st.floats(0.3, 1),
)
def test_bytes_flipped_and_cut(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, flips: list[tuple[float, int]], length: float
) -> None:
    mutated = bytearray(data)
    for at, byte in flips:
        mutated[int(at * len(mutated))] ^= byte
    path = tmp_path_factory.getbasetemp() / "mutant.onnx"
    path.write_bytes(mutated[: int(length * len(mutated)) if length < 0.9 else None])
    import_or_refuse(path)


STRINGS = [
    "",
    "x",
    "y",
    "a",
    "t",
    "then_branch",
    "Loop",
    "If",
    "Scan",
    "local",
    "F",
    "Relu",
    "Constant",
    "\0",
    "ai.onnx",
    "%",
]
NUMBERS = [0, 1, -1, 2, 5, 7, 64, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]


def mutate(message: Message, rng: random.Random) -> None:
    """Change one thing somewhere in ``message``: set, clear, add, remove, double or swap."""
    while True:
        fields = message.DESCRIPTOR.fields
        present = [f for f, _ in message.ListFields()]
        inner = [f for f in present if f.type == f.TYPE_MESSAGE]
        if inner and rng.random() < 0.8:  # most of a model is deep inside
            field = max(rng.choices(inner, k=2), key=lambda f: len(str(getattr(message, f.name))[:1000]))
        else:
            field = rng.choice(present if present and rng.random() < 0.8 else fields)
        is_list = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
        values = getattr(message, field.name)
        if field.type == field.TYPE_MESSAGE:
            if is_list:
                if not values or rng.random() < 0.15:
                    values.add()
                    return
                if rng.random() < 0.15:
                    del values[rng.randrange(len(values))]
                    return
                if rng.random() < 0.15:
                    values.add().CopyFrom(rng.choice(list(values)[:-1] or [values[0]]))
                    return
                message = rng.choice(list(values))
            elif rng.random() < 0.1:
                message.ClearField(field.name) if rng.random() < 0.5 else values.SetInParent()
                return
            else:
                message = values
            continue
        value = scalar(field, rng)
        if not is_list:
            setattr(message, field.name, value)
        elif values and rng.random() < 0.5:
            values[rng.randrange(len(values))] = value
        elif values and rng.random() < 0.5:
            del values[rng.randrange(len(values))]
        else:
            values.append(value)
        return


def scalar(field: Any, rng: random.Random) -> Any:
    if field.type == field.TYPE_STRING:
        return rng.choice(STRINGS)
    if field.type == field.TYPE_BYTES:
        return rng.choice([b"", b"\xff", b"abcd", b"x" * 100])
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return rng.choice([0.0, 1.5, float("nan")])
    if field.type == field.TYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    number = rng.choice(NUMBERS)
    if field.type in (field.TYPE_INT32,):
        return max(min(number, 2**31 - 1), -(2**31))
    return abs(number) if field.type == field.TYPE_UINT64 else number


@examples(400)
@given(st.sampled_from(SOURCES), st.integers(0, 2**32), st.integers(1, 4))
def test_structured_mutations(data: bytes, seed: int, count: int) -> None:
    rng = random.Random(seed)
    model = onnx.load_model_from_string(data)
    for _ in range(count):
        mutate(model, rng)
    import_or_refuse(model)
