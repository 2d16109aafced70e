"""Hypothesis classes, learners, and the counting of the learners' votes; without any I/O.

One folder a class: ``trees/``, ``lists/``, ``cells/``, ``halfspaces/``, ``linear/``, and
``predictors/`` for users' own; ``estimators/`` has scikit-learn's, ``encoding/`` their inputs,
``statistics_tables/`` the class of a statistics table.

* ``hypothesis.py`` has the interface of a class and of one hypothesis.
* ``registry.py`` is the table of classes by their name in a configuration.
* ``chunks.py`` cuts the sampled rows into a chunk a learner, and handles failures: a learner that
  fails votes class 0, a machine that fails ends the fit.
* ``ensemble.py`` fits k learners, reads them back, and has the interface of their votes.
* ``learner_seeds.py`` gives each learner a seed of its own.
* ``vote_counting.py`` counts many votes in few operations.
* ``student.py`` fits one learner on the answers already given.
"""
