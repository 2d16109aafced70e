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

The modules that the most frequent changes edit:

* **A setting of the answers** is declared in ``settings/release_sections.py``, and compared with
  other settings in ``settings/setting_checks.py``. ``release/terms/bound_settings.py`` records it
  in the first ledger entry if it may not change later, and ``release/views/budget.py`` shows it to
  clients. ``conclave plan`` reads it in ``planning/from_settings.py``, passes it on in
  ``planning/request.py`` and explains it in ``planning/output/plan_sentences.py``.
* **A member of the replies to ``POST /query``** is computed in ``answering/service.py``, written in
  ``http/query/query_route.py`` and ``http/query/fast_query.py``, and declared in
  ``http/openapi/query_models.py``.
* **A member of ``GET /budget``** is in ``release/views/budget.py``. If it is a new part of the
  state that ledger entries add up to, ``ledger/entries/fold.py`` computes it,
  ``ledger/entries/checkpoint.py`` stores it, and ``ledger/database/statements.py`` finds it in
  ledgers of before.
* **A source of private rows** is a module in ``data/sources/`` that ``data/sources/sources.py``
  chooses; its kind is described in ``settings/data_section.py``. Arrow values are read by
  ``data/sources/arrow_columns.py``.
* **A learner of the published classifier** has its properties in ``privacy/learner_properties.py``,
  its code in a module of ``release/classifier/``, with an entry in
  ``release/classifier/learner_table.py``, and its audit in ``auditing/hypothesis_draws.py``. Its
  name is described in ``settings/learning_sections.py`` and ``estimator/classifier.py``.
"""
