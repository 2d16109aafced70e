"""The public side of a release, as clients see it.

* ``budget.py`` is the body of ``GET /budget``.
* ``parameters_in_words.py`` explains each parameter with its formula, for ``GET /parameters``.
"""
