"""Tests of the inspector, driven by real events."""
