"""Differential privacy of releases to which rows are added, each batch with its own budget.

A generation is one such batch of rows.

* ``accounts.py`` computes for how many unstable answers a generation can pay from its budget, if
  the models of all generations vote together, by one table of the probabilities of an unstable
  answer; ``accounts_proof.md`` proves that each generation keeps its budget (Theorem G).
* ``renyi_orders.py`` searches for the order of Renyi divergence at which a generation can pay for
  the most unstable answers.
* ``shared_table.py`` makes one table of the probabilities of an unstable answer that keeps the
  budgets of several generations.
* ``pooled_labels.py`` draws noisy counts of the labels in each public cell of a generation, and
  computes a label for each cell from the sums of these counts; ``pooled_labels_proof.md`` proves
  that each row pays for this once.
"""
