"""Execution of plans: scheduler, loops, budgets, retries, cancellation, resume and fork, reported as events."""
