"""Readers of other formats: ONNX, TorchScript."""
