"""Hypothesis classes whose hypotheses are few enough to be listed one by one.

* ``hypothesis_list.py`` has the interface of a list: predictions and counts of errors.
* ``thresholds.py`` and ``boxes.py`` (one or two numbers in intervals) are two of them.
* ``enumerated_class.py`` makes a class of any list, and draws from it by exact weights.
* ``learners.py`` fits each chunk by trying the whole list.
* ``enumerated_ensemble.py`` holds each learner as a place in the list, and counts their votes.
* ``class_row.py`` is the row of ``app/learning/registry.py``: make, fit, read back.
"""
