"""The exponential mechanism, and its uses: relabelling and the semi-private learner."""
