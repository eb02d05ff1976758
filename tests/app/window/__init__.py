"""Tests of the main window and its controllers."""
