"""Every setting, in one frozen object: ``conclave.toml`` and the environment.

``settings.py`` holds the object, ``reading.py`` reads it, one module a section declares its
fields, ``rules.py`` refuses what does not go together, ``wording.py`` says so in one line.
"""
