"""Trials of planned releases: models trained on made-up data show how many answers to expect.

* ``planned_answers.py`` is the entrance: from settings to a trial, or the reason why there is none.
* ``run_trial.py`` runs the steps of one trial; ``prediction.py`` is the result.
* ``trial_size.py`` limits how many rules and learners are tried, by estimated time.
* ``made_up_records.py`` makes records and their labels, by public shares or public points.
* ``agreement.py`` fits learners on them, and measures by how much votes agree.
* ``forecast.py`` goes from this agreement to the number of answers of a mechanism.
* ``small_leaf_risk.py`` warns of small leaves: one or two rows a chunk, where learners disagree.
* ``search_for_wanted.py`` searches the least epsilon, or the fewest rows, for a wanted result.
* ``sustained_answers.py`` has the rate of answers that a release gives for ever if rows are added.
* ``recommendation.py`` tries other mechanisms, k, T and shares, and names the best.
"""
