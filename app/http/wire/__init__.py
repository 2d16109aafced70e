"""Reading and writing of raw bytes below the web framework, where measurements showed a gain.

* ``headers_and_bodies.py`` looks up headers, reads bodies up to a limit by their media type and
  compression, splits a CSV body into fields, and makes a JSON reply, all faster than the web
  framework does.
* ``connection_guard.py`` limits connections, and ends connections with slow headers, slow bodies or
  unread replies.
* ``fast_requests.py`` reads requests with known headers directly from a connection.

``docs/performance.md`` shows the measurements.
"""
