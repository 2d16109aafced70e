"""How ``conclave.toml`` and the environment become one ``Settings`` object."""
