"""An exact audit of releases with added rows: the largest privacy loss of one record.

* ``worst_case.py`` computes the exact delta of a small interactive mechanism, over all adaptive
  adversaries and events.
* ``living_game.py`` is that mechanism: generations that vote together, rules of who votes and who
  is charged, and the adversary's moves.
* ``living_rules.py`` has the rules of Theorem G, as functions that a test may replace, and the
  conditions that its proof asks of them.
"""
