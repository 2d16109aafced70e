"""Noisy gradient descent for linear classifiers, and its exact privacy accounting.

* ``mechanism.py`` runs the descent on noisy sums over the rows.
* ``calibration.py`` finds the least noise of the steps for a budget.
* ``descent_choices.py`` chooses the number and length of steps, from the number of rows and
  epsilon.
"""
