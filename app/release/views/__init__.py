"""The public views of a release for clients: budget, parameters, statement.

* ``budget.py`` has the model of the body of ``GET /budget``, and its values.
* ``parameters_in_words.py`` explains each parameter with its formula, for ``GET /parameters``.
* ``statement.py`` has the lines of ``conclave statement``: each promise, and its proof.
* ``stated_release.py`` reads the facts for the statement, and checks the noise parameters again.
"""
