"""``POST /query``, ``POST /query/stream``, ``POST /statistics``: bodies in, answers out.

``query_route.py`` answers one query and ``stream.py`` a line at a time; ``query_body.py``
reads and checks a body; ``lines.py`` cuts a stream into lines.
"""
