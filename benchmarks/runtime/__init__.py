"""Benchmarks of runs: what an operator, a chain, a cache, a decoder, branches, whole models and passes take."""
