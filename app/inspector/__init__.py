"""The form of what is selected, and what it did in the last run."""
