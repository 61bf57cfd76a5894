"""The programs whose results are kept: models of the onnx package, its test suites, decoders, the zoo, random ones.

Random programs are generated when a file is recorded and lie in it, so that a later tree runs the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import irc
from benchmarks.goldens.outcome import Act, Array, fingerprint
from benchmarks.goldens.store import Reader, Writer
from benchmarks.runtime import attention, caches, chain, decoder, kernels
from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs
from irc.ir import parse_module

TOKENS = 12
SEED = 34
RANDOM = {"usual": 300, "dense": 200, "pointwise": 200, "turning": 100, "heavy": 100}
"""Family of random programs -> how many."""

Feeds = Mapping[str, Any]


class Program(NamedTuple):
    """A model, its inputs, and the ways to run it, each with a name."""

    model: Any
    inputs: Feeds
    acts: dict[str, Act]


class Named(NamedTuple):
    """A program that is loaded when it is its turn."""

    name: str
    load: Callable[[], Program]


def digest(inputs: Any) -> str:
    """Equal for equal inputs."""
    if isinstance(inputs, Mapping):
        text = "".join(f"{name}={digest(value)};" for name, value in inputs.items())
    elif isinstance(inputs, list):
        text = "".join(map(digest, inputs))
    else:
        text = fingerprint(inputs)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(feeds: Feeds, compiled: irc.CompiledModel) -> tuple[Any, list[Any]]:
    return compiled.run(feeds), [compiled.counters]


def _donating(feeds: Feeds, compiled: irc.CompiledModel) -> tuple[Any, list[Any]]:
    copies = {name: value.copy("K") if isinstance(value, np.ndarray) else value for name, value in feeds.items()}
    given = [name for name, value in copies.items() if isinstance(value, np.ndarray) and value.dtype.kind not in "OSUT"]
    return compiled.run(copies, donate=given), [compiled.counters]


def _once(model: Any, feeds: Feeds, donated: bool = False) -> Program:
    acts: dict[str, Act] = {"run": partial(_plain, feeds)}
    if donated:
        acts["donated"] = partial(_donating, feeds)
    return Program(model, feeds, acts)


# -- models -------------------------------------------------------------------------


def _light() -> Iterator[Named]:
    for name in BUNDLED:
        yield Named(name, partial(_bundled, name))
    yield Named("yolov3", _yolov3)


def _bundled(name: str) -> Program:
    model = randomize_weights(bundled_model(name), seed=0)
    return _once(model, seeded_inputs(model, seed=1))


def _yolov3() -> Program:
    from benchmarks.yolov3 import build

    model = build()
    return _once(model, seeded_inputs(model, seed=1))


def _suites() -> Iterator[Named]:
    from benchmarks.conformance.cases import cases

    for case in cases():
        if case.category != "light":  # with all weights equal; those of `_light` are random
            yield Named(f"{case.category}/{case.name}", partial(_case, case))


def _case(case: Any) -> Program:
    model, data = case.load()
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in weights]
    return _once(model, dict(zip(names, data[0][0] if data else [], strict=False)))


def _zoo() -> Iterator[Named]:
    from benchmarks.zoo.models import entries
    from benchmarks.zoo.packages import is_fetched

    for entry in entries():
        if is_fetched(entry):
            yield from (Named(f"{entry.name}/{i}", partial(_of_zoo, entry, s)) for i, s in enumerate(entry.sizes))
        else:
            print(f"{entry.name} is not here: python -m benchmarks.zoo --fetch")


def _of_zoo(entry: Any, sizes: dict[str, int]) -> Program:
    from benchmarks.zoo.models import feeds
    from benchmarks.zoo.packages import model_path
    from irc.tools.check.peers import onnxruntime_session

    path = model_path(entry)
    return _once(path, feeds(entry, onnxruntime_session(path, threads=1), sizes))


# -- what benchmarks run ------------------------------------------------------------


def _small() -> Iterator[Named]:
    for shape in ((8,), (1000,), (100, 1000), (1000, 1000)):
        label = "x".join(map(str, shape))
        yield Named(f"chain-{label}", partial(_of, partial(chain.model, 40, shape), partial(chain.feeds, shape), True))
    yield Named("kernels", partial(_of, partial(kernels.model, 1000), _of_kernels, True))
    for size in (attention.Size(4, 4, 96), attention.Size(8, 2, 200), attention.Size(12, 12, 512)):
        yield Named(f"attention {size}", partial(_of, partial(attention.model, size), partial(attention.feeds, size)))
    for length in (0, 1, 63, 64):
        yield Named(f"caches-{length}", partial(_caches, length))


def _of(model: Callable[[], Any], feeds: Callable[[], Feeds], donated: bool = False) -> Program:
    return _once(model(), feeds(), donated)


def _of_kernels() -> Feeds:
    return {name: np.linspace(a, b, 4, dtype=np.float32) for name, a, b in (("x", -1, 1), ("c", 0.5, 1.5))}


def _caches(length: int) -> Program:
    feeds = caches.feeds(length, 3)

    def session(compiled: irc.CompiledModel) -> tuple[Any, list[Any]]:
        made = irc.Session(compiled)
        steps, counters = [dict(made.run(feeds))], [made.counters]
        for _ in range(5):
            steps.append(made.run(caches.NEW))
            counters.append(made.counters)
        return steps, counters

    program = _once(caches.model(3), feeds, donated=True)
    return program._replace(acts=program.acts | {"session": session})


def _decoders() -> Iterator[Named]:
    for name, size in (("small", decoder.SMALL), ("larger", decoder.LARGER)):
        yield Named(name, partial(_decoder, size))


def _decoder(size: decoder.Size) -> Program:
    def writing(step_of: Callable[[irc.CompiledModel, list[Any]], decoder.Step]) -> Act:
        def act(compiled: irc.CompiledModel) -> tuple[Any, list[Any]]:
            logits: list[Array] = []
            counters: list[Any] = []
            step = step_of(compiled, counters)

            def watched(feeds: dict[str, Any]) -> Array:
                logits.append(step(feeds))
                return logits[-1]

            tokens = decoder.write(watched, TOKENS)
            return {"tokens": np.array(tokens), "logits": logits}, counters

        return act

    def with_session(compiled: irc.CompiledModel, counters: list[Any]) -> decoder.Step:
        session = irc.Session(compiled)

        def step(feeds: dict[str, Any]) -> Array:
            logits = session.run(feeds, outputs=["logits"])["logits"]
            counters.append(session.counters)
            return logits

        return step

    def with_arrays(compiled: irc.CompiledModel, counters: list[Any]) -> decoder.Step:
        def run(feeds: dict[str, Any]) -> list[Array]:
            found = [*compiled.run(feeds).values()]
            counters.append(compiled.counters)
            return found

        return decoder.with_arrays(run, size)

    acts = {"session": writing(with_session), "arrays": writing(with_arrays)}
    return Program(decoder.model(size), {"tokens": TOKENS}, acts)


# -- random programs ----------------------------------------------------------------


def generate(writer: Writer) -> None:
    """Keep random programs of tests/programs, all the same whenever that generator is."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from tests.programs.generator import dense, programs, turning

    families = {
        "usual": programs(),
        "dense": dense,
        "pointwise": programs(("onnx", "onnx", "onnx", "products", "constants"), size=30, dense=True),
        "turning": turning,
        "heavy": programs(("products", "onnx", "onnx views", "torch"), size=24, dense=True),
    }
    for family, count in RANDOM.items():
        found: list[Any] = []

        @seed(SEED)
        @settings(
            max_examples=count,
            database=None,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(families[family])
        def collect(program: Any) -> None:
            found.append(program)  # noqa: B023  # called in this iteration only

        collect()
        for i, program in enumerate(found):
            weights = {name: np.asarray(t.numpy()) for name, t in program.module.weights.items()}
            turned = [view[-1] for view in program.views]
            names = [v.name for v in program.graph.inputs]
            inputs = {n: (np.array(x, order="C"), t) for n, x, t in zip(names, program.inputs(), turned, strict=True)}
            writer.program(f"random/{family}/{i:03}", str(program.module), weights, inputs)


def keep(reader: Reader, writer: Writer) -> None:
    """Keep the random programs of another file."""
    for name, kept in reader.programs.items():
        weights = {key: _array(reader, entry) for key, entry in kept["weights"].items()}
        inputs = {key: (_array(reader, entry), turned) for key, (entry, turned) in kept["inputs"].items()}
        writer.program(name, kept["text"], weights, inputs)


def _random(reader: Reader) -> Iterator[Named]:
    for name, kept in reader.programs.items():
        yield Named(name.removeprefix("random/"), partial(_generated, reader, kept))


def _generated(reader: Reader, kept: dict[str, Any]) -> Program:
    weights = {name: _array(reader, entry) for name, entry in kept["weights"].items()}
    feeds = {
        name: np.asfortranarray(_array(reader, entry)) if turned else _array(reader, entry)
        for name, (entry, turned) in kept["inputs"].items()
    }
    return _once(parse_module(kept["text"], weights), feeds, donated=True)


def _array(reader: Reader, entry: dict[str, Any]) -> Array:
    found = reader.array(entry)
    assert found is not None, "programs are kept whole"
    return found


SETS: dict[str, Callable[[], Iterable[Named]]] = {
    "small": _small,
    "decoders": _decoders,
    "suites": _suites,
    "light": _light,
    "zoo": _zoo,
}
"""Name -> the programs that a tree has by itself, beside random ones."""

NAMES = ("random", *SETS)


def named(sets: Iterable[str], reader: Reader | None) -> Iterator[Named]:
    """The programs of these sets; random ones are those of a file, if there is one."""
    for name in sets:
        for entry in SETS[name]() if name in SETS else _random(reader) if reader else ():
            yield Named(f"{name}/{entry.name}", entry.load)


__all__ = ["NAMES", "Named", "Program", "digest", "generate", "named"]
