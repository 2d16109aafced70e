"""The head file: a witness outside the database that no rollback takes along."""
