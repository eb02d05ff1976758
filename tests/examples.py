"""The number of examples that Hypothesis tries: a quarter where the slow tests are left out, as in `make test`."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import HealthCheck, settings

ALL: Final = 100
"""Examples of a test without a number of its own."""

# The time of an example depends on the load of the machine, so there is no deadline.
settings.register_profile("all", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=ALL)
settings.register_profile("few", parent=settings.get_profile("all"), max_examples=ALL // 4)


def load_examples(*, with_slow_tests: bool) -> None:
    """Choose the number of examples. Call it before the tests are imported."""
    settings.load_profile("all" if with_slow_tests else "few")


def examples(number: int, **more: Any) -> settings:
    """Settings of a test that needs another number of examples.

    Args:
        number: The number of examples where the slow tests run too.
        more: Other settings of Hypothesis.
    """
    return settings(max_examples=-(-number * settings().max_examples // ALL), **more)
