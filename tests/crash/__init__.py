"""Processes that are killed in mid-work, and what is left."""
