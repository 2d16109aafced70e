"""The plan of each answering mechanism: number of learners, noise, and feasibility.

* ``stability_plan.py`` plans calibrations ``profile`` and ``svt``.
* ``noisy_vote_plan.py`` plans the noisy vote, ``paper_plan.py`` calibration ``paper``.
* ``sizes.py`` has the number of learners and of rows, for all of them.
* ``planned.py`` is the table of planned mechanisms; ``planned_row.py`` has the type of a row.
"""
