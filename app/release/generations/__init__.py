"""A release to which batches of rows are added; their models vote together, and retire by batch.

A generation is one batch of rows. A slot is the fixed place of one row, or of one person's rows, in
a generation. A tick is a scheduled update, at public times. A generation retires (its models stop
voting) when its budget is used up.

* ``generations_opening.py`` opens such a release, or continues it without reading its source.
* ``appending.py`` appends a generation: it charges the budget and stores the rows in slots, but
  draws no labels or models.
* ``slots.py`` has the stored rows of a generation by slot, with their labels and models.
* ``person_batches.py`` finds the generation to which each person's rows belong.
* ``waiting_requests.py`` keeps erasures, corrections and further rows of known persons until the
  next tick, and ``row_changes.py`` prepares them for the tick.
* ``labelling.py`` computes a generation's labels: it draws them, uses the labelling of the first
  generation, or combines noisy counts of all generations.
* ``first_labelling.py`` draws one labelling from the rows of the first generations together.
* ``fitting.py`` trains a generation's models on these labels.
* ``score_inputs.py`` has the public inputs of the published classifier, fixed at the opening.
* ``classifier_contribution.py`` draws a generation's contribution to the published classifier,
  starting at the classifier of the previous generation.
* ``waiting_fits.py`` keeps trained models that do not vote yet, and the lock for training them.
* ``tick.py`` makes a tick: waiting models join the vote, and every generation's slots are written
  again.
* ``generations_release.py`` is the open release, with the models of all active generations.
"""
