"""The plan of each answering mechanism: number of models, noise, and feasibility.

* ``stability_plan.py`` plans the stability test with the calibrations ``profile`` and ``svt``.
* ``noisy_vote_plan.py`` plans the noisy vote; ``paper_plan.py`` plans calibration ``paper``.
* ``release_sizes.py`` computes the number of models and of rows, for all mechanisms.
* ``planning_table.py`` is the table of the planning functions of all mechanisms;
  ``planning_registration.py`` defines an entry of this table.
"""
