"""Counting of the models' votes, and private decisions on answers, for any mechanism.

* ``tallies.py`` lets all learners vote on a batch of queries, and counts.
* ``votes.py`` goes from the counts of a query to its leading label and the distance to instability.
* ``keyed_permutation.py`` puts rows in slots where an opening streams, by a secret key.
* ``query_decision.py`` takes one step of a release's answers by its mechanism, and says which phase
  follows: ensemble, classifier, or the end; ``query_decision_proof.md`` has its proof.
* ``answering_mechanism.py`` has the interface of the mechanisms.
* ``knowledge_transfer.py`` makes a training set for a student of the answers.
"""
