"""The import contracts in pyproject.toml hold."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from tests.architecture.project import ROOT

_CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def test_all_import_contracts_are_kept():
    program = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", program, "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Contracts: {len(_CONTRACTS)} kept, 0 broken." in done.stdout


@pytest.mark.parametrize("package", ["engine", "app"])
def test_every_package_has_a_layer(package: str) -> None:
    layers = [contract["layers"] for contract in _CONTRACTS if contract["type"] == "layers"]
    placed = {module.strip() for contract in layers for layer in contract for module in layer.split("|")}
    folder = ROOT / package
    packages = {file.parent.name for file in folder.glob("*/__init__.py")}
    modules = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    assert {name for name in placed if name.startswith(package)} == {f"{package}.{name}" for name in packages | modules}
