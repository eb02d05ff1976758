"""Running a plan: scheduler, loops, budget, retries, cancellation, and the events in which all of it is told."""
