"""The operator's dashboard: an HTML file with styles and scripts, served from the package.

* ``page.py`` makes the replies that serve the files of ``static/``.
* ``static/main.js`` starts the page: it listens to the server and calls the other scripts.
* ``static/overview.js`` shows the phase, the remaining budget, a forecast of when it is used up,
  and the present rate of answers.
* ``static/notice.js`` shows the one notice at the top: an alarm, a warning, or a command to type.
* ``static/requests.js`` shows answers by kind, and refusals; ``static/operator_view.js`` shows, to
  the role admin only, API keys, the newest backup, the head file (a note of the ledger's newest
  entry) and free disk space.
* ``static/history.js`` shows unstable answers and answers over time, each as a chart and a table;
  ``static/chart.js`` draws one chart.
* ``static/hours.js`` shows how many queries were asked in each hour; ``static/generations.js``
  shows the generations of a release to which records are added.
* ``static/budget.js`` shows each mechanism's share of epsilon, the ledger and the parameters.
* ``static/stream.js`` reads the server's events, and connects again after a lost connection.
* ``static/dom.js`` contains small functions on the document's elements.
* ``static/number_format.js`` writes numbers, times and durations.
* ``static/index.html``, ``static/style.css`` and ``static/icon.svg`` are the page itself.
"""
