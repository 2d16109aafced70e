"""Reading and writing of raw bytes below the web framework, where measurements showed a gain.

* ``bodies.py`` reads bodies up to a limit: media types, compression, CSV.
* ``connection_guard.py`` limits connections, and ends those with slow headers, slow bodies or
  unread replies.
* ``plain_requests.py`` takes requests whose heads are known from a connection as they come.
* ``fast.py`` has a faster lookup of request headers and a faster JSON reply.

``docs/performance.md`` has the figures.
"""
