"""Conversion of settings to a release's public parameters, stored in its first ledger entry.

The mechanisms get these parameters and never see the settings. Settings that cannot be served are
refused here, before anything is charged.

* ``configuration.py`` has :class:`Configuration`, all public parameters together: charges,
  hypothesis classes, feature tests, learner. ``app/settings/`` reads the file ``conclave.toml``.
* ``answer_terms.py`` makes the parameters of the answers: budget, noise and mechanism.
* ``accounting.py`` decides how privacy costs are added up: share by share, or all in one account.
* ``draw_parameters.py`` computes the number k of models, and how their rows are relabelled.
* ``bound_settings.py`` lists the settings that may not change during a release, and compares them
  when a server starts.
* ``privacy_unit.py`` has the unit of protection, a row or a person, and refuses settings that do
  not support persons.
* ``hopeless_release.py`` refuses a release that would give almost no answers, unless the operator
  requests it.
* ``answer_time.py`` measures the time of an answer on made-up rows, and refuses answers that take
  too long.
* ``work_limits.py`` refuses training and draws that would take hours.
* ``answer_time_padding.py`` computes how long a reply waits, so that its time is a multiple of a
  public constant and reveals no vote.
"""
