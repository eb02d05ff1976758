"""Optional parts are installed by real package clients, or by one that does what a test says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
import venv
from pathlib import Path

import pytest

from engine import package_installer
from engine.package_installer import (
    InstallCanceledError,
    InstallError,
    OptionalPart,
    install_part,
    optional_part,
    run_package_client,
)
from tests.engine.wheels import HANG, build_wheel, use_stub_client

ROOT = Path(__file__).parents[2]
METADATA = """Metadata-Version: 2.4
Name: loopwright
Version: 99
Provides-Extra: sample
Provides-Extra: other
Requires-Dist: always>=1
Requires-Dist: old-python; python_version < "3"
Requires-Dist: new-python; python_version >= "3"
Requires-Dist: sample_part[fast]<3,>=1; (python_version >= "3") and extra == "sample"
Requires-Dist: sample_old; (python_version < "3") and extra == "sample"
Requires-Dist: otherwise; extra == "other"
"""


def distribution_in(folder: Path) -> None:
    """A distribution of the program with other extras."""
    info = folder / "loopwright-99.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution_in(tmp_path / "packages")
    monkeypatch.syspath_prepend(tmp_path / "packages")


def install(folder: Path, canceled: threading.Event | None = None) -> tuple[bool, list[str]]:
    lines: list[str] = []
    part = OptionalPart(("sample_part>=1",), folder)
    return install_part(part, lines.append, canceled or threading.Event()), lines


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package client: this Python may have none."""
    use_stub_client(monkeypatch, tmp_path / "bin", "")


@pytest.mark.parametrize("extra", ["batch", "embedded", "mcp", "web"])
@pytest.mark.usefixtures("client")
def test_every_part_that_an_error_names_is_declared(extra: str) -> None:
    assert len(optional_part(extra).requirements) == 1


@pytest.mark.usefixtures("client", "distribution")
def test_part_is_what_the_metadata_requires_for_this_python() -> None:
    part = optional_part("sample")

    assert part.requirements == ("sample_part[fast]<3,>=1",)
    assert part.folder == Path(sysconfig.get_path("purelib"))


@pytest.mark.parametrize("extra", ["", "none"])
@pytest.mark.usefixtures("distribution")
def test_unknown_part_is_refused(extra: str) -> None:
    with pytest.raises(InstallError, match="does not list"):
        optional_part(extra)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["pip", "uv"])
def test_part_is_installed_into_the_environment_of_the_program(tmp_path: Path, client: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    if client == "uv" and not uv.exists():
        pytest.skip("uv is not installed")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    files = {"sample_part/__init__.py": b"ANSWER = 42\n"}
    wheel = build_wheel("sample_part", "1.0", files, "sample_base")
    (wheels / "sample_part-1.0-py3-none-any.whl").write_bytes(wheel)
    base = build_wheel("sample_base", "1.0", {"sample_base.py": b""})
    (wheels / "sample_base-1.0-py3-none-any.whl").write_bytes(base)
    scratch = tmp_path / "scratch"
    venv.create(scratch, symlinks=True)
    python = scratch / "bin" / "python"
    (packages,) = scratch.glob("lib/python*/site-packages")
    distribution_in(packages)
    own = sysconfig.get_path("purelib")
    (packages / "program.pth").write_text(f"{ROOT}\n{own}\n")  # with pip, which the environment itself has not
    code = f"""
import importlib.util, json, threading
from engine.package_installer import install_part, optional_part
find = importlib.util.find_spec
if {client == "uv"}:
    importlib.util.find_spec = lambda name, *more: None if name == "pip" else find(name, *more)
assert find("sample_part") is None
part = optional_part("sample")
needs_restart = install_part(part, lambda line: None, threading.Event())
import sample_part
print(json.dumps([needs_restart, sample_part.ANSWER, sample_part.__file__, str(part.folder)]))
"""
    environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
    environment |= {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels), "UV_NO_CONFIG": "1", "PATH": str(uv.parent)}
    done = subprocess.run(
        [python, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [False, 42, str(packages / "sample_part" / "__init__.py"), str(packages)]
    assert (packages / "sample_base.py").exists()


def test_client_gets_the_requirements_and_the_python_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given"
    use_stub_client(monkeypatch, tmp_path / "bin", f"Path({str(given)!r}).write_text(chr(10).join(sys.argv[1:]))")
    needs_restart, _ = install(tmp_path)

    assert not needs_restart
    assert given.read_text().splitlines() == ["pip", "install", "--python", sys.executable, "sample_part>=1"]


def test_canceled_client_is_ended_and_its_last_line_was_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_stub_client(monkeypatch, tmp_path / "bin", HANG)
    canceled, lines = threading.Event(), []

    def note(line: str) -> None:
        lines.append(line)
        if line:
            canceled.set()

    with pytest.raises(InstallCanceledError):
        install_part(OptionalPart(("sample_part",), tmp_path), note, canceled)

    assert lines[-1] == "Downloading sample"


def test_client_is_stopped_at_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stub_client(monkeypatch, tmp_path / "bin", HANG)
    found = run_package_client(["sample"], lambda _line: None, threading.Event(), stop_at=re.compile(r"D\w+ sample"))

    assert found == "Downloading sample"


@pytest.mark.parametrize("code", ["print('Downloading sample')", "print('Downloading sample')\nsys.exit(1)"])
def test_output_of_a_client_that_has_ended_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    use_stub_client(monkeypatch, tmp_path / "bin", code)
    found = run_package_client(["sample"], lambda _line: None, threading.Event(), stop_at=re.compile(r"D\w+ sample"))

    assert found == "Downloading sample"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('Looking in links')\nsys.exit('ERROR: No such host.\\nERROR: Nothing found.')", "No such host"),
        ("sys.exit('error: No network\\nhint: none')", "No network"),
        ("print('one\\ntwo')\nsys.exit(1)", "two"),
        ("sys.exit(3)", "its client ended with code 3"),
    ],
    ids=["pip", "uv", "another", "silent"],
)
def test_failure_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str) -> None:
    use_stub_client(monkeypatch, tmp_path / "bin", code)
    with pytest.raises(InstallError) as caught:
        install(tmp_path)

    assert caught.value.reason == reason
    assert "Check the network connection" in caught.value.remedy


@pytest.mark.parametrize("change", ["version", "start"])
def test_replaced_packages_and_files_of_the_start_need_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    info = tmp_path / "other_part-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other_part\nVersion: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    newer = "Metadata-Version: 2.1\nName: other_part\nVersion: 2\n"
    code = {
        "version": f"Path({str(info / 'METADATA')!r}).write_text({newer!r})",
        "start": f"Path({str(tmp_path / 'sample.pth')!r}).touch()",
    }[change]
    use_stub_client(monkeypatch, tmp_path / "bin", code)

    assert install(tmp_path)[0]


@pytest.mark.parametrize("obstacle", ["read-only", "bundle", "client", "metadata", "system"])
def test_where_nothing_can_be_installed_is_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    match obstacle:
        case "read-only":  # a folder that does not exist is not writable either, even for the superuser
            monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path / "none"))
            reason = "read-only"
        case "bundle":
            monkeypatch.setattr(sys, "frozen", True, raising=False)
            reason = "contains all"
        case "client":
            monkeypatch.setattr(package_installer.importlib.util, "find_spec", lambda _name: None)
            monkeypatch.setenv("PATH", "")
            reason = "neither pip nor uv"
        case "metadata":
            monkeypatch.setattr(package_installer, "DISTRIBUTION", "no-such-distribution")
            reason = "does not list"
        case _:
            (tmp_path / "EXTERNALLY-MANAGED").touch()
            monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
            monkeypatch.setattr(sys, "prefix", sys.base_prefix)
            reason = "the system manages"

    with pytest.raises(InstallError, match=reason) as caught:
        optional_part("mcp")
    assert caught.value.remedy
