"""Audits: lower bounds on the epsilon that a release's outputs prove, compared with its claim.

* ``audit.py`` runs the audit of a configuration's answers and makes the report.
* ``audited_mechanism.py`` describes the mechanism under audit: its privacy claim, and its steps as
  functions, so that a test can replace a function by a faulty one.
* ``hypothesis_draws.py`` computes lower bounds for hypotheses (rules) that are drawn at random: the
  rule that relabels the rows, the published classifier, noisy gradient descent, and trees with
  noisy counts.
* ``sampling.py`` estimates lower bounds for the answers: it runs the mechanism many times on
  neighbouring votes.
* ``bounds_by_mechanism.py`` is the table of bounds and proof conditions, by answering mechanism.
* ``event_bounds.py`` contains the statistics: it turns the probabilities of an event on two
  neighbouring data sets into a lower bound on epsilon.
* ``generations/`` computes the worst case of generations that vote together.
* ``bounds/`` computes exact lower bounds, one module per mechanism, ``laws/`` computes the exact
  distribution of one answer, and ``transcripts/`` compares everything that whole releases send.
"""
