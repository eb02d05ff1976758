"""When a loop stops: one file an exit condition."""
