"""Rules that divide epsilon and delta among mechanisms, and choose the number of learners.

* ``composition.py`` divides a budget by shares, and adds charges up.
* ``account.py`` accounts answers and draws as one, where they are not added up.
* ``sampled_budget.py`` says what relabelling and answers may cost on the sample that they run on.
* ``ensemble_size.py`` chooses k where the configuration says ``auto``.
* ``confidence_bounds.py`` has exact confidence bounds of a proportion, for bounds that are
  measured.
"""
