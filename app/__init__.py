"""Conclave: classification queries on private records, with differential privacy.

Requests enter through ``cli/`` or ``http/``. ``answering/`` decides queries in order, ``release/``
opens a release and makes everything that is drawn only once, and ``ledger/`` records every charge
and answer. ``estimator/`` gives the same answers in a notebook, without a server. ``planning/``
predicts the answers of a release before it opens; ``auditing/`` tests the privacy claim from the
outside. The folders that all of these use are ``settings/`` (the configuration), ``data/`` (the
schema and the private rows), ``privacy/`` (the mechanisms), ``learning/`` (the models) and
``noise/`` (randomness).

A folder may import only folders that come later in this order: cli, http or estimator, planning or
auditing, answering, release, settings or ledger, data, privacy, learning, noise.

* ``main.py`` builds a server from its parts, and runs the commands that open a release, publish a
  classifier or ask for statistics.
* ``errors.py`` defines every error that Conclave raises, as one tree.
* ``__main__.py`` runs the command line for ``python -m app``.
* ``hypotheses/`` is a former import path, kept for predictors that users have written.
"""
