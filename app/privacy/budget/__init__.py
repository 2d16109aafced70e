"""The division of epsilon and delta among mechanisms, and the public rules that follow from it.

* ``composition.py`` divides a budget by shares, and adds charges up.
* ``pipeline.py`` says what relabelling and answers may cost on the sample that they run on.
* ``calibration.py`` checks any calibration of the answers before it serves.
* ``ensemble_size.py`` chooses k where the configuration says ``auto``.
* ``unanimity.py`` says whether an opening is hopeless: it would spend its budget on next to no
  answers even if all learners agreed.
"""
