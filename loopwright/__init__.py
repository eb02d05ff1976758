"""Loopwright as a Python library: the public names of `engine`.

    from loopwright import load, run_blocking

    result = run_blocking(load("self-refine.loop.json"), {"topic": "the sea"})

Names are imported on first use. Modules for extensions, such as `engine.nodes.spec`, have no alias here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine import *  # noqa: F403
    from engine import __all__ as __all__
    from engine import __version__ as __version__


def __getattr__(name: str) -> Any:
    import engine  # not above: `python -m loopwright` corrects the path between this module and the first import

    if name not in {"__all__", "__version__", *engine.__all__}:
        raise AttributeError(f"module 'loopwright' has no attribute {name!r}")
    return getattr(engine, name)


def __dir__() -> list[str]:
    import engine

    return sorted({*globals(), *engine.__all__})
