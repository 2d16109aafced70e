"""Texts and JSON documents that present plans and predictions to users.

* ``plan_document.py`` and ``prediction_document.py`` are the documents.
* ``plan_sentences.py`` says a plan, and ``prediction_sentences.py`` a prediction, in a few
  sentences.
* ``short_plan.py`` says a plan in three lines; ``settings_toml.py`` writes the recommended
  settings.
* ``epsilon_sentence.py`` says in words how much an epsilon protects.
* ``sustained_sentences.py`` says how many answers a release gives for ever if rows are added.
* ``wanted_result.py`` says what a wanted number of answers or accuracy requires.
* ``count_format.py`` writes a number for people, as 5.6 million.
"""
