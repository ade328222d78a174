"""An archive is unpacked completely or not at all, whatever it contains, and nothing else changes."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import struct
import tarfile
import zipfile

import pytest
import stamina
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Changed, Corrupt, FerryError, Refused, Unavailable
from podferry.contract.spec import Unpack as Mode
from podferry.contract.uri import parse_uri
from podferry.sidecar.archive import zip as unzip
from podferry.sidecar.archive.member_writer import COPY_BYTES
from podferry.sidecar.archive.unpack_records import UnpackRecords, replace_with_members
from podferry.sidecar.archive.unpack_rules import ArchiveKind, SpaceBudget, archives_of
from podferry.sidecar.archive.unpacker import ArchiveUnpacker
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.byte_stream import MAX_READ_BYTES
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import Capacity, measure
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.faults import Content, Fault
from podferry.storage.memory.store import MemoryStore

try:
    from compression import zstd
except ImportError:
    from backports import zstd

SETTINGS = PrefetchSettings(range_bytes=1000, buffer_bytes=2500, attempts=2)
TREE = {"a/b.jpg": os.urandom(2000), "a/c": b"", "d": b"1", "e/f/g.bin": os.urandom(COPY_BYTES + 3)}
ENDINGS = [kind.value for kind in ArchiveKind]
LARGE = Capacity(volume_bytes=1 << 40)


@pytest.fixture(autouse=True)
def no_waiting():
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


def tar_of(members, mode="w", **options):
    """A tar archive of (header, content); a name as header is a regular file."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode, **options) as tar:
        for header, data in members:
            info = tarfile.TarInfo(header) if isinstance(header, str) else header
            if info.isreg():
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


def zip_of(members, method=zipfile.ZIP_DEFLATED):
    """A zip archive of (name or header, content), written like to a pipe: sizes follow the data."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for header, data in members:
            with archive.open(header, "w") as file:
                file.write(data)
    return made.getvalue()


def archive_of(ending, tree):
    if ending == ".zip":
        return zip_of(tree.items())
    plain = tar_of(tree.items())
    return {".tar.zst": zstd.compress, ".tar": bytes}.get(ending, gzip.compress)(plain)


def special(name, kind, target=""):
    """The header of a member that is not a regular file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


class Site:
    """A dataset and a staging directory, over several starts."""

    def __init__(self, folder):
        self.content = Content()
        self.root = folder / "stage"
        self.root.mkdir()
        self.claims = folder / "claims"
        self.unpacked = []
        self.settings = SETTINGS

    def put(self, name, data):
        self.content.objects[f"d/{name}"] = data

    async def start(self, mode=Mode.ALWAYS, capacity=None, stage=StagingDir):
        """Claim and unpack like an agent; the names kept from an earlier start."""
        store = MemoryStore(parse_uri("memory://archives/d"), self.content)
        part = await list_dataset(store)
        held = stage(self.root, self.claims)
        archives = archives_of(part.entries, mode)
        records = UnpackRecords(self.root, self.claims)
        unpacked = records.find_unpacked(archives)
        kept = held.claim(replace_with_members(part, archives, unpacked), records.member_names)
        done = records.keep(unpacked, kept)
        plain = [entry for entry in part.entries if entry not in {archive.entry for archive in archives}]
        self.unpacked.clear()
        try:
            progress = lambda files, count: self.unpacked.append((files, count))  # noqa: E731
            await ArchiveUnpacker(
                [archive for archive in archives if archive.name not in done],
                FetchContext(store, held, self.settings, progress),
                records,
                [*(entry.name for entry in plain), *(one.name for name in done for one in unpacked[name])],
                SpaceBudget(capacity or measure(self.root)),
            ).run()
        finally:
            held.close()
        held.remove_partials()
        return kept

    def held(self):
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    # Nothing may leave the staging directory.
    assert {path.name for path in tmp_path.iterdir()} <= {"stage", "claims"}


async def refused(site, kind=Refused, **options):
    """The error; the staging directory is unchanged."""
    before = site.held()
    with pytest.raises(kind) as caught:
        await site.start(**options)
    assert site.held() == before
    assert not list(site.root.glob(f"{PARTIAL_DIR}/*"))
    return caught.value


@pytest.mark.parametrize("ending", ENDINGS)
async def test_members_are_staged_next_to_their_archive(site, ending):
    site.put(f"data/train{ending}", archive_of(ending, TREE))
    await site.start()
    assert site.held() == {f"data/{name}": data for name, data in TREE.items()}
    size = len(site.content.objects[f"d/data/train{ending}"])
    assert [sum(counts) for counts in zip(*site.unpacked, strict=True)] == [1, size]
    assert {path.stat().st_mode & 0o777 for path in site.root.rglob("*") if path.is_file()} == {0o644}


NAMES = st.from_regex(r"[a-zä ]{1,8}(/[a-z.]{1,4}x){0,2}", fullmatch=True)
TREES = st.dictionaries(NAMES, st.binary(max_size=3000), min_size=1, max_size=8)


@pytest.mark.parametrize("ending", ENDINGS)
@given(tree=TREES)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_archived_tree_is_restored(tmp_path_factory, ending, tree):
    above = {name[:cut] for name in tree for cut, character in enumerate(name) if character == "/"}
    tree = {name: data for name, data in tree.items() if name not in above}
    site = Site(tmp_path_factory.mktemp("site"))
    site.put(f"x{ending}", archive_of(ending, tree))
    asyncio.run(site.start())
    assert site.held() == tree


async def test_archives_and_plain_files_share_a_staging_directory(site):
    for number in range(7):
        ending = ENDINGS[number % len(ENDINGS)]
        site.put(
            f"s/{number}{ending}",
            archive_of(ending, {f"{number}/{i}": os.urandom(i * 97) for i in range(40)}),
        )
    site.put("s/plain", b"1")
    await site.start()
    assert len(site.held()) == 7 * 40
    assert sum(files for files, _ in site.unpacked) == 7


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.NEVER])
async def test_archives_are_unpacked_only_on_request(site, mode):
    site.put("a.tar", tar_of(TREE.items()))
    await site.start(mode)
    assert site.unpacked == []


async def test_a_tar_of_the_current_directory_is_unpacked(site):
    members = [(special("./", tarfile.DIRTYPE), b""), (special("./a", tarfile.DIRTYPE), b""), ("./a/b", b"1")]
    site.put("x.tar", tar_of(members))
    await site.start()
    assert site.held() == {"a/b": b"1"}


async def test_a_sparse_file_is_unpacked_with_its_holes(site):
    # GNU's old format: 3 bytes at 0 and 2 bytes at 70,000, of 70,002.
    info = tarfile.TarInfo("holes")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 5
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:482] = b"".join(b"%011o\0%011o\0" % pair for pair in ((0, 3), (70_000, 2))).ljust(96, b"\0")
    header[482:483], header[483:495] = b"\0", b"%011o\0" % 70_002
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    site.put("x.tar", bytes(header) + b"abcde".ljust(512, b"\0") + bytes(1024))
    await site.start()
    assert site.held() == {"holes": b"abc" + bytes(69_997) + b"de"}


SPECIAL = [
    (special("l", tarfile.SYMTYPE, "/etc/passwd"), "a symbolic link"),
    (special("h", tarfile.LNKTYPE, "a"), "a hard link"),
    (special("c", tarfile.CHRTYPE), "a device"),
    (special("b", tarfile.BLKTYPE), "a device"),
    (special("p", tarfile.FIFOTYPE), "a pipe"),
    (special("v", b"V"), "unknown type"),
]
BAD = ["../x", "/abs", "a//b", "a/./b", "a/../../x", "n" * 256, "con\ntrol", f"{PARTIAL_DIR}/1"]


async def test_all_members_that_are_not_files_are_reported_together(site):
    site.put("x.tar.gz", gzip.compress(tar_of([("good", b"1"), *((header, b"") for header, _ in SPECIAL)])))
    error = await refused(site)
    assert len(error.problems) == len(SPECIAL)
    for (header, words), problem in zip(SPECIAL, error.problems, strict=True):
        assert words in problem.what
        assert repr(header.name) == problem.measured


@pytest.mark.parametrize("ending", [".tar", ".zip"])
async def test_all_bad_names_are_reported_together(site, ending):
    members = [("good", b"1"), *((name, b"2") for name in BAD)]
    site.put(f"x{ending}", tar_of(members) if ending == ".tar" else zip_of(members))
    error = await refused(site)
    assert [problem.measured for problem in error.problems] == [ascii(name)[:200] for name in BAD]


def zip_member(mode):
    """The header of a zip member of another kind."""
    info = zipfile.ZipInfo("odd")
    info.create_system, info.external_attr = 3, mode << 16
    return info


@pytest.mark.parametrize(
    ("mode", "words"), [(0o120777, "symbolic link"), (0o020666, "device"), (0o010666, "pipe")]
)
async def test_a_zip_member_that_is_not_a_file_is_refused(site, mode, words):
    site.put("x.zip", zip_of([("good", b"1"), (zip_member(mode), b"/etc/passwd")]))
    assert words in str(await refused(site))
    assert ("read", "x.zip") not in site.content.calls[3:]  # its directory was enough


async def test_a_nul_in_a_zip_name_hides_nothing(site):
    data = zip_of([("good.png", b"1")]).replace(b"good.png", b"goo\0.png")
    site.put("x.zip", data)
    assert "control characters" in str(await refused(site))


async def test_an_encrypted_zip_and_other_methods_are_refused(site):
    data = bytearray(zip_of([("secret", b"1")]))
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    site.put("x.zip", bytes(data))
    assert "an encrypted file" in str(await refused(site))
    site.put("x.zip", zip_of([("a", b"1")], zipfile.ZIP_BZIP2))
    assert "method 12" in str(await refused(site))


TWICE = [("a", b"1"), ("a", b"2")]


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("ending", [".tar", ".zip"])
async def test_two_members_of_one_name_are_refused(site, ending):
    site.put(f"x{ending}", tar_of(TWICE) if ending == ".tar" else zip_of(TWICE))
    assert "holds a name twice ('a')" in str(await refused(site))


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"y.tar": tar_of([("a", b"2")])}, "hold a file of the same name ('a')"),
        ({"a": b"2"}, "and the dataset hold a file of the same name ('a')"),
        ({"a/b": b"2"}, "both a file and a directory"),
        ({"y.zip": zip_of([("a/b/c", b"2")])}, "both a file and a directory"),
    ],
)
async def test_names_that_clash_with_others_are_refused(site, others, words):
    site.put("x.tar", tar_of([("a", b"1")]))
    for name, data in others.items():
        site.put(name, data)
    with pytest.raises(Refused) as caught:
        await site.start()
    assert words in str(caught.value)
    assert len(site.held()) <= 1


async def test_a_file_of_the_trainer_is_not_replaced(site):
    site.put("x.tar", tar_of([("a", b"1")]))
    site.content.faults.append(Fault("read", "*", error=Changed.of("x.tar")))
    with pytest.raises(Changed):
        await site.start()
    (site.root / "a").write_bytes(b"precious")  # the same dataset leaves it unchanged
    for _ in range(2):  # the next start does not treat it as podferry's own either
        assert "has the name of an existing file" in str(await refused(site))
    assert site.held() == {"a": b"precious"}


def bomb(size):
    return {
        ".tar.gz": gzip.compress(tar_of([("zeros", bytes(size))])),
        ".tar.zst": zstd.compress(tar_of([("zeros", bytes(size))])),
        ".zip": zip_of([("zeros", bytes(size))]),
    }


@pytest.mark.parametrize("ending", [".tar.gz", ".tar.zst", ".zip"])
async def test_an_archive_that_exceeds_the_budget_is_refused_with_numbers(site, ending):
    site.put(f"x{ending}", bomb(8 << 20)[ending])
    error = await refused(site, capacity=Capacity(volume_bytes=4 << 20))
    assert error.problems[0].measured == "1 files so far: 8.0 MiB; 4.0 MiB are free"
    error = await refused(site, capacity=Capacity(volume_bytes=1 << 40, memory_bytes=4 << 20))
    assert "the free memory" in error.problems[0].what
    await site.start()


async def test_many_tiny_members_are_counted_in_pages_and_inodes(site):
    site.put("x.tar.gz", gzip.compress(tar_of([(str(i), b"1") for i in range(100)])))
    error = await refused(site, capacity=Capacity(volume_bytes=99 * 4096))
    assert error.problems[0].measured == "100 files so far: 400.0 KiB; 396.0 KiB are free"
    assert "too few inodes" in str(await refused(site, capacity=Capacity(1 << 40, volume_files=99)))


async def test_headers_that_need_too_much_memory_are_refused(site):
    """A name of 200 MiB costs 200 KiB to send, and a library reads it at once."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 200 << 20
    data = info.tobuf(tarfile.GNU_FORMAT) + b"n" * (MAX_READ_BYTES + 1)
    site.put("x.tar.gz", gzip.compress(data))
    assert "the headers of a member take more" in str(await refused(site, Corrupt))


async def test_a_zip_directory_that_needs_too_much_memory_is_refused(site, monkeypatch):
    monkeypatch.setattr(unzip, "MAX_DIRECTORY_BYTES", 100)
    monkeypatch.setattr("podferry.sidecar.archive.unpacker.MAX_DIRECTORY_BYTES", 200_000)
    site.put("x.zip", zip_of([(f"{i:04}" + "n" * 200, b"") for i in range(1000)]))
    assert "directory of the archive x.zip is too long" in str(await refused(site))


async def test_a_zip_with_a_long_directory_is_read(site):
    tree = {f"{i:04}" + "n" * 200: b"%d" % i for i in range(1000)}
    site.settings = PrefetchSettings(range_bytes=100_000, buffer_bytes=100_000)
    site.put("x.zip", zip_of(tree.items()))
    await site.start()
    assert site.held() == tree


def overlapping():
    """Two directory entries of one member, like in a zip bomb whose members share bytes."""
    data = bytearray(zip_of([("aa", b"1" * 100), ("bb", b"2" * 100)], zipfile.ZIP_STORED))
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    struct.pack_into("<L", data, second + 42, 0)
    data[second + 46 : second + 48] = b"aa"
    return bytes(data)


def with_size(size):
    """A zip archive whose directory gives this size for its first member."""
    data = bytearray(zip_of([("a", b"1" * 600), ("b", b"2" * 600)]))
    struct.pack_into("<L", data, data.index(b"PK\x01\x02") + 24, size)
    return bytes(data)


SMALL_TAR = tar_of([("a", b"1" * 600), ("b", b"2" * 600)])
SMALL_ZIP = zip_of([("a", b"1" * 600), ("b", b"2" * 600)], zipfile.ZIP_STORED)
BROKEN = {
    "empty.tar": b"",
    "empty.tar.gz": b"",
    "empty.tar.zst": b"",
    "empty.zip": b"",
    "text.tar": b"no archive" * 100,
    "text.tar.gz": b"no archive" * 100,
    "text.tar.zst": b"no archive" * 100,
    "text.zip": b"no archive" * 100,
    "cut-in-data.tar": SMALL_TAR[:700],
    "cut-in-header.tar": SMALL_TAR[:1700],
    "cut-between.tar": SMALL_TAR[:1536],
    "no-end.tar": SMALL_TAR[:3072],
    "broken-header.tar": SMALL_TAR[:1540] + b"X" + SMALL_TAR[1541:],
    "followed.tar": SMALL_TAR + b"rubbish",
    "two.tar": SMALL_TAR + SMALL_TAR,
    "cut.tar.gz": gzip.compress(SMALL_TAR)[:-9],
    "sum.tar.gz": gzip.compress(SMALL_TAR)[:-8] + b"12345678",
    "followed.tar.gz": gzip.compress(SMALL_TAR) + b"rubbish",
    "twice.tar.gz": gzip.compress(gzip.compress(SMALL_TAR)),
    "inner-cut.tar.gz": gzip.compress(SMALL_TAR[:1536]),
    "cut.tar.zst": zstd.compress(SMALL_TAR)[:-9],
    "followed.tar.zst": zstd.compress(SMALL_TAR) + b"rubbish",
    "cut.zip": SMALL_ZIP[:-50],
    "crc.zip": SMALL_ZIP.replace(b"1" * 600, b"1" * 599 + b"3"),
    "other-name.zip": SMALL_ZIP.replace(b"a", b"c", 1),
    "no-data.zip": bytes(700) + SMALL_ZIP[700:],
    "overlapping.zip": overlapping(),
    "says-empty.zip": with_size(0),
    "says-less.zip": with_size(599),
    "says-more.zip": with_size(601),
}


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("name", BROKEN)
async def test_an_incomplete_archive_is_corrupt_and_named(site, name):
    site.put(name, BROKEN[name])
    site.put("good.tar", tar_of([("good", b"1")]))
    with pytest.raises(Corrupt, match=name.replace(".", r"\.")):
        await site.start()
    assert set(site.held()) <= {"good"}
    assert not list(site.root.glob(f"{PARTIAL_DIR}/*"))


async def test_overlapping_members_are_refused(site):
    site.put("x.zip", overlapping())
    assert "overlap" in str(await refused(site, Corrupt)).lower()


@pytest.mark.parametrize("pieces", [[SMALL_TAR[:700], SMALL_TAR[700:]], [SMALL_TAR, bytes(9000)]])
async def test_gzip_of_several_members_and_padding_are_one_archive(site, pieces):
    site.put("x.tgz", b"".join(map(gzip.compress, pieces)) + bytes(512))
    await site.start()
    assert site.held() == {"a": b"1" * 600, "b": b"2" * 600}


FUZZED = {
    ".tar": SMALL_TAR,
    ".zip": SMALL_ZIP,
    ".tar.gz": gzip.compress(SMALL_TAR),
    ".tar.zst": zstd.compress(SMALL_TAR),
}
CHANGES = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("ending", FUZZED)
@given(changes=CHANGES, keep=st.one_of(st.none(), st.integers(0, 6000)))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_archives_are_refused_by_name_or_harmless(tmp_path_factory, ending, changes, keep):
    data = bytearray(FUZZED[ending])
    for at, value in changes:
        data[at % len(data)] = value
    site = Site(tmp_path_factory.mktemp("fuzz"))
    site.put(f"x{ending}", bytes(data[:keep]))
    message = ""
    try:
        asyncio.run(site.start(capacity=Capacity(volume_bytes=1 << 24)))
    except FerryError as error:
        message = str(error)
    assert not message or (f"x{ending}" in message and site.held() == {})
    assert {path.name for path in site.root.parent.iterdir()} <= {"stage", "claims"}
    assert not any(path.is_symlink() for path in site.root.rglob("*"))


@pytest.mark.parametrize("ending", [".tar", ".zip"])
@pytest.mark.parametrize("skip", [0, 1, 3])
async def test_a_failure_halfway_leaves_nothing_behind(site, ending, skip):
    tree = {str(i): os.urandom(700) for i in range(10)}
    site.put(f"x{ending}", archive_of(ending, tree))
    site.content.faults.append(Fault("read", skip=skip, error=Changed.of("x was changed")))
    await refused(site, Changed)
    await site.start()
    assert site.held() == tree


async def test_temporary_errors_are_retried_and_finally_raised(site):
    site.put("x.tar", tar_of(TREE.items()))
    site.content.faults.append(Fault("read", skip=2, error=Unavailable.of("gone")))
    await site.start()
    assert site.held() == TREE
    site.put("y.tar", tar_of([("y", b"1")]))
    site.content.faults.append(Fault("read", "y.tar", times=9, error=Unavailable.of("gone")))
    with pytest.raises(Unavailable):
        await site.start()


async def test_a_cancelled_run_ends_its_threads_and_leaves_nothing(site):
    site.put("x.tar", tar_of(TREE.items()))
    for skip in (0, 1, 5):
        reached = Fault("read", skip=skip, wait=asyncio.Event())
        site.content.faults[:] = [reached]
        site.content.calls.clear()
        run = asyncio.create_task(site.start())
        while sum(call == "read" for call, _ in site.content.calls) <= skip:  # noqa: ASYNC110
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert site.held() == {}


async def test_unpacked_members_are_kept_by_the_next_start(site):
    site.put("x.tar", tar_of(TREE.items()))
    site.put("y.zip", zip_of([("y", b"1")]))
    await site.start()
    site.content.calls.clear()
    assert await site.start() == {*TREE, "y"}
    assert {name for call, name in site.content.calls if call == "read"} == set()
    (site.root / "d").write_bytes(b"12")
    await site.start()
    assert {name for call, name in site.content.calls if call == "read"} == {"x.tar"}
    assert site.held() == {**TREE, "y": b"1"}


async def test_members_are_trimmed_when_the_archive_changes(site):
    site.put("x.tar", tar_of(TREE.items()))
    await site.start()
    site.put("x.tar", tar_of([("other", b"1")]))
    await site.start()
    assert site.held() == {"other": b"1"}
    assert len(list((site.claims / "unpacked").iterdir())) == 1


async def test_members_are_trimmed_when_unpacking_is_switched_off(site):
    site.put("x.tar", tar_of(TREE.items()))
    await site.start()
    await site.start(Mode.NEVER)
    assert site.held() == {}


class Death(BaseException):
    """Ends a worker like a kill."""


def dying_at(count):
    """A staging directory whose worker is killed at that call."""
    left = [count]

    def tick():
        left[0] -= 1
        if left[0] < 0:
            raise Death

    class Dying(StagingDir):
        def create_partial(self, number):
            tick()
            return super().create_partial(number)

        def write(self, path, data, start):
            tick()
            super().write(path, data, start)

        def publish(self, path, entry):
            tick()
            super().publish(path, entry)

        def remove_partials(self, prefix=""):
            if left[0] >= 0:  # a kill cleans up nothing
                super().remove_partials(prefix)

    return Dying, left


@pytest.mark.parametrize("ending", [".tar", ".zip"])
async def test_the_next_start_recovers_from_a_kill_at_any_moment(tmp_path, ending):
    tree = {f"{i}/f": os.urandom(50) for i in range(4)}
    reached = 0
    for count in range(100):
        folder = tmp_path / str(count)
        folder.mkdir()
        site = Site(folder)
        site.put(f"x{ending}", archive_of(ending, tree))
        site.put("y.tar", tar_of([("y", b"1")]))
        stage, left = dying_at(count)
        try:
            await site.start(stage=stage)
        except (Death, BaseExceptionGroup):
            reached += 1
        seen = {name: data for name, data in site.held().items() if not name.startswith(PARTIAL_DIR)}
        assert seen.items() <= {**tree, "y": b"1"}.items()
        await site.start()
        assert site.held() == {**tree, "y": b"1"}
        site.put(f"x{ending}", archive_of(ending, {"z": b"1"}))
        await site.start()
        assert site.held() == {"z": b"1", "y": b"1"}
        if left[0] >= 0:
            break
    assert reached > 10
