"""The models that the window offers: of the preferences, in files and of servers on this computer, and of providers.

Keys, files and servers are looked up in the background. Servers on this computer are contacted only with the user's
consent, which is the preference `search_local_servers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from PySide6.QtCore import QObject

from app.engine_thread import EngineThread
from app.inspector.model_list import ModelChoice, ModelGroup, ModelSource
from app.runs.run_status import model_label
from app.settings.preferences import Preferences
from engine.errors import EngineError
from engine.models.keys import Keys
from engine.models.known_models import KnownModel, example_of, gguf_models, known_examples, models_of_provider
from engine.models.local_servers import LocalServer, find_local_servers, local_server_title
from engine.models.protocol import EMBEDDED_MODEL, GGUF_PREFIX
from engine.models.providers import PROVIDERS

MAX_RECENT_SHOWN = 5
_FOLLOWED = {
    *("default_model", "recent_models", "servers", "model_files", "local_models"),
    *("providers_with_key", "search_local_servers"),
}


@dataclass(frozen=True, slots=True)
class _Found:
    """What a search found: models of each provider with a key, files and servers; None for what was not looked up."""

    providers: dict[str, list[KnownModel]]
    files: Sequence[KnownModel] | None = None
    servers: Sequence[LocalServer] | None = None


class AvailableModels(ModelSource):
    """Source of the window's lists of models.

    Args:
        preferences: The user's settings, which remember what was found last.
        engine: The engine's thread, which has the keys.
    """

    def __init__(self, preferences: Preferences, engine: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent=parent)
        self._preferences = preferences
        self._engine = engine
        remembered = preferences.values.providers_with_key
        self._found = _Found({prefix: [example_of(prefix)] for prefix in remembered if prefix in PROVIDERS})
        self._is_behind = False  # whether to search again after the search in progress
        preferences.changed.connect(self._follow)

    @property
    def can_search(self) -> bool:
        """Whether the user has yet to allow a search for servers on this computer."""
        name = "search_local_servers"
        return not getattr(self._preferences, name) and not self._preferences.is_fixed(name)

    @property
    def default_label(self) -> str:
        """The user's default model, for people."""
        return model_label(self._preferences.values.model)

    def groups(self) -> list[ModelGroup]:
        """Return the models: recent ones, the built-in one, in files, then by server and by provider."""
        values = self._preferences.values
        recent = [values.default_model] if values.default_model else []
        recent = list(dict.fromkeys([*recent, *values.recent_models]))[:MAX_RECENT_SHOWN]
        custom = tuple(ModelChoice(one.model, hint=_host(one.address)) for one in values.servers)
        groups = [
            ModelGroup("Recently used", tuple(_choice(name) for name in recent)),
            ModelGroup("Built in", (_choice(EMBEDDED_MODEL),)),
            ModelGroup("Model files on this computer", self._in_files()),
            ModelGroup("Custom servers", custom),
            *self._local_groups(values.local_models),
            *self._provider_groups(),
            ModelGroup("", note="Looking for models…" if self.is_searching else ""),
        ]
        return [group for group in groups if group.models or group.note]

    def refresh(self) -> None:
        """Look for keys and files and, with the user's consent, for servers on this computer.

        During a search, look again afterwards: keys, files or the consent may have changed since it began.
        """
        self._is_behind = self.is_searching
        if self._is_behind:
            return
        self.is_searching = True
        self.changed.emit()
        work = _look(self._engine.models.keys, search=self._preferences.values.search_local_servers)
        self._engine.ask(self, work, self._show, self._fail)

    def allow_search(self) -> None:
        """Remember the user's consent, and search."""
        self._preferences.set(search_local_servers=True)
        self.refresh()

    def _in_files(self) -> tuple[ModelChoice, ...]:
        found = self._found.files
        if found is None:  # as remembered
            return tuple(map(_choice, self._preferences.values.model_files))
        return tuple(
            ModelChoice(
                model.name,
                model_label(model.name),
                "free" if model.available else "unusable",
                "\n".join(filter(None, (model.title, model.how_to_get or model.note, model.figures))),
                f"{model.title} {model.note}",
            )
            for model in found
        )

    def _local_groups(self, local: Iterable[str]) -> list[ModelGroup]:
        by_server: dict[str, list[str]] = {}
        for name in local:
            by_server.setdefault(local_server_title(name), []).append(name)
        groups = [
            ModelGroup(f"{title} on this computer", tuple(ModelChoice(name, hint="free") for name in names))
            for title, names in by_server.items()
        ]
        if groups or self.can_search:
            return groups
        is_known = self._found.servers is not None and not self.is_searching
        return [ModelGroup("On this computer", note="Ollama, LM Studio and llama.cpp are not running.")] * is_known

    def _provider_groups(self) -> list[ModelGroup]:
        return [
            ModelGroup(PROVIDERS[prefix].title, tuple(_priced(model) for model in models if not model.is_placeholder))
            for prefix, models in self._found.providers.items()
        ]

    def _show(self, found: _Found) -> None:
        self._found = found
        changes: dict[str, object] = {
            "providers_with_key": tuple(found.providers),
            "model_files": tuple(model.name for model in found.files or ()),
        }
        if found.servers is not None and self._preferences.search_local_servers:
            changes["local_models"] = tuple(name for server in found.servers for name in server.models)
        self._preferences.set(**changes)
        self._end_search()

    def _fail(self, _error: EngineError) -> None:
        self._end_search()

    def _end_search(self) -> None:
        self.is_searching = False
        self.changed.emit()
        if self._is_behind:
            self.refresh()

    def _follow(self, names: frozenset[str]) -> None:
        if "search_local_servers" in names and not self._preferences.search_local_servers:
            self._preferences.set(local_models=())
        if names & _FOLLOWED:
            self.changed.emit()


def _choice(name: str) -> ModelChoice:
    is_local = name == EMBEDDED_MODEL or name.startswith(GGUF_PREFIX)
    return ModelChoice(name, model_label(name) if is_local else "", "free" if is_local else "")


def _priced(model: KnownModel) -> ModelChoice:
    return ModelChoice(model.name, hint=model.price_text, help=model.figures)


def _host(address: str) -> str:
    return urlsplit(address).netloc


async def _look(keys: Keys, *, search: bool) -> _Found:
    providers = await asyncio.to_thread(_models_with_key, keys)
    files = await asyncio.to_thread(gguf_models)
    return _Found(providers, files, await find_local_servers() if search else None)


def _models_with_key(keys: Keys) -> dict[str, list[KnownModel]]:
    """Return the models of each provider with a key. Accesses the keyring, which may be slow."""
    prefixes = [model.name.partition("/")[0] for model in known_examples(keys) if model.available]
    return {prefix: models_of_provider(prefix) for prefix in prefixes}
