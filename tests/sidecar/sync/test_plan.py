import pytest

from podferry.contract.destination.sync_record import SyncedArchive, SyncedFile
from podferry.contract.manifest import Entry
from podferry.contract.spec import Unpack
from podferry.sidecar.archive.unpack_rules import archives_of
from podferry.sidecar.sync.plan import (
    Reason,
    Records,
    Removal,
    in_the_way,
    move_reason,
    plan_removals,
    plan_sync,
    same_checksum,
)

MD5 = "0123456789abcdef0123456789abcdef"
RECORDS = Records(frozenset({SyncedFile("a", 3, "s1", "t1"), SyncedFile("a", 3, "s2", "t2")}))


@pytest.mark.parametrize(
    ("there", "source_tag", "size_only", "reason"),
    [
        (None, "s1", False, Reason.NEW),
        (None, "s1", True, Reason.NEW),
        (Entry("a", 4, "t1"), "s1", False, Reason.SIZE),
        (Entry("a", 4, "t1"), "s1", True, Reason.SIZE),
        (Entry("a", 3, "t1"), "s1", False, None),
        (Entry("a", 3, "t2"), "s2", False, None),
        (Entry("a", 3, "t2"), "s1", False, Reason.UNPROVEN),
        (Entry("a", 3, "t3"), "s1", False, Reason.UNPROVEN),
        (Entry("a", 3, "t1"), "s3", False, Reason.UNPROVEN),
        (Entry("a", 3, "t1"), "", False, Reason.UNTAGGED),
        (Entry("a", 3, ""), "", True, None),
        (Entry("a", 3, "t3"), "s1", True, None),
        (Entry("a", 3, MD5), f'"{MD5}"', False, None),
    ],
)
def test_the_table_of_decisions(there, source_tag, size_only, reason):
    assert move_reason(Entry("a", 3, source_tag), there, RECORDS, size_only=size_only) == reason


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (f'"{MD5}"', MD5, True),
        (f'"{MD5}-2"', f'"{MD5}-2"', True),
        (f'"{MD5}-2"', f'"{MD5}-3"', False),
        (f'"{MD5}-2"', f'"{MD5}"', False),
        ("", "", False),
        ('"0x8DC"', '"0x8DC"', False),  # Azure's names a version, not its bytes
        ("1-2-3", "1-2-3", False),
    ],
)
def test_only_md5s_are_compared_across_stores(first, second, same):
    assert same_checksum(first, second) is same


def test_an_archive_is_kept_while_all_its_members_are_as_recorded():
    archive, members = Entry("x.tar", 9, "s"), (Entry("m", 1, "t"), Entry("n", 2, "u"))
    records = Records(archives=(SyncedArchive(archive, members),))
    archives = archives_of([archive], Unpack.ALWAYS)
    there = {member.name: member for member in members}
    assert plan_sync([], archives, there, records).kept_archives == records.archives
    assert plan_sync([], archives, there, records).kept_files == 2
    for other in ({"m": members[0]}, {**there, "n": Entry("n", 2, "v")}):
        plan = plan_sync([], archives, other, records)
        assert (plan.unpacks, plan.bytes) == (archives, 9)
    changed = archives_of([Entry("x.tar", 9, "s2")], Unpack.ALWAYS)
    assert plan_sync([], changed, there, records).unpacks == changed


def test_removals_know_which_object_must_be_gone():
    records = Records(
        archives=(
            SyncedArchive(Entry("gone.tar", 1), (Entry("m", 1),)),
            SyncedArchive(Entry("here.tar", 1), (Entry("old", 1),)),
        )
    )
    there = [Entry(name, 1) for name in ("a", "m", "old", "extra", "left.alone")]
    found = plan_removals(["a"], ["a", "here.tar"], there, records, ((), ("left.*",)))
    assert found == (Removal("extra", "extra"), Removal("m", "gone.tar"), Removal("old", "old"))


def test_in_the_way_are_files_of_a_directory_that_becomes_a_file_and_the_reverse():
    removals = tuple(Removal(name, name) for name in ("a/x", "a/y/z", "ab/x", "b", "c/d", "e"))
    found = in_the_way(removals, ["a", "b/new/one", "c/f", "g"])
    assert [one.name for one in found] == ["a/x", "a/y/z", "b"]
