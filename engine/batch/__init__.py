"""Run a workflow for each row of a table, in this process or on a cluster; an interrupted batch can be resumed."""
