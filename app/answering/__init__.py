"""From a checked query to a committed answer: the one writer and what it keeps.

Start at ``answer_query.py``, the flow of a batch on one screen; ``service.py`` is what the
routes call; ``writer.py`` owns every bit of decision state.  ``docs/life-of-a-query.md``
names the steps.  This row never reads settings or a source of private rows.
"""
