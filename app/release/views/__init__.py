"""The release as ``GET /budget`` and ``GET /parameters`` show it."""
