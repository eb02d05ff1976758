"""Packages installed for a test: built as `pip` builds them, without a network, and unpacked into a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "example-plugin"


def install_example(folder: Path) -> Path:
    """Build the example plugin and install it into a new folder; return the folder for the path."""
    source, site = folder / "source", folder / "site"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    program = "from hatchling.build import build_wheel; print(build_wheel('dist'))"
    built = subprocess.run([sys.executable, "-c", program], cwd=source, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(source / "dist" / built.stdout.split()[-1]) as wheel:
        wheel.extractall(site)
    return site


def write_plugin(folder: Path, name: str, code: str) -> Path:
    """Write an installed package of one module with an entry point; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_module.py").write_text(code, encoding="utf-8")
    details = folder / f"{name}-1.0.dist-info"
    details.mkdir()
    (details / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (details / "entry_points.txt").write_text(
        f"[loopwright.plugins]\n{name} = {name}_module:PLUGIN\n", encoding="utf-8"
    )
    return folder


def program(*arguments: object, sites: tuple[Path, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a separate process with the packages installed in these folders."""
    path = os.pathsep.join(map(str, (*sites, ROOT)))
    usual = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=usual, cwd=ROOT, check=False, timeout=300)


def loopwright(
    *arguments: object, sites: tuple[Path, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a separate process."""
    return program("-m", "engine.cli.main", *arguments, sites=sites, **environment)
