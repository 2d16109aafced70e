"""Access control: API keys, roles, limits, and refusal of cross-site requests by browsers.

* ``access_control.py`` checks each request: its API key against the route's role, and its headers
  ``Host`` and ``Origin``, to refuse requests from other web sites. It also refuses an unsafe
  address for a server without API keys.
* ``keys.py`` reads and searches the file of API keys, and reads it again when it changes.
* ``tokens.py`` checks bearer tokens of an OpenID provider, and fetches the public keys with which
  their signatures are checked.
* ``rate_limit_headers.py`` writes the reply headers with an API key's limits;
  ``app/answering/batch_decisions.py`` enforces the limits.
"""
