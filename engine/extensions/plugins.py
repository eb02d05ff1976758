"""Plugins: listing the installed ones, which loads nothing, and enabling one, which executes it."""

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
    """A plugin is not installed, cannot be loaded, or adds something invalid."""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Models that a plugin adds, called `PREFIX:NAME` in documents.

    Attributes:
        prefix: Small letters, digits, hyphens and underscores.
        make: Creates the model for the name after the prefix; raises `ModelError` for an unknown one.
    """

    prefix: str
    make: Callable[[str], Model]


@dataclass(frozen=True, slots=True)
class Plugin:
    """The declaration of a plugin, named by a package's entry point in the group `loopwright.plugins`.

    Attributes:
        title: Its name in the window.
        help: One line on what it adds.
        node_types: Node types; palette, form, checks and reference follow from each declaration.
        tools: Tools, for tool nodes and agents.
        exit_conditions: Conditions at which a loop may stop.
        models: Models.
        turn_strategies: Turn strategies of agents.
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
        """The number of things that it adds: `2 node types, 1 tool`."""
        counts = ((len(getattr(self, part)), nouns) for part, (_, *nouns) in _PARTS.items())
        return ", ".join(format_count(count, *nouns) for count, nouns in counts if count) or "nothing"


ENTRY_POINTS: Final = "loopwright.plugins"

_PARTS: Final = {
    "node_types": (NodeSpec, "node type", "node types"),
    "tools": (Tool, "tool", "tools"),
    "exit_conditions": (ConditionSpec, "exit condition", "exit conditions"),
    "models": (ModelFamily, "family of models", "families of models"),
    "turn_strategies": (TurnStrategy, "turn strategy", "turn strategies"),
    "importers": (ImporterSpec, "importer", "importers"),
}
"""The lists of a plugin's declaration: type of the elements, and nouns for them."""

_REPORT_IT: Final = "Update it, or report it to its author."

_enabled: dict[str, Plugin] = {}


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A plugin of an installed package.

    Attributes:
        name: Its name in the settings.
        package: Its package and version; empty if the metadata has none.
        is_enabled: Whether it has been enabled in this program.
    """

    name: str
    package: str
    is_enabled: bool


def installed_plugins() -> list[InstalledPlugin]:
    """All installed plugins, sorted by name. Reads the metadata of packages, and executes nothing."""
    found: dict[str, InstalledPlugin] = {}
    for point in metadata.entry_points(group=ENTRY_POINTS):
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
        found.setdefault(point.name, InstalledPlugin(point.name, package, point.name in _enabled))
    return [found[name] for name in sorted(found)]


def enable_plugin(name: str) -> Plugin:
    """Load a plugin and add everything that it declares, or nothing. An enabled plugin stays enabled.

    Raises:
        PluginError: It is not installed, cannot be loaded, is invalid, or adds something that already exists.
    """
    if name in _enabled:
        return _enabled[name]
    plugin = _loaded(name)
    fault = next(_faults(plugin), None)  # checked before anything is added
    if fault is not None:
        raise PluginError(f'The plugin "{name}" cannot be enabled: {fault}.', _REPORT_IT)
    _check_names(name, plugin)
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
    except BaseException as error:  # code of a plugin may do anything, even exit
        if isinstance(error, KeyboardInterrupt):
            raise
        words = shown(" ".join(str(error).split()), 200)
        reason = f"{type(error).__name__}: {words}" if words else type(error).__name__
        raise PluginError(f'The plugin "{name}" cannot be loaded ({reason}).', _REPORT_IT) from error
    if not isinstance(loaded, Plugin):
        message = f'"{point.value}" is not a plugin but a {type(loaded).__name__}.'
        raise PluginError(message, "The entry point must name an engine.extensions.Plugin.")
    return loaded


def _faults(plugin: Plugin) -> Iterator[str]:
    for part, (kind, *_) in _PARTS.items():
        listed: object = getattr(plugin, part)
        if not isinstance(listed, tuple):
            yield f'its "{part}" is not a tuple but a {type(listed).__name__}'
            return
        for one in cast("tuple[object, ...]", listed):
            if not isinstance(one, kind):
                yield f'its "{part}" contains a {type(one).__name__} that is not a {kind.__name__}'
                return
    for tool in plugin.tools:
        if tool.output_type not in list(PortType):
            yield f'its tool "{shown(tool.name, 60)}" returns "{shown(tool.output_type, 60)}", not a port type'
    for family in plugin.models:
        if not can_be_prefix(family.prefix):
            yield f'no plugin can have models with the prefix "{shown(family.prefix, 60)}"'


def _check_names(name: str, plugin: Plugin) -> None:
    """Check that no name of a plugin's declaration exists already."""
    groups = (
        ("node types", [spec.type for spec in plugin.node_types], {spec.type for spec in builtin_registry()}),
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
