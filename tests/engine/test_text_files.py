"""Text files as people save them: with a byte order mark, in UTF-16, with the line ends of any system."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import dumps, load
from engine.cli.arguments import text_or_file
from engine.document.subflows import refresh_subflows
from engine.extensions import read_extensions
from engine.importing.reader import import_file, looks_importable
from engine.models.scripted import load_script
from engine.safe_file_io import NotTextError, decode_text, normalize_line_ends, read_text_file
from engine.store.consent import approve, is_approved
from engine.store.run_file import read_run_file, run_to_json
from engine.tools.file_tools import ReadFileParameters, read_file
from engine.tools.mcp_tools import Listing, read_listings, write_listings
from engine.tools.search_files import SearchFilesParameters, search_files
from engine.tools.tool import ToolContext
from tests.engine.semantics.documents import around, entry, flow, llm, part, result
from tests.engine.semantics.kit import play
from tests.engine.store.event_samples import head, one_of_each

_ENCODINGS = {
    "utf-8": (b"", "utf-8"),
    "utf-8 with mark": (codecs.BOM_UTF8, "utf-8"),
    "utf-16 little": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16 big": (codecs.BOM_UTF16_BE, "utf-16-be"),
    "utf-32 little": (codecs.BOM_UTF32_LE, "utf-32-le"),
    "utf-32 big": (codecs.BOM_UTF32_BE, "utf-32-be"),
}
_LINE_ENDS = ["\n", "\r\n", "\r"]


@pytest.fixture(params=[(name, end) for name in _ENCODINGS for end in _LINE_ENDS], ids=repr)
def saved(request: pytest.FixtureRequest) -> Callable[[Path, str], Path]:
    """Save a text as an editor does that uses this encoding and these line ends."""
    name, end = request.param
    mark, encoding = _ENCODINGS[name]

    def save(file: Path, text: str) -> Path:
        file.write_bytes(mark + text.replace("\n", end).encode(encoding))
        return file

    return save


Save = Callable[[Path, str], Path]


def test_a_value_from_a_file_has_newline_line_ends(saved: Save, tmp_path: Path) -> None:
    file = saved(tmp_path / "in.txt", "Größe 日本 🙂\n\ntwo\n")
    assert text_or_file(f"@{file}", "the input") == "Größe 日本 🙂\n\ntwo\n"


def test_a_workflow_opens_and_is_saved_as_utf_8(saved: Save, tmp_path: Path) -> None:
    workflow = around(llm("draft", "ä\r\nb"), edges="loop -> draft -> exit")
    opened = load(saved(tmp_path / "w.loop.json", dumps(workflow)))
    assert opened == workflow
    assert dumps(opened) == dumps(workflow)


def test_a_subflow_opens(saved: Save, tmp_path: Path) -> None:
    inner = flow(entry("given"), result("made"), edges="given -> made")
    saved(tmp_path / "inner.loop.json", dumps(inner))
    outer = flow(entry(), part("part", "subflow", file="inner.loop.json"), result(), edges="text -> part.given")
    now, problems = refresh_subflows(outer, tmp_path / "outer.loop.json")
    assert problems == []
    copied: Any = now.node("part").config["workflow"]
    assert [node["id"] for node in copied["nodes"]] == ["given", "made"]


def test_a_scripted_model_opens(saved: Save, tmp_path: Path) -> None:
    script = load_script(saved(tmp_path / "s.json", '{\n"default": {"text": "ü"}\n}'))
    assert getattr(script.default, "text", None) == "ü"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "- id: a\n  instructions: |\n    Do it.\n    Well.\n- id: b\n  instructions: Check.\n"),
        (
            "a.json",
            '{"steps": [\n{"id": "a", "instructions": "Do it.\\nWell."},\n{"id": "b", "instructions": "Check."}]}',
        ),
    ],
)
def test_a_file_to_import_opens(saved: Save, tmp_path: Path, name: str, text: str) -> None:
    file = saved(tmp_path / name, text)
    assert looks_importable(file)
    prompts = [str(node.config) for node in import_file(file).workflow.nodes if node.type in {"llm", "agent"}]
    assert ["Do it.\\nWell." in prompts[0], "Check." in prompts[1]] == [True, True]


def test_a_workflow_file_is_not_recognized_as_foreign(saved: Save, tmp_path: Path) -> None:
    assert not looks_importable(saved(tmp_path / "w.json", dumps(around(llm("draft"), edges="loop -> draft -> exit"))))


def test_a_run_opens(saved: Save, tmp_path: Path) -> None:
    file = saved(tmp_path / "run.json", "".join(run_to_json(head(), one_of_each())))
    assert read_run_file(file) == (head(), one_of_each())


def test_a_file_of_extensions_opens(saved: Save, tmp_path: Path) -> None:
    text = '{\n"mcpServers": {\n"files": {"command": "npx", "args": ["ä"]}\n}\n}'
    assert read_extensions(saved(tmp_path / "e.json", text)).servers["files"].summary == "npx ä"


def test_server_listings_and_approvals_open(saved: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_listings(tmp_path / "l.json", {"a": Listing(fingerprint="f")})
    saved(tmp_path / "l.json", (tmp_path / "l.json").read_text())
    assert read_listings(tmp_path / "l.json") == {"a": Listing(fingerprint="f")}

    workflow = flow(entry(), result(), edges="text -> out")
    monkeypatch.setenv("LOOPWRIGHT_APPROVED", str(tmp_path / "approved.json"))
    assert approve(workflow)
    saved(tmp_path / "approved.json", (tmp_path / "approved.json").read_text())
    assert is_approved(workflow)


async def test_tools_read_such_files(saved: Save, tmp_path: Path) -> None:
    saved(tmp_path / "a.md", "# Größen\n\nDas Maß ist voll.\n\n# Other\n\nNothing.\n")
    text = await read_file(ReadFileParameters(path="a.md"), ToolContext(folder=tmp_path))
    assert normalize_line_ends(str(text)) == "# Größen\n\nDas Maß ist voll.\n\n# Other\n\nNothing.\n"
    found: Any = await search_files(SearchFilesParameters(query="Nothing", folder="."), ToolContext(folder=tmp_path))
    assert (found[0]["title"], found[0]["line"]) == ("Other", 7)


async def test_models_receive_newline_line_ends() -> None:
    workflow = flow(
        entry(), llm("draft", "a\r\nb\rc {{input}}", system="x\r\ny"), result(), edges="text -> draft -> out"
    )
    played = await play(workflow, "p\r\nq", {"text": "1\r\n2"})
    assert [message.text for message in played.model.calls[0].request.messages] == ["x\ny", "a\nb\nc 1\n2"]
    assert played.out == "p\r\nq"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"caf\xe9", "it is not UTF-8 text: byte 4 does not fit"),
        (codecs.BOM_UTF8 + b"caf\xe9", "it is not UTF-8 text: byte 7 does not fit"),
        (codecs.BOM_UTF16_LE + b"a\0b", "it is not UTF-16 text: byte 5 does not fit"),
        (codecs.BOM_UTF32_BE + b"\xff\xff\xff\xff", "it is not UTF-32 text: byte 5 does not fit"),
    ],
)
def test_bytes_that_are_not_text_are_refused_with_their_place(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(NotTextError, match=reason):
        read_text_file(tmp_path / "a", 1_000_000)
    assert "\ufffd" in decode_text(content, errors="replace")


@given(st.text(st.characters(codec="utf-8")), st.sampled_from(list(_ENCODINGS.values())[1:]))
def test_any_text_is_decoded_from_any_encoding(text: str, encoding: tuple[bytes, str]) -> None:
    mark, name = encoding
    content = mark + text.encode(name)
    assert decode_text(content, keep_line_ends=True) == text
    assert decode_text(content) == normalize_line_ends(text)
    assert "\r" not in decode_text(content)
