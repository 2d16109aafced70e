"""The statistics table: drawn once with noise, then used for the mean outcome of any hypothesis.

* ``statistics_table.py`` prepares the draw: its hypotheses, its cells and its noise.
* ``opening_table.py`` charges, draws and publishes the table.
* ``released_table.py`` is the published table: its document, and its answers.
* ``posted_hypotheses.py`` checks hypotheses that a client posts, and applies them to public points.
"""
