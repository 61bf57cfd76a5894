"""Benchmarks of runs: what an operator, a chain, a cache, a decoder, whole models and passes take."""
