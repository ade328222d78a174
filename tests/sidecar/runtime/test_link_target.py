"""No link leads out of the directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from podferry.sidecar.runtime.link_target import LeavesRoot, LinkRefused, resolve_within, stat_within


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "root"
    (found / "a" / "b").mkdir(parents=True)
    (found / "a" / "b" / "w").write_bytes(b"123")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "w").write_bytes(b"4567")
    return found


@pytest.mark.parametrize(
    ("link", "target", "real"),
    [
        ("l", "a/b/w", "a/b/w"),
        ("a/l", "b", "a/b"),
        ("a/b/l", "../../a/./b/w", "a/b/w"),
        ("a/l", "..", "."),
        ("l", "../root/a", None),
        ("a/l", "../../secret", None),
        ("l", "/etc/passwd", None),
    ],
)
def test_links_are_resolved_within_the_root(root: Path, link: str, target: str, real: str | None) -> None:
    (root / link).symlink_to(target)
    if real is None:
        with pytest.raises(LeavesRoot):
            resolve_within(root, link)
    else:
        assert resolve_within(root, link) == real


def test_an_absolute_link_into_the_root_and_a_chain_of_links(root: Path) -> None:
    (root / "first").symlink_to(root / "a")
    (root / "second").symlink_to("first/b")
    assert resolve_within(root, "second/w") == "a/b/w"


def test_loops_and_links_to_nothing(root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "gone").symlink_to("missing/w")
    (root / "file").symlink_to("a/b/w/x")
    for name in ("one", "gone", "file", "missing"):
        with pytest.raises(LinkRefused):
            resolve_within(root, name)


def test_a_directory_that_is_replaced_by_a_link_is_not_followed(root: Path) -> None:
    real = resolve_within(root, "a/b/w")
    assert stat_within(root, real).st_size == 3
    (root / "a" / "b").rename(root / "moved")
    (root / "a" / "b").symlink_to("../../secret")
    assert (root / "a/b/w").stat().st_size == 4, "the system would follow it"
    with pytest.raises(LinkRefused):
        stat_within(root, real)
