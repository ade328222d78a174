"""An archive is unpacked completely or not at all, whatever it contains, and nothing else changes."""

from __future__ import annotations

import asyncio
import gzip
import os
import struct

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Changed, Corrupt, FerryError, Refused, Unavailable
from podferry.contract.spec import Unpack as Mode
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.storage.memory.faults import Fault
from tests.support.archive_site import (
    ENDINGS,
    SMALL_TAR,
    SMALL_ZIP,
    TREE,
    Site,
    archive_of,
    overlapping,
    refused,
    tar_of,
    zip_of,
)
from tests.support.zstd import zstd


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


def with_size(size):
    """A zip archive whose directory gives this size for its first member."""
    data = bytearray(zip_of([("a", b"1" * 600), ("b", b"2" * 600)]))
    struct.pack_into("<L", data, data.index(b"PK\x01\x02") + 24, size)
    return bytes(data)


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
@example(changes=[(1315, 64)], keep=None)  # the zip needs a later version of the format
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
