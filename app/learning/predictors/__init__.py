"""Hypotheses that a user wrote in Python."""
