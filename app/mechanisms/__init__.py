"""Mechanisms: one algorithm of the papers per file, pure and proved."""
