"""`python packaging/bundle.py FOLDER [--package]`: build the program with its own Python, for machines without one.

Writes an archive for this system into the folder. With `--package`, also what installs it with a menu entry and the
file type: a package for Debian and its relatives, or an installer for Windows, by Inno Setup. On macOS, the application
in the archive declares the file type. Needs PyInstaller, and the program installed in the environment of this Python.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent

CONTROL = """\
Package: loopwright
Version: {version}
Architecture: {architecture}
Maintainer: Loopwright <loopwright@localhost>
Installed-Size: {kilobytes}
Section: devel
Priority: optional
Depends: {depends}
Description: draw workflows in which a language model improves its own work
 A desktop program to draw, run, compare and fork loops of model calls.
"""
LIBRARIES = (
    *(
        "libdbus-1-3",
        "libegl1",
        "libfontconfig1",
        "libfreetype6",
        "libgl1",
        "libglib2.0-0 | libglib2.0-0t64",
        "libgomp1",
    ),
    *("libwayland-cursor0", "libwayland-egl1"),
    *("libxcb-cursor0", "libxcb-icccm4", "libxcb-image0", "libxcb-keysyms1", "libxcb-render-util0", "libxcb-shape0"),
)
"""Debian packages of the libraries that Qt and the model runtime take from the system."""


def main(target: Path, *, with_package: bool) -> None:
    """Build into a folder, and print what was built."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        draw_icons(work)
        program = build(work)
        name = f"loopwright-{version()}-{platform.system().lower()}-{platform.machine().lower()}"
        built = [pack(program, target / name)]
        if with_package and sys.platform == "linux":
            built.append(build_deb(program, work, target))
        if with_package and sys.platform == "win32":
            subprocess.run(installer_command(program, target, name), check=True)
            built.append(target / f"{name}.exe")
    for file in built:
        print(f"{file}  {file.stat().st_size / 1e6:.0f} MB")


def version() -> str:
    import engine

    return engine.__version__


def draw_icons(folder: Path) -> None:
    """Draw the program's icon as PNG, as ICO for Windows, and as ICNS for macOS."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtGui import QGuiApplication

    from app.window.main_window import program_icon

    application = QGuiApplication([])
    pixmap = program_icon().pixmap(256, 256)
    for suffix in ("png", "ico", "icns"):
        assert pixmap.save(str(folder / f"loopwright.{suffix}")), suffix
    del application


def build(work: Path) -> Path:
    """Run PyInstaller; return the folder of the program."""
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    places = ["--distpath", str(work / "dist"), "--workpath", str(work / "build")]
    environment = {
        **os.environ,
        "LOOPWRIGHT_ICON": str(work / f"loopwright.{'icns' if sys.platform == 'darwin' else 'ico'}"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # importing litellm would fetch a price list
    }
    done = subprocess.run([*command, *places, str(HERE / "loopwright.spec")], check=False, env=environment)
    if done.returncode:
        sys.exit("The bundle could not be built. PyInstaller's message above says why.")
    apple = work / "dist" / "Loopwright.app"
    return apple if apple.exists() else work / "dist" / "loopwright"


def pack(program: Path, name: Path) -> Path:
    """Pack the folder of the program; return the archive."""
    if sys.platform == "darwin":  # Python's module would follow the links in the application
        archive = name.with_name(f"{name.name}.zip")
        subprocess.run(["ditto", "-c", "-k", "--keepParent", str(program), str(archive)], check=True)
        return archive
    if sys.platform == "win32":
        return Path(shutil.make_archive(str(name), "zip", program.parent, program.name))
    archive = name.with_name(f"{name.name}.tar.xz")
    command = ["tar", "--create", "--xz", "--file", str(archive), "--directory", str(program.parent), program.name]
    # Python's module has one thread. Tests compress less, which takes a third of the time.
    subprocess.run(command, check=True, env={"XZ_OPT": "-4 --threads=0", **os.environ})
    return archive


def installer_command(program: Path, target: Path, name: str) -> list[str]:
    """Return the command that builds the installer for Windows, `NAME.exe` in the target folder."""
    installed = Path(os.environ.get("ProgramFiles(x86)", "")).glob("Inno Setup */ISCC.exe")  # noqa: SIM112 - as on Windows
    compiler = shutil.which("iscc") or next(map(str, installed), "iscc")
    values = {
        "Version": version(),
        "Program": program.resolve(),
        "License": ROOT / "LICENSE",
        "Target": target.resolve(),
        "Name": name,
    }
    defined = [f"/D{key}={value}" for key, value in values.items()]
    return [compiler, "/Qp", *defined, str(HERE / "windows" / "loopwright.iss")]


def build_deb(program: Path, work: Path, target: Path) -> Path:
    """Pack the program with its menu entry and file type for Debian; return the package."""
    root = work / "deb"
    shutil.copytree(program, root / "usr" / "lib" / "loopwright", symlinks=True)
    share = root / "usr" / "share"
    for file, folder in (
        (HERE / "linux" / "loopwright.desktop", share / "applications"),
        (HERE / "linux" / "loopwright.xml", share / "mime" / "packages"),
        (work / "loopwright.png", share / "icons" / "hicolor" / "256x256" / "apps"),
        (ROOT / "LICENSE", share / "doc" / "loopwright"),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder)
    commands = root / "usr" / "bin"
    commands.mkdir(parents=True)
    (commands / "loopwright").symlink_to("/usr/lib/loopwright/loopwright")
    ask = ["dpkg", "--print-architecture"]
    architecture = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    size = sum(file.lstat().st_size for file in root.rglob("*")) // 1024
    control = root / "DEBIAN" / "control"
    control.parent.mkdir()
    text = CONTROL.format(version=version(), architecture=architecture, kilobytes=size, depends=", ".join(LIBRARIES))
    control.write_text(text, encoding="utf-8")
    package = target / f"loopwright_{version()}_{architecture}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z4", "--build", str(root), str(package)], check=True)
    return package


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(Path(sys.argv[1]), with_package="--package" in sys.argv[2:])
