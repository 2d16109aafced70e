"""Noisy gradient descent for linear scores, and its exact privacy accounting.

* ``mechanism.py`` runs the descent on noisy sums.
* ``calibration.py`` finds the noise of its steps.
* ``descent.py`` chooses the number and length of steps, by rows and epsilon.
"""
