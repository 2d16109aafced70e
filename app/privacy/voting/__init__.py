"""Counting of the models' votes, and private decisions on answers, for any mechanism.

* ``tallies.py`` lets all models vote on a batch of queries, and counts the votes.
* ``votes.py`` computes a query's leading label, and how many votes may change without changing it,
  from the vote counts.
* ``keyed_slots.py`` permutes rows by a secret key, if the rows are read as a stream: a row's slot
  is its place in the permuted order, which decides the chunk to which it belongs.
* ``query_decision.py`` answers one query by the release's mechanism, and computes the
  phase that follows: ``ensemble``, ``classifier`` or ``halted``; ``query_decision_proof.md`` has
  its proof.
* ``answering_mechanism.py`` has the interface of the mechanisms; ``answering_mechanism_proof.md``
  shows why a claim about one step is a claim about a whole run.
* ``knowledge_transfer.py`` makes a training set for a student model from the answers.
"""
