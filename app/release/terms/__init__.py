"""Conversion of settings to a release's public parameters, which its first entry records.

Below this folder nothing sees a setting.  Refusals here come before any charge.

* ``configuration.py`` is the whole: charges, hypothesis classes, tests, learner.
* ``answer_terms.py`` makes the answers' part: budget, calibration and mechanism.
* ``accounting.py`` says whether shares add up, or answers and draws are one account.
* ``draw_parameters.py`` makes the ensemble's part: k and relabelling.
* ``bound_settings.py`` lists the settings that a release is bound to, and compares them at a start.
* ``privacy_unit.py`` says what is protected, a row or a person, and refuses what is not served by
  person.
* ``hopeless_release.py`` refuses a release that could give next to no answers, unless the operator
  insists.
* ``answer_time.py`` measures the time of an answer on made-up rows, and refuses too slow ones.
* ``work_limits.py`` refuses fits and draws that would take hours.
* ``padding.py`` makes the time of an evaluation a multiple of a public constant.
"""
