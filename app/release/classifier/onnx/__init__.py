"""The published classifier as an ONNX graph.

* ``onnx_model.py`` makes the model of a tree, a halfspace or a grid; ``score_graph.py`` has the
  part of scores of tests and waves.
* ``input_columns.py`` turns the model's inputs into numbers.
* ``graph.py`` writes a graph node by node.
"""
