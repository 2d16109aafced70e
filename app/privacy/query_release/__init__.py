"""Query release assisted by public data: private multiplicative weights."""
