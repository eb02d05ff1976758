"""Which plugins are installed, and enabling one. Looking for them loads nothing; enabling one executes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Final, cast

from engine.errors import EngineError
from engine.exits.condition import AnyConditionSpec, ConditionSpec
from engine.exits.loop_conditions import add_condition, condition_specs
from engine.formatting import format_count
from engine.importing.importers import add_importer, importers
from engine.importing.spec import ImporterSpec
from engine.models.catalog import add_models, added_prefixes, can_be_prefix
from engine.models.protocol import Model
from engine.nodes.agent import TurnStrategy, register_strategy, turn_strategies
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import AnySpec, NodeSpec, PortType
from engine.text_sanitizing import shown
from engine.tools.registry import set_tools
from engine.tools.tool import AnyTool, Tool


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
    exit_conditions: tuple[AnyConditionSpec, ...] = ()
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


ENTRY_POINTS: Final = "loopwright.plugins"

_KINDS: Final = {
    "node_types": NodeSpec,
    "tools": Tool,
    "exit_conditions": ConditionSpec,
    "models": ModelFamily,
    "turn_strategies": TurnStrategy,
    "importers": ImporterSpec,
}
"""What each part of a plugin's declaration lists."""

_REPORT_IT: Final = "Update it, or report it to whoever makes it."

_enabled: dict[str, Plugin] = {}


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A plugin of an installed package, as its metadata names it.

    Attributes:
        name: How people and settings call it.
        package: The package that it comes with, and its version; empty where its metadata does not say.
        is_enabled: Whether it has been loaded in this program.
    """

    name: str
    package: str
    is_enabled: bool


def installed_plugins() -> list[InstalledPlugin]:
    """All plugins that are installed, by name. Reads metadata of packages, and executes nothing."""
    found: dict[str, InstalledPlugin] = {}
    for point in metadata.entry_points(group=ENTRY_POINTS):
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
        found.setdefault(point.name, InstalledPlugin(point.name, package, point.name in _enabled))
    return [found[name] for name in sorted(found)]


def enable_plugin(name: str) -> Plugin:
    """Load a plugin and add what it adds: all of it, or nothing. One that is enabled already stays as it is.

    Raises:
        PluginError: It is not installed, fails when it is loaded, is no plugin, or adds what is there already.
    """
    if name in _enabled:
        return _enabled[name]
    plugin = _loaded(name)
    _refuse_unusable(name, plugin)
    _refuse_taken(name, plugin)
    try:
        set_tools(f"the plugin {name}", plugin.tools)
        builtin_registry().add(plugin.node_types)
        for condition in plugin.exit_conditions:
            add_condition(condition)
        for family in plugin.models:
            add_models(family.prefix, family.make)
        for strategy in plugin.turn_strategies:
            register_strategy(strategy)
        for importer in plugin.importers:
            add_importer(importer)
    except (ValueError, EngineError) as error:
        raise _refusal(name, str(error)) from error
    _enabled[name] = plugin
    return plugin


def _loaded(name: str) -> Plugin:
    points = metadata.entry_points(group=ENTRY_POINTS, name=name)
    if not points:
        there_are = ", ".join(plugin.name for plugin in installed_plugins()) or "none"
        raise PluginError(
            f'There is no plugin "{shown(name, 60)}".', f"Install its package. Plugins that are installed: {there_are}."
        )
    point = next(iter(points))
    try:
        loaded: object = point.load()
    except BaseException as error:  # the code of somebody else, which may do anything, exit even
        if isinstance(error, KeyboardInterrupt):
            raise
        words = shown(" ".join(str(error).split()), 200)
        reason = f"{type(error).__name__}: {words}" if words else type(error).__name__
        raise PluginError(f'The plugin "{name}" cannot be loaded ({reason}).', _REPORT_IT) from error
    if not isinstance(loaded, Plugin):
        message = f'What "{point.value}" names is no plugin: it is a {type(loaded).__name__}.'
        raise PluginError(message, "An engine.extensions.Plugin belongs there.")
    return loaded


def _refuse_unusable(name: str, plugin: Plugin) -> None:
    """Refuse a plugin that declares what cannot be added, before any of it is added: nothing has checked its types."""
    fault = next(_faults(plugin), None)
    if fault is not None:
        raise PluginError(f'The plugin "{name}" cannot be enabled: {fault}.', _REPORT_IT)


def _faults(plugin: Plugin) -> Iterator[str]:
    for part, kind in _KINDS.items():
        listed: object = getattr(plugin, part)
        if not isinstance(listed, tuple):
            yield f'its "{part}" is no tuple but a {type(listed).__name__}'
            return
        for one in cast("tuple[object, ...]", listed):
            if not isinstance(one, kind):
                yield f'its "{part}" holds a {type(one).__name__} that is no {kind.__name__}'
                return
    for tool in plugin.tools:
        if tool.output_type not in list(PortType):
            yield f'its tool "{shown(tool.name, 60)}" gives "{shown(tool.output_type, 60)}", which is no type of a port'
    for family in plugin.models:
        if not can_be_prefix(family.prefix):
            yield f'no plugin can have models with the prefix "{shown(family.prefix, 60)}"'


def _refuse_taken(name: str, plugin: Plugin) -> None:
    """Refuse a plugin that adds what is there already, before any of it is added."""
    registry = builtin_registry()
    groups = (
        ("node types", [spec.type for spec in plugin.node_types], {spec.type for spec in registry}),
        ("exit conditions", [one.name for one in plugin.exit_conditions], set(condition_specs())),
        ("prefixes of models", [one.prefix for one in plugin.models], set(added_prefixes())),
        ("turn strategies", [one.name for one in plugin.turn_strategies], set(turn_strategies())),
        ("importers", [one.name for one in plugin.importers], {one.name for one in importers()}),
    )
    for noun, names, taken in groups:
        for one in names:
            if one in taken or names.count(one) > 1:
                raise _refusal(name, f'there is "{shown(one, 60)}" already among {noun}')


def _refusal(name: str, reason: str) -> PluginError:
    return PluginError(
        f'The plugin "{name}" cannot be enabled: {reason.rstrip(".")}.', "Disable one of the two, or update it."
    )
