"""History in the window: the list of runs, past runs, iterations in table and chart, comparing, forking, resuming."""
