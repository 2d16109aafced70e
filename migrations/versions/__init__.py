"""One idea per revision; history is never rewritten."""
