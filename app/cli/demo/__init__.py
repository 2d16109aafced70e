"""``conclave demo``: the whole way on generated data, and its report."""
