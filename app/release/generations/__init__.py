"""A release to which batches of rows are added; their models vote together, and retire by batch.

* ``living_opening.py`` opens such a release, or continues it without its source.
* ``appending.py`` appends a generation: its budget, its slots, and nothing that is drawn of rows.
* ``slots.py`` has a generation's rows by slot, with its labels and learners, as they are kept.
* ``person_batches.py`` has the generation to which each person's rows belong.
* ``waiting_requests.py`` keeps erasures, corrections and later rows until the next tick, and
  ``row_changes.py`` prepares them for it.
* ``labelling.py`` draws a generation's labels, takes over the first's, or pools those of all.
* ``cohort.py`` draws one labelling from the rows of the first generations together.
* ``fitting.py`` fits a generation's learners on them.
* ``score_inputs.py`` has the public inputs of the published classifier, fixed at the opening.
* ``batch_contribution.py`` draws a generation's part in it, from where the one before has arrived.
* ``waiting_fits.py`` has what is fitted and not in the ledger, and the turn to fit it.
* ``tick.py`` is a tick: what is fitted joins, and every generation's slots are written anew.
* ``living_release.py`` is the open release, whose learners are those of all active generations.
"""
