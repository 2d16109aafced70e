"""Differentially private mechanisms, and the rules that set their noise.

The folder of a mechanism contains its code, its proof and, in most cases, a module that finds the
least noise for a budget. The mechanisms of the models' answers are in ``stability/``,
``sparse_vector/``, ``noisy_vote/`` and ``soft_labels/``. The mechanisms that run once, and not once
for each query, are in ``exponential/`` (relabelling, classifier), ``noisy_gradient/`` (linear
classifier), ``noisy_grid/`` (classifier from a few numeric features) and
``multiplicative_weights/`` (statistics). ``voting/`` computes answers from votes, ``generations/``
has the privacy accounting of releases that accept more rows, ``budget/`` divides and adds up
epsilon, and ``paper/`` has the parameters that Nandi and Bassily 2020 and Bassily, Thakkar,
Thakurta 2018 print. Nothing here reads or writes files, databases or networks.

* ``mechanisms.py`` is the table of the mechanisms of answers; ``mechanism_registration.py`` has the
  type of an entry of that table.
* ``learner_properties.py`` has, for each learner of the published classifier, its name, whether it
  needs delta or gives scores, and the texts that explain it.
* ``arithmetic.py`` calculates in decimals that are rounded up or down, so that rounding errors
  never weaken a privacy claim.
"""
