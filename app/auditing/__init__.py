"""Lower bounds on epsilon from the outside, to hold against the claim.

``audit.py`` runs a whole audit, by the table ``mechanisms.py``.  ``bounds/`` has exact
bounds, ``laws/`` the probabilities of the step that serves, ``transcripts/`` what whole
releases let out.  Nothing here reads a private row.
"""
