"""Soft labels: two histograms of scores, tested by one counter of unstable answers."""
