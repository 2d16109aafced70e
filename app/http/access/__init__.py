"""Who may ask: API keys, their roles, their limits, and the address the server listens on.

``door.py`` checks the key of a request against the role of its route; ``keys_file.py``
reads the file and ``watched_keys.py`` reads it again when it changes.
"""
