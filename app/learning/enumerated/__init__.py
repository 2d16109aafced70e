"""Hypothesis classes whose hypotheses are few enough to be listed one by one.

* ``hypothesis_list.py`` has the interface of a list of hypotheses: predictions and error counts.
* ``thresholds.py`` has the rules ``x >= cut`` on one feature, computed without a list.
* ``boxes.py`` lists the rules "inside a box" on one or two numeric features (classes
  ``thresholds``, ``intervals`` and ``rectangles``).
* ``enumerated_class.py`` makes a hypothesis class of any list, and draws a hypothesis from it.
* ``learners.py`` trains the model of each chunk by trying the whole list.
* ``enumerated_ensemble.py`` stores each model as an index into the list, and counts the votes.
* ``class_registration.py`` has the entries of these classes in the table of
  ``app/learning/registry.py``.
"""
