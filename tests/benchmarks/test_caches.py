"""The benchmark of caches measures what it says."""

import numpy as np

import irc
from benchmarks.runtime import caches


def test_rows():
    rows = {row.name: row for row in caches.measure(lengths=(4, 8), turns=1, caches=2)}
    assert [rows[f"caches/{n}/copied"].value for n in (4, 8)] == [0, 0]
    assert rows["caches/8/irc"].ratio is None
    numpy = rows[f"caches/8/numpy {np.__version__}"]
    assert numpy.ratio == rows["caches/8/irc"].value / numpy.value


def test_copies_are_counted_where_there_are_some():
    compiled, given = irc.compile(caches.model(2)), caches.feeds(4, 2)
    first = irc.Session(compiled)
    first.run(given)
    assert first.counters.copied_bytes == given["past_0"].nbytes + given["past_1"].nbytes
    assert caches.copied(compiled, given) == 0
