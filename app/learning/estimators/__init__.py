"""Scikit-learn classifiers as models: trained on chunks, then used for votes.

``estimator_choice.py`` imports the configured classifier, and refuses one that does not serve.

An ensemble is then fitted in one of two ways.  Some kinds are fitted on all chunks at once:

* ``packed_fit.py`` says which, and fits them; ``batched_cart.py`` (trees) and
  ``batched_logistic.py`` (logistic regression) have the algorithms.
* ``packed_ensemble.py`` is the ensemble of these: numbers, and no scikit-learn objects.

Any other classifier is fitted chunk by chunk:

* ``estimator_fitting.py`` fits one for each chunk, or one for the student.
* ``estimators.py`` is the ensemble of these scikit-learn objects.
* ``packing.py`` copies fitted linear models and trees of such an ensemble into shared arrays.

Both ways count votes of arrays: ``packed_cuts.py`` those of trees, ``packed_linear.py`` those of
linear models.
"""
