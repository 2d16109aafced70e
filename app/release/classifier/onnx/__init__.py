"""The published classifier as an ONNX graph.

* ``onnx_model.py`` makes the model of a tree, a halfspace or a grid; ``score_graph.py`` makes the
  part of the graph that computes scores.
* ``input_columns.py`` converts the model's inputs to numbers.
* ``graph.py`` writes a graph node by node.
"""
