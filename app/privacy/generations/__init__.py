"""Differential privacy of releases to which rows are added, each batch with its own budget.

* ``accounts.py`` says how many unstable answers T_g a generation buys of the one table that all
  share; ``accounts_proof.md`` is Theorem G, for them and for the quorum.
* ``account_orders.py`` seeks the Renyi order of an account.
* ``joint_table.py`` makes one table that several budgets accept.
* ``pooled_labels.py`` draws the noisy counts of a generation's labels, cell by cell, and takes one
  labelling for all from their sums; ``pooled_labels_proof.md`` says why it costs each row once.
"""
