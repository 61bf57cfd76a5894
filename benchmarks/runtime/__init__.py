"""Benchmarks of runs: what an operator, a chain, a cache, a decoder, branches and whole models take."""
