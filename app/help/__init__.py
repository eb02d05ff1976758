"""Help: the user guide and the tour of the window."""
