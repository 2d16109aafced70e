"""Hypothesis classes over public binary tests, and exact draws from them.

Pure: a class is fixed by public choices only (the tests, the depth, the
labels); private rows come in as ``bits`` and ``labels`` and go out only as a
drawn :class:`~app.hypotheses.trees.Tree` or a private normaliser.
"""
