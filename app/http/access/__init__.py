"""Access control: API keys, roles, limits, and refusal of cross-site requests by browsers.

* ``access_control.py`` checks each request: its key against the route's role, and its ``Host`` and
  ``Origin`` against other sites. It also refuses an unsafe address for a server without keys.
* ``keys.py`` reads, searches and writes the file of keys, and reads it again when it changes.
* ``tokens.py`` checks bearer tokens of an OpenID provider, and fetches the keys that sign them.
* ``rate_limits.py`` writes the reply headers with a key's limits; it enforces none
  (``app/answering/batch_decisions.py`` does).
"""
