"""Lower bounds on epsilon from the outside, on worst-case neighbours; no private row is read."""
