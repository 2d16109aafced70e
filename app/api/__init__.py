"""HTTP only: routes, roles, bodies, and the one table from errors to statuses."""
