"""Which key goes to which host."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.keys import NO_KEY, Endpoint, Keys, find_endpoint
from engine.models.protocol import ModelError, ModelErrorKind
from engine.models.providers import PROVIDERS, AddressError, origin_of
from tests.engine.models.litellm_fixtures import QUESTION, SECRET, MakeModel, failure_of, make_model_fixture
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

EVERYTHING = {variable: f"sk-secret-{name}" for name, one in PROVIDERS.items() for variable in one.key_variables}
ACCOUNT = {
    "OPENAI_ADMIN_KEY": "sk-secret-admin",
    "OPENAI_ORGANIZATION": "org-secret",
    "OPENAI_ORG_ID": "org-secret",
    "OPENAI_PROJECT_ID": "proj-secret",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway: gate-secret\nAuthorization: Bearer custom-secret\nnonsense",
    "ANTHROPIC_AUTH_TOKEN": "token-secret",
}


def destination(name: str, api_base: str | None = None, **environment: str) -> Endpoint:
    return find_endpoint(name, api_base, Keys(environment), environment)


def refusal(name: str, api_base: str | None = None, **environment: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        destination(name, api_base, **environment)
    return caught.value


@pytest.fixture(autouse=True)
def _no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


@pytest.mark.parametrize(
    ("name", "title", "key"),
    [
        ("openai/gpt-4o", "OpenAI", "sk-secret-openai"),
        ("anthropic/claude-sonnet-4-5", "Anthropic", "sk-secret-anthropic"),
    ],
)
def test_provider_key_goes_to_the_providers_address(name: str, title: str, key: str) -> None:
    place = destination(name, **EVERYTHING)

    assert (place.title, place.address, place.api_key, place.foreign) == (title, None, key, False)
    assert place.key_name == place.provider.name


@pytest.mark.parametrize(
    "address", ["https://api.openai.com/v1", "https://API.openai.com:443", "https://api.openai.com./v1"]
)
def test_naming_the_providers_own_address_changes_nothing(address: str) -> None:
    place = destination("openai/gpt-4o", address, OPENAI_API_KEY="sk-1")

    assert (place.title, place.address, place.api_key, place.foreign) == ("OpenAI", address, "sk-1", False)


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/v1",
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/api.openai.com/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "http://localhost:8080/v1",
        "https://api.groq.com/openai/v1",
    ],
)
def test_foreign_address_gets_no_provider_key(address: str) -> None:
    place = destination("openai/gpt-4o", address, **EVERYTHING)

    assert (place.api_key, place.foreign) == (NO_KEY, True)
    assert place.title == f"The server at {origin_of(address).name}"


def test_foreign_address_gets_the_users_key_for_that_host() -> None:
    environment = {"OPENAI_API_KEY": "sk-openai", "LOOPWRIGHT_KEY_LOCALHOST_8080": "sk-local"}

    place = destination("openai/x", "http://localhost:8080/v1", **environment)

    assert (place.api_key, place.foreign) == ("sk-local", True)
    assert place.key_name == "host:localhost:8080"


def test_https_host_key_is_not_sent_over_http() -> None:
    environment = {"LOOPWRIGHT_KEY_MODELS_EXAMPLE": "sk-mine"}

    assert destination("openai/x", "https://models.example/v1", **environment).api_key == "sk-mine"
    assert destination("openai/x", "http://models.example/v1", **environment).api_key == NO_KEY


def test_environment_address_gets_the_provider_key() -> None:
    environment = {"OPENAI_API_KEY": "sk-openai", "OPENAI_API_BASE": "http://gateway:4000/v1"}

    by_itself = destination("openai/x", **environment)
    named = destination("openai/x", "http://gateway:4000/other", **environment)
    elsewhere = destination("openai/x", "http://gateway:4001/v1", **environment)

    assert (by_itself.address, by_itself.api_key) == ("http://gateway:4000/v1", "sk-openai")
    assert (named.api_key, named.foreign) == ("sk-openai", False)
    assert (elsewhere.api_key, elsewhere.foreign) == (NO_KEY, True)


@pytest.mark.parametrize(
    ("name", "variable", "usual", "title"),
    [
        ("ollama_chat/llama3.2", "OLLAMA_API_BASE", "http://localhost:11434", "Ollama"),
        ("lm_studio/qwen", "LM_STUDIO_API_BASE", "http://localhost:1234/v1", "LM Studio"),
    ],
)
def test_local_provider_needs_no_key_and_has_a_default_address(
    name: str, variable: str, usual: str, title: str
) -> None:
    here = destination(name)
    chosen = destination(name, **{variable: "http://127.0.0.1:5000"})

    assert (here.address, here.api_key, here.title) == (usual, NO_KEY, title)
    assert (chosen.address, chosen.title) == ("http://127.0.0.1:5000", "The server at 127.0.0.1:5000")


def test_missing_key_is_an_error_before_any_request() -> None:
    error = refusal("openai/gpt-4o")

    assert (error.kind, error.message) == (ModelErrorKind.MISSING_KEY, "There is no key for OpenAI.")
    assert error.fix == "add_key:openai"


def test_invalid_key_is_an_error_before_any_request() -> None:
    error = refusal("openai/gpt-4o", OPENAI_API_KEY="sk one")

    assert error.kind is ModelErrorKind.AUTHENTICATION
    assert error.fix == "add_key:openai"
    assert "sk one" not in str(error)


def test_unlisted_provider_uses_the_environment_and_takes_no_address() -> None:
    place = destination("azure/gpt-4o", AZURE_API_KEY="sk-azure")
    assert (place.address, place.api_key, place.title) == (None, "sk-azure", "azure")
    assert destination("bedrock/anthropic.claude").api_key is None

    error = refusal("bedrock/anthropic.claude", "https://evil.example")
    assert (error.kind, error.message) == (
        ModelErrorKind.BAD_REQUEST,
        "A model of bedrock cannot be given an address.",
    )


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o",
        "",
        "/x",
        "openai/",
        "huggingface/https://evil.example/",
        "openai/../x",
        "openai/a b",
        "openai/a?b",
        "openai/a\n",
        "gemini/x#y",
        "openai/é",
    ],
)
def test_invalid_model_name_is_refused(name: str) -> None:
    assert refusal(name, **EVERYTHING).kind is ModelErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    "name",
    ["openrouter/meta-llama/llama-3.2-3b:free", "vertex_ai/claude-3-5-haiku@20241022", "cloudflare/@cf/meta/llama-2"],
)
def test_names_that_providers_use_are_accepted(name: str) -> None:
    assert destination(name, **EVERYTHING).provider.name == name.partition("/")[0]


@pytest.mark.parametrize("name", ["github_copilot/gpt-4o", "chatgpt/gpt-5"])
def test_providers_with_an_interactive_login_are_refused(name: str) -> None:
    assert refusal(name).kind is ModelErrorKind.UNAVAILABLE


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8080",
        "ftp://localhost/",
        "file:///etc/passwd",
        "http://",
        "http://:80/",
        "https://api.openai.com@evil.example/",
        "https://evil.example\\@api.openai.com/",
        "https://api.openai.com /v1",
        "https://api.openai.com\t.evil.example/",
        "https://аpi.openai.com/v1",
        "https://evil.example#api.openai.com",
        "http://localhost:99999/",
        "http://[::1",
        "http://under_score/",
        "os.environ/OPENAI_API_KEY",
    ],
)
def test_ambiguous_address_is_refused(address: str) -> None:
    error = refusal("openai/x", address, **EVERYTHING)

    assert error.kind is ModelErrorKind.BAD_REQUEST
    assert "not the address of" in error.message


def test_origin_name_is_the_host_as_people_write_it() -> None:
    assert origin_of("https://Models.Example/v1").name == "models.example"
    assert origin_of("http://localhost/v1").name == "localhost:80"
    assert origin_of("http://[::1]:8080/v1").name == "[::1]:8080"


@given(st.text(), st.sampled_from(["", "http://", "https://", "https://api.openai.com"]))
def test_any_address_is_an_origin_or_an_error(text: str, start: str) -> None:
    with contextlib.suppress(AddressError):
        assert origin_of(start + text).host in (start + text).lower()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prefix", sorted(PROVIDERS))
async def test_foreign_server_is_the_only_one_called_and_gets_no_secret(
    wire: WireServer, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch, prefix: str, stream: bool
) -> None:
    for name, value in {**EVERYTHING, **ACCOUNT}.items():
        monkeypatch.setenv(name, value)
    decoy = WireServer()
    for variable in PROVIDERS[prefix].address_variables:
        monkeypatch.setenv(variable, decoy.base_url)
    model = make_model(f"{prefix}/plain", api_base=wire.base_url, **EVERYTHING, OPENAI_API_BASE="http://gateway/v1")

    # Not each speaks like OpenAI, so not each understands the answer.
    with contextlib.suppress(ModelError):
        await model.complete(QUESTION, (lambda _text: None) if stream else None)

    decoy.close()
    assert decoy.requests == []
    assert len(wire.requests) == 1
    for request in wire.requests:
        assert "secret" not in f"{request.path} {request.headers} {request.body}"


async def test_account_headers_go_to_the_users_own_address(
    wire: WireServer, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")

    await make_model("plain").complete(QUESTION)

    assert wire.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert wire.requests[0].headers["openai-project"] == "proj-mine"


async def test_missing_key_stops_a_call_before_any_connection(make_model: MakeModel) -> None:
    error = await failure_of(make_model("anthropic/claude-sonnet-4-5"))

    assert (error.kind, error.retryable) == (ModelErrorKind.MISSING_KEY, False)


def test_endpoint_repr_shows_no_key() -> None:
    assert "sk-1" not in repr(destination("openai/gpt-4o", OPENAI_API_KEY="sk-1"))
