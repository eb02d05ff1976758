"""Tests of the window, driven by real events."""
