"""The published classifier: when it is drawn, how, and the document that holds it.

``switch.py`` draws it while a server answers, ``learning.py`` for ``conclave learn``;
``document.py`` writes and reads it; ``onnx/`` exports it.
"""
