"""The benchmark's decoder: its two branches agree, and steps with caches copy nothing."""

import numpy as np
import pytest

import irc
from benchmarks.runtime import decoder


def test_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decoder, "LARGER", decoder.Size(layers=1, hidden=32, heads=2, vocabulary=1000))
    rows = {row.name: row for row in decoder.measure(tokens=6, tokens_of_larger=3, turns=1)}
    assert rows["decoder/irc"].value > 0
    assert rows["decoder/numpy, by hand"].value > 0
    assert rows["decoder/steps that copy caches"].value == 1, "to where there is reserve"
    assert rows["larger decoder/numpy, by hand"].value > 0


def test_a_step_with_caches_gives_what_the_whole_text_does():
    compiled = irc.compile(decoder.model())
    assert sum(node.kind == "irc::append_" for node in compiled.graph.walk()) == len(decoder.SMALL.caches)
    ids = np.arange(12)[None] * 5 % decoder.SMALL.vocabulary
    whole = decoder.with_session(compiled)(
        {"input_ids": ids, "position_ids": np.arange(12)[None], "use_cache": np.array(False)}
    )
    step = decoder.with_session(compiled)
    parts = [
        step({"input_ids": ids[:, a:b], "position_ids": np.arange(a, b)[None], "use_cache": np.array(a > 0)})
        for a, b in ((0, 9), (9, 10), (10, 11), (11, 12))
    ]
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=1e-3, atol=1e-4)


def test_bytes_copied_do_not_depend_on_how_many_tokens_there_are():
    compiled = irc.compile(decoder.model())
    copied: list[int] = []
    decoder.write(decoder.with_session(compiled, copied), tokens=60)
    row = len(decoder.SMALL.caches) * decoder.SMALL.hidden * 4
    assert sum(copied) <= 2 * row * (decoder.PROMPT + 60)
    assert sum(n > 0 for n in copied) <= 4
