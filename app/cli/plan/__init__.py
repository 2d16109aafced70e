"""``conclave plan``: print predictions for a configuration, as ``app/planning`` computes them.

* ``command.py`` defines the options, and calls the code for those that are given.
* ``configured_plan.py`` prints the plan of a configuration: in three lines or in full, or the
  recommended settings as TOML.
* ``table.py`` prints all figures of a plan: sentences, tables, and the meaning of each row.
* ``plot.py`` draws the number of answers against epsilon, the cutoff T and the number n of rows.
"""
