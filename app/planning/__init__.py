"""What a configuration gives, before a record is read: numbers, advice, predictions.

Start at ``plan.py``; ``from_settings.py`` is the one place that reads settings.
``mechanisms/`` plans each mechanism by the table ``planned.py``, ``trial/`` predicts answers
on made-up people, and ``telling/`` turns both into documents and words.
"""
