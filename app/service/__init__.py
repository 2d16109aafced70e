"""The stateful part: opening a release, the one writer, the switch."""
