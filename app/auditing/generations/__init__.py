"""An exact audit of releases with added rows: the largest privacy loss of one record.

* ``worst_case.py`` computes the exact delta of a small interactive mechanism, over all adaptive
  adversaries and events.
* ``adversary_game.py`` is such a mechanism: generations that vote together, the rules of which
  generation votes and which is charged, and the adversary's moves.
* ``generation_rules.py`` contains the rules by which generations vote and pay, as functions that a
  test may replace, and the conditions that the proof of their privacy requires (Theorem G in
  ``app/privacy/generations/accounts_proof.md``).
"""
