"""The papers' own parameters, as printed after the errata, and their theorems on rows."""
