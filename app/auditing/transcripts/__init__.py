"""Transcripts of whole releases: neighbouring data sets, what was heard, what it tells."""
