"""Batch runs: a window that runs a workflow for each row of a table."""
