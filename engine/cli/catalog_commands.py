"""Implements `loopwright nodes`, `tools`, `models`, `templates` and `plugins`, which list what is available.

The descriptions of settings, ports and parameters are also used by the reference pages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from engine.cli.common_options import Yes, confirm, settings_for_run
from engine.cli.exit_codes import ExitCode
from engine.cli.output import Screen, err, out, write_json
from engine.cli.remedies import error_with_command, quote_argument, remedy_with_command
from engine.errors import EngineError, did_you_mean
from engine.formatting import format_bytes, format_count
from engine.text_sanitizing import one_line, shown
from engine.values import as_object

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from engine.models.file_download import OnProgress
    from engine.models.known_models import KnownModel
    from engine.models.model_hub import ModelFile
    from engine.nodes.spec import AnySpec, Port
    from engine.tools.tool import AnyTool

_LIMITS: Final = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("pattern", "matches {}"),
)


_MAX_REFERENCE_DEPTH: Final = 10

_KINDS: Final = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "object",
    "null": "empty",
}


def nodes_command(
    node_type: Annotated[str | None, typer.Argument(metavar="TYPE", help="Node type. Default: list all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the output as one JSON object.")] = False,
) -> int:
    """List node types, or show the ports and settings of one.

    With --json, the settings are a JSON Schema, and the ports are those of the default settings.

    Example: loopwright nodes loop
    """
    from engine.nodes.node_registry import builtin_registry

    registry = builtin_registry()
    if node_type is None:
        if as_json:
            write_json({"nodes": [_spec_to_json(spec) for spec in registry]})
        else:
            out().table(
                ("Type", "Category", "Description"), [(spec.type, str(spec.category), spec.help) for spec in registry]
            )
        return ExitCode.DONE
    spec = registry.find(node_type)
    if spec is None:
        known = [spec.type for spec in registry]
        remedy = f"{did_you_mean(node_type, known)} Node types: {', '.join(known)}.".lstrip()
        raise EngineError(f'There is no node type "{shown(node_type, 60)}".', remedy)
    if as_json:
        write_json(_spec_to_json(spec))
    else:
        _show_node_type(out(), spec)
    return ExitCode.DONE


def _show_node_type(screen: Screen, spec: AnySpec) -> None:
    screen.line(f"{spec.title} ({spec.type}, {spec.category})", style="bold")
    screen.line(spec.help)
    for title, ports in zip(("Input", "Output"), default_ports(spec), strict=True):
        if ports:
            screen.line()
            screen.table(
                (title, "Type", "Notes", "Description"),
                [(port.name, str(port.type), port_notes(port), port.help) for port in ports],
            )
    screen.line()
    _write_fields(screen, "Setting", spec.config)


def _write_fields(screen: Screen, head: str, model: type[BaseModel]) -> None:
    rows = [(field.name, field.type_and_limits, one_line(field.default, 40), field.help) for field in fields(model)]
    screen.table((head, "Type", "Default", "Description"), rows)


def tools_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Tool whose parameters to show. Default: list all.")
    ] = None,
    refresh: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVER", help="Update the stored tool list of this MCP server. Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> int:
    """List tools, or show the parameters of one.

    The list includes the tools of MCP servers and plugins. MCP servers are configured in the extensions file; see
    docs/tools.md. A server starts only for --refresh and when a run first calls one of its tools.

    Example: loopwright tools --refresh files
    """
    from engine.tools.registry import all_tools, find_tool

    if refresh:
        _refresh(refresh)
    tools = list(all_tools().values()) if name is None else [find_tool(name)]
    if as_json:
        write_json({"tools": [_tool_to_json(tool) for tool in tools]})
    elif name is None:
        rows = [(tool.name, tool.output_type, one_line(tool.help, 100)) for tool in tools]
        out().table(("Tool", "Output", "Description"), rows)
    else:
        screen, tool = out(), tools[0]
        screen.line(f"{tool.title} ({tool.name})", style="bold")
        screen.line(tool.help)
        if tool.runs_code:
            screen.line("It runs code on this computer and needs --allow-code.")
        screen.line()
        _write_fields(screen, "Parameter", tool.parameters)
    return ExitCode.DONE


def _refresh(names: Iterable[str]) -> None:
    from engine.extensions import extensions_path, listings_path, read_extensions, refresh_server
    from engine.runner.event_loop import run_in_background_loop

    path = extensions_path()
    servers = read_extensions(path).servers
    for name in names:
        if name not in servers:
            known = ", ".join(servers) or "none"
            raise EngineError(f'There is no MCP server "{name[:60]}" in {path}.', f"Servers: {known}.")
        listing = run_in_background_loop(refresh_server(name, servers[name], listings_path(path)))
        err().line(f"{name} offers {format_count(len(listing.tools), 'tool')}.")
        for sentence in listing.left_out:
            err().line(sentence)


def _tool_to_json(tool: AnyTool) -> dict[str, object]:
    return {
        "name": tool.name,
        "title": tool.title,
        "help": tool.help,
        "output_type": tool.output_type,
        "runs_code": tool.runs_code,
        "parameters": tool.parameters.model_json_schema(),
    }


models_app = typer.Typer()

ProviderName = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="Provider, such as openai, or host:NAME for your own server.")
]


@models_app.callback(invoke_without_command=True)
def models_command(
    context: typer.Context,
    search: Annotated[
        str, typer.Option("--filter", metavar="TEXT", help="List only models whose name or provider contains TEXT.")
    ] = "",
    local: Annotated[
        bool,
        typer.Option("--local", help="Ask Ollama, LM Studio and llama.cpp on this computer for models."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the list as one JSON object.")] = False,
) -> int:
    """List models with their prices and context lengths.

    The list shows which providers have an API key, but never the keys. GGUF files on this computer and all models of a
    provider with a key are listed, and one example of the others. Prices are for a million input and output tokens.
    Servers on this computer are contacted only with --local.

    Example: loopwright models --filter mini
    """
    if context.invoked_subcommand is not None:
        return ExitCode.DONE
    from engine.models.gguf_files import models_folder
    from engine.models.keys import Keys
    from engine.models.known_models import KnownModel, known_models
    from engine.models.local_servers import find_local_servers
    from engine.runner.event_loop import run_in_background_loop

    settings = settings_for_run()
    servers = run_in_background_loop(find_local_servers()) if local else None
    custom = [
        KnownModel(one.model, "Custom server", "", None, f"Its address is {one.address}.") for one in settings.servers
    ]
    known = [model for model in (*custom, *known_models(Keys(), servers)) if model.matches(search)]
    default = settings.model
    if as_json:
        write_json({"default": default, "models": [_model_to_json(model) for model in known]})
        return ExitCode.DONE
    rows = [
        (
            model.name,
            model.title,
            {True: "yes", False: "no", None: "?"}[model.available],
            model.price_text,
            model.context_text,
            ". ".join(filter(None, (model.note, remedy_with_command(model.how_to_get, model.fix)))),
        )
        for model in known
    ]
    out().table(("Model", "Provider", "Ready", "Price in / out", "Context", "Notes"), rows)
    out().line()
    out().line(f"Downloaded models are in {models_folder()}.")
    out().line(f"Default model: {default}")
    return ExitCode.DONE


def _model_to_json(model: KnownModel) -> dict[str, object]:
    price = model.price
    return {
        **{name: getattr(model, name) for name in ("name", "title", "note", "available")},
        "how_to_get": remedy_with_command(model.how_to_get, model.fix),
        "input_usd_per_million_tokens": None if price is None else round(price.input_usd_per_token * 1e6, 6),
        "output_usd_per_million_tokens": None if price is None else round(price.output_usd_per_token * 1e6, 6),
        "context_tokens": model.context_tokens,
    }


@models_app.command("get")
def get_model(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name in the catalog, OWNER/REPOSITORY/FILE.gguf, or an https address. Default: list the catalog.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the output as one JSON object.")] = False,
) -> int:
    """Download a model that runs on this computer.

    Without NAME, the catalog of models to download is listed.

    Ctrl+C pauses the download; the same command resumes it. Models come from Hugging Face, or from the hub whose
    address is in HF_ENDPOINT. HF_TOKEN is the access token for models that require one.

    Example: loopwright models get qwen2.5-1.5b
    """
    from engine.models.protocol import ModelError, ModelErrorKind

    if name is None:
        _list_catalog(as_json=as_json)
        return ExitCode.DONE
    try:
        model, file = _download(name)
    except ModelError as error:
        if error.kind is ModelErrorKind.NOT_FOUND:
            raise
        err().line(error_with_command(error))
        return ExitCode.FAILED
    if as_json:
        write_json({"model": model.model, "file": str(file), "size": model.size})
    else:
        out().line(f"The model is in {file}.")
        err().line(f"Its name in workflows and for --model is {model.model}")
    return ExitCode.DONE


def _download(name: str) -> tuple[ModelFile, Path]:
    from engine.models.file_download import partial_size
    from engine.models.keys import Keys
    from engine.models.model_hub import downloaded_model, find_model_file, get_model_file
    from engine.runner.event_loop import run_in_background_loop

    if (model := run_in_background_loop(downloaded_model(name))) is not None:
        return model, model.target
    model = run_in_background_loop(find_model_file(name, Keys()))
    _describe_download(model)
    try:
        with _progress_bar(model.size) as on_progress:
            return model, run_in_background_loop(get_model_file(model, on_progress))
    except KeyboardInterrupt:
        is_paused = partial_size(model.target) > 0
        end = "paused. The same command resumes it." if is_paused else "canceled. The same command starts it again."
        err().line(f"The download is {end}")
        raise


def _list_catalog(*, as_json: bool) -> None:
    from engine.models.demo_weights import FILE as DEMO_FILE
    from engine.models.file_download import partial_size, paused_downloads
    from engine.models.gguf_files import models_folder
    from engine.models.model_hub import CATALOG, DEMO, machine_memory

    # The demo model is resumed by its name: its address is that of a package.
    paused = [(DEMO if one.target.name == DEMO_FILE else one.address, one) for one in paused_downloads(models_folder())]
    if as_json:
        names = ("name", "title", "category", "license", "size", "memory", "about", "is_downloaded")
        listed = [{name: getattr(model, name) for name in names} for model in CATALOG]
        files = [
            {
                "name": name,
                "file": f"{one.target}.part",
                "address": one.address,
                "done": partial_size(one.target),
                "size": one.size,
            }
            for name, one in paused
        ]
        write_json({"machine_memory": machine_memory(), "models": listed, "paused": files})
        return
    rows = [
        (
            model.name,
            model.category,
            format_bytes(model.size),
            format_bytes(model.memory),
            model.license,
            "yes" if model.is_downloaded else "no",
            model.about,
        )
        for model in CATALOG
    ]
    out().table(("Name", "Category", "Download", "Memory", "License", "Downloaded", "Good for"), rows)
    memory = machine_memory()
    if memory is not None:
        out().line()
        out().line(f"This computer has {format_bytes(memory)} of memory.")
    for name, one in paused:
        done = f"{format_bytes(partial_size(one.target))} of {format_bytes(one.size)}"
        is_cut = one.has_query and name != DEMO
        query, note = ("?...", ", with the whole query of its address") if is_cut else ("", "")
        command = f"loopwright models get {quote_argument(name + query)}"
        out().line(f"Paused: {one.target} ({done}). Resume it{note}: {command}")


def _describe_download(model: ModelFile) -> None:
    from engine.models.file_download import partial_size
    from engine.models.model_hub import machine_memory

    license_name = f", license: {model.entry.license}" if model.entry is not None else ""
    err().line(f"{model.title}: {format_bytes(model.size)}{license_name}.")
    memory = machine_memory()
    if memory is not None and model.memory > memory:
        err().line(
            f"It needs {format_bytes(model.memory)} of memory; this computer has {format_bytes(memory)}.",
            style="yellow",
        )
    if partial := partial_size(model.target):
        err().line(f"{format_bytes(partial)} of it are here already.")


@contextmanager
def _progress_bar(size: int) -> Generator[OnProgress]:
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    with Bars(*columns, console=err().console, disable=not err().interactive) as bars:
        bar = bars.add_task("", total=size)
        yield lambda progress: bars.update(bar, completed=progress.done, description=progress.text)


@models_app.command("remove")
def remove_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name in the catalog, or of a downloaded file.")],
    yes: Yes = False,
) -> int:
    """Delete a downloaded model, or what a paused download has left.

    Files of Ollama and LM Studio stay.

    Example: loopwright models remove qwen2.5-1.5b
    """
    from engine.models.file_download import discard_partial, partial_size
    from engine.models.model_hub import delete_files, downloaded_files, paused_download

    paused = paused_download(name)
    files = downloaded_files(name) if paused is None else []
    if paused is None:
        what, size = str(files[0]), sum(file.lstat().st_size for file in files)
    else:
        what, size = f"the paused download {paused.target}", partial_size(paused.target)
    confirm(f"Delete {what} ({format_bytes(size)})?", yes=yes)
    if paused is not None:
        discard_partial(paused.target)
    delete_files(files)
    out().line(f"Deleted {what} ({format_bytes(size)}).")
    return ExitCode.DONE


@models_app.command("set-key")
def set_key(provider: ProviderName) -> int:
    """Store a provider's API key in the system keyring.

    You are prompted for the key; it is not echoed.

    Example: loopwright models set-key openai
    """
    from engine.models.keys import Keys

    _check_provider(provider)
    if sys.stdin.isatty():
        import getpass

        key = getpass.getpass(f"Key for {provider}: ")
    else:
        key = sys.stdin.readline()
    Keys().set(provider, key)
    out().line(f"Stored the key for {provider} in the keyring.")
    return ExitCode.DONE


@models_app.command("remove-key")
def remove_key(provider: ProviderName) -> int:
    """Remove a provider's API key from the system keyring.

    Example: loopwright models remove-key openai
    """
    from engine.models.keys import Keys

    _check_provider(provider)
    Keys().delete(provider)
    out().line(f"Removed the key for {provider} from the keyring.")
    return ExitCode.DONE


def _check_provider(provider: str) -> None:
    from engine.models.providers import PROVIDERS

    if provider not in PROVIDERS and not provider.startswith("host:"):
        raise EngineError(
            f'There is no provider "{shown(provider, 60)}".',
            f"Providers: {', '.join(PROVIDERS)}, or host:NAME for your own server.",
        )


def templates_command(
    as_json: Annotated[bool, typer.Option("--json", help="Write the list as one JSON object.")] = False,
) -> int:
    """List the bundled templates.

    Run one by its name; each has a sample input.

    Example: loopwright templates
    """
    from engine.cli.arguments import templates
    from engine.document.files import load
    from engine.runner.declared_inputs import declared_inputs

    found = [(name, file, load(file)) for name, file in templates().items()]
    if as_json:
        listed = [
            {
                "name": name,
                "title": workflow.name,
                "description": workflow.description,
                "file": str(file),
                "inputs": [declared.to_json() for declared in declared_inputs(workflow)],
            }
            for name, file, workflow in found
        ]
        write_json({"templates": listed})
        return ExitCode.DONE
    rows = [
        (name, workflow.description or workflow.name, ", ".join(item.name for item in declared_inputs(workflow)))
        for name, _, workflow in found
    ]
    out().table(("Template", "Description", "Inputs"), rows)
    return ExitCode.DONE


def plugins_command(as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False) -> int:
    """List installed plugins.

    Plugins that are not enabled are not loaded. Enable a plugin for one call with --plugin before the command, or
    permanently in the extensions file.

    Example: loopwright --plugin example nodes
    """
    from engine.extensions import enable_plugin, installed_plugins

    installed = installed_plugins()
    adds = {plugin.name: enable_plugin(plugin.name).summary if plugin.is_enabled else "" for plugin in installed}
    if as_json:
        listed = [
            {"name": one.name, "package": one.package, "enabled": one.is_enabled, "adds": adds[one.name]}
            for one in installed
        ]
        write_json({"plugins": listed})
    elif not installed:
        out().line("No plugins are installed.")
    else:
        out().table(
            ("Plugin", "Package", "Enabled", "Adds"),
            [(one.name, one.package, "yes" if one.is_enabled else "no", adds[one.name]) for one in installed],
        )
    return ExitCode.DONE


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """Description of a setting.

    Attributes:
        name: Its key in `config`.
        title: Its label.
        kind: The type of its values, in words: `text or empty`, `one of a, b`.
        limits: The limits of its values, in words; may be empty.
        default: Its default as JSON; empty if a value is required.
        help: Its help text.
    """

    name: str
    title: str
    kind: str
    limits: str
    default: str
    help: str

    @property
    def type_and_limits(self) -> str:
        """The type of its values and their limits."""
        return ", ".join(filter(None, (self.kind, self.limits)))


def default_ports(spec: AnySpec) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """The input and output ports of a node with default settings."""
    config = spec.config()
    return spec.inputs(config), spec.all_outputs(config)


def port_notes(port: Port) -> str:
    """Notes on a port: whether it is required, and so on."""
    notes = (("required", port.required), ("takes several edges", port.many), ("branch", port.branch))
    return ", ".join(note for note, applies in notes if applies)


def _spec_to_json(spec: AnySpec) -> dict[str, Any]:
    names = ("name", "type", "help", "required", "many", "branch")
    inputs, outputs = (
        [{**{name: getattr(port, name) for name in names}, "type": str(port.type)} for port in ports]
        for ports in default_ports(spec)
    )
    return {
        "type": spec.type,
        "title": spec.title,
        "category": str(spec.category),
        "help": spec.help,
        "inputs": inputs,
        "outputs": outputs,
        "config_schema": spec.config.model_json_schema(),
    }


def fields(model: type[BaseModel]) -> list[FieldDescription]:
    """The settings of a node type or the parameters of a tool; settings that all nodes have come last.

    The fields of list entries follow their list (`branches[].name`).
    """
    from engine.nodes.spec import NodeConfig

    schema = model.model_json_schema()
    properties = schema.get("properties", {})
    own = {name: field for name, field in properties.items() if name not in NodeConfig.model_fields}
    found: list[FieldDescription] = []
    for name, field in {**own, **properties}.items():
        declared = model.model_fields[name]
        default = "" if declared.is_required() else _as_json(declared.get_default(call_default_factory=True))
        found.append(_field(name, field, schema, default))
        found += _entry_fields(name, field, schema)
    return found


def _as_json(value: object) -> str:
    from pydantic_core import to_jsonable_python

    return json.dumps(to_jsonable_python(value), ensure_ascii=False)


def _entry_fields(name: str, field: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[FieldDescription]:
    entries = list(_shapes(field.get("items"), schema))
    kinds = [(kind, entry) for entry in entries for kind in _kind_keys(entry)]
    if len(kinds) > 1:
        yield _kind_field(name, [entry for _, entry in kinds], kinds[0][0])
    for entry in entries:
        own = [kind for kind in _kind_keys(entry) if len(kinds) > 1]
        for inner, inner_field in entry.get("properties", {}).items():
            if isinstance(inner_field, dict) and inner not in own:
                declared = cast("dict[str, Any]", inner_field)
                default = _as_json(declared["default"]) if "default" in declared else ""
                described = _field(f"{name}[].{inner}", declared, schema, default)
                kind = f"{entry['properties'][own[0]]['const']}: " if own else ""
                yield replace(described, help=f"{kind}{described.help}")


def _kind_keys(entry: Mapping[str, Any]) -> list[str]:
    """The fields of an entry with one fixed value, which distinguishes its kind from others."""
    return [name for name, field in entry.get("properties", {}).items() if isinstance(field, dict) and "const" in field]


def _kind_field(name: str, entries: Sequence[Mapping[str, Any]], key: str) -> FieldDescription:
    """The description of the field that has the kind of an entry."""
    kinds = {str(entry["properties"][key]["const"]): entry.get("description", "") for entry in entries}
    about = " ".join(f"{kind}: {text}" for kind, text in kinds.items())
    title = str(entries[0]["properties"][key].get("title", key))
    return FieldDescription(f"{name}[].{key}", title, f"one of {', '.join(kinds)}", "", "", about)


def _field(name: str, field: Mapping[str, Any], schema: Mapping[str, Any], default: str) -> FieldDescription:
    shapes = list(_shapes(field, schema))
    limits = [text.format(shape[key]) for shape in shapes for key, text in _LIMITS if key in shape]
    return FieldDescription(
        name,
        field.get("title", name),
        " or ".join(dict.fromkeys(_kind(shape, field.get("labels")) for shape in shapes)),
        ", ".join(dict.fromkeys(limits)),
        default,
        field.get("description", ""),
    )


def _shapes(field: Any, schema: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The alternatives of a field's schema, with references resolved.

    The schema may come from an MCP server, so it may be `true`, and references may be circular.
    """
    if not isinstance(field, dict) or depth > _MAX_REFERENCE_DEPTH:
        return
    part = cast("dict[str, Any]", field)
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        yield from _shapes(schema.get("$defs", {}).get(name), schema, depth + 1)
    elif "anyOf" in part or "oneOf" in part:
        for alternative in part.get("anyOf") or part["oneOf"]:
            yield from _shapes(alternative, schema, depth + 1)
    else:
        yield part


def _kind(shape: Mapping[str, Any], labels: Any) -> str:
    """The type of a value in words. `labels` are those of the choices in the window, where they have any."""
    if "enum" in shape:
        known = as_object(labels)
        return f"one of {', '.join(_choice(str(value), known.get(str(value))) for value in shape['enum'])}"
    if "const" in shape:
        return str(shape["const"])
    kinds: Any = shape.get("type", "")
    listed = cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]
    named = [_KINDS.get(str(kind), "any value") for kind in listed]
    return " or ".join(dict.fromkeys(named))


def _choice(value: str, label: object) -> str:
    """A choice with its label in the window, if that is more than the value in other letters."""
    return f'{value} ("{label}")' if label is not None and str(label).lower() != value.replace("_", " ") else value
