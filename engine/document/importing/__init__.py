"""Reading workflows that other programs have written, as documents of ours.

    imported = import_file("dev-cycle.yaml")
    save(imported.workflow, "dev-cycle.loop.json")
    for entry in imported.entries: print(entry)

Nothing is executed, and nothing is lost silently: the report has a line for each thing of the file. Two forms are
known, one module each: `canvas` (JSON of nodes and edges) and `steps` (YAML or JSON of agents and steps).
"""

from __future__ import annotations

from engine.document.importing.reading import import_file, import_text, is_foreign
from engine.document.importing.report import Entry, Fate, Imported

__all__ = ["Entry", "Fate", "Imported", "import_file", "import_text", "is_foreign"]
