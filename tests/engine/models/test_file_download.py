"""Downloads from a model hub on loopback: redirects, ranges, cuts, changes, checksums, full disks."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.models import file_download
from engine.models.file_download import (
    PausedDownload,
    Progress,
    Source,
    discard_partial,
    download_files,
    look_up,
    partial_size,
    paused_downloads,
)
from engine.models.protocol import ModelError, ModelErrorKind
from tests.engine.models.loopback_hub import Answer, LoopbackHub

CONTENT = b"GGUF" + random.Random(1).randbytes(300_000)
FILE = "/maker/model/resolve/main/model.gguf"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(file_download, "_FIRST_WAIT_S", 0.0)
    with LoopbackHub(CONTENT) as hub:
        yield hub


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "models" / "model.gguf"


def source(hub: LoopbackHub, **more: str) -> Source:
    return Source(hub.url + FILE, **more)


def content(file: Path) -> bytes:
    return file.read_bytes()


def write(file: Path, data: bytes) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)


def left(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


async def refused(hub: LoopbackHub, target: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await download_files([(source(hub), target)])
    assert "\n" not in str(caught.value)
    return caught.value


async def pause_in_the_middle(hub: LoopbackHub, target: Path, at: int = 100_000) -> None:
    """Download the beginning of the file, and pause."""
    hub.content_answers.append(Answer(stall_after=at))
    arrived = asyncio.Event()

    def note(progress: Progress) -> None:
        if progress.done >= at:
            arrived.set()

    # The report of the last piece may fall into the interval in which nothing is reported.
    file_download._REPORT_INTERVAL_S, interval = 0.0, file_download._REPORT_INTERVAL_S
    task = asyncio.create_task(download_files([(source(hub), target)], note))
    await arrived.wait()
    file_download._REPORT_INTERVAL_S = interval
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    hub.go_on.set()


async def test_file_of_another_host_is_downloaded_and_nothing_else_is_left(hub: LoopbackHub, target: Path) -> None:
    seen: list[Progress] = []
    await download_files([(source(hub), target)], seen.append)

    assert content(target) == CONTENT
    assert left(target) == ["model.gguf"]
    assert (seen[-1].stage, seen[-1].done, seen[-1].size) == ("checking", len(CONTENT), len(CONTENT))


async def test_size_and_checksum_are_known_without_the_content(hub: LoopbackHub) -> None:
    remote = await look_up(source(hub))

    assert (remote.size, remote.sha256) == (len(CONTENT), hub.sha256)


async def test_paused_download_resumes_where_it_stopped(hub: LoopbackHub, target: Path) -> None:
    await pause_in_the_middle(hub, target)
    assert partial_size(target) == 100_000
    await download_files([(source(hub), target)])

    assert content(target) == CONTENT
    assert hub.range_starts == [None, "bytes=100000-"]
    assert left(target) == ["model.gguf"]


async def test_cut_connection_is_resumed_at_once(hub: LoopbackHub, target: Path) -> None:
    hub.content_answers.extend([Answer(cut_after=50_000)] * 8)  # more than the attempts without new data
    await download_files([(source(hub), target)])

    assert content(target) == CONTENT
    assert hub.range_starts == [None, *(f"bytes={start}-" for start in range(50_000, 300_001, 50_000))]


async def test_server_without_ranges_starts_again(hub: LoopbackHub, target: Path) -> None:
    await pause_in_the_middle(hub, target)
    hub.ranges = False
    await download_files([(source(hub), target)])

    assert content(target) == CONTENT


async def test_server_without_ranges_that_is_always_cut_ends_the_download(hub: LoopbackHub, target: Path) -> None:
    hub.ranges = False
    hub.content_answers.extend([Answer(cut_after=50_000)] * 20)

    assert (await refused(hub, target)).kind is ModelErrorKind.CONNECTION
    assert len(hub.sent) == file_download._DOWNLOAD_ATTEMPTS


async def test_more_content_than_announced_is_refused(hub: LoopbackHub, target: Path) -> None:
    hub.hub_answers.append(Answer(headers=(("X-Linked-Size", "1000"),)))

    assert (await refused(hub, target)).kind is ModelErrorKind.BAD_REPLY


async def test_file_that_changed_meanwhile_is_downloaded_from_the_start(hub: LoopbackHub, target: Path) -> None:
    await pause_in_the_middle(hub, target)
    hub.content = b"GGUF" + random.Random(2).randbytes(310_000)
    await download_files([(source(hub), target)])

    assert content(target) == hub.content
    assert hub.range_starts == [None, "bytes=100000-", None]


async def test_file_that_became_shorter_than_its_beginning_is_downloaded_from_the_start(
    hub: LoopbackHub, target: Path
) -> None:
    await pause_in_the_middle(hub, target)
    hub.content = CONTENT[:1_000]
    await download_files([(source(hub), target)])

    assert content(target) == hub.content


@pytest.mark.parametrize("more", [b"", b"what does not belong to it"])
async def test_complete_part_of_a_killed_download_is_only_checked(hub: LoopbackHub, target: Path, more: bytes) -> None:
    await pause_in_the_middle(hub, target)
    target.with_name("model.gguf.part").write_bytes(CONTENT + more)
    await download_files([(source(hub), target)])

    assert content(target) == CONTENT
    assert hub.range_starts[-1] == f"bytes={len(CONTENT) - 1}-"


@pytest.mark.parametrize("state", [b"", b"{", b"[]", b'{"version": 1}'])
async def test_unreadable_state_starts_again(hub: LoopbackHub, target: Path, state: bytes) -> None:
    await pause_in_the_middle(hub, target)
    target.with_name("model.gguf.part.json").write_bytes(state)
    await download_files([(source(hub), target)])

    assert content(target) == CONTENT
    assert hub.range_starts[-1] is None


async def test_damaged_file_is_deleted(hub: LoopbackHub, target: Path) -> None:
    hub.linked_etag = "0" * 64
    error = await refused(hub, target)

    assert error.kind is ModelErrorKind.BAD_REPLY
    assert left(target) == []


async def test_damaged_part_is_found_by_the_checksum(hub: LoopbackHub, target: Path) -> None:
    await pause_in_the_middle(hub, target)
    part = target.with_name("model.gguf.part")
    part.write_bytes(b"\0" * part.stat().st_size)

    assert (await refused(hub, target)).kind is ModelErrorKind.BAD_REPLY
    await download_files([(source(hub), target)])
    assert content(target) == CONTENT


async def test_page_instead_of_a_model_is_refused_before_it_is_downloaded(hub: LoopbackHub, target: Path) -> None:
    hub.content = b"<!doctype html>" * 100_000
    error = await refused(hub, target)

    assert "is not a GGUF file" in error.message
    assert left(target) == []


async def test_existing_file_is_not_downloaded_again(hub: LoopbackHub, target: Path) -> None:
    await download_files([(source(hub), target)])
    await download_files([(source(hub), target)])

    assert len(hub.sent) == 2
    assert left(target) == ["model.gguf"]


@pytest.mark.parametrize("own", [b"GGUF of the user's own", b"\0" * len(CONTENT)])
async def test_other_file_of_that_name_is_not_overwritten(hub: LoopbackHub, target: Path, own: bytes) -> None:
    write(target, own)
    error = await refused(hub, target)

    assert (error.kind, str(target) in error.message) == (ModelErrorKind.UNAVAILABLE, True)
    assert content(target) == own


async def test_key_goes_to_the_hub_but_not_to_the_host_of_the_content(hub: LoopbackHub, target: Path) -> None:
    await download_files([(source(hub, token="hf_secret"), target)])

    assert {headers["Authorization"] for _, headers in hub.asked} == {"Bearer hf_secret"}
    assert {headers["Authorization"] for _, headers in hub.sent} == {None}
    assert "hf_secret" not in repr(source(hub, token="hf_secret"))


@pytest.mark.parametrize(
    "location", ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://", "https://[", "javascript:1"]
)
async def test_unsafe_redirect_is_refused(hub: LoopbackHub, target: Path, location: str) -> None:
    hub.redirect = location
    error = await refused(hub, target)

    assert error.kind in {ModelErrorKind.SERVER, ModelErrorKind.CONNECTION}
    assert left(target) == []


def test_redirect_from_https_to_http_is_refused() -> None:
    import httpx

    with pytest.raises(ModelError) as caught:
        file_download._redirected(
            httpx.URL("https://hub.example.com/a"), "http://hub.example.com/a", Source("https://x.example")
        )
    assert caught.value.kind is ModelErrorKind.SERVER


async def test_endless_redirects_are_refused(hub: LoopbackHub, target: Path) -> None:
    hub.redirect = FILE

    assert (await refused(hub, target)).kind is ModelErrorKind.SERVER


@pytest.mark.parametrize(
    ("answer", "kind", "fix"),
    [
        (Answer(404, (("X-Error-Code", "EntryNotFound"),)), ModelErrorKind.NOT_FOUND, ""),
        (Answer(401, (("X-Error-Code", "GatedRepo"),)), ModelErrorKind.AUTHENTICATION, "add_key:host:"),
        (Answer(403, (("X-Error-Code", "GatedRepo"),)), ModelErrorKind.AUTHENTICATION, "add_key:host:"),
        (Answer(401, (("X-Error-Code", "RepoNotFound"),)), ModelErrorKind.AUTHENTICATION, "add_key:host:"),
        (Answer(418), ModelErrorKind.SERVER, ""),
    ],
)
async def test_refusals_are_one_sentence_with_a_remedy(
    hub: LoopbackHub, target: Path, answer: Answer, kind: ModelErrorKind, fix: str
) -> None:
    hub.hub_answers.append(answer)
    error = await refused(hub, target)

    assert (error.kind, error.fix.startswith(fix), bool(error.fix)) == (kind, True, bool(fix))
    assert error.remedy
    assert left(target) == []


async def test_gated_model_names_the_page_of_its_license(hub: LoopbackHub, target: Path) -> None:
    hub.hub_answers.append(Answer(401, (("X-Error-Code", "GatedRepo"),)))
    with pytest.raises(ModelError) as caught:
        await download_files([(source(hub, license_page=f"{hub.url}/maker/model"), target)])

    assert f"{hub.url}/maker/model," in caught.value.remedy


async def test_overloaded_servers_are_asked_again(hub: LoopbackHub, target: Path) -> None:
    hub.hub_answers.extend([Answer(429, (("Retry-After", "0"),)), Answer(503)])
    hub.content_answers.append(Answer(500))
    await download_files([(source(hub), target)])

    assert content(target) == CONTENT


async def test_server_that_stays_overloaded_ends_the_download(hub: LoopbackHub, target: Path) -> None:
    hub.hub_answers.extend([Answer(503)] * 10)

    assert (await refused(hub, target)).kind is ModelErrorKind.SERVER
    assert len(hub.asked) == file_download._DOWNLOAD_ATTEMPTS


async def test_long_wait_ends_the_download_and_is_named(hub: LoopbackHub, target: Path) -> None:
    hub.hub_answers.append(Answer(429, (("Retry-After", "3600"),)))
    error = await refused(hub, target)

    assert (error.kind, "1 h" in error.remedy) == (ModelErrorKind.RATE_LIMIT, True)


async def test_unreachable_server_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_download, "_FIRST_WAIT_S", 0.0)
    with LoopbackHub(CONTENT) as hub:
        closed = source(hub)
    with pytest.raises(ModelError) as caught:
        await look_up(closed)

    assert caught.value.kind is ModelErrorKind.CONNECTION


async def test_proxy_of_the_environment_is_used(
    hub: LoopbackHub, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", hub.url)
    remote = await look_up(Source("http://models.example.com" + FILE))

    assert remote.sha256 == hub.sha256
    assert hub.asked[0][0] == "http://models.example.com" + FILE


async def test_unusable_proxy_is_one_sentence(hub: LoopbackHub, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTP_PROXY", "socks9://127.0.0.1:1")

    assert (await refused(hub, target)).kind is ModelErrorKind.CONNECTION


async def test_server_that_does_not_say_the_size_is_refused(hub: LoopbackHub, target: Path) -> None:
    hub.content_answers.append(Answer(headers=(("Content-Encoding", "gzip"),)))

    assert (await refused(hub, target)).kind is ModelErrorKind.BAD_REPLY


class TestSeveralFiles:
    """A model in several files is downloaded as one."""

    @pytest.fixture
    def files(self, hub: LoopbackHub, target: Path) -> list[tuple[Source, Path]]:
        names = [f"big-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
        for number, name in enumerate(names):
            hub.contents[name] = b"GGUF" + random.Random(number).randbytes(100_000 * (number + 1))
        return [(Source(f"{hub.url}/maker/model/resolve/main/{name}"), target.with_name(name)) for name in names]

    async def pause_in_the_second(
        self, hub: LoopbackHub, files: list[tuple[Source, Path]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hub.content_answers.extend([Answer(), Answer(stall_after=50_000)])
        arrived = asyncio.Event()

        def note(progress: Progress) -> None:
            if progress.done == len(hub.contents[files[0][1].name]) + 50_000:
                arrived.set()

        monkeypatch.setattr(file_download, "_REPORT_INTERVAL_S", 0.0)
        task = asyncio.create_task(download_files(files, note, total(files, hub)))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        hub.go_on.set()

    async def test_progress_is_that_of_all_files(self, hub: LoopbackHub, files: list[tuple[Source, Path]]) -> None:
        seen: list[Progress] = []
        await download_files(files, seen.append, total(files, hub))

        assert [content(target) for _, target in files] == [hub.contents[target.name] for _, target in files]
        assert left(files[0][1]) == [target.name for _, target in files]
        assert {progress.size for progress in seen} == {total(files, hub)}
        assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
        assert seen[-1].done == total(files, hub)

    async def test_paused_in_the_second_file_it_is_one_download_that_resumes(
        self, hub: LoopbackHub, files: list[tuple[Source, Path]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await self.pause_in_the_second(hub, files, monkeypatch)
        first = files[0][1]
        arrived = len(hub.contents[first.name]) + 50_000

        assert not any(target.exists() for _, target in files)
        assert [partial_size(target) for _, target in files] == [arrived] * 3
        assert paused_downloads(first.parent) == [PausedDownload(first, files[0][0].address, total(files, hub))]
        await download_files(files, total=total(files, hub))
        assert [content(target) for _, target in files] == [hub.contents[target.name] for _, target in files]
        assert "bytes=50000-" in hub.range_starts
        assert paused_downloads(first.parent) == []

    async def test_files_of_a_paused_download_are_discarded_together(
        self, hub: LoopbackHub, files: list[tuple[Source, Path]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await self.pause_in_the_second(hub, files, monkeypatch)
        discard_partial(files[0][1])

        assert left(files[0][1]) == []

    async def test_space_for_all_files_is_checked_before_the_first(
        self, hub: LoopbackHub, files: list[tuple[Source, Path]]
    ) -> None:
        with pytest.raises(ModelError, match="too little space"):
            await download_files(files, total=10**18)

        assert hub.sent == []

    async def test_damaged_last_file_leaves_the_others_to_resume(
        self, hub: LoopbackHub, files: list[tuple[Source, Path]]
    ) -> None:
        hub.hub_answers.extend([Answer(), Answer(), Answer(headers=(("X-Linked-Etag", f'"{"0" * 64}"'),))])
        with pytest.raises(ModelError, match="checksum"):
            await download_files(files, total=total(files, hub))

        assert not files[0][1].exists()
        await download_files(files, total=total(files, hub))
        assert content(files[2][1]) == hub.contents[files[2][1].name]
        assert hub.range_starts.count(None) == 4


def total(files: list[tuple[Source, Path]], hub: LoopbackHub) -> int:
    return sum(len(hub.contents[target.name]) for _, target in files)


class TestOtherServers:
    """Files of a server that is no model hub: without checksum, identified by ETag or date."""

    async def paused(self, hub: LoopbackHub, target: Path) -> Source:
        plain = Source(f"{hub.content_url}/model.gguf?signature=secret")
        hub.content_answers.append(Answer(cut_after=200_000))
        hub.content_answers.extend([Answer(503)] * file_download._DOWNLOAD_ATTEMPTS)
        with pytest.raises(ModelError) as caught:
            await download_files([(plain, target)])
        assert "secret" not in str(caught.value)
        hub.content_answers.clear()
        return plain

    async def test_resumes_the_same_version(self, hub: LoopbackHub, target: Path) -> None:
        await download_files([(await self.paused(hub, target), target)])

        assert content(target) == CONTENT
        assert hub.range_starts[-1] == "bytes=200000-"

    async def test_starts_again_with_another_version(self, hub: LoopbackHub, target: Path) -> None:
        plain = await self.paused(hub, target)
        hub.etag, hub.content = '"other"', b"GGUF" + random.Random(3).randbytes(len(CONTENT) - 4)
        await download_files([(plain, target)])

        assert content(target) == hub.content

    @pytest.mark.parametrize("etag", [None, 'W/"weak"'])
    async def test_starts_again_where_the_version_is_unknown(
        self, hub: LoopbackHub, target: Path, etag: str | None
    ) -> None:
        hub.etag = etag
        plain = await self.paused(hub, target)
        hub.content = b"GGUF" + random.Random(3).randbytes(len(CONTENT) - 4)
        await download_files([(plain, target)])

        assert content(target) == hub.content


class TestDisk:
    async def test_too_little_space_is_reported_before_anything_is_written(
        self, hub: LoopbackHub, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(file_download, "_SPARE_BYTES", 10**18)
        error = await refused(hub, target)

        assert (error.kind, "too little space" in error.message) == (ModelErrorKind.UNAVAILABLE, True)
        assert left(target) == []

    async def test_full_disk_is_one_sentence(self, hub: LoopbackHub, target: Path) -> None:
        target.parent.mkdir()
        target.with_name("model.gguf.part").symlink_to("/dev/full")
        error = await refused(hub, target)

        assert (error.kind, "is full" in error.message) == (ModelErrorKind.UNAVAILABLE, True)
        assert "resume" in error.remedy

    async def test_what_fitted_on_the_disk_is_resumed(self, hub: LoopbackHub, target: Path) -> None:
        resource = pytest.importorskip("resource", reason="limits of a process, which Windows does not have")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, hard))
        try:
            error = await refused(hub, target)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert os.strerror(errno.EFBIG) in error.message
        await download_files([(source(hub), target)])

        assert content(target) == CONTENT
        assert hub.range_starts[-1] == "bytes=120000-"

    async def test_folder_that_cannot_be_written_is_one_sentence(self, hub: LoopbackHub, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        error = await refused(hub, tmp_path / "file" / "model.gguf")

        assert (error.kind, "cannot be written" in error.message) == (ModelErrorKind.UNAVAILABLE, True)

    async def test_partial_download_can_be_discarded(self, hub: LoopbackHub, target: Path) -> None:
        await pause_in_the_middle(hub, target)
        discard_partial(target)

        assert partial_size(target) == 0
        assert left(target) == []

    async def test_second_download_of_the_same_file_is_refused_and_disturbs_nothing(
        self, hub: LoopbackHub, target: Path
    ) -> None:
        hub.content_answers.append(Answer(stall_after=100_000))
        first = asyncio.create_task(download_files([(source(hub), target)]))
        await asyncio.to_thread(hub.stalled.wait)
        error = await refused(hub, target)
        with pytest.raises(ModelError):
            discard_partial(target)
        hub.go_on.set()
        await first

        assert "already" in error.message
        assert content(target) == CONTENT
        assert left(target) == ["model.gguf"]


def test_progress_reads_like_a_sentence() -> None:
    assert Progress(312_000_000, 1_117_000_000, 8_400_000.0).text == "312 MB of 1.1 GB · 8.4 MB/s · 1 min 36 s left"
    assert Progress(0, 1_117_000_000).text == "0 bytes of 1.1 GB"
    assert Progress(10, 20, 5.0, "waiting").text.endswith("trying again…")


def test_rate_is_that_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Progress] = []
    meter = file_download.ProgressMeter(seen.append)
    now = 0.0
    monkeypatch.setattr(file_download.time, "monotonic", lambda: now)
    for second in range(20):
        now = float(second)
        meter.note(second * 100 if second < 10 else 1_000 + (second - 10) * 500, 10_000)

    assert seen[-1].bytes_per_s == pytest.approx(500.0)
    assert all(before.done <= after.done for before, after in itertools.pairwise(seen))


async def test_file_that_a_scanner_has_open_for_a_moment_gets_its_name(
    hub: LoopbackHub, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, move = PermissionError(errno.EACCES, "Permission denied"), os.replace
    busy.winerror = 32  # pyright: ignore[reportAttributeAccessIssue] - as on Windows
    failures = [busy, busy]

    def replace(*paths: Path, **folders: int | None) -> None:
        if failures:
            raise failures.pop()
        move(*paths, **folders)

    monkeypatch.setattr(os, "replace", replace)
    await download_files([(source(hub), target)])

    assert (content(target), failures) == (CONTENT, [])
