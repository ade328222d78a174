"""Globs against a slow reading of the same rules, and parts of any listing."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import InvalidSpec
from podferry.contract.manifest import Entry
from podferry.contract.selection import glob_problem, list_of_globs, parse_globs, select, shard_of
from podferry.contract.spec import Shard

PARTS = st.text("ab.-,[]!*?", min_size=1, max_size=5).filter(lambda part: part not in {".", ".."})
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
PLAIN = st.sampled_from("ab.-")
PIECES = PLAIN | st.sampled_from(
    ["*", "?", "[ab]", "[!a]", "[]a]", "[a-b]", "\\*", "\\[", "\\,", "**", "[+-b]"]
)
GLOBS = (
    st.tuples(
        st.sampled_from(["", "", "/"]),
        st.lists(
            st.lists(PIECES, min_size=1, max_size=4).map("".join) | st.just("**"), min_size=1, max_size=4
        ),
        st.sampled_from(["", "", "/"]),
    )
    .map(lambda three: three[0] + "/".join(three[1]) + three[2])
    .filter(lambda glob: glob_problem(glob) is None)
)
SIZES = st.integers(0, 50) | st.integers(0, 2**40)
LISTINGS = st.lists(SIZES, max_size=60).map(
    lambda sizes: [Entry(f"f{index:03}", size) for index, size in enumerate(sizes)]
)


def fits(part: str, text: str) -> bool:
    """Whether a name's part matches a glob's part, one character at a time."""
    if not part:
        return not text
    if part[0] == "*":
        return any(fits(part.lstrip("*"), text[skip:]) for skip in range(len(text) + 1))
    if not text:
        return False
    if part[0] == "\\":
        return text[0] == part[1] and fits(part[2:], text[1:])
    if part[0] == "[":
        end = part.index("]", 3 if part[1] == "!" else 2)
        members = part[1:end].removeprefix("!")
        low, _, high = members.partition("-")
        inside = low <= text[0] <= high if high else text[0] in members
        return inside is (part[1] != "!") and fits(part[end + 1 :], text[1:])
    return part[0] in {"?", text[0]} and fits(part[1:], text[1:])


def below(parts: list[str], names: list[str]) -> bool:
    """Whether a name's parts match a glob's parts."""
    if not parts:
        return not names
    if parts[0] == "**":
        least = 0 if parts[1:] else 1
        return any(below(parts[1:], names[skip:]) for skip in range(least, len(names) + 1)) or (
            not parts[1:] and bool(names)
        )
    return bool(names) and fits(parts[0], names[0]) and below(parts[1:], names[1:])


def matches(glob: str, name: str) -> bool:
    parts, names = glob.strip("/").split("/"), name.split("/")
    anchored = glob.startswith("/") or len(parts) > 1
    if not anchored and parts == ["**"]:
        parts = ["*"]
    starts = [0] if anchored else range(len(names))
    ends = range(1, len(names)) if glob.endswith("/") else [len(names)]
    return any(below(parts, names[start:end]) for start in starts for end in ends if start < end)


@given(GLOBS, NAMES)
def test_a_glob_means_what_the_rules_say(glob: str, name: str) -> None:
    found = select([Entry(name, 0)], [glob], [])
    assert bool(found) is matches(glob, name)


@given(NAMES)
def test_every_name_can_be_written_as_a_glob(name: str) -> None:
    written = "/" + re.sub(r"([^/\w])", r"\\\1", name)
    assert parse_globs(written) == (written,)
    assert select([Entry(name, 0), Entry(f"{name}x", 0)], [written], []) == [Entry(name, 0)]


@pytest.mark.parametrize(
    ("glob", "those"),
    [
        ("*.jpg", ["a.jpg", "train/x/a.jpg", "val/a.jpg"]),
        ("/*.jpg", ["a.jpg"]),
        ("train/*", ["train/b.png"]),
        ("train/**", ["train/b.png", "train/x/a.jpg"]),
        ("train/**/*.jpg", ["train/x/a.jpg"]),
        ("**/x/*", ["train/x/a.jpg"]),
        ("x/", ["train/x/a.jpg"]),
        ("train", []),
        ("/train[+-b]b.png", []),
        ("**", ["a.jpg", "train/b.png", "train/x/a.jpg", "val/a.jpg", "a, b.jpg~"]),
        ("a\\,\\ b.*", ["a, b.jpg~"]),
        ("[a-b].???", ["a.jpg", "train/b.png", "train/x/a.jpg", "val/a.jpg"]),
    ],
)
def test_the_documented_globs(glob: str, those: list[str]) -> None:
    names = ["a.jpg", "train/b.png", "train/x/a.jpg", "val/a.jpg", "a, b.jpg~"]
    assert parse_globs(glob) == (glob,)
    assert [entry.name for entry in select((Entry(name, 1) for name in names), [glob], [])] == those


@given(st.lists(NAMES, max_size=8), st.lists(GLOBS, max_size=2), st.lists(GLOBS, max_size=2))
def test_exclude_overrides_include_and_order_is_kept(
    names: list[str], include: list[str], exclude: list[str]
) -> None:
    entries = [Entry(name, 1) for name in names]
    wanted = select(entries, include, [])
    unwanted = select(entries, exclude, []) if exclude else []
    assert select(entries, include, exclude) == [entry for entry in wanted if entry not in unwanted]


@pytest.mark.parametrize(
    ("text", "globs"),
    [
        ("a,b c\nd\t,, e", ("a", "b", "c", "d", "e")),
        ("a\\,b", ("a\\,b",)),
        ("a\\ b, c", ("a\\ b", "c")),
    ],
)
def test_lists_of_globs(text: str, globs: tuple[str, ...]) -> None:
    assert parse_globs(text) == globs


@pytest.mark.parametrize(
    ("listed", "globs"),
    [
        (["my file.txt"], ("my\\ file.txt",)),
        (["a, b"], ("a\\,\\ b",)),
        ([" *.jpg", "*.png\r\n"], ("*.jpg", "*.png")),
        (["my\\ file.txt"], ("my\\ file.txt",)),
        (["a[ ,]b"], ("a[\\ \\,]b",)),
    ],
)
def test_a_member_of_a_list_is_one_glob(listed: list[str], globs: tuple[str, ...]) -> None:
    assert parse_globs(list_of_globs(listed)) == globs
    assert parse_globs(list_of_globs(globs)) == globs


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no glob given"),
        (" ,\n", "no glob given"),
        ("!a", "cannot be negated"),
        ("*.{a,b}", "braces"),
        ("[a", "not closed"),
        ("[]", "not closed"),
        ("a[b/c]", "not closed"),
        ("[z-a]", "backwards"),
        ("a\\", "backslash"),
        ("a//b", "cannot match a relative name"),
        ("../a", "cannot match a relative name"),
        ("./a", "cannot match a relative name"),
        ("/", "cannot match a relative name"),
    ],
)
def test_globs_that_mean_something_else_are_refused(text: str, what: str) -> None:
    with pytest.raises(InvalidSpec, match=what) as caught:
        parse_globs(text)
    assert all(problem.measured and problem.remedy for problem in caught.value.problems)


@given(st.text("ab/*?[]!-\\,{^&~|. ", max_size=12), NAMES)
def test_accepted_globs_can_be_used(text: str, name: str) -> None:
    try:
        globs = parse_globs(text)
    except InvalidSpec:
        return
    select([Entry(name, 0)], globs, globs)


def test_matching_does_not_backtrack_forever() -> None:
    assert select([Entry("a" * 20_000 + "!", 1)], ["*a*a*a*a*a*a*a*b"], []) == []


@given(LISTINGS, st.integers(1, 9), st.randoms(use_true_random=False))
def test_shards_are_disjoint_complete_and_independent_of_order(
    entries: list[Entry], count: int, chance: random.Random
) -> None:
    parts = [shard_of(entries, Shard(rank, count)) for rank in range(count)]
    assert sorted(entry for part in parts for entry in part) == sorted(entries)
    assert all(part == sorted(part) for part in parts)
    chance.shuffle(entries)
    assert [shard_of(entries, Shard(rank, count)) for rank in range(count)] == parts


@given(LISTINGS, st.integers(1, 9))
def test_shards_differ_by_no_more_than_the_largest_file(entries: list[Entry], count: int) -> None:
    loads = [sum(entry.size for entry in shard_of(entries, Shard(rank, count))) for rank in range(count)]
    assert max(loads) - min(loads) <= max((entry.size for entry in entries), default=0)


def test_the_largest_files_are_dealt_out_first() -> None:
    entries = [Entry(f"f{index}", size) for index, size in enumerate([1, 1, 1, 1, 4])]
    assert [len(shard_of(entries, Shard(rank, 2))) for rank in range(2)] == [1, 4]


@given(LISTINGS, st.integers(1, 9))
def test_no_shard_is_empty_if_there_are_enough_files(entries: list[Entry], count: int) -> None:
    parts = [shard_of(entries, Shard(rank, count)) for rank in range(count)]
    assert sum(map(bool, parts)) == min(count, len(entries))


@given(LISTINGS, st.integers(1, 9), st.sampled_from([0, 7]))
def test_files_of_one_size_are_dealt_out_evenly(entries: list[Entry], count: int, size: int) -> None:
    same = [Entry(entry.name, size) for entry in entries]
    lengths = [len(shard_of(same, Shard(rank, count))) for rank in range(count)]
    assert max(lengths) - min(lengths) <= 1
