"""Tests of the main window and of what ties the parts together."""
