"""Halfspaces over public points or a lattice, enumerated exactly."""
