"""Composition of shares, and what relabelling, sampling and answers cost together."""
