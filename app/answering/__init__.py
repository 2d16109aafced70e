"""Answering of queries: one writer thread decides them in order and commits every answer.

Start at ``answer_query.py``; ``docs/life-of-a-query.md`` names the steps.  Nothing here reads
settings or private rows.

* ``service.py`` is the object that routes call, for queries and for everything public.
* ``service_slot.py`` holds the service of a server, which is opening, open or stopped.
* ``writer.py`` runs one batch after another on its own thread, runs the switch to the classifier,
  and lets queries wait for it up to a time.
* ``queue.py`` has the waiting queries of each caller, and hands a batch's decisions back.
* ``answer_query.py`` names the steps of a query, and takes a batch through replay, votes, step and
  commit.
* ``batch_decisions.py`` decides a batch query by query before the commit, limits of keys included.
* ``queries.py`` has a query with its asker, and queries side by side, in columns, with digests.
* ``replays.py`` finds recorded answers, in memory or in the ledger, and has the one rule for what
  answers a query: a recorded answer, the ensemble, the classifier, or a refusal.
* ``answers.py`` turns a decision into the answer that a client gets.
* ``worker_thread.py`` runs work on a thread of its own while the event loop waits.
* ``hourly_counts.py`` counts answers by kind and by the hour, batches and times in coarse buckets,
  and notifies listeners of changes.
* ``outlook/`` says how long the budget lasts, ``beside/`` follows other servers of the ledger, and
  answers where generations join and retire.
"""
