"""The only readers of private rows, and the public schema they are read by."""
