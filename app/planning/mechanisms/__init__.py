"""The plan of each answering mechanism: number of learners, noise, and feasibility.

* ``stability_plan.py`` plans calibrations ``profile`` and ``svt``.
* ``noisy_vote_plan.py`` plans the noisy vote, ``paper_plan.py`` calibration ``paper``.
* ``release_sizes.py`` has the number of learners and of rows, for all of them.
* ``planning_table.py`` is the table of planned mechanisms; ``planning_row.py`` has the type of a
  row.
"""
