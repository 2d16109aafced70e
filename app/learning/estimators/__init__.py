"""Scikit-learn classifiers (estimators) as models: trained on chunks of rows, then used for votes.

``estimator_choice.py`` imports the configured estimator, and refuses one that cannot be used.

An ensemble is then trained in one of two ways. Some kinds of estimator are trained on all chunks in
one computation:

* ``packed_fit.py`` says which kinds these are, and trains them. ``batched_cart.py`` (decision
  trees) and ``batched_logistic.py`` (logistic regression) have the algorithms.
* ``packed_ensemble.py`` has the ensemble of these models, stored as numbers and without
  scikit-learn objects.

Any other estimator is trained chunk by chunk:

* ``estimator_fitting.py`` trains one estimator for each chunk, or one student classifier, which is
  trained on queries and their released labels.
* ``estimator_ensemble.py`` has the ensemble of these scikit-learn objects.
* ``packing.py`` copies trained linear models and decision trees of this ensemble into shared
  arrays.

The votes of models in arrays are counted together: ``tree_votes.py`` counts the votes of trees,
and ``linear_votes.py`` the votes of linear models.
"""
