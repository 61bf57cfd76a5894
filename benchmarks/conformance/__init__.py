"""ONNX's own test suite by irc and by others: ``python -m benchmarks.conformance`` writes the conformance page."""
