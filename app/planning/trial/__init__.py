"""Trials of planned releases: models trained on made-up data show how many answers to expect.

* ``trial_from_settings.py`` is the entry point: it turns settings into a trial, or gives the reason
  why no trial is possible.
* ``run_trial.py`` runs the steps of one trial; ``prediction.py`` defines the result.
* ``trial_size.py`` limits by estimated time how many labelling rules and records are made up, and
  how many models are trained on them.
* ``made_up_records.py`` makes records and their labels, by public frequencies or public points.
* ``agreement.py`` trains models on the made-up records, and measures how clearly their votes agree.
* ``forecast.py`` computes the number of answers of a mechanism from this agreement.
* ``small_leaf_risk.py`` warns of small tree leaves with one or two rows per chunk, on which models
  disagree.
* ``search_for_wanted.py`` searches for the least epsilon, or the fewest rows, with a wanted result.
* ``sustained_answers.py`` computes the rate of answers that a release can give for ever if rows are
  added.
* ``recommendation.py`` tries other mechanisms, numbers k of models, cutoffs T and shares of
  epsilon, and names the best.
"""
