"""Rows as the outcomes of public tests, or as public columns of numbers."""
