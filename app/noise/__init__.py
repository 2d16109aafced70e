"""Randomness: one protocol, the operating system's generator, and a scripted double.

This is the lowest row of the import order and the only caller of
``os.urandom``.  Every draw that a privacy claim rests on comes through
:class:`~app.noise.source.NoiseSource`.
"""
