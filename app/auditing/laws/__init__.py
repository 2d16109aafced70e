"""The exact distribution of an audited mechanism's answer, and checks of its privacy proof.

* ``step_law.py`` finds which noise gives which outcome, by calling the mechanism's own step (the
  function that answers one query).
* ``scripted_noise.py`` defines noise distributions that return prescribed values.
* ``proof_conditions.py`` lists the conditions of the privacy proofs that a mechanism breaks, for
  example by one unstable answer too many.
* ``proof_inequalities.py`` checks the inequalities of the proofs: that the noise is large enough
  for every unstable answer, label and answer of a run.
"""
