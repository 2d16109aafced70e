"""Linear scores over public terms: what noisy gradient descent fits."""
