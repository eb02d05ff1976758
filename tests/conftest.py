"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine's other work, and nothing about the program.
settings.register_profile("loopwright", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loopwright")
