"""From the votes of k learners to answers, whichever mechanism decides.

``votes.py`` says what one record can change; ``tallies.py`` counts a batch; ``universal.py``
steps through a release's phases; ``answering_mechanism.py`` is the interface.
"""
