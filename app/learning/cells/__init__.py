"""A public partition into cells, with a label of its own in each."""
