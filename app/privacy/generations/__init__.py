"""Differential privacy of releases to which rows are added, each batch with its own budget.

A generation is one such batch of rows.

* ``accounts.py`` computes for how many unstable answers T_g a generation can pay, all generations
  using one table of probabilities; ``accounts_proof.md`` has Theorem G, on these accounts and on
  the quorum.
* ``renyi_orders.py`` searches for the best order of Renyi divergence for a generation.
* ``shared_table.py`` makes one table that is valid for several budgets.
* ``pooled_labels.py`` draws noisy counts of the labels in each public cell of a generation, and
  computes a label for each cell from the sums of these counts; ``pooled_labels_proof.md`` proves
  that each row pays for this once.
"""
