"""Answering of queries: one writer thread decides them in order and commits every answer.

Start at ``answer_query.py``; ``docs/life-of-a-query.md`` names the steps.  Nothing here reads
settings or private rows.

The steps of a batch:

* ``answer_query.py`` names the steps, and takes one batch through replay, votes, step and commit.
* ``replays.py`` finds recorded answers, in memory or in the ledger, and has the one rule for the
  source of an answer: a recorded answer, the ensemble, the classifier, or a refusal.
* ``batch_decisions.py`` decides all queries of a batch before the commit, many at once or one by
  one, limits of API keys included; the decision by the mechanism itself is in
  ``app/privacy/voting/query_decision.py``.
* ``queries.py`` has queries in columns, with the client that asked and the keyed hashes.
* ``asked_vectors.py`` knows the vectors that are recorded beside the answer to their cell.
* ``answers.py`` turns a decision into the answer that a client gets.

Around them:

* ``service.py`` is the object that routes call, for queries and for everything public.
* ``service_slot.py`` holds that object for the server, which is opening, open or stopped.
* ``writer.py`` runs one batch after another on its own thread, runs the switch to the classifier,
  and lets queries wait for the classifier up to a time.
* ``queue.py`` has the waiting queries of each caller, and hands a batch's decisions back.
* ``worker_thread.py`` runs work on a thread of its own while the event loop waits.
* ``hourly_counts.py`` counts answers by kind and by hour, and sizes and times of batches.
* ``outlook/`` forecasts how long the budget lasts, ``replicas/`` coordinates several servers of
  one ledger, and ``generations/`` answers where batches of rows join and retire.
"""
