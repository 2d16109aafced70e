"""The only readers of private rows: one module a format, and how a value is read.

A row is read alone: what becomes of it is a function of that row and of public
configuration.  ``sources.py`` chooses the reader of an address.
"""
