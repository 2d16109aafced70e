"""All settings of ``conclave.toml`` and environment variables, as one frozen object.

* ``settings.py`` defines that object, and loads it.
* ``toml_and_environment.py`` reads the file and the environment into tables, and makes paths
  absolute.
* ``data_section.py``, ``release_sections.py`` (release, privacy, answers),
  ``generations_section.py``, ``learning_sections.py`` (hypotheses, learner, student, classifier,
  statistics) and ``server_sections.py`` (ledger, server, logs, telemetry) declare the keys of each
  section.
* ``field_types.py`` defines the types of values: exact numbers, bounds, names, paths.
* ``addresses.py`` decides which network addresses are local, and which are secure.
* ``setting_checks.py`` refuses combinations of values that contradict each other.
* ``error_lines.py`` turns a failed validation into one line that names the key.
"""
