"""A release: one data set under one privacy budget, from its opening to its last answer.

* ``opening.py`` opens a release or continues one: charges, draws, commits.
* ``drawing.py`` draws the permutation, the sample, the relabelling and the ensemble, or reads them
  back.
* ``streaming.py`` says whether an opening streams, and has its rows; ``streamed_drawing.py`` draws
  from counts of them.
* ``release.py`` is the open release: its parameters, its state and the rules for its end.
* ``publication.py`` is the one order of every draw: refuse where closed, take the turn, charge,
  draw, publish, adopt.
* ``private_state.py`` stores and reads the private pieces, checked by their digests.
* ``composed_budget.py`` refuses a further release of a database unless it states the sum of all
  budgets.
* ``simulation.py`` runs the mechanism on given votes, for ``conclave simulate``.
* ``progress.py`` has the interface that reports the progress of an opening.
* ``terms/`` turns settings into public parameters, ``generations/`` adds and erases rows later,
  ``classifier/`` and ``statistics/`` publish, ``views/`` shows the public side.
"""
