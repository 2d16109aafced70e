"""``conclave plan``: print predictions for a configuration, as ``app/planning`` computes them.

* ``command.py`` has the options and the three forms of the command.
* ``configured_plan.py`` plans a configuration: in three lines, in full, or as TOML.
* ``table.py`` prints a plan's document: words, tables, and the meaning of each row.
* ``plot.py`` draws answers against epsilon, T and n.
"""
