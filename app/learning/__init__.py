"""Hypothesis classes, learners, and the counting of votes; without file or network access.

A learner trains one model on one chunk of rows. A built-in learner searches a hypothesis class: a
public set of possible classifiers.

Folders: ``trees/``, ``enumerated/``, ``cells/``, ``halfspaces/``, ``linear/`` and ``predictors/``
(written by users) have one kind of hypothesis class each. ``estimators/`` trains scikit-learn
classifiers, and ``encoding/`` turns feature values into the inputs of models.
``statistics_tables/`` has the hypotheses of a statistics table; such a table contains, for each
hypothesis of a class, the number of rows to which the hypothesis gives label 1, with noise.

* ``hypothesis.py`` has the interfaces of a hypothesis, a hypothesis class and an ensemble.
* ``registry.py`` is the table of hypothesis classes by their name in a configuration.
* ``chunks.py`` cuts the permuted rows into one chunk per learner, and handles failures: the
  model of a learner that fails votes for class 0, and an error of the machine, such as too little
  memory, ends the training.
* ``ensemble.py`` trains an ensemble of k models and reads a stored one.
* ``learner_seeds.py`` derives the random seed of each learner.
* ``vote_counting.py`` counts many votes in few operations.
* ``student.py`` trains one model on the queries that are already answered, and their labels.
"""
