"""The catalog: kinds of models, errors of invalid names, and closing."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.catalog import (
    EMBEDDED_MODEL,
    LITELLM_PREFIXES,
    MODEL_VARIABLE,
    Models,
    check_model_name,
    default_model_name,
)
from engine.models.embedded import EmbeddedModel
from engine.models.gguf_model import GgufModel
from engine.models.keys import Keys
from engine.models.litellm_adapter import LiteLLMModel
from engine.models.protocol import Message, Model, ModelError, ModelErrorKind, Request, sum_costs
from engine.models.scripted import ScriptedModel
from engine.runner.options import RunOptions
from engine.runner.run import default_model_of
from tests.engine.models.embedded_fixtures import process_id

HELLO = Request((Message("user", "Hi"),), max_tokens=1)


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the machine's own keyring and keys."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


def as_model(model: Model) -> Model:
    """Type-checked proof that a class follows the protocol."""
    return model


def test_all_kinds_follow_the_protocol(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text("{}")
    models = (EmbeddedModel(), GgufModel("gguf:x"), ScriptedModel(file), LiteLLMModel("openai/x", keys=Keys({})))
    names = [as_model(model).name for model in models]
    assert names == [EMBEDDED_MODEL, "gguf:x", f"scripted:{file}", "openai/x"]


async def test_prefix_decides_the_kind(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"default": "hello"}')
    models = Models(Keys({}))
    assert isinstance(models.get(EMBEDDED_MODEL), EmbeddedModel)
    scripted = models.get(f"scripted:{file}")
    assert (await scripted.complete(HELLO)).text == "hello"
    assert isinstance(models.get("gguf:qwen2.5:7b"), GgufModel)
    remote = models.get("openrouter/vendor/model:free")
    assert isinstance(remote, LiteLLMModel)
    assert remote.name == "openrouter/vendor/model:free"
    await models.close()


async def test_one_model_per_name_and_address(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text("{}")
    models = Models(Keys({}))
    assert models.get("openai/x") is models.get("openai/x")
    assert models.get("openai/x") is not models.get("openai/x", "http://localhost:1/v1")
    assert models.get(f"scripted:{file}") is models.get(f"scripted:{file}", "http://localhost:1/v1")
    assert models.get(EMBEDDED_MODEL) is models.get(EMBEDDED_MODEL, "http://localhost:1/v1")
    await models.close()
    assert models.get("openai/x") is models.get("openai/x")
    await models.close()


async def test_each_run_starts_a_script_from_the_beginning(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"rules": [{"replies": ["first"]}], "default": "later"}')
    for _ in range(2):
        models = Models(Keys({}))
        model = models.get(f"scripted:{file}")
        assert [(await model.complete(HELLO)).text for _ in range(2)] == ["first", "later"]
        await models.close()


async def test_asking_for_the_name_of_the_default_model_does_not_acquire_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    assert default_model_of(RunOptions()) == EMBEDDED_MODEL
    models = Models(Keys({}))
    model = models.get(EMBEDDED_MODEL)
    await models.close()
    assert models.get(EMBEDDED_MODEL) is not model
    await models.close()


async def test_built_in_model_is_shared_and_closed_by_its_last_user() -> None:
    first, second = Models(Keys({})), Models(Keys({}))
    model = first.get(EMBEDDED_MODEL)
    assert second.get(EMBEDDED_MODEL) is model
    assert first.get(EMBEDDED_MODEL) is model  # asked for twice, given back once
    await model.complete(HELLO)
    assert isinstance(model, EmbeddedModel)
    process = process_id(model)
    assert process
    await first.close()
    await first.close()
    assert (await second.get(EMBEDDED_MODEL).complete(HELLO)).usage.output_tokens == 1
    assert process_id(model) == process
    await second.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    third = Models(Keys({}))
    assert third.get(EMBEDDED_MODEL) is not model
    await third.close()


async def test_all_models_are_closed_even_if_one_fails(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text("{}")
    models = Models(Keys({}))
    closed: list[str] = []

    class Recorder(ScriptedModel):
        async def close(self) -> None:
            closed.append(self.name)
            if len(closed) == 1:
                raise ConnectionError

    for name in ("a", "b"):
        models._models[(name, None)] = Recorder(file)
    with pytest.raises(ConnectionError):
        await models.close()
    assert len(closed) == 2


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("gpt-4o", "openai/gpt-4o"),
        ("o3-mini", "openai/o3-mini"),
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("Mistral-large-latest", "mistral/Mistral-large-latest"),
        ("deepseek-chat", "deepseek/deepseek-chat"),
        ("deepseek-r1:7b", "ollama_chat/deepseek-r1:7b"),
        ("llama3.2", "ollama_chat/llama3.2"),
        ("mistral:7b", "ollama_chat/mistral:7b"),
        ("ollama:llama3", "ollama/llama3"),
        ("OpenAI/gpt-4o", "openai/gpt-4o"),
        ("opnai/gpt-4o", "openai/gpt-4o"),
        ("antropic/claude-x", "anthropic/claude-x"),
        ("xyzzy-labs/frobnicator", "openrouter/xyzzy-labs/frobnicator"),
        ("embedded", EMBEDDED_MODEL),
        ("embedded:smollm2-1.7b", EMBEDDED_MODEL),
        ("SmolLM2", EMBEDDED_MODEL),
        ("scripted:", "scripted:FILE"),
        ("scripted", "scripted:FILE"),
        ("recorded", "recorded:RUN"),
        (" gpt-4o ", "openai/gpt-4o"),
        ("gguf:", "gguf:FILE"),
        ("gguf/qwen2.5-7b", "gguf:qwen2.5-7b"),
        ("~/models/Qwen2.5-7B.gguf", "gguf:~/models/Qwen2.5-7B.gguf"),
    ],
)
def test_wrong_name_is_refused_with_a_suggestion(name: str, guess: str) -> None:
    with pytest.raises(ModelError) as caught:
        Models(Keys({})).get(name)
    assert caught.value.kind is ModelErrorKind.NOT_FOUND
    assert repr(name) in caught.value.message
    assert caught.value.remedy.startswith(f"Did you mean {guess}? Write it as PROVIDER/MODEL")
    if guess not in {"scripted:FILE", "recorded:RUN"}:
        check_model_name(guess)


@pytest.mark.parametrize("name", ["", "   ", "frobnicator", "/", "/model", "openai/", "recordings:x", ":", "a\nb"])
def test_unknown_name_is_refused_with_the_syntax(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_model_name(name)
    assert caught.value.kind is ModelErrorKind.NOT_FOUND
    assert caught.value.remedy.startswith("Write it as PROVIDER/MODEL")
    assert "\n" not in str(caught.value)


@given(st.text(max_size=300))
def test_any_text_is_a_name_or_one_error_sentence(name: str) -> None:
    try:
        check_model_name(name)
    except ModelError as error:
        sentence = error.message
    else:
        sentence = ""
    assert len(sentence) < 2100
    assert sentence.isprintable()


def installed(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    specification = importlib.util.find_spec(package)
    assert specification
    assert specification.origin
    return Path(specification.origin).parent


def test_prefixes_match_the_installed_litellm() -> None:
    tree = ast.parse((installed("litellm") / "types" / "utils.py").read_text(encoding="utf-8"))
    enum = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "LlmProviders")
    members = {
        node.value.value for node in enum.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    by_data = json.loads((installed("litellm") / "llms" / "openai_like" / "providers.json").read_text(encoding="utf-8"))
    assert members | by_data.keys() == LITELLM_PREFIXES


def test_default_model_is_the_users_or_the_built_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_model_name({}) == EMBEDDED_MODEL
    assert default_model_name({"LOOPWRIGHT_MODEL": "  "}) == EMBEDDED_MODEL
    assert default_model_name({"LOOPWRIGHT_MODEL": "openai/gpt-4o"}) == "openai/gpt-4o"
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "groq/x")
    assert default_model_name() == "groq/x"


async def test_model_of_the_users_own_server_is_called_at_its_address() -> None:
    models = Models(addresses={"openai/mine": "http://localhost:9/v1"})

    assert models.get("openai/mine") is models.get("openai/mine", "http://localhost:9/v1")
    assert models.get("openai/mine", "http://localhost:7/v1") is not models.get("openai/mine")
    assert models.get("openai/other") is not models.get("openai/other", "http://localhost:9/v1")
    await models.close()


def test_a_sum_of_costs_is_unknown_if_one_of_them_is() -> None:
    assert sum_costs([0.25, 0.5]) == 0.75
    assert sum_costs([0.25, None, 0.5]) is None
    assert sum_costs([]) == 0.0
