"""Answering of queries: one writer thread decides them in order and commits every answer.

Start at ``answer_query.py``; ``docs/life-of-a-query.md`` names the steps of a query. Nothing in
this folder reads settings or private rows.

The modules that take a batch of queries through its steps:

* ``answer_query.py`` names the steps, and takes one batch through look-up, votes, decision and
  commit.
* ``replays.py`` finds recorded answers, in memory or in the ledger, and contains the one rule for
  the source of an answer: a recorded answer, the ensemble's vote, the published classifier, or a
  refusal.
* ``batch_decisions.py`` decides all queries of a batch before the commit, many at once or one by
  one, and applies the limits of API keys; the mechanism's own decision on a query is in
  ``app/privacy/voting/query_decision.py``.
* ``queries.py`` defines batches of queries as columns, with the client of each query and the keyed
  hashes of its vector.
* ``asked_vectors.py`` keeps track of the feature vectors that are recorded in addition to the
  answer of their cell.
* ``answers.py`` turns a decision into the answer that a client gets.

The modules that run the batches and count them:

* ``service.py`` is the object that HTTP routes call, for queries and for all public information.
* ``service_slot.py`` contains that object for the server, which is opening, open or stopped.
* ``writer.py`` runs one batch after another on its own thread, runs the switch to the classifier,
  and lets queries wait for the classifier for a limited time.
* ``queue.py`` contains the waiting queries of each caller, and gives the decisions of a batch back
  to the callers.
* ``worker_thread.py`` runs work on a thread of its own while the event loop waits.
* ``hourly_counts.py`` counts answers by kind and by hour, and batches by size and duration.
* ``outlook/`` forecasts how long the budget lasts, ``replicas/`` coordinates several servers of one
  ledger, and ``generations/`` answers queries in a release whose rows are added and erased in
  batches.
"""
