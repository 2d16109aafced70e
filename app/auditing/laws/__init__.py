"""The exact distribution of an audited mechanism's answer, and checks of its privacy proof.

* ``step_law.py`` finds, by calling the step itself, which noise gives which outcome.
* ``scripted_noise.py`` has laws of noise that draw prescribed values for it.
* ``proof_conditions.py`` lists the conditions of the proofs that a step breaks, as one hit too
  many.
* ``proof_inequalities.py`` checks that the law pays for every hit, label and answer of a run.
"""
