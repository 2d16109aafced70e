"""The plan of each mechanism: rows, learners, distances and answers it would give."""
