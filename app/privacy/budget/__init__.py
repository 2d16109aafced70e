"""Rules that divide epsilon and delta among mechanisms, and choose the number of models.

* ``composition.py`` divides a budget into shares, and adds charges up.
* ``account.py`` computes one joint privacy cost of answers and of random draws (of a rule for
  relabelling and of a classifier) by Renyi divergence, in place of adding their shares up.
* ``sampled_budget.py`` computes the epsilon that relabelling and answers may cost on the random
  sample of rows that they use.
* ``ensemble_size.py`` chooses the number k of models if the configuration says ``auto``.
* ``confidence_bounds.py`` has exact confidence bounds on a proportion, for figures that are
  measured.
"""
