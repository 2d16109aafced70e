"""Audits: lower bounds on the epsilon that a release's outputs prove, compared with its claim.

* ``audit.py`` runs the audit of a configuration's answers and makes the report.
* ``audited_mechanism.py`` is the mechanism under audit: its claim, and its steps as functions, so
  that a test can put a faulty one in their place.
* ``hypothesis_draws.py`` bounds the draws of hypotheses by calculation: relabelling, classifier,
  noisy descent.
* ``sampling.py`` bounds the answers by trial: the mechanism runs many times on neighbouring votes.
* ``mechanisms.py`` is the table of bounds and conditions, by mechanism of answers.
* ``outcome_events.py`` has the statistics: from the probabilities of an event on both neighbours
  to a bound on epsilon.
* ``generations/`` computes the worst case of generations that vote together.
* ``bounds/`` has exact bounds by adversary, ``laws/`` the exact law of one step, ``transcripts/``
  the comparison of whole releases.
"""
