"""Small wheels, and a package client that does what a test says."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest


def build_wheel(name: str, version: str, files: Mapping[str, bytes], requires: str = "") -> bytes:
    """A wheel with these files; `requires` is a requirement of it."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    content = {
        **files,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    records = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for path, data in content.items()
    ]
    content[f"{info}/RECORD"] = "\n".join([*records, f"{info}/RECORD,,", ""]).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        for path, data in content.items():
            target.writestr(path, data)
    return archive.getvalue()


def use_stub_client(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """Make a program with this code the only package client; its arguments are in `sys.argv`."""
    folder.mkdir(exist_ok=True)
    client = folder / "uv"
    client.write_text(f"#!{sys.executable} -IS\nimport signal, sys\nfrom pathlib import Path\n{code}\n")
    client.chmod(0o755)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "pip" else find(name, *more))
    monkeypatch.setenv("PATH", str(folder))


HANG = """
signal.signal(signal.SIGINT, signal.default_int_handler)
print("Resolved 3 packages\\nDownloading sample", flush=True)
signal.pause()
"""
"""Writes output, and runs until it is interrupted."""
