"""``conclave query``: rows of a CSV streamed to a server, answers written beside them."""
