"""ONNX out, held against every model that the onnx package brings along.

``make test`` takes some of them, by a rule; ``python -m tests.exports`` takes all.
"""
