"""Texts and JSON documents that present plans and predictions to users.

* ``plan_document.py`` and ``prediction_document.py`` are the documents.
* ``plan_sentences.py`` says a plan, and ``prediction_sentences.py`` a prediction, in a few
  sentences.
* ``count_format.py`` writes a number for people, as 5.6 million.
"""
