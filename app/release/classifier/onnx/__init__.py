"""The published classifier as an ONNX graph."""
