"""A forecast, from public counts, of how long the privacy budget of a release lasts.

* ``answer_rate.py`` keeps recent counts by second: answers a second since this start.
* ``drain_forecast.py`` bounds the unstable rate and forecasts when the ensemble ends.
* ``drain_alarm.py`` raises an alarm when unstable answers come unusually often.
* ``hourly.py`` counts requests by hour beside the ledger, for all servers and restarts.
* ``outlook.py`` puts these together, and checks the ledger's entries again in the background.
"""
