"""How many answers to expect: learners tried on made-up people who follow the public schema.

``prediction.py`` runs the trial; ``recommendation.py`` tries other settings and names the
best; ``populations.py`` and ``made_up_rules.py`` make the people and their labels.
"""
