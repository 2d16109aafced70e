"""An exact audit of releases with added rows: the largest privacy loss of one record.

* ``worst_case.py`` computes the exact delta of a small interactive mechanism, over all adaptive
  adversaries and events.
* ``adversary_game.py`` describes generations that vote together as a mechanism of this kind: which
  generations vote and which are charged, and the adversary's moves.
* ``generation_rules.py`` contains the rules by which generations vote and pay, as functions that a
  test may replace, and the conditions that the proof of their privacy requires (Theorem G in
  ``app/privacy/generations/accounts_proof.md``).
"""
