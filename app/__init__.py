"""Conclave: classification queries on private records, with differential privacy.

Requests enter by ``cli/`` or ``http/``, ``answering/`` decides queries in order, ``release/``
holds what is drawn once, and ``ledger/`` records every charge and answer.  ``estimator/`` gives
the same answers in a notebook.  Before a release ``planning/`` predicts what it gives;
``auditing/`` tests the claim from the outside.  Below lie ``settings/`` (the configuration),
``data/`` (the schema and the private rows), ``privacy/`` (the mechanisms), ``learning/`` (the
learners) and ``noise/`` (randomness).  Imports go down this order only: cli, http or estimator,
planning or auditing, answering, release, settings or ledger, data, privacy, learning, noise.

* ``main.py`` wires a server, and opens, learns or asks statistics for a command.
* ``errors.py`` has every error that Conclave raises, as one tree.
* ``__main__.py`` runs the command line by ``python -m app``.
* ``hypotheses/`` is an old import path of users' own predictors.
"""
