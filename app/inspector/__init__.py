"""The inspector: what is selected, as a form, and what it did in the last run."""
