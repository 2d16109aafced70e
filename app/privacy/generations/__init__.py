"""Differential privacy of releases to which rows are added, each batch with its own budget.

A generation is one such batch of rows.

* ``accounts.py`` computes how many unstable answers the budget of a generation allows, if the
  models of all generations vote together; ``accounts_proof.md`` proves that each generation keeps
  its budget.
* ``renyi_orders.py`` searches for the order of Renyi divergence at which a generation's budget
  allows the most unstable answers.
* ``shared_table.py`` makes one table of the probabilities of an unstable answer that keeps the
  budgets of several generations.
* ``pooled_labels.py`` draws noisy counts of the labels in each public cell of a generation, and
  computes a label for each cell from the sums of these counts; ``pooled_labels_proof.md`` proves
  that this is charged once to each generation.
"""
