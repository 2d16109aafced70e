"""Reading and writing of raw bytes below the web framework, where measurements showed a gain.

* ``headers_and_bodies.py`` looks up headers, reads bodies up to a limit (media types, compression,
  CSV), and makes a JSON reply, faster than the framework does.
* ``connection_guard.py`` limits connections, and ends those with slow headers, slow bodies or
  unread replies.
* ``plain_requests.py`` takes requests whose heads are known from a connection as they come.

``docs/performance.md`` has the figures.
"""
