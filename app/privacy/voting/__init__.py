"""Counting of the models' votes, and private decisions on answers, for any mechanism.

* ``tallies.py`` lets all models vote on a batch of queries, and counts the votes.
* ``votes.py`` computes a query's leading label and its distance to instability from the vote
  counts.
* ``keyed_slots.py`` assigns rows to slots by a secret key, if the rows are read as a stream.
* ``query_decision.py`` takes one step of a release's answers by its mechanism, and computes the
  phase that follows: ``ensemble``, ``classifier`` or ``halted``; ``query_decision_proof.md`` has
  its proof.
* ``answering_mechanism.py`` has the interface of the mechanisms.
* ``knowledge_transfer.py`` makes a training set for a student model from the answers.
"""
