"""Linear classifiers trained by noisy gradient descent, and the inputs that they compute from rows.

A score is a weighted sum of a row's inputs, for example of the outcomes of feature tests. With two
classes there is one score, whose sign predicts the class; with more there is one score per class,
and the class with the largest one is predicted.

* ``conjunctions.py`` has inputs that are 0 or 1: public tests of features, and pairs of tests that
  are both true.
* ``quantile_steps.py`` makes inputs of numeric features, in whole steps between public quantiles.
* ``cosine_features.py`` has nonlinear inputs: cosines of random weighted sums of numeric features.
* ``whitening.py`` finds a public linear map that makes the inputs uncorrelated.
* ``integer_vectors.py`` maps rows to integer vectors of bounded length, and has the residuals of
  the logistic loss as integers, so that sums over rows are exact.
* ``linear_scores.py`` has the classifier over feature tests alone, and averages its weights over
  the later half of the steps of gradient descent, which
  ``app/privacy/noisy_gradient/mechanism.py`` runs.
* ``kernel_scores.py`` has the classifier over feature tests and numeric features. Its inputs are
  cosines of weighted sums of numeric features, or the numeric features themselves.
"""
