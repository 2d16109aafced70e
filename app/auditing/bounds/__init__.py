"""Exact lower bounds on epsilon, one adversary a module."""
