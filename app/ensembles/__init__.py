"""The k learners of a release: chunks, fitting, and all votes of a batch at once.

Pure: what comes in is private rows, a permutation and a secret that the
caller drew; what goes out is private until a mechanism has answered from it.
A model is a function of its own chunk and its own seed, and casts exactly one
vote on every query.
"""
