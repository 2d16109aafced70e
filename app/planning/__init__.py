"""What a configuration gives, before any private row is read."""
