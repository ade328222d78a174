"""Hostile keys: each listed object is staged exactly, or named in an error."""

import importlib
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Corrupt, FerryError, NotFound
from podferry.contract.file_names import name_problem, quoted
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.memory.store import CONTENTS, Content
from podferry.storage.store import StoreConfig

COUNTER = itertools.count()
SETTINGS = PrefetchSettings(in_flight=4, attempts=1)
FINE = {"fine": b"fine", "sub/fine": b"fine too"}
HARMLESS = [
    *("A", "a", "DIR/x", "dir/X", "dot.", "blank ", " blank", "back\\slash", "..\\x", "C:\\x", "%2e%2e%2fx"),
    *(
        "%ff",
        "a b+c",
        "é",
        "e\u0301",
        "\u2028",
        "\ufeff",
        "\ufffd",
        "...",
        ".hidden",
        "-rf",
        "~",
        "con",
        "a:b",
    ),
    *(
        "*",
        "?x=1#y",
        "x" * 255,
        "é" * 127,
        "/".join(["y" * 200] * 4),
        ".podferry-partials",
        "nul.",
        "\U0001f600",
    ),
]
"""Odd, but valid file names."""
HOSTILE = [
    *("../x", "..", ".", "./x", "a/../x", "a/..", "/abs", "/etc/passwd", "a//b", "//", "sub//fine", "a/./b"),
    *("line\nbreak", "tab\t", "\x01", "\x7f", "\x1b[31m", "x" * 256, "é" * 128, "fine/below", "sub"),
    *(".podferry-partial", ".podferry-partial/0", "\x9b31m", "/".join(["z" * 100] * 9) + "/" + "x" * 256),
]
"""None can be a file in the same directory as FINE."""


class Memory:
    """A bucket in memory."""

    slow = False

    def __init__(self):
        self.name = f"hostile-{next(COUNTER)}"
        self.uri, self.config = parse_uri(f"memory://{self.name}/d"), StoreConfig()
        CONTENTS[self.name] = Content()

    def put(self, name, data):
        CONTENTS[self.name].objects[f"d/{name}"] = data


class S3:
    """A prefix of a bucket, filled without a client: clients would normalize such keys."""

    def __init__(self, config, prefix, engine=""):
        backends = importlib.import_module("moto.backends")
        self._bucket = backends.get_backend("s3")["123456789012"]["aws"]
        self._prefix = prefix
        self.slow = bool(engine)  # a store's first request loads a client
        self.uri, self.config = parse_uri(f"s3://bucket/{prefix}{engine}"), config

    def put(self, name, data):
        self._bucket.put_object("bucket", f"{self._prefix}/{name}", data)


@pytest.fixture(params=["memory", "s3", "s3-fsspec"])
def sources(request):
    """Makes empty sources that accept any key."""
    if request.param == "memory":
        return Memory
    config = request.getfixturevalue("config")
    engine = "?engine=fsspec" if request.param == "s3-fsspec" else ""
    return lambda: S3(config, f"hostile-{os.getpid()}-{next(COUNTER)}", engine)


async def staged(uri, config, folder):
    """The staged files after a prefetch: content by name."""
    root = Path(folder) / "stage"
    root.mkdir()
    stage = StagingDir(root, Path(folder) / "claims")
    dataset = await open_dataset(uri, config)
    try:
        plan = plan_fetch(dataset.manifest, stage.claim(dataset.manifest), SETTINGS)
        await Fetcher(plan, FetchSource(dataset.store), stage, SETTINGS).run()
    finally:
        stage.close()
        await dataset.store.close()
    return held(root)


def held(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_odd_names_are_files_like_any_other(sources, tmp_path):
    """Including names that differ only in case or Unicode form."""
    source = sources()
    files = {**FINE, "zero": b"", **{name: b"data of %d" % number for number, name in enumerate(HARMLESS)}}
    for key, data in files.items():
        source.put(key, data)
    assert await staged(source.uri, source.config, tmp_path) == files


async def test_an_invalid_file_name_is_reported_and_nothing_is_staged(sources, tmp_path):
    for number, name in enumerate(HOSTILE):
        source, folder = sources(), tmp_path / f"{number}"
        if source.slow and name not in FEW:
            continue
        folder.mkdir()
        for key, data in {**FINE, name: b"hostile"}.items():
            source.put(key, data)
        with pytest.raises(FerryError) as caught:
            await staged(source.uri, source.config, folder)
        message = str(caught.value)
        assert is_reported(name, message), message
        assert message.isprintable()
        assert held(folder / "stage") == {}
        assert {path.name for path in folder.iterdir()} <= {"stage", "claims"}


def is_reported(name, message):
    """Whether a message has a name: as Python or Rust prints it, or as the store lists it."""
    forms = {
        quoted(name)[1:-1],
        ascii(name)[1:-1],
        name.encode("unicode_escape").decode(),
        *OTHER_FORMS.get(name, ()),
    }
    return any(form[:150] in message for form in forms)


FEW = {"../x", "/abs"}
OTHER_FORMS = {
    "\x01": ("\\u{1}",),
    "\x7f": ("\\u{7f}",),
    "\x1b[31m": ("\\u{1b}[31m",),
    "//": ("'/'",),
    "fine/below": ("directory ('fine')",),
}


MARKERS = [("", "dir/"), ("", "sub/"), ("", ""), ("?engine=fsspec", "dir/")]


@pytest.mark.parametrize(("engine", "marker"), MARKERS)
async def test_a_directory_marker_is_skipped_and_one_with_bytes_is_reported(engine, marker, config, tmp_path):
    source = S3(config, f"hostile-{os.getpid()}-{next(COUNTER)}", engine)
    for key, data in {**FINE, marker: b""}.items():
        source.put(key, data)
    (tmp_path / "empty").mkdir()
    assert await staged(source.uri, source.config, tmp_path / "empty") == FINE
    source.put(marker, b"bytes")
    (tmp_path / "full").mkdir()
    with pytest.raises(FerryError, match=marker.rstrip("/") or "''"):
        await staged(source.uri, source.config, tmp_path / "full")


async def test_files_of_a_local_source_are_staged_or_reported(tmp_path):
    """Names of local files are bytes."""
    root = tmp_path / "d"
    (root / "sub").mkdir(parents=True)
    files = {name: name.encode() for name in HARMLESS if "/" not in name}
    for name, data in files.items():
        (root / name).write_bytes(data)
    (tmp_path / "one").mkdir()
    assert await staged(parse_uri(str(root)), StoreConfig(), tmp_path / "one") == files
    for number, name in enumerate((b"\xff", b"new\nline", b"sub/\x1b")):
        path = bytes(root) + b"/" + name
        with open(path, "wb"):  # noqa: ASYNC230, PTH123 - a name of bytes
            pass
        (tmp_path / f"{number}").mkdir()
        with pytest.raises(Corrupt, match=r"UTF-8|control characters"):
            await staged(parse_uri(str(root)), StoreConfig(), tmp_path / f"{number}")
        os.unlink(path)  # noqa: PTH108 - a name of bytes
    (root / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link").mkdir()
    with pytest.raises(NotFound, match="d/gone is a dangling link"):
        await staged(parse_uri(str(root)), StoreConfig(), tmp_path / "link")


KEYS = st.lists(
    st.text(alphabet="aA./\\ \n\0~é\udcff", min_size=1, max_size=7), min_size=1, max_size=6, unique=True
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(KEYS, st.booleans())
async def test_any_keys_are_staged_or_reported_and_nothing_is_written_outside(tmp_path_factory, keys, empty):
    folder = tmp_path_factory.mktemp("hostile")
    source = Memory()
    files = {name: b"" if empty else f"data of {number}".encode() for number, name in enumerate(keys)}
    for name, data in files.items():
        source.put(name, data)
    try:
        found, message = await staged(source.uri, source.config, folder), ""
    except FerryError as error:
        found, message = held(folder / "stage"), str(error)
    del CONTENTS[source.name]
    assert found == ({} if message else files)
    assert not message or any(quoted(name) in message for name in files)
    assert message or all(name_problem(name) is None for name in files)
    assert {path.name for path in folder.iterdir()} <= {"stage", "claims"}
