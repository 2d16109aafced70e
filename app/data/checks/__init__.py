"""What of the rows is wrong or useless, for the operator's terminal alone, before any charge.

``source_check.py`` is ``conclave check``; ``dead_features.py`` refuses features that say
nothing; ``public_overlap.py`` refuses a public file that is the private one.
"""
