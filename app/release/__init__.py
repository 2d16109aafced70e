"""A release from its opening to its end: drawn once, kept in the ledger, never drawn again.

Start at ``opening.py``.  ``terms/`` turns settings into public parameters; ``drawing.py``
draws the sample, the relabelling and the ensemble; ``classifier/`` and ``statistics/``
publish, all by the one protocol in ``publication.py``; ``views/`` shows what is public.
"""
