"""Texts and JSON documents that present plans and predictions to users.

* ``plan_document.py`` and ``prediction_document.py`` are the documents.
* ``words.py`` says a plan, and ``prediction_words.py`` a prediction, in a few sentences.
* ``counts.py`` writes a number for people, as 5.6 million.
"""
