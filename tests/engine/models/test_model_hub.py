"""The catalog, names and addresses of models to download, and where keys are sent."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.models import demo_weights, file_download, model_hub
from engine.models.catalog import check_model_name
from engine.models.file_download import PausedDownload, paused_downloads
from engine.models.gguf_files import find_gguf, models_folder
from engine.models.keys import Keys
from engine.models.model_hub import (
    CATALOG,
    DEMO,
    CatalogModel,
    downloaded_files,
    downloaded_model,
    find_model_file,
    get_model_file,
    machine_memory,
    models_outside_catalog,
    paused_download,
)
from engine.models.protocol import EMBEDDED_MODEL, ModelError, ModelErrorKind
from tests.engine.models.loopback_hub import Answer, LoopbackHub

CONTENT = b"GGUF" + random.Random(1).randbytes(20_000)
PART = "maker/model/sub/Big-00003-of-00003.gguf"
QWEN = "/Qwen/Qwen2.5-0.5B-Instruct-GGUF/resolve/main/qwen2.5-0.5b-instruct-q4_k_m.gguf"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackHub]:
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path / "models"))
    monkeypatch.setattr(file_download, "_FIRST_WAIT_S", 0.0)
    with LoopbackHub(CONTENT) as hub:
        hub.use(monkeypatch)
        yield hub


def keys(**environment: str) -> Keys:
    return Keys(environment)


def test_catalog_has_each_size_and_only_free_licenses() -> None:
    assert {model.category for model in CATALOG} == {"Demo", "Small", "Medium", "Large"}
    assert {model.license for model in CATALOG} <= {"Apache 2.0", "MIT"}
    assert len({model.name for model in CATALOG}) == len({model.target for model in CATALOG}) == len(CATALOG)
    for model in CATALOG:
        assert model.size < model.memory
        assert model.file.endswith(".gguf")
        assert re.fullmatch("[0-9a-f]{64}", model.sha256)


async def test_model_of_the_catalog_is_downloaded_into_the_folder_and_named(hub: LoopbackHub) -> None:
    model = await find_model_file("Qwen2.5-0.5B", keys())
    file = await get_model_file(model)

    assert hub.asked[0][0] == QWEN
    assert file == models_folder() / "qwen2.5-0.5b-instruct-q4_k_m.gguf"
    assert (model.model, model.size, model.memory) == (
        "gguf:qwen2.5-0.5b-instruct-q4_k_m",
        len(CONTENT),
        1_000_000_000,
    )
    assert file.read_bytes() == CONTENT
    assert model.is_downloaded


@pytest.mark.parametrize("name", ["HUB/maker/model/blob/main/sub/Big-00002-of-00003.gguf?download=true", PART])
async def test_model_in_several_files_is_found_by_any_of_them_and_downloaded_as_one(
    hub: LoopbackHub, name: str
) -> None:
    names = [f"Big-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    hub.contents = {name: CONTENT + name.encode() for name in names}
    model = await find_model_file(name.replace("HUB", hub.url), keys())

    assert [path.partition("?")[0] for path, _ in hub.asked] == [f"/maker/model/resolve/main/sub/{n}" for n in names]
    assert (model.model, model.size) == ("gguf:big", sum(map(len, hub.contents.values())))
    assert not model.is_downloaded
    first = await get_model_file(model)
    assert first == find_gguf("gguf:big") == models_folder() / names[0]
    assert [file.read_bytes() for file in downloaded_files("gguf:Big")] == list(hub.contents.values())
    assert model.is_downloaded
    assert (await find_model_file(name.replace("HUB", hub.url), keys())).is_downloaded


async def test_another_file_with_the_name_of_a_part_is_not_that_model(hub: LoopbackHub) -> None:
    models_folder().mkdir()
    (models_folder() / "Big-00003-of-00003.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="another file") as caught:
        await find_model_file(PART, keys())

    assert "Big-00003-of-00003" in caught.value.message


def entry(name: str) -> CatalogModel:
    return next(model for model in CATALOG if model.name == name)


def test_file_counts_as_the_model_of_the_catalog_only_with_its_size(hub: LoopbackHub) -> None:
    model = entry("qwen2.5-0.5b")
    models_folder().mkdir()
    model.target.touch()
    os.truncate(model.target, model.size - 1)
    assert not model.is_downloaded
    assert [(other.target, other.is_downloaded) for other in models_outside_catalog()] == [(model.target, True)]

    os.truncate(model.target, model.size)
    assert model.is_downloaded
    assert models_outside_catalog() == []


async def test_file_of_the_catalog_is_intact_only_with_its_checksum(
    hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = replace(entry("qwen2.5-0.5b"), size=len(CONTENT), sha256=hub.sha256)
    monkeypatch.setattr(model_hub, "CATALOG", (known,))
    models_folder().mkdir()
    known.target.write_bytes(CONTENT)
    found = await downloaded_model(known.name)
    assert found is not None
    assert found.target == known.target

    known.target.write_bytes(bytes(len(CONTENT)))
    assert known.is_downloaded
    assert await downloaded_model(known.name) is None


def test_models_outside_the_catalog_are_listed_with_unfinished_downloads(hub: LoopbackHub) -> None:
    folder = models_folder()
    folder.mkdir()
    (folder / "mine.gguf").write_bytes(CONTENT)
    (folder / "Big-00001-of-00002.gguf").write_bytes(CONTENT)
    for target in (folder / "other.gguf", entry("qwen3-4b").target):
        target.with_name(f"{target.name}.part").write_bytes(b"GGUF")
        state = {"version": "1", "size": 99, "address": f"{hub.url}/x/y/resolve/main/{target.name}"}
        target.with_name(f"{target.name}.part.json").write_text(json.dumps(state))

    big, mine, other = models_outside_catalog()
    assert (big.title, big.is_downloaded, big.sources) == ("Big", False, ())
    assert (mine.model, mine.size, mine.is_downloaded) == ("gguf:mine", len(CONTENT), True)
    assert (other.size, other.is_downloaded) == (99, False)
    assert [source.address for source in other.sources] == [f"{hub.url}/x/y/resolve/main/other.gguf"]
    assert paused_download("gguf:Other") == PausedDownload(other.target, other.sources[0].address, 99)
    assert paused_download("qwen3-4b") is not None
    assert paused_download("mine") is None


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("maker/model-GGUF/model.Q4_K_M.gguf", "/maker/model-GGUF/resolve/main/model.Q4_K_M.gguf"),
        ("maker/model/sub/model (1).gguf", "/maker/model/resolve/main/sub/model%20%281%29.gguf"),
        ("HUB/maker/model/blob/main/model.gguf#top", "/maker/model/resolve/main/model.gguf"),
        ("HUB/maker/model/resolve/v2/model.gguf?download=true", "/maker/model/resolve/v2/model.gguf?download=true"),
    ],
)
async def test_any_file_of_the_hub_has_an_address(hub: LoopbackHub, name: str, path: str) -> None:
    model = await find_model_file(name.replace("HUB", hub.url), keys())

    assert hub.asked[0][0] == path
    assert model.target.parent == models_folder()
    assert "/" not in model.title
    assert model.memory == len(CONTENT)


async def test_address_of_another_server_is_used_unchanged(hub: LoopbackHub) -> None:
    model = await find_model_file(f"{hub.content_url}/blob/model.gguf?key=1", keys())

    assert hub.sent[0][0] == "/blob/model.gguf?key=1"
    assert model.target.name == "model.gguf"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "qwen",
        "maker/model.gguf",
        "maker/model/model.bin",
        "maker/model/.gguf",
        "maker/model/con.gguf",
        "maker/model/..%2Fmodel.gguf",
        "maker/model/..\\model.gguf",
        "maker/model/model-00001-of-00100.gguf",
        "maker/model/mmproj-Model-F16.gguf",
        "http://models.example.com/model.gguf",
        "ftp://models.example.com/model.gguf",
        "https://user:secret@models.example.com/model.gguf",
        "https://models.example.com/",
        "https://models.example.com/mo\ndel.gguf",
        "https://[/model.gguf",
        "file:/etc/model.gguf",
    ],
)
async def test_names_that_are_none_are_refused_without_a_request(hub: LoopbackHub, name: str) -> None:
    with pytest.raises(ModelError) as caught:
        await find_model_file(name, keys())

    assert caught.value.kind is ModelErrorKind.NOT_FOUND
    assert caught.value.remedy
    assert "secret" not in caught.value.message
    assert hub.asked == []


@pytest.mark.parametrize("name", ["foo.gguf.gguf", "Foo (1).gguf", "foo@v2+x, y.gguf"])
async def test_downloaded_model_is_found_by_its_name(hub: LoopbackHub, name: str) -> None:
    model = await find_model_file(f"maker/model/{name}", keys())
    file = await get_model_file(model)

    check_model_name(model.model)
    assert find_gguf(model.model) == file


@pytest.mark.parametrize("size", [len(CONTENT), 10])
@pytest.mark.parametrize("name", ["model.gguf", "Model.GGUF"])
async def test_another_file_of_the_same_name_is_not_that_model(hub: LoopbackHub, size: int, name: str) -> None:
    models_folder().mkdir()
    (models_folder() / "model.gguf").write_bytes(bytes(size))
    with pytest.raises(ModelError) as caught:
        await find_model_file(f"maker/model/{name}", keys())

    assert caught.value.kind is ModelErrorKind.UNAVAILABLE
    assert str(models_folder() / "model.gguf") in caught.value.message
    (models_folder() / "model.gguf").write_bytes(CONTENT)
    assert (await find_model_file(f"maker/model/{name}", keys())).is_downloaded


@pytest.mark.parametrize("name", ["../model", "maker/..", "./model", "../maker/model.gguf"])
async def test_path_of_a_folder_is_no_repository(hub: LoopbackHub, name: str) -> None:
    with pytest.raises(ModelError, match="There is no model"):
        await find_model_file(name, keys())
    assert hub.asked == []


@pytest.mark.parametrize("name", ["maker/model", "HUB/maker/model", "HUB/maker/model/tree/main?show_file_info=x#top"])
async def test_repository_is_asked_for_one_of_its_files(hub: LoopbackHub, name: str) -> None:
    with pytest.raises(ModelError) as caught:
        await find_model_file(name.replace("HUB", hub.url), keys())

    assert caught.value.message == "maker/model has several files."
    assert f"{hub.url}/maker/model/tree/main" in caught.value.remedy
    assert hub.asked == []
    with pytest.raises(ModelError, match=r'no model "maker/model\.gguf"'):
        await find_model_file("maker/model.gguf", keys())


async def test_similar_name_is_suggested(hub: LoopbackHub) -> None:
    with pytest.raises(EngineError) as caught:
        await find_model_file("qwen3-8b", keys())

    assert '"qwen3-4b"' in caught.value.remedy


async def test_unusable_address_of_the_hub_is_one_sentence() -> None:
    with pytest.raises(EngineError) as caught:
        await find_model_file("qwen3-4b", keys(), {"HF_ENDPOINT": "hub"})

    assert "HF_ENDPOINT" in caught.value.message


async def test_token_of_the_environment_goes_to_the_hub_only(hub: LoopbackHub) -> None:
    environment = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_secret"}
    await get_model_file(await find_model_file("qwen2.5-0.5b", keys(), environment))
    await find_model_file(f"{hub.content_url}/model.gguf", keys(), environment)

    assert {headers["Authorization"] for _, headers in hub.asked} == {"Bearer hf_secret"}
    assert {headers["Authorization"] for _, headers in hub.sent} == {None}


async def test_stored_key_of_a_host_goes_to_that_host_only(hub: LoopbackHub) -> None:
    variable = f"LOOPWRIGHT_KEY_127_0_0_1_{hub.content_url.rpartition(':')[2]}"
    stored = keys(**{variable: "secret-of-content"})
    await find_model_file("qwen2.5-0.5b", stored)
    await find_model_file(f"{hub.content_url}/model.gguf", stored)

    assert [headers["Authorization"] for _, headers in hub.asked] == [None]
    assert [headers["Authorization"] for _, headers in hub.sent] == ["Bearer secret-of-content"]


async def test_demo_model_that_is_there_is_not_downloaded(hub: LoopbackHub) -> None:
    model = await find_model_file(DEMO, keys())

    assert model.model == EMBEDDED_MODEL
    assert await get_model_file(model) == demo_weights.find_weights()
    assert hub.asked == []


def test_memory_of_the_machine_is_known() -> None:
    memory = machine_memory()

    assert memory is not None
    assert memory > 100_000_000


def test_hub_is_reached_by_https() -> None:
    assert model_hub.HUB.startswith("https://")


async def test_demo_model_does_not_count_as_downloaded_without_its_hash() -> None:
    assert entry(DEMO).is_downloaded
    assert await downloaded_model(DEMO) is None


async def test_unfinished_download_of_a_signed_address_needs_the_whole_address_again(hub: LoopbackHub) -> None:
    path = "/maker/model/resolve/main/signed.gguf"
    hub.files = {f"{path}?signature=1", f"{path}?signature=2"}
    model = await find_model_file(f"{hub.url}{path}?signature=1", keys())
    hub.content_answers += [Answer(cut_after=5_000), Answer(status=404)]
    with pytest.raises(ModelError):
        await get_model_file(model)

    (paused,) = models_outside_catalog()
    assert paused.sources[0].address == hub.url + path
    with pytest.raises(ModelError) as caught:
        await find_model_file(paused.sources[0].address, keys())
    assert (caught.value.kind, "query" in caught.value.message) == (ModelErrorKind.NOT_FOUND, True)
    model = await find_model_file(f"{hub.url}{path}?signature=2", keys())
    assert (await get_model_file(model)).read_bytes() == CONTENT
    assert hub.range_starts[-1] == "bytes=5000-"


@pytest.mark.parametrize(("query", "has_query"), [("", False), ("?download=true", False), ("?signature=1", True)])
async def test_address_of_an_unfinished_download_has_no_query(hub: LoopbackHub, query: str, has_query: bool) -> None:
    address = f"{hub.url}/maker/model/resolve/main/signed.gguf"
    hub.content_answers += [Answer(cut_after=5_000), Answer(status=404)]
    with pytest.raises(ModelError):
        await get_model_file(await find_model_file(f"{address}{query}", keys()))
    (paused,) = paused_downloads(models_folder())
    assert (paused.address, paused.has_query) == (address, has_query)
