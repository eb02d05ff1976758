"""What a plugin is: one declaration of all that a package adds to the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import EngineError
from engine.formatting import format_count
from engine.importing.spec import ImporterSpec
from engine.models.base import Model
from engine.nodes.added_conditions import AddedCondition
from engine.nodes.spec import AnySpec
from engine.nodes.turns.base import TurnStrategy
from engine.tools.base import AnyTool

ExitConditionType = AddedCondition
"""An exit condition that a plugin adds, as documents list it under `plugin`."""


class PluginError(EngineError):
    """A plugin that is not there, cannot be loaded, or adds what cannot be added."""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Models that a plugin adds, called `PREFIX:NAME` in documents.

    Attributes:
        prefix: Small letters, digits, hyphens and underscores.
        make: Makes the model of a name behind the prefix; raises `ModelError` where there is none.
    """

    prefix: str
    make: Callable[[str], Model]


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a package's entry point in the group `loopwright.plugins` names.

    Attributes:
        title: How people call it.
        help: One line on what it adds.
        node_types: Node types; palette, form, checks and reference follow from each declaration.
        tools: Tools, for tool nodes and agents.
        exit_conditions: Conditions at which a loop may stop.
        models: Models.
        turn_strategies: Ways in which an agent may take its turns.
        importers: Foreign file formats that can be imported.
    """

    title: str
    help: str
    node_types: tuple[AnySpec, ...] = ()
    tools: tuple[AnyTool, ...] = ()
    exit_conditions: tuple[ExitConditionType, ...] = ()
    models: tuple[ModelFamily, ...] = ()
    turn_strategies: tuple[TurnStrategy, ...] = ()
    importers: tuple[ImporterSpec, ...] = ()

    @property
    def summary(self) -> str:
        """What it adds, in figures: `2 node types, 1 tool`."""
        groups = (
            (self.node_types, "node type", ""),
            (self.tools, "tool", ""),
            (self.exit_conditions, "exit condition", ""),
            (self.models, "family of models", "families of models"),
            (self.turn_strategies, "turn strategy", "turn strategies"),
            (self.importers, "importer", ""),
        )
        return ", ".join(format_count(len(group), noun, plural) for group, noun, plural in groups if group) or "nothing"
