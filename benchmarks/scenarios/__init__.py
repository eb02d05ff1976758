"""One module a scenario: a function `tables(effort)` that measures it and gives its tables."""
