"""Conclave: classification queries on private records, with differential privacy."""
