"""The page at ``/``: one static file that asks for the budget and shows it."""
