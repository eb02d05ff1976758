"""`python -m benchmarks.install FOLDER [WAY…]`: install the program on bare Debian systems; print what each way takes.

Each way starts in a new minimal Debian without Python, executes the commands of the README until Self-Refine has
finished, and then opens the window on a screen without a monitor. Needs root, debootstrap, unshare, Xvfb, xdotool, the
network, and 6 GB in the folder. `make bench` leaves it out.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.__main__ import machine
from benchmarks.processes import ROOT
from benchmarks.tables import Table, aim

SUITE: Final = "bookworm"
RUN: Final = "loopwright run self-refine"
GET_DEMO: Final = "loopwright models get demo"

_PROJECT: Final = "root/project"
_CACHES: Final = ("root/.cache", "var/cache/apt", "var/lib/apt/lists")
_ENVIRONMENT: Final = {
    "HOME": "/root",
    "PATH": "/root/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}
_CERTIFICATES: Final = "etc/certificates.pem"
_MOUNTS: Final = "mount --bind /proc {root}/proc && mount --rbind /dev {root}/dev && "
_DONE: Final = re.compile(r"^Done: (?:(\d+) min )?([\d.]+) s", re.MULTILINE)
_MOST_MB: Final = 998.0
"""900 MB of packages, and the weights of the demo model."""
_STARTS: Final = 3
"""How often the command line is started; the fastest counts."""
_BUILD_TOOLS: Final = ("make", "python3-venv")


@dataclass(frozen=True)
class Way:
    """A way to install the program.

    Attributes:
        title: Its name in the table.
        commands: Lines of the README, without comments and `sudo`. All but the last install, the last one runs.
        window: The command that opens the window; empty if that is not tried.
        packages: Debian packages besides those that the README lists; None for no packages at all.
        without: Listed packages that this way does not need.
        built_by: The way that builds the files which this one installs; empty if it installs the project's folder.
        most_s: The target for the time of the installation.
        most_mb: The target for its size.
    """

    title: str
    commands: tuple[str, ...]
    window: str = "loopwright"
    packages: tuple[str, ...] | None = ()
    without: tuple[str, ...] = ()
    built_by: str = ""
    most_s: float | None = None
    most_mb: float | None = None

    @property
    def program(self) -> str:
        """The command of the program; empty where the last command is another."""
        before, run, _ = self.commands[-1].rpartition(RUN)
        return f"{before}{run.partition(' ')[0]}"


_ENV: Final = "~/loopwright-env"
WAYS: Final = {
    "pip": Way(
        "pip",
        (
            f"python3 -m venv {_ENV}",
            f'{_ENV}/bin/pip install ".[app,embedded]"',
            f"{_ENV}/bin/{GET_DEMO}",
            f"{_ENV}/bin/{RUN}",
        ),
        window=f"{_ENV}/bin/loopwright",
        without=("make",),
        most_s=60,
        most_mb=_MOST_MB,
    ),
    "pipx": Way(
        "pipx",
        ('pipx install ".[app,embedded]"', GET_DEMO, RUN),
        packages=("pipx",),
        without=_BUILD_TOOLS,
        most_s=60,
        most_mb=_MOST_MB,
    ),
    "uv": Way(
        "uv tool (uv by pipx)",
        ("pipx install uv", 'uv tool install ".[app,embedded]"', GET_DEMO, RUN),
        packages=("pipx",),
        without=_BUILD_TOOLS,
        most_s=60,
        most_mb=_MOST_MB,
    ),
    "make": Way("make run", ("make run",), window="make run"),
    "build": Way(
        "make deb: build archive and package",
        ("make deb",),
        window="",
        packages=("binutils", "libpython3-dev", "xz-utils"),
    ),
    "bundle": Way(
        "bundle, unpacked",
        ("tar xf dist/loopwright-*.tar.xz --directory ~", f"~/loopwright/{RUN}"),
        window="~/loopwright/loopwright",
        packages=("xz-utils",),
        without=_BUILD_TOOLS,
        built_by="build",
    ),
    "deb": Way(
        "bundle, Debian package",
        ("apt install ./dist/loopwright_0.1.0_amd64.deb", RUN),
        packages=None,
        built_by="build",
    ),
}


@dataclass
class Figures:
    """What a way took; times in seconds, sizes in MB."""

    packages_s: float = 0.0
    packages_mb: float = 0.0
    install_s: float = 0.0
    install_mb: float = 0.0
    caches_mb: float = 0.0
    refine_s: float = 0.0
    cpu_s: float = 0.0
    start_s: float = 0.0
    window_s: float = 0.0
    load: float = field(default_factory=lambda: os.getloadavg()[0])


class System:
    """A minimal Debian in a folder, in which commands are executed.

    Attributes:
        root: The folder.
    """

    def __init__(self, root: Path, log: Path) -> None:
        self.root = root
        self._log = log
        self._environment = dict(_ENVIRONMENT)
        for file in ("etc/resolv.conf", "etc/hosts"):
            shutil.copy(Path("/") / file, root / file)
        (root / "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";\n', encoding="utf-8")
        for name, value in os.environ.items():
            if re.search(r"CERT|CA_BUNDLE|CAINFO", name) and Path(value).is_file():
                shutil.copy(value, root / _CERTIFICATES)
                self._environment[name] = f"/{_CERTIFICATES}"

    def start(self, command: str, variables: Mapping[str, str]) -> subprocess.Popen[str]:
        """Start a shell command in the project's folder; its mounts end with it."""
        inside = ["chroot", str(self.root), "/bin/sh", "-c", f"cd /{_PROJECT} && {command}"]
        outside = _MOUNTS.format(root=self.root) + 'exec "$@"'
        return subprocess.Popen(
            ["unshare", "--mount", "/bin/sh", "-c", outside, "sh", *inside],
            env={**self._environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )

    def do(self, command: str) -> str:
        """Execute a shell command, and return its output.

        Raises:
            RuntimeError: It failed.
        """
        process = self.start(command, {})
        output, _ = process.communicate()
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"$ {command}\n{output}\n")
        if process.returncode:
            raise RuntimeError(f"{command!r} ended with code {process.returncode}:\n{output[-2_000:]}")
        return output

    def seconds(self, command: str) -> float:
        """Execute a shell command, and return the seconds that it took, with the few hundredths of `unshare`."""
        began = time.perf_counter()
        self.do(command)
        return time.perf_counter() - began

    def open_window(self, command: str, folder: Path) -> float:
        """Open the window on a screen without a monitor, and close it; return the seconds until it was shown."""
        from tests.e2e.screen import open_screen

        folder.mkdir(exist_ok=True)
        with open_screen(folder) as screen:
            began = time.perf_counter()
            process = self.start(command, {"DISPLAY": screen.name})
            try:
                screen.window("^Loopwright$")
                shown_s = time.perf_counter() - began
                screen.tool("key", "ctrl+q")
                output, _ = process.communicate(timeout=60)
            finally:
                process.kill()
        if process.returncode:
            raise RuntimeError(f"The window ended with code {process.returncode}:\n{output[-2_000:]}")
        return shown_s

    def megabytes(self) -> tuple[float, float]:
        """The size on disk, without and with the package clients' caches."""
        everything = subprocess.run(["du", "-sxk", self.root], capture_output=True, text=True, check=True)
        caches = [f"--exclude={self.root / cache}" for cache in _CACHES]
        others = subprocess.run(["du", "-sxk", *caches, self.root], capture_output=True, text=True, check=True)
        total, rest = (int(done.stdout.split()[0]) * 1024 / 1e6 for done in (everything, others))
        return rest, total


def main() -> None:
    """Measure the given ways, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.install", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the systems are made, and where logs stay")
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"which to measure: {', '.join(WAYS)}")
    parser.add_argument("--suite", default=SUITE, help="Debian's suite (default: %(default)s)")
    options = parser.parse_args()
    unknown = [name for name in options.ways if name not in WAYS]
    if unknown:
        parser.error(f"there is no way {unknown[0]!r}; there are: {', '.join(WAYS)}")
    folder: Path = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / "base"  # stays for the next time
    if not base.exists():
        command = ["debootstrap", "--variant=minbase", options.suite, str(base)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(f"{machine()}; Debian {options.suite}", flush=True)
    measure(options.ways or list(WAYS), base, folder)


def measure(names: list[str], base: Path, folder: Path) -> None:
    """Install in each of these ways; print the table after each."""
    table = Table(
        "Installing",
        (
            *("Way", "Debian's packages, s", "MB", "installing, s", "MB", "caches, MB", "Self-Refine, s"),
            *("CPU of all, s", "--version, s", "window, s", "load", "targets"),
        ),
    )
    for name in names:
        way = WAYS[name]
        taken = install(way, name, base, folder)
        targets = ((taken.install_s, way.most_s, " s"), (taken.install_mb, way.most_mb, " MB"))
        table.add(
            way.title,
            *(f"{taken.packages_s:.1f}", f"{taken.packages_mb:.0f}"),
            *(f"{taken.install_s:.1f}", f"{taken.install_mb:.0f}", f"{taken.caches_mb:.0f}"),
            f"{taken.refine_s:.1f}" if taken.refine_s else "–",
            f"{taken.cpu_s:.0f}",
            f"{taken.start_s:.2f}" if taken.start_s else "–",
            f"{taken.window_s:.1f}" if taken.window_s else "–",
            f"{taken.load:.1f}",
            ", ".join(aim(round(figure), most, unit) for figure, most, unit in targets if most is not None) or "–",
        )
        print(f"\n{table.text()}", flush=True)


def install(way: Way, name: str, base: Path, folder: Path) -> Figures:
    """Install in a new system, run Self-Refine and open the window; return what it took."""
    taken = Figures()
    root = folder / name
    if root.exists():  # of a failed attempt
        shutil.rmtree(root)
    subprocess.run(["cp", "--archive", "--reflink=auto", str(base), str(root)], check=True)
    project = root / _PROJECT
    project.mkdir(parents=True)
    if way.built_by:
        shutil.copytree(folder / f"{way.built_by}-dist", project / "dist")
    else:
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "--extract", "--directory", str(project)], input=archive, check=True)
    system = System(root, folder / f"{name}.log")
    system.do("apt-get update")
    bare_mb, _ = system.megabytes()

    began, cpu_began = time.perf_counter(), _cpu_s()
    if way.packages is not None:
        packages = [each for each in listed_packages() if each not in way.without]
        system.do(f"apt-get install {' '.join((*packages, *way.packages))}")
    taken.packages_s = time.perf_counter() - began
    prepared_mb, _ = system.megabytes()
    taken.packages_mb = prepared_mb - bare_mb

    began = time.perf_counter()
    output = "".join(map(system.do, way.commands))
    refined = _DONE.search(output)
    taken.refine_s = 60 * int(refined[1] or 0) + float(refined[2]) if refined else 0.0
    taken.install_s = time.perf_counter() - began - taken.refine_s
    taken.cpu_s = _cpu_s() - cpu_began
    installed_mb, total_mb = system.megabytes()
    taken.install_mb, taken.caches_mb = installed_mb - prepared_mb, total_mb - installed_mb
    if way.program:
        taken.start_s = min(system.seconds(f"{way.program} --version") for _ in range(_STARTS))
    if way.window:
        taken.window_s = system.open_window(way.window, folder / f"{name}-screen")
    if (project / "dist").exists() and not way.built_by:
        shutil.copytree(project / "dist", folder / f"{name}-dist")
        sizes = ((file.name, file.stat().st_size / 1e6) for file in (project / "dist").iterdir())
        print("".join(f"{file}: {size:.0f} MB\n" for file, size in sizes))
    shutil.rmtree(root)
    return taken


def listed_packages() -> list[str]:
    """The Debian packages that the README lists."""
    found = re.search(r"apt-get\s+install\s+([^`]+)`", (ROOT / "README.md").read_text("utf-8"))
    assert found is not None
    return found[1].split()


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
