"""Linear scores over public inputs: classifiers that noisy gradient descent trains.

* ``conjunctions.py`` has the inputs: public tests and products of two, each 0 or 1.
* ``quantile_steps.py`` makes inputs of numbers, in whole steps between public quantiles.
* ``whitening.py`` finds a public linear map that makes terms uncorrelated.
* ``integer_vectors.py`` maps rows to integer vectors of bounded length, and has the logistic
  residuals, so that sums over rows are exact.
* ``linear_scores.py`` has the classifier, and the averaged steps of the descent.
* ``cosine_features.py`` has inputs that curve: cosines of random phases of numbers, in integers.
* ``kernel_scores.py`` whitens terms and waves together, and has the classifier over both.
"""
