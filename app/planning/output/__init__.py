"""Texts and JSON documents that present plans and predictions to users.

* ``plan_document.py`` and ``prediction_document.py`` make the JSON documents.
* ``plan_sentences.py`` describes a plan, and ``prediction_sentences.py`` a prediction, in a few
  sentences.
* ``short_plan.py`` describes a plan in three lines; ``settings_toml.py`` writes the recommended
  settings.
* ``epsilon_sentence.py`` explains in a sentence how strongly an epsilon protects.
* ``sustained_sentences.py`` states how many answers a release can give for ever if rows are added.
* ``wanted_result.py`` states the epsilon, rows and settings for a wanted number of answers or
  accuracy.
* ``count_format.py`` writes a number for people, such as 5.6 million.
"""
