"""A forecast, from public counts, of how long the privacy budget of a release lasts.

* ``answer_rate.py`` keeps recent counts of answers by second, from the server's start on.
* ``drain_forecast.py`` bounds the rate of unstable answers, and forecasts when the models stop
  answering.
* ``drain_alarm.py`` raises an alarm when unstable answers come unusually often.
* ``outlook.py`` combines the three modules for ``GET /budget/outlook``, and regularly runs the
  check of all ledger entries (``app/ledger/entries/full_check.py``), whose last result ``GET
  /budget/outlook`` also shows.
"""
