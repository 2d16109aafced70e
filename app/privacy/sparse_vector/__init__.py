"""Theorem B: the papers' sparse vector with honest constants."""
