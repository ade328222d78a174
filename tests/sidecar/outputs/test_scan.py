import os
import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Changed
from podferry.sidecar.outputs import scan as scan_module
from podferry.sidecar.outputs.scan import StableReader, sample_names, scan_outputs
from podferry.sidecar.runtime.file_identity import FileIdentity

LONG_AGO = 1_600_000_000


@pytest.fixture
def chunk(monkeypatch):
    """Small chunks, so that small files have several."""
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 4)
    return 4


def reader_of(path: Path) -> StableReader:
    return StableReader(path, FileIdentity.of(path.stat()))


def test_every_regular_file_is_found_by_its_name(tmp_path):
    names = ["a.log", "runs/x/events.out.tfevents.1", "ä/ü", ".hidden", "runs/.podferry/x"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    (tmp_path / "empty").mkdir()
    found = scan_outputs(tmp_path)
    assert (sorted(found.files), found.problems) == (sorted(names), ())
    assert found.files["a.log"] == FileIdentity.of((tmp_path / "a.log").stat())


def test_ignored_files_are_named(tmp_path):
    (tmp_path / "real").write_bytes(b"1")
    for name in ("latest", "run"):
        (tmp_path / name).symlink_to("real")
    (tmp_path / "dir").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".podferry").mkdir()
    (tmp_path / ".podferry" / "outputs.json").write_bytes(b"{}")
    (tmp_path / "bad\nname").write_bytes(b"1")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
        found = scan_outputs(tmp_path)
    assert list(found.files) == ["real"]
    assert [str(problem) for problem in found.problems] == [
        "names below .podferry are podferry's own and not uploaded ('.podferry'). Choose another name.",
        "special files are not uploaded ('pipe', 'socket'). Keep sockets and pipes elsewhere.",
        "symbolic links are not uploaded ('dir', 'latest', 'run'). Write a copy where the file is needed.",
        "the name contains control characters ('bad\\nname'). Exclude it or rename it at its source.",
    ]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_directory_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "locked").mkdir(mode=0)
    assert [problem.measured for problem in scan_outputs(tmp_path).problems] == ["'locked'"]


def test_a_missing_directory_is_empty(tmp_path):
    assert scan_outputs(tmp_path / "gone").files == {}


def test_many_names_are_counted():
    assert sample_names(["b", "ä"]) == "'b', 'ä'"
    assert sample_names([str(number) for number in range(7)]) == "'0', '1', '2', '3', '4' and 2 more"


@pytest.mark.parametrize("data", [b"", b"123", b"1234", b"12345", b"1" * 1000])
def test_an_unchanged_file_is_read_as_it_is(tmp_path, chunk, data):
    path = tmp_path / "file"
    path.write_bytes(data)
    reader = reader_of(path)
    chunks = list(reader.body())
    assert b"".join(chunks) == data
    assert all(len(part) <= chunk for part in chunks)
    assert reader.read == FileIdentity.of(path.stat())


@settings(max_examples=60, deadline=None)
@given(
    before=st.binary(min_size=9, max_size=40),
    grown=st.binary(min_size=1, max_size=40),
    at=st.integers(0, 2),
)
def test_a_growing_file_is_read_up_to_its_size_when_it_was_opened(tmp_path_factory, before, grown, at):
    path = tmp_path_factory.mktemp("out") / "log"
    path.write_bytes(before)
    reader = reader_of(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, "CHUNK_BYTES", 4)
        body, taken = reader.body(), []
        for number, part in enumerate(body):
            taken.append(part)
            if number == at:
                with path.open("ab") as file:
                    file.write(grown)
    assert b"".join(taken) in (before, before + grown)  # the last chunk may be out before it grows
    assert b"".join(taken)[: len(before)] == before
    assert reader.read.size == len(before)


def test_bytes_appended_meanwhile_are_not_read(tmp_path, chunk):
    path = tmp_path / "log"
    path.write_bytes(b"12345678")
    body = reader_of(path).body()
    first = next(body)
    with path.open("ab") as file:
        file.write(b"9")
    assert first + b"".join(body) == b"12345678"


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"other")


def overwrite_and_grow(path: Path) -> None:
    overwrite(path)
    with path.open("ab") as file:
        file.write(b"more")


def truncate(path: Path) -> None:
    os.truncate(path, 2)


def rewrite(path: Path) -> None:
    path.write_bytes(b"another text of another length")


def overwrite_within_a_tick(path: Path) -> None:
    before = path.stat()
    overwrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [overwrite, overwrite_and_grow, truncate, rewrite])
@pytest.mark.parametrize("age", [0, 3600], ids=["fresh", "old"])
def test_the_last_chunk_of_an_overwritten_file_is_not_released(tmp_path, chunk, change, age):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789ab")
    os.utime(path, (path.stat().st_mtime - age,) * 2)
    refuses(path, change)


def test_nor_that_of_a_file_overwritten_within_a_clock_tick(tmp_path, chunk):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789ab")
    now = time.time_ns() + 10**12  # this test may be slower than a tick
    os.utime(path, ns=(now, now))
    refuses(path, overwrite_within_a_tick)


def refuses(path, change):
    body = reader_of(path).body()
    taken = [next(body)]
    change(path)
    with pytest.raises(Changed, match="file changed while it was being read"):
        taken += body
    assert len(b"".join(taken)) < 12


def test_a_file_that_is_removed_while_it_is_read_is_complete(tmp_path, chunk):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    body = reader_of(path).body()
    first = next(body)
    path.unlink()
    assert first + b"".join(body) == b"0123456789"


def test_a_missing_file_raises(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"1")
    reader = reader_of(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(reader.body())


@pytest.mark.parametrize("what", ["link", "pipe", "file", "socket"])
def test_a_replacement_of_the_file_is_not_read(tmp_path, monkeypatch, what):
    path, secret = tmp_path / "file", tmp_path / "secret"
    path.write_bytes(b"1")
    secret.write_bytes(b"not to be seen")
    reader = reader_of(path)
    path.rename(tmp_path / "before")
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        {
            "link": lambda: path.symlink_to(secret),
            "pipe": lambda: os.mkfifo(path),
            "file": lambda: path.write_bytes(b"2"),
            "socket": lambda: server.bind("file"),
        }[what]()
        with pytest.raises(Changed, match="it was replaced"):
            list(reader.body())


def test_a_directory_that_became_a_link_is_not_followed(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs" / "token").write_bytes(b"1")
    (tmp_path / "elsewhere" / "token").write_bytes(b"not to be seen")
    reader = reader_of(tmp_path / "runs" / "token")
    (tmp_path / "runs").rename(tmp_path / "before")
    (tmp_path / "runs").symlink_to("elsewhere")
    with pytest.raises(Changed, match="it was replaced"):
        list(reader.body())


@pytest.mark.parametrize(
    ("age_ns", "conclusive"),
    [(10_000_000_001, True), (60_000_001, True), (1, False), (-5_000_000_001, False)],
)
def test_an_identity_is_conclusive_after_a_clock_tick(tmp_path, monkeypatch, age_ns, conclusive):
    path = tmp_path / "file"
    path.write_bytes(b"1")
    written = LONG_AGO * 10**9 + 123
    os.utime(path, ns=(written, written))
    monkeypatch.setattr(scan_module.time, "time_ns", lambda: written + age_ns)
    reader = reader_of(path)
    list(reader.body())
    assert reader.conclusive is conclusive


def test_whole_seconds_are_conclusive_later(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"1")
    os.utime(path, (LONG_AGO, LONG_AGO))
    seen = {}
    for seconds in (1, 3):
        monkeypatch.setattr(scan_module.time, "time_ns", lambda s=seconds: (LONG_AGO + s) * 10**9)
        reader = reader_of(path)
        list(reader.body())
        seen[seconds] = reader.conclusive
    assert seen == {1: False, 3: True}


def test_a_log_under_a_busy_writer_is_always_a_prefix(tmp_path, chunk):
    """A writer in a thread appends numbered lines: every read returns what was written by then."""
    path = tmp_path / "log"
    path.write_bytes(b"")
    complete = b"".join(b"%06d\n" % number for number in range(3000))
    stop = threading.Event()

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            for number in range(3000):
                file.write(b"%06d\n" % number)
                if stop.is_set():
                    return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            taken = b"".join(reader_of(path).body())
            assert complete.startswith(taken)
    finally:
        stop.set()
        writer.join()
