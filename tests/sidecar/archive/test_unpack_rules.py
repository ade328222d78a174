"""Which objects are archives, who owns a name, and the space budget."""

from __future__ import annotations

import pytest

from podferry.contract.errors import Refused
from podferry.contract.manifest import Entry
from podferry.contract.spec import Unpack
from podferry.sidecar.archive.unpack_rules import (
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
def test_an_archive_is_recognised_by_its_suffix(name: str, kind: ArchiveKind | None) -> None:
    assert kind_of(name) is kind
    found = archives_of([Entry(name, 1)], Unpack.ALWAYS)
    assert [archive.kind for archive in found] == ([kind] if kind else [])
    assert archives_of([Entry(name, 1)], Unpack.AUTO) == archives_of([Entry(name, 1)], Unpack.NEVER) == ()


def test_members_go_to_the_directory_of_their_archive() -> None:
    assert ONE.staged_name("a/b") == ONE.staged_name("./a/b") == "d/a/b"
    assert OTHER.staged_name("a/b") == "a/b"


@pytest.mark.parametrize(
    "name", ["", "./", "././a", "../a", "/a", "a//b", "a\0b", "a/..", ".podferry-partial/1"]
)
def test_invalid_member_names_are_problems(name: str) -> None:
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


@pytest.mark.parametrize(("names", "members", "words"), CLASHES)
def test_each_name_has_one_owner(names: list[str], members: list[str], words: str) -> None:
    with pytest.raises(Refused) as caught:
        NameRegistry(names).register(OTHER, members)
    assert words in str(caught.value)


def test_all_clashes_are_reported_and_directories_may_be_shared() -> None:
    registry = NameRegistry(["a/1", "b"])
    registry.register(ONE, ["a/2", "c/1"])
    with pytest.raises(Refused) as caught:
        registry.register(OTHER, ["a/1", "a/2", "a/3", "b/1"])
    assert [problem.measured for problem in caught.value.problems] == ["'a/1'", "'a/2'", "'b'"]


def test_the_budget_includes_files_fetched_as_they_are() -> None:
    budget = SpaceBudget(Capacity(volume_bytes=4 * 4096, volume_files=3), reserved=[1, 4097])
    budget.reserve(ONE, [4096])
    with pytest.raises(Refused) as caught:
        budget.reserve(OTHER, [1])
    assert [problem.measured for problem in caught.value.problems] == [
        "4 files so far: 20.0 KiB; 16.0 KiB are free",
        "4 files so far; 3 inodes are free",
    ]
