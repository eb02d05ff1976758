"""The bundle works without a Python: built, unpacked elsewhere, and run in an environment with nothing on PATH."""

from __future__ import annotations

import configparser
import faulthandler
import importlib.util
import json
import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from ruamel.yaml import YAML

import engine
from app.entry import WindowArguments, window_arguments
from engine.document.model import FILE_SUFFIXES
from tests.e2e.screen import open_screen, what_is_missing

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT_S = 1500
NEEDED_BYTES = 4e9
MAX_ARCHIVE_BYTES = 268e6
"""With the least compression; a release has 7 % less, under 250 MB."""
CODE = "import sys, statistics; print(statistics.mean([1, 2]), sys.executable)"
TOOL = {
    "format": "loopwright.workflow",
    "version": 1,
    "nodes": [
        {"id": "code", "type": "input"},
        {"id": "tool", "type": "tool", "config": {"tool": "python"}},
        {"id": "result", "type": "output"},
    ],
    "edges": [{"from": "code.value", "to": "tool.code"}, {"from": "tool.output", "to": "result.value"}],
}
SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"tools": [{"name": "hello", "inputSchema": {"type": "object", "properties": {}}}]}
    if message["method"] == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_desktops_open_files_with_each_suffix_in_the_program() -> None:
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    (mime,) = ElementTree.parse(ROOT / "packaging/linux/loopwright.xml").getroot().iter(f"{space}mime-type")
    assert {glob.get("pattern") for glob in mime.iter(f"{space}glob")} == {f"*{suffix}" for suffix in FILE_SUFFIXES}
    desktop = configparser.ConfigParser(interpolation=None)
    desktop.read(ROOT / "packaging/linux/loopwright.desktop", encoding="utf-8")
    entry = desktop["Desktop Entry"]
    assert mime.get("type") == "application/vnd.loopwright+json"
    assert entry["MimeType"] == f"{mime.get('type')};"
    command, *arguments = shlex.split(entry["Exec"])
    assert (command, arguments[-1]) == ("loopwright", "%F")
    assert window_arguments([*arguments[:-1], "a.loopwright"]) == WindowArguments(["a.loopwright"])
    _, *arguments = shlex.split(desktop[f"Desktop Action {entry['Actions'].rstrip(';')}"]["Exec"])
    assert window_arguments(arguments) == WindowArguments([], is_separate=True)


def bundle_module() -> ModuleType:
    """The program that builds bundles."""
    found = importlib.util.spec_from_file_location("bundle", ROOT / "packaging" / "bundle.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def mime_type() -> str | None:
    return ElementTree.parse(ROOT / "packaging/linux/loopwright.xml").getroot()[0].get("type")


def test_windows_opens_files_with_the_single_suffix_in_the_installed_program(tmp_path: Path) -> None:
    script = (ROOT / "packaging/windows/loopwright.iss").read_text(encoding="utf-8")
    entry = re.compile(r'.*"Software\\Classes\\(.+?)";.* ValueName: "(.*?)"; ValueData: "(.*?)"(?:; Flags: \w+)?$')
    lines = [line for line in script.splitlines() if line.startswith("Root:")]
    values = {(found[1], found[2]): found[3].replace('""', '"') for found in map(entry.match, lines) if found}
    assert len(values) == len(lines)

    suffix = FILE_SUFFIXES[1]
    kind = values[suffix, ""]
    assert values[f"{suffix}\\OpenWithProgids", kind] == ""
    assert values[suffix, "Content Type"] == mime_type()
    command, *arguments = shlex.split(values[f"{kind}\\shell\\open\\command", ""], posix=False)
    assert command == '"{app}\\loopwright-window.exe"'
    assert arguments[-1] == '"%1"'
    assert window_arguments([*arguments[:-1], "a.loopwright"]) == WindowArguments(["a.loopwright"])
    assert 'name="loopwright-window", console=False' in (ROOT / "packaging/loopwright.spec").read_text("utf-8")
    assert "ChangesAssociations=yes" in script  # so that Windows notices at once

    *options, file = bundle_module().installer_command(tmp_path / "loopwright", tmp_path, "name")[2:]
    assert Path(file) == ROOT / "packaging/windows/loopwright.iss"
    assert {option[2:].partition("=")[0] for option in options} == set(re.findall(r"\{#(\w+)\}", script))


def test_macos_opens_files_with_the_single_suffix_in_the_application() -> None:
    described = plistlib.loads((ROOT / "packaging/macos/Info.plist").read_bytes())
    (kind,) = described["UTExportedTypeDeclarations"]
    tags = kind["UTTypeTagSpecification"]
    assert tags == {"public.filename-extension": [FILE_SUFFIXES[1][1:]], "public.mime-type": [mime_type()]}
    (document,) = described["CFBundleDocumentTypes"]
    assert document["LSItemContentTypes"] == [kind["UTTypeIdentifier"]]
    assert (document["CFBundleTypeRole"], document["LSHandlerRank"]) == ("Editor", "Owner")
    assert described["LSBackgroundOnly"] is False  # or it would have no window, as the program of the command line


def test_continuous_integration_builds_what_is_installed_on_each_system() -> None:
    jobs = YAML(typ="safe").load(ROOT / ".github/workflows/ci.yml")["jobs"]
    systems = {system.partition("-")[0] for system in jobs["bundle"]["strategy"]["matrix"]["os"]}
    commands = [step.get("run", "") for step in jobs["bundle"]["steps"]]
    assert systems == {"ubuntu", "macos", "windows"}
    assert "python packaging/bundle.py dist --package" in commands
    assert any("innosetup" in command for command in commands)
    assert {"run": "uv build"} in jobs["package"]["steps"]


def test_continuous_integration_tests_each_system_every_python_and_the_lowest_versions() -> None:
    jobs = YAML(typ="safe").load(ROOT / ".github/workflows/ci.yml")["jobs"]
    matrix = jobs["tests"]["strategy"]["matrix"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pythons = {found for each in project["classifiers"] for found in re.findall(r":: (3\.\d+)$", each)}
    linux = jobs["linux"]["steps"]
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert pythons == {*matrix["python"], *(step["with"]["python-version"] for step in linux if "with" in step)}
    assert linux[-1]["run"] == ".ci/run"
    assert (ROOT / ".ci/run").read_text("utf-8").endswith("\nmake lint\nmake test ALL=1\n")
    assert jobs["lowest"]["steps"][-1]["run"].startswith("make test-lowest")


def test_icon_is_drawn_in_the_format_of_each_system(tmp_path: Path) -> None:
    bundle = f"runpy.run_path({str(ROOT / 'packaging/bundle.py')!r})"
    program = f"import pathlib, runpy; {bundle}['draw_icons'](pathlib.Path({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
    magic = {"png": b"\x89PNG", "ico": b"\0\0\1\0", "icns": b"icns"}
    drawn = {file.suffix[1:]: file.read_bytes()[:4] for file in tmp_path.iterdir()}
    assert drawn == magic


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="Packages of Debian, by its dpkg")
def test_the_debian_package_has_the_program_a_command_a_menu_entry_and_the_file_type(tmp_path: Path) -> None:
    program, icon = tmp_path / "dist" / "loopwright", tmp_path / "loopwright.png"
    program.mkdir(parents=True)
    (program / "loopwright").write_text("#!/bin/sh\n")
    icon.write_bytes(b"icon")

    package = bundle_module().build_deb(program, tmp_path, tmp_path)

    command = ["dpkg-deb", "--contents", str(package)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in (
        "./usr/lib/loopwright/loopwright",
        "./usr/bin/loopwright -> /usr/lib/loopwright/loopwright",
        "./usr/share/applications/loopwright.desktop",
        "./usr/share/mime/packages/loopwright.xml",
        "./usr/share/icons/hicolor/256x256/apps/loopwright.png",
    ):
        assert name in listing
    command = ["dpkg-deb", "--field", str(package), "Version", "Depends"]
    fields = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Version: {engine.__version__}" in fields
    assert "libxcb-cursor0" in fields


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("make") is None, reason="The bundle of Linux, by make")
def test_the_bundle_works_without_python(tmp_path: Path) -> None:
    if min(shutil.disk_usage(folder).free for folder in (ROOT, tmp_path)) < NEEDED_BYTES:
        pytest.skip(f"This test needs {NEEDED_BYTES / 1e9:.0f} GB of disk.")
    faulthandler.cancel_dump_traceback_later()  # building takes minutes, with a timeout of its own
    make = ["make", "bundle", f"DIST={tmp_path / 'built'}"]
    fast = {**os.environ, "XZ_OPT": "-0 --threads=0"}
    subprocess.run(make, cwd=ROOT, env=fast, check=True, capture_output=True, timeout=BUILD_TIMEOUT_S)
    (archive,) = (tmp_path / "built").glob("loopwright-*.tar.xz")
    assert archive.stat().st_size < MAX_ARCHIVE_BYTES
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    program = tmp_path / "loopwright" / "loopwright"
    pictures = {file.name for file in (ROOT / "docs" / "images").iterdir()}
    assert {file.name for file in program.parent.glob("_internal/engine/bundled/docs/images/*")} == pictures
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": str(tmp_path / "empty"), "LANG": "C.UTF-8"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments], cwd=home, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    # The built-in model, in its child process.
    refined = json.loads(run("run", "self-refine", "--json"))
    assert refined["outputs"]["text"]

    packages = json.loads(run("doctor", "--json"))["Packages"]
    assert [name for name, version in packages.items() if version == "not installed"] == []

    # The tool `python`, with modules of the standard library that the program itself does not use.
    (home / "tool.loop.json").write_text(json.dumps(TOOL), encoding="utf-8")
    consent = ("--allow", "--allow-code", "--folder", str(home))
    result = json.loads(run("run", "tool.loop.json", *consent, "-i", f"code={CODE}", "--json"))["outputs"]["result"]
    assert result == {"exit_code": 0, "stdout": f"1.5 {program}\n", "stderr": ""}

    # A server of tools over stdio; it needs a Python of its own.
    (home / "server.py").write_text(SERVER, encoding="utf-8")
    settings = home / ".config" / "loopwright"
    settings.mkdir(parents=True, exist_ok=True)  # the run above has stored its consent there
    server = {"command": sys.executable, "args": [str(home / "server.py")]}
    (settings / "extensions.json").write_text(json.dumps({"mcpServers": {"test": server}}), encoding="utf-8")
    assert "test/hello" in run("tools", "--refresh", "test")

    # Workers of a batch, which `multiprocessing` starts.
    (home / "table.csv").write_text(f"code\n{json.dumps(CODE)}\n", encoding="utf-8")
    run("batch", "tool.loop.json", "table.csv", *consent, "--executor", "dask", "-o", "results.csv")
    assert "1.5" in (home / "results.csv").read_text("utf-8-sig")

    # A plugin from the folder of plugins.
    plugins = home / ".local" / "share" / "loopwright" / "plugins"
    shutil.copytree(ROOT / "docs" / "example-plugin" / "loopwright_example", plugins / "loopwright_example")
    metadata = plugins / "loopwright_example-1.0.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: loopwright-example\nVersion: 1.0.0\n")
    (metadata / "entry_points.txt").write_text("[loopwright.plugins]\nexample = loopwright_example:PLUGIN\n")
    assert "shorten" in run("--plugin", "example", "nodes")

    missing = what_is_missing()
    if missing:
        pytest.skip(missing)
    folder = tmp_path / "screen"
    folder.mkdir()
    with open_screen(folder) as screen, (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([program], env={**environment, "DISPLAY": screen.name}, stdout=log, stderr=log)
        try:
            screen.window("^Loopwright$")
            screen.tool("key", "ctrl+q")
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            process.wait()
    assert (tmp_path / "log").read_text() == ""
