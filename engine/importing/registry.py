"""Registry of importers: the built-in ones and those of plugins.

Importing this module is cheap: converters load on first use.
"""

from __future__ import annotations

from typing import Final

from engine.importing.reactflow.importer import REACT_FLOW
from engine.importing.spec import ImporterSpec
from engine.importing.yaml_steps.importer import YAML_STEPS

BUILT_IN: Final = (REACT_FLOW, YAML_STEPS)

_importers: dict[str, ImporterSpec] = {spec.name: spec for spec in BUILT_IN}


def importers() -> tuple[ImporterSpec, ...]:
    """All importers, in the order in which they examine a file."""
    return tuple(_importers.values())


def add_importer(spec: ImporterSpec) -> None:
    """Register the importer of a plugin.

    Raises:
        ValueError: Another importer has the same name.
    """
    if _importers.get(spec.name, spec) is not spec:
        raise ValueError(f"there is already an importer {spec.name!r}")
    _importers[spec.name] = spec


def importable_suffixes() -> tuple[str, ...]:
    """File name suffixes of all importers, each once."""
    return tuple(dict.fromkeys(suffix for spec in importers() for suffix in spec.suffixes))


def known_formats() -> str:
    """All formats in one phrase, for help and error texts: `React Flow canvas (.json), …`."""
    return ", ".join(spec.summary for spec in importers())
