"""The statistics table: drawn once with noise, then used for the mean outcome of any hypothesis.

A hypothesis is a rule that gives each row one of two outcomes, -1 or +1; its mean outcome is over
the private rows.

* ``statistics_table.py`` prepares the draw of the table: its list of hypotheses, and its noise.
* ``opening_table.py`` charges, draws and publishes the table.
* ``released_table.py`` is the published table: its document, and the mean outcomes read from it.
* ``posted_hypotheses.py`` checks hypotheses that a client posts, and applies them to public points.
"""
