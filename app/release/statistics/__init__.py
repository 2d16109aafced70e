"""Statistics: asked hypotheses, the table drawn once, and what it answers."""
