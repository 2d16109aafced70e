"""The revisions, one change each; a published revision is never changed."""
