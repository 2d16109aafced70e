"""The noisy vote: the largest count after exact Gaussian noise."""
