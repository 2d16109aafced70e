"""From settings to the public parameters of a release, which its first ledger entry holds.

``configuration.py`` is the whole; below this folder nothing sees a setting.
"""
