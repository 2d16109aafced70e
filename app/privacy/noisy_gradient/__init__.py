"""Noisy gradient descent for a linear score, and its exact accounting."""
