"""The published classifier: when and how it is drawn, its JSON document, and its predictions.

It is published in one of three ways:

* ``switch.py``: while a server answers, after the ensemble's last answer.
* ``publish_at_once.py``: at once, for ``conclave learn``.
* ``drawn_student.py``: trained on the answers already given, free of charge.

What is drawn is a learner's, a row of ``learner_table.py`` in the form of ``learner_row.py``:
``exponential.py`` draws from a class, ``linear.py`` a linear score, ``kernel.py`` one of random
waves too, and ``grid.py`` cells of a grid.

The document and its predictions:

* ``classifier_document.py`` has the structure of the JSON document, and reads it.
* ``published_classifier.py`` writes every hypothesis as a document, and predicts from one. Three
  forms have a module of their own: ``published_scores.py`` (scores of tests and waves), ``grid.py``
  (cells) and ``published_code.py`` (a user's predictor, or a fitted scikit-learn student).
* ``written_hypotheses.py`` writes a hypothesis of each class into the document.
* ``export_formats.py`` holds what clients download: the JSON, and the ONNX model of ``onnx/``.
"""
