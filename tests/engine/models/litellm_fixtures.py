"""Shared fixtures of the tests of the litellm adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from engine.models.keys import Keys
from engine.models.litellm_adapter import LiteLLMModel, load_litellm
from engine.models.protocol import Message, ModelError, Request
from tests.engine.wire.server import WireServer

SECRET = "sk-very-secret-0123456789"
QUESTION = Request((Message("system", "Be short."), Message("user", "What is up?")))

MakeModel = Callable[..., LiteLLMModel]


@pytest.fixture(name="make_model")
async def make_model_fixture(wire: WireServer) -> AsyncIterator[MakeModel]:
    """Create models whose server is the wire server, by the user's environment; close them at the end."""
    await load_litellm()
    made: list[LiteLLMModel] = []

    def make(name: str, *, api_base: str | None = None, **variables: str) -> LiteLLMModel:
        environment = {"OPENAI_API_KEY": SECRET, "OPENAI_API_BASE": wire.base_url, **variables}
        full_name = name if "/" in name else f"openai/{name}"
        model = LiteLLMModel(full_name, api_base=api_base, keys=Keys(environment), environment=environment)
        made.append(model)
        return model

    yield make
    for model in made:
        await model.close()


async def failure_of(model: LiteLLMModel, request: Request = QUESTION, *, stream: bool = False) -> ModelError:
    """Make a call that must fail."""
    with pytest.raises(ModelError) as caught:
        await model.complete(request, (lambda _text: None) if stream else None)
    return caught.value
