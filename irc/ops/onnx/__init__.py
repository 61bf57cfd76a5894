"""Records of ONNX's pointwise operators."""
