"""Conversion of settings to a release's public parameters, which its first entry records.

The mechanisms get these parameters and never see the settings. Settings that cannot be served are
refused here, before anything is charged.

* ``configuration.py`` has :class:`Configuration`, all public parameters together: charges,
  hypothesis classes, feature tests, learner. ``app/settings/`` reads the file ``conclave.toml``.
* ``answer_terms.py`` makes the parameters of the answers: budget, noise and mechanism.
* ``accounting.py`` decides whether shares are added up, or answers and draws share one account.
* ``draw_parameters.py`` makes the parameters of the models: their number k, and relabelling.
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
