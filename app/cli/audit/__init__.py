"""``conclave audit``: the command, its table, and whole releases run over HTTP."""
