"""Runs as the window sees them: what their events add up to, and how they are started and stopped."""
