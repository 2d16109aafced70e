"""The published classifier: when and how it is drawn, its JSON document, and its predictions.

It is published in one of three ways:

* ``switch.py``: by a server, after the last answer by the models' vote.
* ``publish_at_once.py``: at once, for ``conclave learn``.
* ``drawn_student.py``: trained on the answers already given, at no charge (by
  ``app/learning/student.py``; ``app/privacy/voting/knowledge_transfer.py`` selects the training
  examples).

The learner that draws a classifier is an entry of the table ``learner_table.py``, in the form that
``learner_registration.py`` defines: ``exponential.py`` draws a rule, for example a tree, from a
public class of rules; ``linear.py`` draws a weighted sum of feature tests and numbers, and
``kernel.py`` one that also has random cosine features; ``grid.py`` draws labels for the cells of a
grid.

The document and its predictions:

* ``classifier_document.py`` has the structure of the JSON document, and reads it.
* ``published_classifier.py`` writes every hypothesis as a document, and predicts with a document.
  Three forms have their own module: ``published_scores.py`` (scores from feature tests and cosine
  features), ``grid.py`` (cells, next to the learner that draws them) and
  ``published_predictor.py`` (a user's predictor, or a fitted scikit-learn student).
* ``written_hypotheses.py`` has one function for each hypothesis class, which writes the class's
  part of the document; ``published_classifier.py`` calls it.
* ``export_formats.py`` has the two formats for download: the JSON document, and the ONNX model of
  ``onnx/``.
"""
