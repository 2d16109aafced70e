"""The plan of each answering mechanism: number of models, noise, and feasibility.

* ``stability_plan.py`` plans the stability test, with independent noise for each query
  (calibrations ``profile`` and ``certified``) or by the sparse vector technique (calibration
  ``svt``).
* ``noisy_vote_plan.py`` plans the noisy vote; ``paper_plan.py`` plans the sparse vector technique
  with the constants that the research papers print (calibration ``paper``).
* ``release_sizes.py`` computes the number of models and of rows, for all mechanisms.
* ``planning_table.py`` is the table of the planning functions of all mechanisms;
  ``planning_registration.py`` defines an entry of this table.
"""
