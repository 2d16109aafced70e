"""Bytes of requests and replies, below the framework, where it was measured to pay.

``bodies.py`` reads every bounded body; ``connection_guard.py`` holds slow and too many
connections; the rest is what a hot route saves.  ``docs/performance.md`` has the figures.
"""
