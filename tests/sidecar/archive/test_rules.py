"""The rules of archives: which objects are some, whose a name is, what there is room for."""

from __future__ import annotations

import pytest

from podferry.contract.errors import Refused
from podferry.contract.manifest import Entry
from podferry.contract.spec import Unpack
from podferry.sidecar.archive.rules import (
    Archive,
    ArchiveKind,
    NameRegistry,
    SpaceBudget,
    archives_of,
    kind_of,
    member_problem,
)
from podferry.sidecar.staging.volume_capacity import Capacity

ONE = Archive(Entry("d/one.tar", 1), ArchiveKind.TAR)
OTHER = Archive(Entry("other.zip", 1), ArchiveKind.ZIP)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.tar", ArchiveKind.TAR),
        ("d/A.TAR.GZ", ArchiveKind.TAR_GZ),
        ("a.tgz", ArchiveKind.TGZ),
        ("a.tar.zst", ArchiveKind.TAR_ZST),
        ("a.zip", ArchiveKind.ZIP),
        ("a.gz", None),
        ("a.tar.xz", None),
        ("tar", None),
        ("a.tar/b", None),
    ],
)
def test_an_archive_is_known_by_its_ending(name: str, kind: ArchiveKind | None) -> None:
    assert kind_of(name) is kind
    found = archives_of([Entry(name, 1)], Unpack.ALWAYS)
    assert [archive.kind for archive in found] == ([kind] if kind else [])
    assert archives_of([Entry(name, 1)], Unpack.AUTO) == archives_of([Entry(name, 1)], Unpack.NEVER) == ()


def test_members_get_the_directory_of_their_archive() -> None:
    assert ONE.staged_name("a/b") == ONE.staged_name("./a/b") == "d/a/b"
    assert OTHER.staged_name("a/b") == "a/b"


@pytest.mark.parametrize(
    "name", ["", "./", "././a", "../a", "/a", "a//b", "a\0b", "a/..", ".podferry-partial/1"]
)
def test_names_that_cannot_be_files_are_named(name: str) -> None:
    assert member_problem(OTHER, name) is not None
    assert member_problem(OTHER, "./a..b") is None


CLASHES = [
    (["a"], ["a"], "hold a file of the same name ('a')"),
    (["a"], ["a/b"], "both a file and a directory in the archive other.zip and the dataset ('a')"),
    (["a/b/c"], ["a/b"], "both a file and a directory in the archive other.zip and the dataset ('a/b')"),
    ([], ["a", "a"], "holds a name twice ('a')"),
    ([], ["a", "a/b/c"], "both a file and a directory in the archive other.zip ('a')"),
    ([], ["a/b/c", "a"], "both a file and a directory in the archive other.zip ('a')"),
]


@pytest.mark.parametrize(("there", "members", "words"), CLASHES)
def test_each_name_is_one_owners(there: list[str], members: list[str], words: str) -> None:
    with pytest.raises(Refused) as caught:
        NameRegistry(there).register(OTHER, members)
    assert words in str(caught.value)


def test_all_clashes_are_told_and_others_share_directories() -> None:
    taken = NameRegistry(["a/1", "b"])
    taken.register(ONE, ["a/2", "c/1"])
    with pytest.raises(Refused) as caught:
        taken.register(OTHER, ["a/1", "a/2", "a/3", "b/1"])
    assert [problem.measured for problem in caught.value.problems] == ["'a/1'", "'a/2'", "'b'"]


def test_room_is_shared_with_what_is_fetched_besides() -> None:
    room = SpaceBudget(Capacity(volume_bytes=4 * 4096, volume_files=3), reserved=[1, 4097])
    room.reserve(ONE, [4096])
    with pytest.raises(Refused) as caught:
        room.reserve(OTHER, [1])
    assert [problem.measured for problem in caught.value.problems] == [
        "4 files so far: 20.0 KiB; 16.0 KiB are free",
        "4 files so far; 3 inodes are free",
    ]
