"""One module per scenario: its function `tables(effort)` measures it and returns its tables."""
