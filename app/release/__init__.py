"""A release: one data set under one privacy budget, from its opening to its last answer.

* ``opening.py`` opens a release or continues one: it charges the budget, lets ``drawing.py`` make
  the random draws, and commits their results.
* ``drawing.py`` draws the order of the rows, the sample, the rule that relabels the rows, and the
  models, or reads them as they were stored in the database.
* ``streaming.py`` decides whether an opening reads the rows as a stream of parts, and reads them;
  ``streamed_drawing.py`` makes the draws from counts of the streamed rows.
* ``release.py`` is the open release: its parameters, its state and the rules for its end.
* ``charged_draw.py`` has the steps that are common to these and later random draws: refuse if the
  ledger is closed, take the lock, charge, draw, publish, update the state.
* ``private_state.py`` stores private values, and checks their digests when they are read.
* ``composed_budget.py`` refuses a further release in a database unless its configuration states the
  sum of all budgets.
* ``simulation.py`` answers queries whose votes the user gives, for ``conclave simulate``.
* ``progress.py`` has the interface that reports the progress of an opening.
* ``terms/`` turns settings into public parameters, ``generations/`` adds and erases rows later,
  ``classifier/`` and ``statistics/`` publish a classifier and a statistics table, and ``views/``
  shows the public figures of a release.
"""
