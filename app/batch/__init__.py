"""A workflow run for each row of a table: the window for it."""
